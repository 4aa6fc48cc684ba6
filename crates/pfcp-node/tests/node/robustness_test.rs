//! Robustness tests of nodes: ours passes all of them, and a node that accepts everything does not.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};
use strowger_pfcp_node::{
    CaseSender, ExpectedAnswer, Node, NodeConfig, RobustnessCase, RobustnessError, RobustnessPlan,
    RobustnessReport, RobustnessTest,
};

/// Runs a robustness test on a thread that may block.
async fn attacked(plan: RobustnessPlan) -> Result<RobustnessReport, RobustnessError> {
    let run = move || RobustnessTest::run(&plan, |_| {});
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

fn plan(to: SocketAddr) -> RobustnessPlan {
    let mut plan = RobustnessPlan::new(to);
    // Nothing is lost on the loopback; a slow machine gets enough time.
    plan.wait = Duration::from_secs(10);
    plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_robustness_case_passes_and_is_harmless() {
    let system = ActorSystem::new("attacked").expect("a name");
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().expect("an address")];
    let node = Node::start(&system, config).await.expect("it starts");
    let report = attacked(plan(node.local_addr()))
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

/// Returns the acceptance of a request; a session gets the next SEID.
fn acceptance(frame: &Frame<'_>, seid: &mut u64) -> Vec<u8> {
    let time = [0xf0, 0, 0, 1];
    let mut body = BodyBuilder::new();
    if frame.header.message_type != MessageType::HEARTBEAT_REQUEST {
        body = body
            .cause(Cause::REQUEST_ACCEPTED)
            .with(IeType::NODE_ID, &[0, 127, 0, 0, 1]);
    }
    if frame.header.seid.is_none() {
        body = body.with(IeType::RECOVERY_TIME_STAMP, &time);
    } else {
        *seid += 1;
        let f_seid = [&[2][..], &seid.to_be_bytes(), &[127, 0, 0, 1]].concat();
        body = body.with(IeType::F_SEID, &f_seid);
    }
    let answer = message(&answer_header(&frame.header, None), body.as_slice());
    answer.expect("it is short")
}

/// Answers requests until [`END`] comes; `answers` returns the responses to a request.
fn node(socket: &UdpSocket, mut answers: impl FnMut(&Frame<'_>) -> Vec<Vec<u8>>) {
    let mut buffer = vec![0; 65_536];
    while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
        if &buffer[..length] == END {
            return;
        }
        if let Ok(frame) = Frame::decode(&buffer[..length]) {
            for answer in answers(&frame) {
                let _sent = socket.send_to(&answer, peer);
            }
        }
    }
}

/// A node that accepts every request.
fn credulous(socket: &UdpSocket) {
    let mut seid = 0;
    node(socket, |frame| vec![acceptance(frame, &mut seid)]);
}

/// A node like [`credulous`] which answers one establishment only when the next comes, and refuses
/// all others until that session is deleted. Returns the number of refusals.
fn late_once(socket: &UdpSocket) -> u32 {
    // Beyond the sessions of the preparation.
    const LATE: u32 = 40;
    let (mut seid, mut establishments, mut refusals) = (0, 0, 0);
    let (mut late, mut held) = (None, None);
    node(socket, |frame| {
        let header = &frame.header;
        let answer = acceptance(frame, &mut seid);
        match (header.message_type, late) {
            (MessageType::SESSION_ESTABLISHMENT_REQUEST, None) => {
                establishments += 1;
                if establishments == LATE {
                    late = Some((Seid(seid), header.sequence));
                    held = Some(answer);
                    return Vec::new();
                }
            }
            (MessageType::SESSION_ESTABLISHMENT_REQUEST, Some((_, sequence))) => {
                if header.sequence == sequence {
                    return Vec::new();
                }
                let refusal = BodyBuilder::new().cause(Cause::RULE_FAILURE);
                let refusal = message(&answer_header(header, None), refusal.as_slice());
                let answer = refusal.expect("it is short");
                refusals += 1;
                return held.take().into_iter().chain([answer]).collect();
            }
            (MessageType::SESSION_DELETION_REQUEST, Some((session, _)))
                if header.seid == Some(session) =>
            {
                late = None;
            }
            _ => {}
        }
        vec![answer]
    });
    assert_ne!(establishments, 0, "it was asked");
    refusals
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_answer_does_not_fail_later_cases() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let to = socket.local_addr().expect("it is bound");
    let node = std::thread::spawn(move || late_once(&socket));
    let mut plan = plan(to);
    plan.wait = Duration::from_millis(100);
    attacked(plan).await.expect("it is usable");
    let end = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    end.send_to(END, to).expect("loopback");
    let refusals = node.join().expect("it has ended");
    assert!(
        (1..5).contains(&refusals),
        "{refusals} cases met the session"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_accepting_everything_fails_robustness_test() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let to = socket.local_addr().expect("it is bound");
    let node = std::thread::spawn(move || credulous(&socket));
    let mut plan = plan(to);
    plan.wait = Duration::from_millis(100);
    let wanted = ExpectedAnswer::one(6).causes(&[66]);
    plan.cases = vec![RobustnessCase {
        family: "ours".to_owned(),
        name: "association setup without anything".to_owned(),
        clause: "7.6.6".to_owned(),
        bytes: vec![0x20, 5, 0, 4, 0, 0, 0, 0],
        sender: CaseSender::Disposable,
        expect: vec![wanted],
    }];
    let report = attacked(plan).await.expect("it is usable");
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
    let error = attacked(plan).await.expect_err("nobody answers");
    assert!(matches!(error, RobustnessError::Unusable { .. }), "{error}");
}
