//! Known deviations of peers in the field from a clause: they are decoded, rejected in strict mode,
//! and accepted on request; similar values are not.

use strowger_pfcp::ie::{Cause, Ie, OffendingIe};
use strowger_pfcp::message::BodyView;
use strowger_pfcp::validate::{Deviation, FindingKind, findings, tolerate};
use strowger_pfcp::{
    IeType, Index, Interfaces, Message, MessageView, from_json, to_json, validate,
};

use crate::bytes::{node_message, session_message, tlv};

const N4: Interfaces = Interfaces::N4;

fn f_teid(value: &[u8]) -> Vec<u8> {
    let pdi = [tlv(20, &[0]), tlv(21, value)].concat();
    let pdr = [
        tlv(56, &[0, 1]),
        tlv(29, &[0; 4]),
        tlv(2, &pdi),
        tlv(108, &[0; 4]),
    ];
    session_message(52, &tlv(1, &pdr.concat()))
}

fn bridge(node: &[u8]) -> Vec<u8> {
    let body = [
        tlv(60, &[0, 127, 0, 0, 1]),
        tlv(19, &[1]),
        tlv(57, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 1]),
        tlv(195, &tlv(198, node)),
    ];
    session_message(51, &body.concat())
}

fn rejection(cause: u8) -> Vec<u8> {
    session_message(51, &tlv(19, &[cause]))
}

/// The strict and the tolerant result for bytes that must be decodable.
fn both(bytes: &[u8]) -> (Option<Cause>, Result<Vec<Deviation>, Cause>) {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    let strict = validate(&view, N4).err().map(|rejection| rejection.cause);
    let tolerant = tolerate(&view, N4).map(|tolerated| {
        assert_eq!(tolerated.on, N4);
        tolerated.deviations
    });
    assert_eq!(strict.is_none(), tolerant == Ok(Vec::new()), "{view}");
    // Nothing is tolerated unless requested.
    let is_tolerated = |kind| matches!(kind, FindingKind::Tolerated(_));
    assert!(
        !findings(&view, N4)
            .iter()
            .any(|finding| is_tolerated(finding.kind))
    );
    (strict, tolerant.map_err(|rejection| rejection.cause))
}

#[test]
fn deviations_are_refused_strictly_and_tolerated_on_request() {
    let mac = [1, 0, 0, 0x5e, 0, 0x53, 1];
    let rows = [
        (
            Deviation::UnversionedTunnel,
            f_teid(&[4]),
            Cause::MANDATORY_IE_INCORRECT,
            1,
        ),
        (
            Deviation::ShortUserPlaneNodeId,
            bridge(&mac),
            Cause::INVALID_LENGTH,
            1,
        ),
        (
            Deviation::BareRejection,
            rejection(64),
            Cause::MANDATORY_IE_MISSING,
            1,
        ),
    ];
    let mut seen = Vec::new();
    for (deviation, bytes, cause, count) in rows {
        let (strict, tolerant) = both(&bytes);
        assert_eq!(strict, Some(cause), "{deviation}");
        assert_eq!(tolerant, Ok(vec![deviation; count]), "{deviation}");
        seen.push(deviation);
    }
    assert_eq!(seen, Deviation::ALL);
}

#[test]
fn near_deviations_are_not_tolerated() {
    // Neither CHOOSE nor an address, and CHOOSE with address flags.
    assert_eq!(
        both(&f_teid(&[0, 0, 0, 0, 1])).1,
        Err(Cause::MANDATORY_IE_INCORRECT)
    );
    assert_eq!(both(&f_teid(&[5])), (None, Ok(Vec::new())));
    // The eight bytes of the clause.
    assert_eq!(
        both(&bridge(&[1, 0, 0, 0, 0, 0, 0, 0, 1])),
        (None, Ok(Vec::new()))
    );
    for length in [1, 5, 6, 8] {
        let value = [&[1][..], &vec![0; length - 1]].concat();
        let bytes = bridge(&value);
        let mut index = Index::new();
        let error = MessageView::decode(&bytes, &mut index).expect_err("no such length");
        assert_eq!(
            error.path().last(),
            Some(IeType::FIVE_GS_USER_PLANE_NODE_ID)
        );
    }
    // Where it is not expected, it is only an unexpected element.
    let stray = [tlv(96, &[0; 4]), tlv(198, &[1, 0, 0, 0, 0, 0, 0])].concat();
    assert_eq!(both(&node_message(1, &stray)), (None, Ok(Vec::new())));
    // An accepting response must be complete, and a rejecting one must say why.
    for accepted in [1, 3] {
        let (strict, tolerant) = both(&rejection(accepted));
        assert_eq!(tolerant.err(), strict);
    }
    let causeless = session_message(51, &tlv(60, &[0, 127, 0, 0, 1]));
    assert_eq!(both(&causeless).1, Err(Cause::MANDATORY_IE_MISSING));
    // A rejection that is complete at the top level must not contain a broken rule.
    let usage = [tlv(19, &[64]), tlv(78, &[])].concat();
    assert_eq!(
        both(&session_message(53, &usage)).1,
        Err(Cause::MANDATORY_IE_MISSING)
    );
}

#[test]
fn rejection_may_omit_offending_ie() {
    let bare = session_message(53, &tlv(19, &[Cause::MANDATORY_IE_INCORRECT.0]));
    let (strict, tolerant) = both(&bare);
    assert_eq!(strict, Some(Cause::CONDITIONAL_IE_MISSING));
    assert_eq!(tolerant, Ok(vec![Deviation::BareRejection]));
    let named = [
        tlv(19, &[Cause::MANDATORY_IE_INCORRECT.0]),
        tlv(OffendingIe::TYPE.0, &[0, 44]),
    ];
    assert_eq!(
        both(&session_message(53, &named.concat())),
        (None, Ok(Vec::new()))
    );
}

#[test]
fn short_node_id_keeps_its_bytes() {
    let bytes = bridge(&[1, 0, 0, 0x5e, 0, 0x53, 7]);
    let mut index = Index::new();
    for _ in 0..4 {
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        let BodyView::SessionEstablishmentResponse(body) = view.body() else {
            unreachable!("a response")
        };
        assert_eq!(body.cause(), Some(Cause::REQUEST_ACCEPTED));
        assert!(validate(&view, N4).is_err());
        assert_eq!(from_json(&to_json(&view)).expect("JSON"), bytes);
        assert!(view.to_string().contains("0x0100005e005307"), "{view}");
    }
    let message = Message::decode(&bytes).expect("it can be read whole");
    assert_eq!(message.encode().expect("octets"), bytes);
}

#[test]
fn docs_list_every_deviation_with_clause() {
    let page = include_str!("../../../../docs/pfcp.md");
    let (_, table) = page
        .split_once("| deviation | counted as |")
        .expect("a table of deviations");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    assert_eq!(rows.count(), Deviation::ALL.len(), "the page lists others");
    for deviation in Deviation::ALL {
        let row = format!(
            "| {deviation} | `{}` | §{} |",
            deviation.name(),
            deviation.clause()
        );
        assert!(page.contains(&row), "{row}");
        assert!(!deviation.reason().is_empty());
    }
}
