//! The control methods with which a node describes its actors.

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{
    Actor, ActorSystem, ChildSpec, Context, Fault, FaultCode, Restart, Strategy, Supervisor,
};
use strowger_gateway::access::Operation;
use strowger_gateway::client::{Client, ClientError};
use strowger_gateway::method::{MethodOutput, Methods};
use strowger_gateway::{Gateway, Limits};

struct Idle;

impl Actor for Idle {
    type Msg = ();
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Node {
    system: ActorSystem,
    gateway: Gateway,
    directory: tempfile::TempDir,
}

async fn node(methods: Methods) -> Node {
    let directory = tempfile::tempdir().expect("a folder of our own");
    let system = ActorSystem::new("node").expect("inside a runtime");
    let workers = Supervisor::new(Strategy::OneForOne)
        .child(ChildSpec::new::<Idle>("a", ()).restart(Restart::Permanent))
        .child(ChildSpec::new::<Idle>("b", ()).restart(Restart::Temporary));
    system
        .supervise("workers", workers)
        .await
        .expect("as the protocol says");
    let socket = directory.path().join("control.sock");
    let gateway = Gateway::open(&system, socket, Limits::default(), methods);
    let gateway = gateway.await.expect("as the protocol says");
    Node {
        system,
        gateway,
        directory,
    }
}

impl Node {
    async fn client(&self) -> Client {
        Client::connect(self.gateway.path())
            .await
            .expect("the node listens")
    }
}

fn fault(result: Result<Value, ClientError>) -> Fault {
    match result {
        Err(ClientError::Fault(fault)) => fault,
        other => panic!("{other:?} is not a fault"),
    }
}

fn paths(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().expect("as the protocol says");
    rows.iter()
        .map(|row| row["path"].as_str().expect("as the protocol says"))
        .collect()
}

#[tokio::test]
async fn socket_is_accessible_only_to_its_owner() {
    let node = node(Methods::new()).await;
    let mode = std::fs::metadata(node.gateway.path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let left = std::fs::read_dir(node.directory.path()).unwrap().count();
    assert_eq!(left, 1, "nothing else is left beside the socket");
}

#[tokio::test]
async fn ping_identifies_the_node() {
    let node = node(Methods::new()).await;
    let pong = node.client().await.call("ping", Value::Null).await.unwrap();
    assert_eq!(pong["name"], "node");
    assert_eq!(pong["pid"], std::process::id());
}

#[tokio::test]
async fn tree_lists_parents_before_children_and_includes_the_caller() {
    let node = node(Methods::new()).await;
    let tree = node.client().await.call("tree", Value::Null).await.unwrap();
    let all = [
        "/workers",
        "/workers/a",
        "/workers/b",
        "/gateway",
        "/gateway/connections",
        "/gateway/connections/c1",
        "/gateway/connections/c1/1",
        "/gateway/control",
        "/gateway/reader",
    ];
    assert_eq!(paths(&tree), all);
}

#[tokio::test]
async fn tree_limit_applies_to_each_parent() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    let cut = client.call("tree", json!({"limit": 1})).await.unwrap();
    let kept = [
        "/workers",
        "/workers/a",
        "/gateway",
        "/gateway/connections",
        "/gateway/connections/c1",
        "/gateway/connections/c1/1",
    ];
    assert_eq!(paths(&cut), kept);
    assert_eq!(cut[0]["children"], 2, "how many there are is still told");
    let none = client.call("tree", json!({"limit": 0})).await.unwrap();
    assert_eq!(paths(&none), ["/workers", "/gateway"]);
}

#[tokio::test]
async fn ps_filters_sorts_and_limits() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    let params = json!({"path": "/workers", "sort": "children", "limit": 1});
    let rows = client.call("ps", params).await.unwrap();
    assert_eq!(paths(&rows), ["/workers"]);
    let wrong = fault(client.call("ps", json!({"sort": "beauty"})).await);
    assert_eq!(wrong.code, FaultCode::BadRequest);
    assert!(wrong.message.contains("high_water"), "{wrong}");
}

#[tokio::test]
async fn inspect_includes_descriptions() {
    let methods = Methods::new()
        .describe(|path| async move { (path.key() == "a").then(|| json!({"rules": 3})) });
    let node = node(methods).await;
    let mut client = node.client().await;
    let a = client
        .call("inspect", json!({"path": "/workers/a"}))
        .await
        .unwrap();
    assert_eq!(a["details"], json!({"rules": 3}));
    assert_eq!(
        (&a["state"], &a["restarts"]),
        (&json!("running"), &json!(0))
    );
    assert_eq!(a["last_exit"], Value::Null);
    let b = client
        .call("inspect", json!({"path": "/workers/b"}))
        .await
        .unwrap();
    assert_eq!(b.get("details"), None);
}

#[tokio::test]
async fn unknown_path_error_tells_the_existing_part() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    for method in ["inspect", "kill", "ps", "tree"] {
        let missing = fault(client.call(method, json!({"path": "/workers/c/d"})).await);
        assert_eq!(missing.code, FaultCode::UnknownTarget);
        let text = "no actor at /workers/c/d; below /workers/ there are a, b";
        assert_eq!(missing.message, text);
    }
}

#[tokio::test]
async fn kill_stops_an_actor_and_panic_restarts_it() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    let params = json!({"path": "/workers/a", "panic": true});
    let done = client.call("kill", params).await.unwrap();
    assert_eq!(done["restarted"], true);
    assert!(
        done["exit"].as_str().unwrap().starts_with("panicked: "),
        "{done}"
    );
    let info = client
        .call("inspect", json!({"path": "/workers/a"}))
        .await
        .unwrap();
    assert_eq!(info["restarts"], 1);
    let done = client
        .call("kill", json!({"path": "/workers/b"}))
        .await
        .unwrap();
    assert_eq!(
        done,
        json!({"path": "/workers/b", "exit": "killed", "restarted": false})
    );
    assert!(node.system.find("/workers/b").is_none());
}

#[tokio::test]
async fn parameters_are_checked_strictly() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    for (method, params, says) in [
        ("inspect", json!({"pat": "/"}), "unknown parameter \"pat\""),
        ("inspect", json!(null), "missing parameter \"path\""),
        ("inspect", json!([1]), "must be an object"),
        ("inspect", json!({"path": 7}), "must be text"),
        (
            "kill",
            json!({"path": "/workers/a", "panic": "yes"}),
            "true or false",
        ),
        ("ps", json!({"limit": -1}), "a number"),
    ] {
        let wrong = fault(client.call(method, params).await);
        assert_eq!(wrong.code, FaultCode::BadRequest);
        assert!(wrong.message.contains(says), "{wrong}");
    }
}

#[tokio::test]
async fn unknown_method_error_lists_the_methods() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    let wrong = fault(client.call("pong", Value::Null).await);
    assert_eq!(wrong.code, FaultCode::UnknownTarget);
    assert!(
        wrong.message.contains("inspect, kill, methods, ping"),
        "{wrong}"
    );
    let methods = client.call("methods", Value::Null).await.unwrap();
    assert_eq!(
        methods.as_array().unwrap().len(),
        Operation::control_methods().len()
    );
}

#[tokio::test]
async fn long_listing_is_streamed_and_can_be_cancelled() {
    let many = |_| async { Ok(MethodOutput::rows((0..100_000_u64).map(|n| json!(n)))) };
    let node = node(Methods::new().register(Operation::reads("many"), many)).await;
    let mut client = node.client().await;
    let mut rows = client.rows("many", Value::Null).await.unwrap();
    for n in 0..1000_u64 {
        assert_eq!(rows.next().await.unwrap(), Some(json!(n)));
    }
    drop(rows);
    assert_eq!(
        client.call("ping", Value::Null).await.unwrap()["name"],
        "node"
    );
    let all = client.call("many", Value::Null).await.unwrap();
    assert_eq!(all.as_array().unwrap().len(), 100_000);
}

#[tokio::test]
async fn panicking_method_fails_only_its_call() {
    let methods = Methods::new().register(Operation::reads("boom"), |params: Value| async move {
        assert_ne!(params, json!("now"), "the fuse is lit");
        Ok(params)
    });
    let node = node(methods).await;
    let mut client = node.client().await;
    let failed = fault(client.call("boom", json!("now")).await);
    assert_eq!(failed.code, FaultCode::Failed);
    assert!(failed.message.contains("the fuse is lit"), "{failed}");
    assert_eq!(client.call("boom", json!("later")).await.unwrap(), "later");
}

#[tokio::test]
async fn deadline_fault_keeps_the_connection() {
    let never = |_| async { std::future::pending::<Result<Value, Fault>>().await };
    let node = node(Methods::new().register(Operation::reads("never"), never)).await;
    let mut client = node.client().await;
    client.set_deadline(Duration::from_millis(20));
    let late = fault(client.call("never", Value::Null).await);
    assert_eq!(late.code, FaultCode::Deadline);
    assert_eq!(late.message, "never did not reply within 20ms");
    client.set_deadline(Duration::from_secs(60));
    assert!(client.call("ping", Value::Null).await.is_ok());
}

#[tokio::test]
async fn shutdown_removes_the_socket_and_disconnects_clients() {
    let node = node(Methods::new()).await;
    let mut client = node.client().await;
    let report = node.system.shutdown(Duration::from_secs(60)).await;
    assert_eq!(report.not_stopped, []);
    assert!(!node.gateway.path().exists());
    assert!(client.call("ping", Value::Null).await.is_err());
    let gone = Client::connect(node.gateway.path()).await;
    assert!(matches!(gone, Err(ClientError::NoNode { .. })));
}
