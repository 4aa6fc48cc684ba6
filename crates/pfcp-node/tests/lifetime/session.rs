//! Requests about a session that has just ended, and the identifiers that peers give to sessions.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use strowger_pfcp::endpoint::message;

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, FSeid, Ie, NodeId, Pdi, SourceInterface, UeIpAddress,
};
use strowger_pfcp::message::SessionEstablishmentRequest;
use strowger_pfcp::{Frame, Header, IeType, Message, MessageType, Seid, Sequence};

use crate::peer::{Bench, Peer, cause, establishment};

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
