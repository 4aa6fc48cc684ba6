//! Decode, drop the bytes, encode: the bytes are the same.

use crate::bytes::{session_message, tlv};
use strowger_pfcp::ie::{
    CreateFar, CreatePdr, FSeid, FTeid, FarId, ForwardingParameters, NodeId, Pdi, Precedence,
    SourceInterface,
};
use strowger_pfcp::message::SessionEstablishmentRequest;
use strowger_pfcp::{Index, Message, MessageView, Seid, Sequence};

/// An establishment with everything that rows do not describe: Create FAR before Create PDR, an
/// unknown element and a vendor's, spare bits, bytes after the fields, a duplicate element.
fn unusual(f_teid: &[u8]) -> Vec<u8> {
    let far = [
        tlv(108, &[0, 0, 0, 1, 0xbe, 0xef]),
        tlv(44, &[2]),
        tlv(999, &[]),
    ]
    .concat();
    let vendor = tlv(0x8001, &[0, 9, 0xab, 0xcd]);
    let pdi = [tlv(20, &[0xf1]), vendor, tlv(350, &[1, 2]), tlv(21, f_teid)].concat();
    let precedence = tlv(29, &[0, 0, 0, 100]);
    let pdr = [
        tlv(56, &[0, 1]),
        tlv(2, &pdi),
        precedence.clone(),
        precedence,
        tlv(108, &[0, 0, 0, 1]),
    ];
    let body = [
        tlv(60, &[0x50, 127, 0, 0, 7]),
        tlv(57, &[0xf2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 7]),
        tlv(3, &far),
        tlv(1, &pdr.concat()),
    ];
    session_message(50, &body.concat())
}

#[test]
fn order_unknown_elements_and_spare_bits_survive() {
    let bytes = unusual(&[1, 0, 0, 0, 7, 127, 0, 0, 1]);
    let message = Message::decode(&bytes).expect("well-formed");
    assert_eq!(message.encode().expect("short"), bytes);
}

#[test]
fn an_error_names_the_path_and_the_offset() {
    let bytes = unusual(&[1, 0, 0]);
    let error = Message::decode(&bytes).expect_err("an F-TEID of length 3");
    assert_eq!(
        error.to_string(),
        "Session Establishment Request / Create PDR[0] / PDI / F-TEID: length 3, need 5"
    );
    assert_eq!(bytes[error.offset()..][..3], [1, 0, 0]);
}

#[test]
fn a_changed_field_changes_only_its_bytes() {
    let bytes = unusual(&[1, 0, 0, 0, 7, 127, 0, 0, 1]);
    let mut message = Message::decode(&bytes).expect("well-formed");
    let strowger_pfcp::message::Body::SessionEstablishmentRequest(body) = &mut message.body else {
        panic!("an establishment");
    };
    body.create_pdrs[0].far_id = Some(FarId(0x0102_0304));
    let changed = message.encode().expect("short");
    let differ = |(a, b): (&u8, &u8)| a != b;
    assert_eq!(changed.len(), bytes.len());
    assert_eq!(
        changed
            .iter()
            .zip(&bytes)
            .filter(|pair| differ(*pair))
            .count(),
        4
    );
}

#[test]
fn a_built_message_decodes_to_itself() {
    let address = "127.0.0.7".parse().expect("an address");
    let pdi = Pdi::new(SourceInterface::ACCESS)
        .local_f_teid(FTeid::new(7, address))
        .network_instance("internet");
    let pdr = CreatePdr::new(1, pdi).precedence(Precedence(100)).far_id(1);
    let far = CreateFar::new(1, strowger_pfcp::ie::ApplyAction::FORW).forwarding_parameters(
        ForwardingParameters::new(strowger_pfcp::ie::DestinationInterface::CORE),
    );
    let node = NodeId::fqdn("smf.example.org");
    let body = SessionEstablishmentRequest::new(node, FSeid::new(Seid(1), address))
        .create_pdrs([pdr])
        .create_fars([far]);
    let message = Message::session(Seid(0), Sequence::new(9), body);
    let bytes = message.encode().expect("short");
    assert_eq!(Message::decode(&bytes).expect("well-formed"), message);
}

#[test]
fn a_heartbeat_is_shown_on_two_lines() {
    let bytes = [
        0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe8, 0x1f, 0xdc, 0x30,
    ];
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("a heartbeat");
    assert_eq!(
        view.to_string(),
        "Heartbeat Request (1), sequence 1\n  Recovery Time Stamp (96): 2023-05-30T02:21:36Z"
    );
}
