//! Asks by the owner while unauthenticated connections occupy the TCP endpoint.

use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::json;
use strowger_bench::Counted;
use strowger_gateway::client::Client;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::node::{self, Node};

/// Number of connections that never send a token, and reconnect when they are closed.
const UNAUTHENTICATED: usize = 1000;
/// Number of asks by the owner, each over a new connection.
const ASKS: usize = 1000;

/// Returns the 99th percentile of connecting and asking, in nanoseconds.
pub(crate) fn connect_and_ask() -> Counted {
    let folder = node::folder("strangers");
    let door = free_address();
    let (token, config) = (folder.join("token"), folder.join("node.toml"));
    fs::write(&token, "a token of the benchmark\n").expect("the folder is writable");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("the file is accessible");
    let text = format!("[gateway]\ntcp = \"{door}\"\ntoken_file = {token:?}\n");
    fs::write(&config, text).expect("the folder is writable");
    let node = Node::start_with(&["--config".as_ref(), config.as_os_str()]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut times = runtime.block_on(async {
        for _ in 0..UNAUTHENTICATED {
            // The tasks end with the runtime.
            tokio::spawn(stay_connected(door));
        }
        let mut times = Vec::with_capacity(ASKS);
        for number in 0..ASKS {
            let began = Instant::now();
            let mut owner = Client::connect(node.socket()).await.expect("it is let in");
            let answer = owner.call("@(conformance/echo) echo", json!(number)).await;
            assert_eq!(answer.expect("an answer"), number);
            times.push(began.elapsed());
        }
        times
    });
    times.sort_unstable();
    let _ = fs::remove_dir_all(folder);
    Ok((times[ASKS * 99 / 100].as_nanos() as f64, ASKS as u64))
}

async fn stay_connected(door: SocketAddr) {
    loop {
        let Ok(mut stream) = TcpStream::connect(door).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut bytes = [0; 512];
        while matches!(stream.read(&mut bytes).await, Ok(1..)) {}
    }
}

/// Returns an address that nothing listens on.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
    listener.local_addr().expect("it is bound")
}
