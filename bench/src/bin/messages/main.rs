//! Questions to actors of a node in another process, from Rust, beside what the socket costs alone.
//!
//! The node is the program in `STROWGER_BIN`. `messages echo SOCKET` gives octets back; it is
//! started by the measurements.

mod bare;
mod node;
mod pipeline;

use std::time::Instant;

use serde_json::json;
use strowger_bench::{Case, Counted, Pick, Plan, Sample};
use strowger_gateway::Client;

use bare::Bare;
use node::Node;
use pipeline::Pipeline;

/// Questions that are in flight at a time.
const PIPELINED: u64 = 1000;
/// Octets of a question, and of its answer: a header and a number.
const OCTETS: usize = 28;
/// Clients that stay connected while their memory is read.
const CLIENTS: usize = 1000;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("echo") {
        return bare::echo();
    }
    let plan = Plan::from_args(&["messages"], Pick::Median);
    let ids = [
        "client_ask_rust",
        "client_ask_pipelined_rust",
        "client_resident",
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
    ]);
}

/// One question at a time, by the client that programs in Rust have.
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

/// A thousand questions written at once, and then their answers read.
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

/// As many octets, so many questions at a time, to a process that gives them back.
fn bare(id: &str, batch: u64) -> Case {
    let mut bare = Bare::start();
    Case::new(id, "socket", move |count| {
        let rounds = count.div_ceil(batch);
        let began = Instant::now();
        for _ in 0..rounds {
            bare.give_back(batch);
        }
        sample(began, rounds * batch)
    })
}

/// By how much a node of its own has grown for each client that has asked and stays connected.
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
    // What the node makes once is there before.
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
