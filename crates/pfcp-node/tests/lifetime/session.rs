//! Requests about a session that has just ended, and the identifiers that peers give to sessions.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use strowger_pfcp::ie::{Cause, FSeid, Ie};
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use crate::peer::{Bench, cause, establishment};

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
