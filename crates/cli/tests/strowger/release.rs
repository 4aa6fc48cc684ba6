//! `strowger pfcp release`: the outcomes of asking a peer to release its association.

use std::net::Ipv4Addr;

use serde_json::json;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, Header, MessageType};

use crate::peer::Peer;
use crate::running::Running;

/// A node with a peer that has a session.
fn start(last: u8) -> (Running, Peer) {
    let node = Running::start("");
    let mut peer = Peer::associated(last, &node.n4);
    let ue = Ipv4Addr::new(10, last, 0, 1);
    peer.establish(ue).expect("the rules are good");
    (node, peer)
}

#[test]
fn silent_peer_is_reported_and_keeps_its_association() {
    let (node, _peer) = start(71);
    let release = ["pfcp", "release", "127.0.0.71", "--within", "300ms"];
    let ran = node.ask(release);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    let said = "127.0.0.71 did not respond within 300ms; the association and its 1 session";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(ran.err.contains("\nhint: "), "{}", ran.err);
    let ran = node.ask(release.into_iter().chain(["--json"]));
    assert_eq!(ran.code, 3, "{}", ran.err);
    let wanted = json!({
        "node": "127.0.0.71",
        "outcome": "unanswered",
        "cause": null,
        "released": false,
        "sessions": 1,
    });
    assert_eq!(ran.last_object(), wanted);
    let listed = node.ask(["pfcp", "associations", "--json"]).objects();
    assert_eq!(listed.len(), 1, "{listed:?}");
}

/// Asks for a release while the peer handles the request.
fn released(
    node: &Running,
    peer: &mut Peer,
    within: &str,
    act: impl FnOnce(&mut Peer, Header),
) -> (i32, String) {
    let name = peer.address.to_string();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let ran = node.ask(["pfcp", "release", &name, "--within", within]);
            (ran.code, ran.out + &ran.err)
        });
        let request = peer.next().expect("the node asks");
        let header = Frame::decode(&request).expect("a message").header;
        act(peer, header);
        asked.join().expect("it ends")
    })
}

fn answer(peer: &Peer, request: &Header, cause: Cause) {
    let name = std::net::IpAddr::from(peer.address).into();
    let body = BodyBuilder::new().node(&name).cause(cause);
    let bytes = message(&answer_header(request, None), body.as_slice());
    peer.send(&bytes.expect("short"));
}

#[test]
fn peer_that_refuses_or_breaks_its_promise_is_reported() {
    let (node, mut peer) = start(72);
    let (code, said) = released(&node, &mut peer, "30s", |peer, request| {
        answer(peer, &request, Cause::REQUEST_REJECTED);
    });
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("refused to release its association: cause 64"),
        "{said}"
    );
    let (code, said) = released(&node, &mut peer, "3s", |peer, request| {
        answer(peer, &request, Cause::REQUEST_ACCEPTED);
    });
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("agreed to release its association, but did not within 3s"),
        "{said}"
    );
}

#[test]
fn release_is_reported_with_the_sessions_that_ended() {
    let (node, mut peer) = start(73);
    let (code, said) = released(&node, &mut peer, "30s", |peer, request| {
        answer(peer, &request, Cause::REQUEST_ACCEPTED);
        let name = std::net::IpAddr::from(peer.address).into();
        let body = BodyBuilder::new().node(&name);
        let kind = MessageType::ASSOCIATION_RELEASE_REQUEST;
        let header = Header::node(kind, peer.next_sequence());
        let bytes = message(&header, body.as_slice());
        peer.send(&bytes.expect("short"));
    });
    let wanted = "127.0.0.73 released its association; 1 session ended\n";
    assert_eq!((code, said.as_str()), (0, wanted));
    let unknown = node.ask(["pfcp", "release", "127.0.0.73"]);
    assert_eq!(unknown.code, 1, "{}", unknown.err);
}

#[test]
fn forced_release_does_not_need_the_peer() {
    let (node, _peer) = start(78);
    let ran = node.ask(["pfcp", "release", "127.0.0.78", "--force"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("without asking it; 1 session ended"),
        "{}",
        ran.out
    );
    assert_eq!(
        node.ask(["pfcp", "associations", "--json"]).objects().len(),
        0
    );
}
