//! Requests about a session that has just ended, and the identifiers that peers give to sessions.

use std::collections::BTreeMap;
use strowger_pfcp::endpoint::message;

use strowger_pfcp::ie::{Cause, FSeid, Ie};
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};

use crate::peer::{Bench, cause, establishment};

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
