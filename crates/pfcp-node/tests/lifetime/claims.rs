//! Node IDs: the peers that may use each, and the room for those named in the configuration.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::association::NodeName;
use strowger_pfcp::endpoint::BodyBuilder;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};
use strowger_pfcp_node::{NodeConfig, SessionFilter};

use crate::peer::{Bench, cause, establishment};

fn name(text: &str) -> NodeName {
    NodeName::from_text(text).unwrap()
}

/// Named peers, as in a configuration.
fn named(table: &str) -> impl FnOnce(&mut NodeConfig) {
    let peer = toml::from_str(&format!("named = {table}")).unwrap();
    |config| config.peer = peer
}

#[tokio::test]
async fn peer_cannot_claim_address_of_another_host() {
    let bench = Bench::new().await;
    let (mut owner, mut thief) = (bench.peer(2).await, bench.peer(3).await);
    let own = name("127.0.0.2");
    assert_eq!(thief.claim(&own, 1).await, Cause::REQUEST_REJECTED);
    assert_eq!(bench.node.stats().setups_refused, 1);
    assert_eq!(owner.claim(&own, 1).await, Cause::REQUEST_ACCEPTED);
    owner.establish(1, 1_000_000).await;
    assert_eq!(thief.claim(&own, 9).await, Cause::REQUEST_REJECTED);
    assert_eq!(bench.node.stats().sessions, 1, "they are the owner's");
    bench.end().await;
}

/// In any request, not only in a setup.
#[tokio::test]
async fn node_id_of_another_peer_is_refused_and_counted() {
    let bench = Bench::with(named(r#"{ "smf.lab" = ["127.0.0.2"] }"#)).await;
    let (mut owner, mut thief) = (bench.peer(2).await, bench.peer(3).await);
    let own = name("smf.lab");
    let claims = || bench.node.stats().claims_refused[0];
    assert_eq!(thief.claim(&own, 1).await, Cause::REQUEST_REJECTED);
    assert_eq!(claims(), ("node_id", 1));
    assert_eq!(owner.claim(&own, 1).await, Cause::REQUEST_ACCEPTED);
    owner.establish_as(&own, 1).await;
    let release = BodyBuilder::new().node(&own);
    let session = establishment(thief.name, 1, 1_000_000, 1);
    let length = 4 + NodeName::from(thief.name).value().len();
    let session = BodyBuilder::new().node(&own).bytes(&session[length..]);
    for (number, kind, body) in [
        (2, MessageType::ASSOCIATION_RELEASE_REQUEST, &release),
        (3, MessageType::ASSOCIATION_UPDATE_REQUEST, &release),
        (4, MessageType::PFD_MANAGEMENT_REQUEST, &release),
        (5, MessageType::SESSION_ESTABLISHMENT_REQUEST, &session),
    ] {
        let answer = thief.ask(kind, Seid(0), body.as_slice()).await;
        let refused = Cause::NO_ESTABLISHED_ASSOCIATION;
        assert_eq!(cause(&answer), refused, "{kind}");
        assert_eq!(claims(), ("node_id", number), "{kind}");
    }
    assert_eq!(bench.node.stats().sessions, 1, "they are the owner's");
    bench.end().await;
}

#[tokio::test]
async fn peer_may_claim_own_or_unused_address() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(3).await;
    for node in ["127.0.0.3", "10.9.9.9", "smf.lab"] {
        let cause = peer.claim(&name(node), 1).await;
        assert_eq!(cause, Cause::REQUEST_ACCEPTED, "{node}");
    }
    assert_eq!(bench.node.stats().setups_refused, 0);
    bench.end().await;
}

#[tokio::test]
async fn named_peer_id_cannot_be_claimed_first() {
    let table = r#"{ "smf.lab" = ["127.0.0.2"], "127.0.0.9" = ["127.0.0.4"] }"#;
    let bench = Bench::with(named(table)).await;
    let (mut thief, mut host) = (bench.peer(3).await, bench.peer(9).await);
    assert_eq!(
        thief.claim(&name("SMF.lab"), 1).await,
        Cause::REQUEST_REJECTED
    );
    // The configuration decides, whatever the address of the host is.
    assert_eq!(
        host.claim(&name("127.0.0.9"), 1).await,
        Cause::REQUEST_REJECTED
    );
    assert_eq!(bench.node.associations(), []);
    for (last, node) in [(2, "smf.lab"), (4, "127.0.0.9")] {
        let mut owner = bench.peer(last).await;
        let cause = owner.claim(&name(node), 1).await;
        assert_eq!(cause, Cause::REQUEST_ACCEPTED, "{node}");
    }
    bench.end().await;
}

/// Covers all spellings of a name: as labels, with the root, as text, in other letter case.
#[tokio::test]
async fn claimed_name_is_refused_in_any_spelling() {
    let bench = Bench::with(named(r#"{ "smf.lab" = ["127.0.0.2"] }"#)).await;
    let (mut owner, mut thief) = (bench.peer(2).await, bench.peer(3).await);
    let writings: [&[u8]; 7] = [
        b"\x02\x03SMF\x03lab",
        b"\x02\x03smf\x03lab\x00",
        b"\x02\x07smf.lab",
        b"\x02smf.lab",
        b"\x02127.0.0.2",
        b"\x02\x03127\x010\x010\x012",
        b"\x02\x09127.0.0.2",
    ];
    for node in writings {
        let cause = thief.claim_value(node, 1).await;
        assert_eq!(cause, Cause::REQUEST_REJECTED, "{}", node.escape_ascii());
    }
    assert_eq!(bench.node.associations(), []);
    for node in writings {
        let cause = owner.claim_value(node, 1).await;
        assert_eq!(cause, Cause::REQUEST_ACCEPTED, "{}", node.escape_ascii());
    }
    let listed = bench.node.associations();
    let mut names: Vec<_> = listed.iter().map(|one| one.node.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["127.0.0.2", "smf.lab"]);
    // Both are usable: each has a place of its own in the tree.
    owner.establish(1, 1_000_000).await;
    owner.establish_as(&name("smf.lab"), 2).await;
    bench.end().await;
}

#[tokio::test]
async fn named_peer_may_use_each_of_its_addresses() {
    let table = r#"{ "smf.lab" = ["127.0.0.2", "127.0.0.4/31"] }"#;
    let bench = Bench::with(named(table)).await;
    let node = name("smf.lab");
    let (mut first, mut second) = (bench.peer(2).await, bench.peer(5).await);
    assert_eq!(first.claim(&node, 1).await, Cause::REQUEST_ACCEPTED);
    let seid = first.establish_as(&node, 1).await;
    assert_eq!(second.claim(&node, 1).await, Cause::REQUEST_ACCEPTED);
    let associations = bench.node.associations();
    assert_eq!(associations.len(), 1, "it moves: {associations:?}");
    assert!(bench.node.session(seid).is_some(), "and ends nothing");
    bench.end().await;
}

/// A session of a named peer belongs to it, whichever of its addresses sends the request.
#[tokio::test]
async fn named_peer_reaches_session_from_other_address() {
    let table = r#"{ "127.0.0.2" = ["127.0.0.2", "127.0.0.5"] }"#;
    let bench = Bench::with(named(table)).await;
    let (mut first, mut second) = (bench.peer(2).await, bench.peer(5).await);
    let mut stranger = bench.peer(6).await;
    first.set_up(1).await;
    let seid = first.establish(1, 1_000_000).await;
    let kind = MessageType::SESSION_DELETION_REQUEST;
    for (peer, wanted) in [
        (&mut stranger, Cause::SESSION_CONTEXT_NOT_FOUND),
        (&mut second, Cause::REQUEST_ACCEPTED),
    ] {
        assert_eq!(cause(&peer.ask(kind, seid, &[]).await), wanted);
    }
    bench.end().await;
}

#[tokio::test]
async fn unnamed_peers_leave_capacity_for_named_peer() {
    let table = r#"{ "smf-a.lab" = ["127.0.0.2"], "smf-b.lab" = ["127.0.0.3"] }"#;
    let bench = Bench::with(named(table)).await;
    let (mut accepted, mut refused) = (0, 0);
    for number in 0..1500u32 {
        let [.., high, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(127, 1, high, low);
        let mut stranger = bench.peer_at(address).await;
        match stranger.claim(&IpAddr::from(address).into(), 1).await {
            Cause::REQUEST_ACCEPTED => accepted += 1,
            Cause::NO_RESOURCES_AVAILABLE => refused += 1,
            other => panic!("{other}"),
        }
    }
    // The default is 1024.
    assert_eq!((accepted, refused), (1022, 478));
    for (last, node) in [(2, "smf-a.lab"), (3, "smf-b.lab")] {
        let mut owner = bench.peer(last).await;
        let cause = owner.claim(&name(node), 1).await;
        assert_eq!(cause, Cause::REQUEST_ACCEPTED, "{node}");
    }
    let mut late = bench.peer(4).await;
    let own = name("127.0.0.4");
    assert_eq!(late.claim(&own, 1).await, Cause::NO_RESOURCES_AVAILABLE);
    bench.end().await;
}

#[tokio::test]
async fn unnamed_peers_of_host_leave_capacity_for_its_named_peer() {
    let bench = Bench::with(named(r#"{ "smf.lab" = ["127.0.0.2"] }"#)).await;
    let mut peer = bench.peer(2).await;
    let mut causes = Vec::new();
    for number in 0..70 {
        causes.push(peer.claim(&name(&format!("x{number}.lab")), 1).await);
    }
    let full = causes
        .iter()
        .filter(|one| **one == Cause::NO_RESOURCES_AVAILABLE);
    // The default is 64.
    assert_eq!(full.count(), 6);
    let cause = peer.claim(&name("smf.lab"), 1).await;
    assert_eq!(cause, Cause::REQUEST_ACCEPTED);
    bench.end().await;
}

/// The next peer with the Node ID must not find the sessions of the previous one.
#[tokio::test]
async fn disallowed_stored_association_ends_with_its_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let stored = |config: &mut NodeConfig| {
        config.store.path = Some(folder.path().join("store"));
        config.store.reserve = 1 << 20;
    };
    let bench = Bench::with(stored).await;
    let (mut first, mut second) = (bench.peer(2).await, bench.peer(3).await);
    assert_eq!(
        second.claim(&name("smf.lab"), 1).await,
        Cause::REQUEST_ACCEPTED
    );
    let stolen = second.establish_as(&name("smf.lab"), 1).await;
    first.set_up(1).await;
    let kept = first.establish(1, 1_000_000).await;
    bench.node.stop().await;
    bench.end().await;

    let bench = Bench::with(|config| {
        named(r#"{ "smf.lab" = ["127.0.0.4"] }"#)(config);
        stored(config);
    })
    .await;
    let seids = || {
        let all = bench.node.sessions(&SessionFilter::default());
        all.iter().map(|one| one.seid).collect::<Vec<Seid>>()
    };
    assert_eq!(seids(), [kept]);
    let mut owner = bench.peer(4).await;
    let cause = owner.claim(&name("smf.lab"), 1).await;
    assert_eq!(cause, Cause::REQUEST_ACCEPTED);
    assert_eq!(seids(), [kept], "and not {stolen}");
    bench.end().await;
}
