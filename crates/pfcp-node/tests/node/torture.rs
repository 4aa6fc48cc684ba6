//! Robustness tests of nodes: ours passes all of them, and a node that accepts everything does not.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::endpoint::{Elements, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, MessageType};
use strowger_pfcp_node::{
    Node, NodeConfig, Torture, TortureAnswer, TortureCase, TortureError, TorturePlan,
    TortureReport, TortureSender,
};

/// Runs a robustness test on a thread that may block.
async fn tortured(plan: TorturePlan) -> Result<TortureReport, TortureError> {
    let run = move || Torture::run(&plan, |_| {});
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

fn plan(to: SocketAddr) -> TorturePlan {
    let mut plan = TorturePlan::new(to);
    // Nothing is lost on the loopback; a slow machine gets enough time.
    plan.wait = Duration::from_secs(10);
    plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_is_answered_as_it_has_to_be_and_harms_nobody() {
    let system = ActorSystem::new("tortured").expect("a name");
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().expect("an address")];
    let node = Node::start(&system, config).await.expect("it starts");
    let report = tortured(plan(node.local_addr()))
        .await
        .expect("it is usable");
    let told: Vec<String> = report
        .failures
        .iter()
        .map(|failure| {
            let case = &failure.case;
            format!("{}: {}: {}", case.family, case.name, failure.fault)
        })
        .collect();
    assert!(report.is_clean(), "{}", told.join("\n"));
    assert!(report.sent() > 3000, "{} cases", report.sent());
    assert_eq!(node.stats().sessions, 1, "that of the other peer");
    system.shutdown(Duration::from_secs(10)).await;
}

/// The datagram that ends a [`credulous`] node; no test case sends it.
const END: &[u8] = b"enough";

/// A node that accepts every request.
fn credulous(socket: &UdpSocket) {
    let mut buffer = vec![0; 65_536];
    let mut seid = 0u64;
    while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
        if &buffer[..length] == END {
            return;
        }
        let Ok(frame) = Frame::decode(&buffer[..length]) else {
            continue;
        };
        let time = [0xf0, 0, 0, 1];
        let mut body = Elements::new();
        if frame.header.message_type != MessageType::HEARTBEAT_REQUEST {
            body = body
                .cause(Cause::REQUEST_ACCEPTED)
                .with(IeType::NODE_ID, &[0, 127, 0, 0, 1]);
        }
        if frame.header.seid.is_none() {
            body = body.with(IeType::RECOVERY_TIME_STAMP, &time);
        } else {
            seid += 1;
            let f_seid = [&[2][..], &seid.to_be_bytes(), &[127, 0, 0, 1]].concat();
            body = body.with(IeType::F_SEID, &f_seid);
        }
        let answer = message(&answer_header(&frame.header, None), body.as_slice());
        let _sent = socket.send_to(&answer.expect("it is short"), peer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_accepts_everything_is_found_out() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let to = socket.local_addr().expect("it is bound");
    let node = std::thread::spawn(move || credulous(&socket));
    let mut plan = plan(to);
    plan.wait = Duration::from_millis(100);
    let wanted = TortureAnswer::one(6).causes(&[66]);
    plan.cases = vec![TortureCase {
        family: "ours".to_owned(),
        name: "association setup without anything".to_owned(),
        clause: "7.6.6".to_owned(),
        octets: vec![0x20, 5, 0, 4, 0, 0, 0, 0],
        sender: TortureSender::Apart,
        expect: vec![wanted],
    }];
    let report = tortured(plan).await.expect("it is usable");
    assert!(!report.is_clean());
    let first = report.failures.first().expect("it failed");
    assert_eq!(first.case.family, "ours");
    assert!(first.fault.contains("cause 1"), "{}", first.fault);
    let missing = report
        .rows
        .iter()
        .find(|row| row.family == "element missing");
    assert!(
        missing.is_some_and(|row| row.passed < row.sent),
        "{report:?}"
    );
    let end = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    end.send_to(END, to).expect("loopback");
    node.join().expect("it has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_node_is_an_error() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let mut plan = plan(socket.local_addr().expect("it is bound"));
    plan.wait = Duration::from_millis(10);
    let error = tortured(plan).await.expect_err("nobody answers");
    assert!(matches!(error, TortureError::Unusable { .. }), "{error}");
}
