//! Messages that no honest peer sends.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use strowger_pfcp::ie::{CreatePdr, Ie};
use strowger_pfcp::validate::findings;
use strowger_pfcp::{
    ErrorKind, Frame, Index, Interfaces, Message, MessageView, Rejection, frames, validate,
};

use crate::bytes::{node_message, session_message, tlv};

fn kind(bytes: &[u8]) -> ErrorKind {
    Message::decode(bytes).expect_err("malformed").kind()
}

#[test]
fn malformed_header_reports_its_error() {
    let heartbeat = node_message(1, &tlv(96, &[0; 4]));
    let change = |at: usize, byte: u8| {
        let mut bytes = heartbeat.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(kind(&[]), ErrorKind::Header { have: 0, need: 8 });
    assert_eq!(
        kind(&heartbeat[..7]),
        ErrorKind::Header { have: 7, need: 8 }
    );
    assert_eq!(kind(&change(0, 0x40)), ErrorKind::Version(2));
    assert_eq!(
        kind(&change(3, 13)),
        ErrorKind::MessageLength {
            have: 16,
            declared: 17
        }
    );
    assert_eq!(kind(&change(3, 11)), ErrorKind::Trailing { bytes: 1 });
    assert_eq!(kind(&change(3, 3)), ErrorKind::Header { have: 7, need: 8 });
    assert_eq!(kind(&change(0, 0x21)), ErrorKind::SeidFlag);
    assert_eq!(kind(&change(1, 50)), ErrorKind::SeidFlag);
}

#[test]
fn bundle_ends_at_cleared_follow_on_flag() {
    let last = node_message(1, &tlv(96, &[0; 4]));
    let mut first = last.clone();
    first[0] |= 4;
    let bundle = [first.clone(), last.clone()].concat();
    let offsets: Vec<usize> = frames(&bundle)
        .map(|frame| frame.expect("well-formed").offset)
        .collect();
    assert_eq!(offsets, [0, 16]);
    let kinds = |bytes: &[u8]| -> Vec<Option<(ErrorKind, usize)>> {
        let end = |frame: Result<Frame<'_>, strowger_pfcp::Error>| {
            frame.err().map(|error| (error.kind(), error.offset()))
        };
        frames(bytes).map(end).collect()
    };
    let nothing = ErrorKind::Header { have: 0, need: 8 };
    assert_eq!(kinds(&first), [None, Some((nothing, 16))]);
    let trailing = ErrorKind::Trailing { bytes: 1 };
    assert_eq!(
        kinds(&[last.clone(), vec![0]].concat()),
        [Some((trailing, 16))]
    );
    let two = [first, last].concat();
    let error = Frame::decode(&two).expect_err("two messages");
    assert_eq!(
        error.to_string(),
        "Heartbeat Request: 16 trailing bytes after the message"
    );
}

#[test]
fn overrun_is_detected_at_every_depth() {
    let pdi = tlv(2, &[0, 20, 0, 2, 0]);
    let bytes = session_message(50, &tlv(1, &pdi));
    let error = Message::decode(&bytes).expect_err("an overrun");
    assert_eq!(
        error.to_string(),
        "Session Establishment Request / Create PDR[0] / PDI / Source Interface: \
         length is 2, container has 1 left"
    );
    let cut = session_message(50, &tlv(1, &tlv(2, &[0, 20, 0])));
    assert_eq!(kind(&cut), ErrorKind::ElementHeader { have: 3 });
    let vendor = session_message(50, &tlv(1, &tlv(0x8001, &[9])));
    assert_eq!(kind(&vendor), ErrorKind::Enterprise { have: 1 });
}

#[test]
fn decode_error_has_offset_and_path() {
    let timer = tlv(117, &[0, 0, 0, 9]);
    let name = tlv(56, &[0, 1]);
    // A malformed element, and 1 if its own type can be read, or else 0.
    let cases = [
        (vec![0, 20, 0], 0),
        (vec![0, 20, 0, 9, 0], 1),
        (tlv(0x8001, &[1]), 1),
    ];
    for (bad, own) in cases {
        let place = |body: &[u8]| {
            let error = Message::decode(&session_message(52, body)).expect_err("malformed");
            (error.offset(), error.path().steps().count())
        };
        // After the header of the message and the valid elements.
        assert_eq!(place(&[&timer[..], &bad].concat()), (16 + 8, own));
        let rule = tlv(1, &[&name[..], &bad].concat());
        assert_eq!(place(&rule), (16 + 4 + 6, 1 + own));
    }
}

#[test]
fn group_may_have_maximum_length() {
    let rule = |bytes: usize| {
        let members = [tlv(56, &[0, 1]), tlv(2, &tlv(20, &[0]))].concat();
        // A vendor's element fills the rest.
        let rest = bytes - members.len() - 4;
        let filled = [&members[..], &tlv(0x8001, &vec![0; rest])].concat();
        CreatePdr::decode(&filled).map_err(|error| error.kind())
    };
    assert!(rule(65_535).is_ok());
    for have in [65_536, 65_537] {
        let error = rule(have).expect_err("longer than a length can say");
        assert_eq!(error, ErrorKind::TooLong { have });
    }
}

#[test]
fn unknown_deep_nesting_is_kept_unwalked() {
    let deep = (0..10_000).fold(Vec::new(), |inner, _| tlv(2, &inner));
    let bytes = session_message(50, &deep);
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("an unexpected element");
    assert_eq!(view.root().parts().count(), 1);
    assert!(validate(&view, Interfaces::ALL).is_err());
}

#[test]
fn oversized_message_is_refused_and_buffer_unchanged() {
    let rule = strowger_pfcp::ie::ActivatePredefinedRules::from(vec![0; 60_000]);
    let pdi = strowger_pfcp::ie::Pdi::new(strowger_pfcp::ie::SourceInterface::ACCESS);
    let pdr = CreatePdr::new(1, pdi).activate_predefined_rules([rule]);
    let node: std::net::IpAddr = [127, 0, 0, 1].into();
    let body = strowger_pfcp::message::SessionEstablishmentRequest::new(node, (1_u64, node));
    let body = body.create_pdrs([pdr.clone(), pdr]);
    let message = Message::session(
        strowger_pfcp::Seid(0),
        strowger_pfcp::Sequence::new(1),
        body,
    );
    let mut out = vec![7];
    let error = message.encode_into(&mut out).expect_err("too long");
    assert!(matches!(error.kind(), ErrorKind::TooLong { .. }));
    assert_eq!(out, [7]);
}

/// Bytes that resemble elements often enough to reach every depth.
fn elements(depth: u32) -> impl Strategy<Value = Vec<u8>> {
    let ie = prop_oneof![1..400_u16, 1..16_u16, Just(0x8001_u16), any::<u16>()];
    let leaf = (
        ie,
        vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..24),
    )
        .prop_map(|(ie, value)| tlv(ie, &value));
    let group = vec![
        1_u16, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 51, 54, 78, 79, 80, 127,
    ];
    leaf.prop_recursive(depth, 64, 8, move |inner| {
        (proptest::sample::select(group.clone()), vec(inner, 0..8))
            .prop_map(|(ie, parts)| tlv(ie, &parts.concat()))
    })
}

/// Messages of every type, well-formed outside and often inside.
pub(crate) fn messages() -> impl Strategy<Value = Vec<u8>> {
    let node = (1..18_u8, vec(elements(3), 0..8))
        .prop_map(|(kind, parts)| node_message(kind, &parts.concat()));
    let session = (50..58_u8, vec(elements(3), 0..8))
        .prop_map(|(kind, parts)| session_message(kind, &parts.concat()));
    prop_oneof![node, session]
}

fn holds(bytes: &[u8]) -> Result<(), proptest::test_runner::TestCaseError> {
    for frame in frames(bytes) {
        match frame {
            Err(error) => prop_assert!(error.offset() <= bytes.len()),
            Ok(frame) => {
                let mut index = Index::new();
                match MessageView::of(&frame, &mut index) {
                    Err(error) => {
                        prop_assert!(error.offset() <= frame.bytes.len());
                        prop_assert!(!error.path().is_empty());
                        let _ = Rejection::of(&error, frame.bytes);
                    }
                    Ok(view) => {
                        let _ = validate(&view, Interfaces::ALL);
                        let _ = findings(&view, Interfaces::N4);
                        prop_assert!(!view.to_string().is_empty());
                        if let Ok(message) = view.to_message() {
                            let again = message.encode().expect("as short as it was");
                            prop_assert_eq!(&again, frame.bytes);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn noise_never_panics(bytes in vec(any::<u8>(), 0..256)) {
        holds(&bytes)?;
    }

    #[test]
    fn decoded_message_encodes_to_same_bytes(bytes in messages()) {
        holds(&bytes)?;
    }

    #[test]
    fn a_flipped_byte_never_panics(
        bytes in messages(), at in any::<proptest::sample::Index>(), flip in 1..=255_u8,
    ) {
        let mut bytes = bytes;
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        holds(&bytes)?;
    }
}
