//! `run` and the commands that observe or control a node: `tree`, `ps`, `inspect`, `kill`, and
//! signals.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use strowger::ActorSystem;
use strowger_pfcp_node::{Association, Client, ClientConfig, Session, SessionRules};

use crate::binary::strowger;
use crate::guarded;
use crate::running::{Running, within};

/// An SMF with a session on a node.
struct SmfSession {
    _system: ActorSystem,
    _association: Association,
    session: Session,
}

async fn smf(node: &Running) -> SmfSession {
    let system = ActorSystem::new("smf").expect("inside a runtime");
    let client = Client::bind(&system, ClientConfig::default()).await;
    let client = client.expect("the loopback is there");
    let upf: SocketAddr = node.n4.parse().expect("an address");
    let association = client.associate(upf).await.expect("the node answers");
    let ue = "10.45.0.9".parse().expect("an address");
    let session = association.establish(SessionRules::pdu_session(ue)).await;
    SmfSession {
        session: session.expect("the rules are good"),
        _association: association,
        _system: system,
    }
}

/// The state that must be the same before and after a restart: all but the counters.
fn persistent_state(mut actor: Value) -> Value {
    let counters = [
        "handled",
        "busy_us",
        "waited_us",
        "memory",
        "high_water",
        "restarts",
        "last_exit",
        "depth",
    ];
    let object = actor.as_object_mut().expect("an object");
    for key in counters {
        object.remove(key).expect("a counter");
    }
    actor
}

#[test]
fn node_announces_its_addresses_and_shuts_down_in_order() {
    let mut node = Running::start("");
    assert!(node.n4.starts_with("127.0.0.1:"));
    node.signal("TERM");
    let summary = node.object();
    assert_eq!(summary["not_stopped"], json!([]));
    assert_eq!(summary["sessions"], 0);
    let control = node.control.clone();
    assert_eq!(node.ended(), (0, String::new()));
    assert!(!Path::new(&control).exists());
}

#[test]
fn tree_shows_a_branch_for_each_child() {
    let node = Running::start("");
    let ran = node.ask(["tree"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("/node  Supervisor"), "{}", ran.out);
    assert!(ran.out.contains("\n└─ n4  Endpoint"), "{}", ran.out);
    assert!(ran.out.contains("\n├─ control  Listener"), "{}", ran.out);
    let objects = node.ask(["tree", "/gateway", "--json"]).objects();
    assert_eq!(objects[0]["path"], "/gateway");
    assert_eq!(objects.last().expect("rows")["path"], "/gateway/reader");
}

#[test]
fn ps_lists_statistics_of_every_actor() {
    let node = Running::start("");
    let ran = node.ask(["ps", "--sort", "children", "--limit", "2"]);
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
    let objects = node.ask(["ps", "--json"]).objects();
    let n4 = objects.iter().find(|row| row["path"] == "/node/n4");
    let n4 = n4.expect("the endpoint is an actor");
    assert_eq!(n4["state"], "running");
    let ran = node.ask(["ps", "--sort", "beauty"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("high_water"), "{}", ran.err);
}

#[tokio::test]
async fn panicked_session_is_restored_unchanged() {
    let node = Running::start("");
    let smf = smf(&node).await;
    let sessions = node.ask(["tree", "--json"]).objects();
    let mut paths = sessions.iter().filter_map(|row| row["path"].as_str());
    let path = paths.find(|path| path.contains("/0x"));
    let path = path.expect("the session is an actor");
    let before = node.ask(["inspect", path, "--json"]).last_object();
    assert_eq!(before["restarts"], 0);
    let rules = before["details"]["rules"].as_array().expect("a list");
    let names: Vec<&str> = rules
        .iter()
        .filter_map(|rule| rule["name"].as_str())
        .filter(|name| name.starts_with("Create "))
        .collect();
    let wanted = ["Create PDR", "Create PDR", "Create FAR", "Create FAR"];
    assert_eq!(names, wanted, "{before}");
    assert_eq!(before["details"]["session"]["pdrs"], json!([1, 2]));

    let killed = node.ask(["kill", path, "--panic", "--json"]).last_object();
    assert_eq!(killed["restarted"], true, "{killed}");
    let after = node.ask(["inspect", path, "--json"]).last_object();
    assert_eq!(after["restarts"], 1);
    assert_eq!(persistent_state(after), persistent_state(before));

    let text = node.ask(["inspect", path]);
    assert!(text.out.contains("Create PDR"), "{}", text.out);
    assert!(text.out.contains("10.45.0.9"), "{}", text.out);
    smf.session.delete().await.expect("it is still there");
}

#[test]
fn missing_actor_is_reported_with_the_existing_ones() {
    let node = Running::start("");
    for verb in ["inspect", "kill", "tree", "ps"] {
        let ran = node.ask([verb, "/node/n5"]);
        assert_eq!(ran.code, 1, "{verb}");
        assert_eq!(
            ran.err,
            "error: no actor at /node/n5; below /node/ there are n4\n"
        );
    }
}

#[test]
fn missing_node_is_reported_with_a_hint() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("none.sock");
    let socket = socket.to_str().expect("text");
    for verb in ["tree", "ps"] {
        let ran = strowger([verb, "--control", socket]);
        assert_eq!(ran.code, 3);
        assert!(
            ran.err.starts_with("error: no node listens at "),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains("hint: start a node with `strowger run`"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn socket_of_a_live_node_is_not_taken_over() {
    let node = Running::start("");
    let ran = strowger(["run", "--port", "0", "--control", &node.control]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.contains("another process listens there"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    assert_eq!(node.ask(["tree"]).code, 0);
}

#[test]
fn taken_port_is_reported_with_a_hint() {
    let node = Running::start("");
    let port = node.n4.rsplit(':').next().expect("a port");
    let ran = strowger(["run", "--port", port]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.contains("the port is in use\nhint: "),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--port 0"), "{}", ran.err);
}

#[test]
fn sighup_reloads_the_configuration() {
    let mut node = Running::start("[log]\nfilter = \"warn\"\n");
    let file = node.config();
    let again = |node: &mut Running, text: &str| {
        fs::write(&file, text).expect("the folder is writable");
        node.signal("HUP");
        node.object()
    };
    let live = again(&mut node, "[log]\nfilter = \"error\"\n");
    assert_eq!(live, json!({"reloaded": ["log.filter"], "needs_start": []}));
    let late = again(
        &mut node,
        "[log]\nfilter = \"error\"\n[n4.timers]\nt1 = \"1s\"\n",
    );
    assert_eq!(late["needs_start"], json!(["n4.timers.t1"]));
    let wrong = again(&mut node, "[log]\nfliter = \"error\"\n");
    let error = wrong["error"].as_str().expect("text");
    assert!(error.contains("did you mean `filter`?"), "{error}");
    node.signal("INT");
    assert_eq!(node.object()["not_stopped"], json!([]));
    assert_eq!(node.ended().0, 0);
}

#[test]
fn clients_find_the_first_node_by_default() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let first = Running::start_in(place.path());
    let second = Running::start_in(place.path());
    assert!(first.control.ends_with("/strowger.sock"), "{first:?}");
    assert_ne!(first.control, second.control);
    let folder = Path::new(&first.control).parent().expect("a folder");
    let mode = fs::metadata(folder)
        .expect("it exists")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut tree = Command::new(env!("CARGO_BIN_EXE_strowger"));
    tree.arg("tree");
    let found = guarded::output(&mut within(tree, place.path()));
    assert!(found.status.success(), "{found:?}");
}

#[test]
fn directory_accessible_to_others_gets_no_socket() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let first = Running::start_in(place.path());
    let folder = Path::new(&first.control).parent().expect("a folder");
    let folder = folder.to_owned();
    drop(first);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))
        .expect("the file is accessible");
    let mut run = Command::new(env!("CARGO_BIN_EXE_strowger"));
    run.args(["run", "--port", "0"]);
    let ended = guarded::output(&mut within(run, place.path()));
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("not a directory owned by and private to this user"),
        "{errors}"
    );
}
