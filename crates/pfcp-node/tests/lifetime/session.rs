//! Requests about a session that has just ended, and the identifiers that peers give to sessions.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use strowger_pfcp::endpoint::message;

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreateUrr, FSeid, Ie, MeasurementMethod, NodeId, Pdi,
    ReportingTriggers, SourceInterface, UeIpAddress, UpdateUrr, VolumeThreshold,
};
use strowger_pfcp::message::{SessionEstablishmentRequest, SessionModificationRequest};
use strowger_pfcp::{Frame, Header, IeType, Message, MessageType, Seid, Sequence};

use strowger_pfcp_node::SessionFilter;

use crate::peer::{Bench, Peer, cause, established, establishment};

/// The request waits in the mailbox of the session behind the deletion, and the peer need not
/// repeat it to learn that the session is gone.
#[tokio::test]
async fn request_behind_a_deletion_is_refused_at_once() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    for round in 0..20 {
        let session = peer.establish(7, 1_000_000).await;
        let deletion = MessageType::SESSION_DELETION_REQUEST;
        let modification = MessageType::SESSION_MODIFICATION_REQUEST;
        let kinds = [deletion, modification, deletion, modification];
        for (sequence, kind) in (1000 + 10 * round..).zip(kinds) {
            let header = Header::session(kind, session, Sequence::new(sequence));
            peer.socket
                .send(&message(&header, &[]).unwrap())
                .await
                .unwrap();
        }
        let mut answers = BTreeMap::new();
        while answers.len() < kinds.len() {
            let answer = peer.receive(crate::peer::GUARD).await.unwrap();
            let header = Frame::decode(&answer).unwrap().header;
            answers.insert(header.sequence.get(), (header.seid, cause(&answer)));
        }
        for (sequence, answer) in answers {
            let wanted = match sequence % 10 {
                0 => (Some(Seid(7)), Cause::REQUEST_ACCEPTED),
                _ => (Some(Seid(0)), Cause::SESSION_CONTEXT_NOT_FOUND),
            };
            assert_eq!(answer, wanted, "{sequence}");
        }
    }
    bench.end().await;
}

#[tokio::test]
async fn cp_f_seid_of_zero_is_refused() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let session = peer.establish(7, 1_000_000).await;
    let mut renamed = Vec::new();
    let f_seid = FSeid::new(Seid(0), peer.name);
    f_seid.encode_into(&mut renamed).unwrap();
    let establish = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let modify = MessageType::SESSION_MODIFICATION_REQUEST;
    for (kind, seid, body) in [
        (
            establish,
            Seid(0),
            establishment(peer.name, 0, 1_000_000, 1),
        ),
        (modify, session, renamed),
    ] {
        let answer = peer.ask(kind, seid, &body).await;
        assert_eq!(cause(&answer), Cause::MANDATORY_IE_INCORRECT, "{kind}");
        let frame = Frame::decode(&answer).unwrap();
        let mut tlvs = frame.tlvs().map(Result::unwrap);
        let offending = tlvs.find(|tlv| tlv.ie == IeType::OFFENDING_IE).unwrap();
        assert_eq!(offending.value, IeType::F_SEID.0.to_be_bytes());
    }
    assert_eq!(bench.node.stats().sessions, 1);
    assert_eq!(bench.node.session(session).unwrap().peer_seid, Seid(7));
    bench.end().await;
}

impl Peer {
    async fn establish_named(&mut self, f_seid: FSeid) -> Seid {
        let pdi = Pdi::new(SourceInterface::ACCESS);
        let body = SessionEstablishmentRequest::new(NodeId::from(self.name), f_seid)
            .create_pdrs([CreatePdr::new(1, pdi).far_id(1)])
            .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
        let bytes = Message::session(Seid(0), Sequence::new(0), body).encode();
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        established(&self.ask(kind, Seid(0), &bytes.unwrap()[16..]).await)
    }

    async fn modify(&mut self, session: Seid, body: &[u8]) -> Cause {
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        cause(&self.ask(kind, session, body).await)
    }
}

/// A peer that uses a CP F-SEID again has lost the session that had it (TS 29.244 §5.6.2).
#[tokio::test]
async fn establishment_with_the_cp_f_seid_of_a_live_session_ends_it() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    // The address of the UE is that of the lost session too.
    let ue = || UeIpAddress::destination([10, 9, 0, 1].into());
    assert_eq!(peer.establish_ue(7, ue()).await.0, Cause::REQUEST_ACCEPTED);
    let filter = SessionFilter::default();
    let older = bench.node.sessions(&filter)[0].seid;
    assert_eq!(peer.establish_ue(7, ue()).await.0, Cause::REQUEST_ACCEPTED);
    assert_eq!(bench.node.stats().sessions, 1);
    assert_eq!(bench.node.stats().superseded, 1);
    let newer = bench.node.sessions(&filter)[0].seid;
    assert_ne!(older, newer);
    assert_eq!(
        peer.modify(older, &[]).await,
        Cause::SESSION_CONTEXT_NOT_FOUND
    );
    assert_eq!(peer.modify(newer, &[]).await, Cause::REQUEST_ACCEPTED);
    // After its deletion the F-SEID is free.
    peer.delete(newer).await;
    assert_eq!(peer.establish_ue(7, ue()).await.0, Cause::REQUEST_ACCEPTED);
    assert_eq!(bench.node.stats().superseded, 1);
    bench.end().await;
}

/// Such a request waited in the network while its peer sent a newer one.
#[tokio::test]
async fn late_establishment_with_the_cp_f_seid_of_a_live_session_is_refused() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let body = establishment(peer.name, 7, 1_000_000, 1);
    let request = |sequence| {
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let header = Header::session(kind, Seid(0), Sequence::new(sequence));
        message(&header, &body).unwrap()
    };
    // The numbers wrap.
    let live = established(&peer.exchange(&request(5)).await);
    for late in [4, 0x00ff_fff0] {
        let answer = peer.exchange(&request(late)).await;
        assert_eq!(cause(&answer), Cause::REQUEST_REJECTED, "{late}");
        assert!(bench.node.session(live).is_some());
    }
    let newer = established(&peer.exchange(&request(6)).await);
    assert!(bench.node.session(live).is_none());
    assert!(bench.node.session(newer).is_some());
    assert_eq!(bench.node.stats().superseded, 1);
    bench.end().await;
}

#[tokio::test]
async fn modification_to_the_cp_f_seid_of_another_session_ends_that_one() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let name = peer.name;
    let one = peer.establish_named(FSeid::new(Seid(7), name)).await;
    let other = peer.establish_named(FSeid::new(Seid(8), name)).await;
    let mut renamed = Vec::new();
    let f_seid = FSeid::new(Seid(7), name);
    f_seid.encode_into(&mut renamed).unwrap();
    assert_eq!(peer.modify(other, &renamed).await, Cause::REQUEST_ACCEPTED);
    assert_eq!(
        peer.modify(one, &[]).await,
        Cause::SESSION_CONTEXT_NOT_FOUND
    );
    assert_eq!(bench.node.stats().superseded, 1);
    // Its former SEID is free.
    peer.establish_named(FSeid::new(Seid(8), name)).await;
    assert_eq!(bench.node.stats().sessions, 2);
    assert_eq!(bench.node.stats().superseded, 1);
    bench.end().await;
}

#[tokio::test]
async fn other_cp_f_seids_end_no_session() {
    let bench = Bench::new().await;
    let (mut peer, mut other) = (bench.peer(2).await, bench.peer(3).await);
    peer.set_up(1).await;
    other.set_up(1).await;
    let name = peer.name;
    peer.establish_named(FSeid::new(Seid(7), name)).await;
    // The same SEID at another address, and the same F-SEID from another peer.
    peer.establish_named(FSeid::new(Seid(7), other.name)).await;
    other.establish_named(FSeid::new(Seid(7), name)).await;
    assert_eq!(bench.node.stats().sessions, 3);
    // A malformed request: the Node ID comes first, and is missing.
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let body = establishment(peer.name, 7, 1_000_000, 1);
    let answer = peer.ask(kind, Seid(0), &body[9..]).await;
    assert_eq!(cause(&answer), Cause::MANDATORY_IE_MISSING);
    assert_eq!(bench.node.stats().sessions, 3);
    assert_eq!(bench.node.stats().superseded, 0);
    bench.end().await;
}

/// Each rule takes a kilobyte of memory and less than thirty bytes of the request.
#[tokio::test]
async fn usage_reporting_rules_of_a_session_are_limited() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    for (urrs, wanted) in [
        (512, Cause::REQUEST_ACCEPTED),
        (513, Cause::NO_RESOURCES_AVAILABLE),
    ] {
        let body = establishment(peer.name, urrs.into(), 1_000_000, urrs);
        let answer = peer.ask(kind, Seid(0), &body).await;
        assert_eq!(cause(&answer), wanted, "{urrs}");
    }
    assert_eq!(bench.node.stats().sessions, 1);
    bench.end().await;
}

/// The limit of the peer costs no other peer; that of the node is shared.
#[tokio::test]
async fn memory_of_rules_is_limited_by_peer_and_by_node() {
    const LIMIT: u64 = 1 << 20;
    for of_node in [false, true] {
        let bench = Bench::with(|config| match of_node {
            true => config.limits.rule_memory = LIMIT,
            false => config.peer.rule_memory = LIMIT,
        })
        .await;
        let (mut peer, mut other) = (bench.peer(2).await, bench.peer(3).await);
        peer.set_up(1).await;
        other.set_up(1).await;
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let body = |peer: &Peer, seid| establishment(peer.name, seid, 1_000_000, 100);
        let mut sessions = Vec::new();
        let full = loop {
            let body = body(&peer, sessions.len() as u64 + 1);
            let answer = peer.ask(kind, Seid(0), &body).await;
            if cause(&answer) != Cause::REQUEST_ACCEPTED {
                break cause(&answer);
            }
            sessions.push(established(&answer));
            assert!(sessions.len() < 100);
        };
        assert_eq!(full, Cause::NO_RESOURCES_AVAILABLE);
        assert!(sessions.len() > 3, "{} sessions", sessions.len());
        let stats = bench.node.stats();
        assert!(stats.rule_memory <= LIMIT && stats.rule_memory > LIMIT / 2);
        assert_eq!(stats.rule_memory_of_peer, stats.rule_memory);
        let key = if of_node {
            "limits.rule_memory"
        } else {
            "peer.rule_memory"
        };
        assert!(stats.limits.contains(&(key, LIMIT)));
        // A modification may take no more, and one that needs no more is accepted.
        let more: Vec<CreateUrr> = (101..=300)
            .map(|id| CreateUrr::new(id, MeasurementMethod::VOLUM, ReportingTriggers::NONE))
            .collect();
        let more = SessionModificationRequest::new().create_urrs(more);
        let threshold = VolumeThreshold::total(5_000_000);
        let same = UpdateUrr::new(100).volume_threshold(threshold);
        let same = SessionModificationRequest::new().update_urrs([same]);
        for (change, wanted) in [
            (more, Cause::NO_RESOURCES_AVAILABLE),
            (same, Cause::REQUEST_ACCEPTED),
        ] {
            let bytes = Message::session(Seid(0), Sequence::new(0), change).encode();
            let got = peer.modify(sessions[0], &bytes.unwrap()[16..]).await;
            assert_eq!(got, wanted);
        }
        assert_eq!(bench.node.session(sessions[0]).unwrap().urrs.len(), 100);
        let body = body(&other, 1);
        let answer = other.ask(kind, Seid(0), &body).await;
        let wanted = match of_node {
            true => Cause::NO_RESOURCES_AVAILABLE,
            false => Cause::REQUEST_ACCEPTED,
        };
        assert_eq!(cause(&answer), wanted);
        let refused = if of_node { 3 } else { 2 };
        assert_eq!(bench.node.stats().memory_refused, refused);
        // Deletion makes room.
        peer.delete(sessions.pop().unwrap()).await;
        sessions.push(peer.establish_with(99, 1_000_000, 100).await);
        for session in sessions {
            peer.delete(session).await;
        }
        if of_node {
            assert_eq!(bench.node.stats().rule_memory, 0);
        }
        bench.end().await;
    }
}

impl Peer {
    /// Asks for a session with a UE address; returns the cause and, if the node chose it, the
    /// address.
    async fn establish_ue(&mut self, seid: u64, ue: UeIpAddress) -> (Cause, Option<Ipv6Addr>) {
        let pdi = Pdi::new(SourceInterface::CORE).ue_ip_addresses([ue]);
        let name = self.name;
        let body =
            SessionEstablishmentRequest::new(NodeId::from(name), FSeid::new(Seid(seid), name))
                .create_pdrs([CreatePdr::new(1, pdi).far_id(1)])
                .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
        let bytes = Message::session(Seid(0), Sequence::new(0), body).encode();
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let answer = self.ask(kind, Seid(0), &bytes.unwrap()[16..]).await;
        let created = match Message::decode(&answer).unwrap().body {
            strowger_pfcp::message::Body::SessionEstablishmentResponse(answer) => {
                let created = answer.created_pdrs.into_iter().next();
                created.and_then(|pdr| pdr.ue_ip_addresses.first()?.ipv6)
            }
            other => panic!("{other:?}"),
        };
        (cause(&answer), created)
    }
}

fn fixed(address: &str) -> UeIpAddress {
    UeIpAddress::destination(address.parse().unwrap())
}

fn delegated(address: &str, bits: u8) -> UeIpAddress {
    UeIpAddress {
        ipv6_prefix_delegation_bits: Some(bits),
        ..fixed(address)
    }
}

fn long(address: &str, length: u8) -> UeIpAddress {
    UeIpAddress {
        ipv6_prefix_length: Some(length),
        ..fixed(address)
    }
}

/// A UE has its whole prefix (TS 29.244 §8.2.62), or one address of a /64 that an SMF shares among
/// UEs.
#[tokio::test]
async fn ue_prefixes_of_sessions_do_not_overlap() {
    let bench = Bench::with(|config| config.features.push("ip6pl".to_owned())).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let (yes, taken, bad) = (
        Cause::REQUEST_ACCEPTED,
        Cause::RULE_FAILURE,
        Cause::MANDATORY_IE_INCORRECT,
    );
    for (seid, (ue, wanted)) in (1..).zip([
        (fixed("2001:db8:1:1::2"), yes),
        (fixed("2001:db8:1:1::2"), taken),
        (fixed("2001:db8:1:1::3"), yes),
        (fixed("2001:db8:1:1::"), taken),
        (fixed("2001:db8:1:2::2"), yes),
        (delegated("2001:db8:1:8::", 4), taken),
        (delegated("2001:db8:1:18::", 4), yes),
        (fixed("2001:db8:1:1f::1"), taken),
        (long("2001:db8:2::1", 128), yes),
        (long("2001:db8:2::2", 128), yes),
        (long("2001:db8:2::2", 128), taken),
        (long("2001:db8:2::", 56), taken),
        (delegated("2001:db8:9::", 64), bad),
        (long("2001:db8:9::", 0), bad),
        (long("2001:db8:9::", 129), bad),
    ]) {
        let text = format!("{ue:?}");
        assert_eq!(peer.establish_ue(seid, ue).await.0, wanted, "{text}");
    }
    bench.end().await;
}

#[tokio::test]
async fn chosen_prefixes_are_disjoint_and_not_those_of_fixed_addresses() {
    let bench = Bench::with(|config| {
        config.features.push("ip6pl".to_owned());
        config.pools.ue = vec!["2001:db8::/54".parse().unwrap()];
    })
    .await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    assert_eq!(
        peer.establish_ue(1, fixed("2001:db8::77")).await.0,
        Cause::REQUEST_ACCEPTED
    );
    let choose = |length: Option<u8>| UeIpAddress {
        choose_v6: true,
        ipv6: None,
        ipv6_prefix_length: length,
        ..fixed("::")
    };
    let mut given = Vec::new();
    for (seid, length) in (2..).zip([None, Some(56), Some(56), None, Some(56)]) {
        let (cause, address) = peer.establish_ue(seid, choose(length)).await;
        assert_eq!(cause, Cause::REQUEST_ACCEPTED);
        let (first, length) = (address.unwrap().to_bits(), length.unwrap_or(64));
        let last = first | (u128::MAX >> length);
        assert_eq!(first & (u128::MAX >> length), 0, "aligned");
        given.push((first, last));
    }
    let own = "2001:db8::".parse::<Ipv6Addr>().unwrap().to_bits();
    given.push((own, own | u128::from(u64::MAX)));
    given.sort_unstable();
    assert!(given.windows(2).all(|pair| pair[0].1 < pair[1].0));
    // The three larger ones fill what the others leave.
    let (cause, _) = peer.establish_ue(9, choose(Some(56))).await;
    assert_eq!(cause, Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED);
    bench.end().await;
}

#[tokio::test]
async fn prefix_length_needs_the_feature_ip6pl() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let ue = long("2001:db8:1::", 56);
    let (cause, _) = peer.establish_ue(1, ue).await;
    assert_eq!(cause, Cause::SERVICE_NOT_SUPPORTED);
    bench.end().await;
}
