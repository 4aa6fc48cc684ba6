//! Asks to actors of a node in another process, from Rust, beside the cost of the socket alone.
//!
//! The node is the program in `STROWGER_BIN`. `messages echo SOCKET` echoes bytes; the measurements
//! start it.

mod bare;
mod node;
mod pipeline;
mod unauthenticated;

use std::time::Instant;

use serde_json::json;
use strowger_bench::{Case, Counted, Estimate, Plan, Sample};
use strowger_gateway::client::Client;

use bare::BareClient;
use node::Node;
use pipeline::Pipeline;

/// Number of requests in flight at a time.
const PIPELINED: u64 = 1000;
/// Bytes of a request, and of its response: a header and a number.
const MESSAGE_BYTES: usize = 28;
/// Number of clients that stay connected while their memory is read.
const CLIENTS: usize = 1000;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("echo") {
        return bare::echo();
    }
    let plan = Plan::from_args(&["messages"], Estimate::Median);
    let ids = [
        "client_ask_rust",
        "client_ask_pipelined_rust",
        "client_resident",
        "owner_ask_1000_strangers",
    ];
    if !ids.iter().any(|id| plan.wants(id)) {
        return;
    }
    let node = Node::start();
    plan.run(vec![
        asks(&node),
        bare("client_ask_rust", 1),
        pipelined(&node),
        bare("client_ask_pipelined_rust", PIPELINED),
        Case::counted("client_resident", "strowger", "bytes", resident),
        Case::counted(
            "owner_ask_1000_strangers",
            "strowger",
            "ns",
            unauthenticated::connect_and_ask,
        ),
    ]);
}

/// One ask at a time, through the client for Rust programs.
fn asks(node: &Node) -> Case {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut client = runtime
        .block_on(Client::connect(node.socket()))
        .expect("the node listens");
    let mut number = 0;
    Case::new("client_ask_rust", "strowger", move |count| {
        runtime.block_on(async {
            let began = Instant::now();
            for _ in 0..count {
                number += 1;
                let answer = client.call("@(conformance/echo) echo", json!(number)).await;
                assert_eq!(answer.expect("an answer"), number);
            }
            sample(began, count)
        })
    })
}

/// A thousand requests written at once, and then their responses read.
fn pipelined(node: &Node) -> Case {
    let mut pipeline = Pipeline::open(node.socket());
    Case::new("client_ask_pipelined_rust", "strowger", move |count| {
        let rounds = count.div_ceil(PIPELINED);
        let began = Instant::now();
        for _ in 0..rounds {
            pipeline.ask(PIPELINED);
        }
        sample(began, rounds * PIPELINED)
    })
}

/// The same number of bytes, `batch` requests at a time, to a process that echoes them.
fn bare(id: &str, batch: u64) -> Case {
    let mut bare = BareClient::start();
    Case::new(id, "socket", move |count| {
        let rounds = count.div_ceil(batch);
        let began = Instant::now();
        for _ in 0..rounds {
            bare.give_back(batch);
        }
        sample(began, rounds * batch)
    })
}

/// Growth of a fresh node for each client that has asked and stays connected.
fn resident() -> Counted {
    let node = Node::start();
    let connected = |clients: usize| -> Vec<Pipeline> {
        let opened = (0..clients).map(|_| {
            let mut client = Pipeline::open(node.socket());
            client.ask(1);
            client
        });
        opened.collect()
    };
    // These make the node allocate whatever it allocates only once.
    let first = connected(10);
    let before = node.resident();
    let clients = connected(CLIENTS - first.len());
    let grown = node.resident().saturating_sub(before);
    Ok((grown as f64 / clients.len() as f64, clients.len() as u64))
}

fn sample(began: Instant, done: u64) -> Sample {
    Sample {
        time: began.elapsed(),
        done,
        checked: done,
    }
}
