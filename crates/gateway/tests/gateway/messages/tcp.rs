//! The TCP sockets of the endpoint, as the operating system sees them.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use strowger::FaultCode;
use strowger_gateway::access::{Role, Token};
use strowger_gateway::client::Client;

use crate::messages::raw::PATIENCE;
use crate::messages::{TOKEN, node};

/// The timer of the connection from `client` to `address`, as `/proc/net/tcp` shows it.
fn timer(address: SocketAddr, client: SocketAddr) -> Option<String> {
    let table = fs::read_to_string("/proc/net/tcp").expect("this is Linux");
    let at = |address: SocketAddr| format!(":{:04X}", address.port());
    table.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, _, _, timer, ..] = columns[..] else {
            return None;
        };
        let is_it = local.ends_with(&at(address)) && remote.ends_with(&at(client));
        is_it.then(|| timer.to_owned())
    })
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn keep_alive_detects_a_vanished_host() {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let node = node(|spec| {
        spec.tcp = Some(any);
        spec.websocket = Some(any);
        spec.tokens = vec![Token::new("test", Role::Operator, TOKEN)];
    })
    .await;
    for address in [
        node.listeners.tcp_address(),
        node.listeners.websocket_address(),
    ] {
        let address = address.expect("it was asked for");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        if Some(address) == node.listeners.tcp_address() {
            // The hello shows that the connection was accepted.
            stream.read_u8().await.expect("it says hello");
        }
        let client = stream.local_addr().expect("it is connected");
        let keep_alive = |timer: &String| timer.starts_with("02:");
        let set = async {
            while !timer(address, client).as_ref().is_some_and(keep_alive) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, set).await.expect("a timer of its own");
    }
}

#[tokio::test]
async fn unauthenticated_clients_do_not_starve_others() {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("owner.sock");
    let node = node(|spec| {
        spec.socket = Some(socket.clone());
        spec.tcp = Some(any);
        spec.websocket = Some(any);
        spec.tokens = vec![Token::new("test", Role::Operator, TOKEN)];
        spec.limits.connections = 2;
        spec.limits.unauthenticated = 8;
    })
    .await;
    let (tcp, web) = (
        node.listeners.tcp_address().expect("an address"),
        node.listeners.websocket_address().expect("an address"),
    );
    let mut silent = Vec::new();
    for _ in 0..40 {
        for address in [tcp, web] {
            silent.push(TcpStream::connect(address).await.expect("it listens"));
        }
    }
    for _ in 0..3 {
        let owner = Client::connect(&socket).await.expect("the owner is let in");
        let known = Client::connect_tcp(tcp, TOKEN)
            .await
            .expect("its token is known");
        // Both places are taken: the next client is refused with an error.
        let more = Client::connect(&socket).await;
        assert!(more.is_err(), "{more:?}");
        silent.push(TcpStream::connect(tcp).await.expect("it listens"));
        drop((owner, known));
        while Client::connect(&socket).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}

/// Shorter than the time for which an unauthenticated client keeps its place.
const MAX_DELAY: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unauthenticated_flood_does_not_delay_the_owner_or_a_token() {
    for says in [&b""[..], &[0; 7]] {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("owner.sock");
        let node = node(|spec| {
            spec.socket = Some(socket.clone());
            spec.tcp = Some(any);
            spec.tokens = vec![Token::new("test", Role::Operator, TOKEN)];
        })
        .await;
        let address = node.listeners.tcp_address().expect("an address");
        let mut crowd = JoinSet::new();
        for _ in 0..500 {
            crowd.spawn(async move {
                loop {
                    let Ok(mut stream) = TcpStream::connect(address).await else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    let _ = stream.write_all(says).await;
                    let mut answer = [0; 512];
                    while matches!(stream.read(&mut answer).await, Ok(1..)) {}
                }
            });
        }
        let mut best = Duration::MAX;
        // The crowd loads the machine: one good round of many is enough.
        for _ in 0..10 {
            let mut slowest = Duration::ZERO;
            for _ in 0..20 {
                let start = Instant::now();
                // On a busy machine the token may be sent after the time that an unauthenticated
                // client has at least: the round is lost. The client learns of it while it
                // connects, or with its first call.
                let called = match Client::connect_tcp(address, TOKEN).await {
                    Ok(mut known) => known.call("@(no/such) one", serde_json::Value::Null).await,
                    Err(error) => Err(error),
                };
                let error = called.expect_err("nobody is there");
                if error.code() != FaultCode::UnknownTarget {
                    slowest = Duration::MAX;
                    break;
                }
                slowest = slowest.max(start.elapsed());
                let start = Instant::now();
                Client::connect(&socket).await.expect("the owner is let in");
                slowest = slowest.max(start.elapsed());
            }
            best = best.min(slowest);
            if best < MAX_DELAY {
                break;
            }
        }
        assert!(best < MAX_DELAY, "{says:?}: {best:?}");
        drop(crowd);
    }
}
