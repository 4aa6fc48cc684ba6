//! Clients of actors that are wrong, slow, greedy or numerous: each harms only itself.

use std::time::Duration;

use serde_json::{Value, json};
use strowger::FaultCode;
use strowger_gateway::client::Client;
use strowger_gateway::frame::{Frame, FrameKind};

use crate::messages::raw::{PATIENCE, RawClient};
use crate::messages::{code, node};

/// Number of simultaneous connections.
const MANY: usize = 10_000;

#[tokio::test]
async fn ten_thousand_connections_leak_nothing() {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: descriptors.maximum,
        maximum: descriptors.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised)
        .expect("up to the hard limit");
    // Each connection takes a descriptor on both sides. The tests beside this one need some, too.
    let room = descriptors.maximum.map_or(MANY, |most| {
        usize::try_from(most.saturating_sub(4096) / 2).unwrap_or(MANY)
    });
    let many = MANY.min(room);
    let node = node(|spec| {
        spec.limits.connections = many;
        // The first connections wait for the last.
        spec.limits.idle = Duration::from_secs(3600);
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..many {
        clients.push(node.client().await);
    }
    let mut sum = 0;
    for client in &mut clients {
        sum += 1;
        let answer = client.call("@(clerk) add", json!(1)).await;
        assert_eq!(answer.expect("it answers"), sum);
    }
    drop(clients);
    let clients = node.system.find("/doors/clients").expect("it is there");
    let gone = async {
        while clients.info().children > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("they go");
    assert_eq!(clients.info().restarts, 0);
}

#[tokio::test]
async fn flooding_client_does_not_starve_others() {
    let node = node(|_| {}).await;
    let mut flood = node.raw().await;
    flood.name(1, "@(clerk) add").await;
    let flooding = async {
        let mut id = 0;
        loop {
            id += 1;
            let mut tell = Frame::new(FrameKind::Tell, id);
            tell.target = 1;
            flood.send(tell.with_json(&json!(0))).await;
        }
    };
    let others = async {
        for _ in 0..100 {
            let mut client = node.client().await;
            client
                .call("@(clerk) held", Value::Null)
                .await
                .expect("it answers");
        }
    };
    let both = async {
        tokio::select! {
            () = flooding => {}
            () = others => {}
        }
    };
    tokio::time::timeout(PATIENCE, both)
        .await
        .expect("others are answered");
}

#[tokio::test]
async fn non_reading_client_is_disconnected_alone() {
    let node = node(|spec| spec.limits.stall = Duration::from_millis(50)).await;
    let mut slow = node.raw().await;
    slow.name(1, "@(clerk) endless").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, u32::MAX);
    slow.send(call).await;
    let clients = node.system.find("/doors/clients").expect("it is there");
    let cut = async {
        let mut client = node.client().await;
        while clients.info().children > 1 {
            let held = client.call("@(clerk) held", Value::Null).await;
            held.expect("it answers");
        }
    };
    tokio::time::timeout(PATIENCE, cut)
        .await
        .expect("it is cut off");
}

#[tokio::test]
async fn garbage_closes_the_connection_and_its_calls() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) hold").await;
    raw.name(2, "@(clerk) held").await;
    raw.call(1, 1).await;
    assert_eq!(raw.ask(2, 2).await, json!(1));
    raw.send_bytes(&[0xff; 64]).await;
    raw.is_ended("protocol", "frame at byte").await;
    let mut client = node.client().await;
    assert_eq!(
        client
            .call("@(clerk) held", Value::Null)
            .await
            .expect("it answers"),
        0
    );
}

#[tokio::test]
async fn half_closed_client_gets_replies_but_no_more_items() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) endless").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, 1);
    raw.send(call).await;
    assert_eq!(raw.item(1).await, 0);
    raw.shutdown().await;
    let (id, code, _) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "cancelled"));
    assert_eq!(raw.next().await, None);
}

#[tokio::test]
async fn reply_above_the_memory_limit_is_a_fault() {
    let node = node(|spec| spec.limits.memory = 1024).await;
    let mut client = node.client().await;
    let long = "x".repeat(2000);
    assert_eq!(
        code(client.call("@(clerk) echo", json!(long)).await),
        FaultCode::Full
    );
    let short = client.call("@(clerk) echo", json!("x")).await;
    assert_eq!(short.expect("it answers"), "x");
}

#[tokio::test]
async fn reply_above_the_frame_limit_is_a_fault() {
    let node = node(|spec| spec.limits.frame = 4096).await;
    let mut client: Client = node.client().await;
    let answer = client.call("@(clerk) long", json!(8192)).await;
    assert_eq!(code(answer), FaultCode::Failed);
    let mut raw: RawClient = node.raw().await;
    raw.send_bytes(&[0, 1, 0, 0, 3]).await;
    raw.send_bytes(&[0; 19]).await;
    raw.is_ended("protocol", "limit is 4096").await;
}
