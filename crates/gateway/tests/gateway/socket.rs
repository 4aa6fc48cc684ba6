//! Ownership of the socket path.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::ActorSystem;
use strowger_gateway::client::Client;
use strowger_gateway::method::Methods;
use strowger_gateway::{Gateway, Limits, OpenError};

async fn open(system: &ActorSystem, socket: &std::path::Path) -> Result<Gateway, OpenError> {
    Gateway::open(system, socket, Limits::default(), Methods::new()).await
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists(), "an ended process leaves its socket");
    let system = ActorSystem::new("node").unwrap();
    let gateway = open(&system, &socket).await.unwrap();
    assert!(Client::connect(gateway.path()).await.is_ok());
}

#[tokio::test]
async fn live_socket_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    let (first, second) = (ActorSystem::new("first"), ActorSystem::new("second"));
    let (first, second) = (first.unwrap(), second.unwrap());
    let gateway = open(&first, &socket).await.unwrap();
    let refused = open(&second, &socket).await.unwrap_err();
    assert!(matches!(refused, OpenError::Live { .. }), "{refused}");
    second.shutdown(Duration::from_secs(60)).await;
    let mut client = Client::connect(gateway.path()).await.unwrap();
    assert_eq!(
        client.call("ping", Value::Null).await.unwrap()["name"],
        "first"
    );
}

#[tokio::test]
async fn file_that_is_not_a_socket_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("notes");
    fs::write(&file, "keep").unwrap();
    let system = ActorSystem::new("node").unwrap();
    let refused = open(&system, &file).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotASocket { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "keep");
}

#[tokio::test]
async fn missing_directory_error_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nowhere/control.sock");
    let system = ActorSystem::new("node").unwrap();
    let error = open(&system, &socket).await.unwrap_err().to_string();
    assert!(error.contains("nowhere/control.sock"), "{error}");
}

#[tokio::test]
async fn killed_listener_restarts_and_keeps_its_clients() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    let system = ActorSystem::new("node").unwrap();
    let gateway = open(&system, &socket).await.unwrap();
    let mut client = Client::connect(gateway.path()).await.unwrap();
    let params = json!({"path": "/gateway/control"});
    let done = client.call("kill", params.clone()).await.unwrap();
    assert_eq!(done["restarted"], true);
    client.call("inspect", params).await.unwrap();
    let connected = async {
        loop {
            match Client::connect(gateway.path()).await {
                Ok(client) => return client,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let mut second = tokio::time::timeout(Duration::from_secs(60), connected)
        .await
        .unwrap();
    assert!(second.call("ping", Value::Null).await.is_ok());
}
