//! Elements newer than release 17: they are found, rejected when sent, or left out.

use std::net::IpAddr;

use strowger_pfcp::ie::descriptor::{Descriptor, describe};
use strowger_pfcp::ie::{Cause, UpFunctionFeatures};
use strowger_pfcp::message::{AssociationSetupRequest, AssociationUpdateResponse};
use strowger_pfcp::validate::{findings, newer};
use strowger_pfcp::{
    IeType, Index, Interfaces, Message, MessageType, MessageView, Release, Sequence, validate,
};

use crate::bytes::{node_message, session_message, tlv};

const NODE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn setup(features: UpFunctionFeatures) -> AssociationSetupRequest {
    AssociationSetupRequest::new(NODE, 1).up_function_features(features)
}

fn found(message: &Message, release: Release) -> Vec<String> {
    let bytes = message.encode().expect("short");
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    newer(&view, release)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn newer_flag_is_reported_refused_and_removed() {
    let old = UpFunctionFeatures::FTUP | UpFunctionFeatures::UEIP;
    let message = Message::node(Sequence::new(1), setup(old | UpFunctionFeatures::MOQ));
    assert_eq!(
        found(&message, Release::R17),
        ["Association Setup Request: UP Function Features has MOQ, which R17 does not have"]
    );
    let error = message.encode_in(Release::R17).expect_err("a newer flag");
    assert_eq!(
        error.to_string(),
        "Association Setup Request / UP Function Features: MOQ is newer than R17"
    );
    let reduced = message.reduced_to(Release::R17).expect("an old message");
    let bytes = reduced
        .encode_in(Release::R17)
        .expect("nothing newer is left");
    let expected = Message::node(Sequence::new(1), setup(old));
    assert_eq!(
        Message::decode(&bytes).expect("well-formed").body,
        expected.body
    );
}

#[test]
fn newer_element_is_removed_and_older_content_kept() {
    let mut body = setup(UpFunctionFeatures::FTUP);
    body.rest.push(IeType::METADATA, [1, 2]);
    body.rest.push(IeType(0x8001), [0, 9, 1]);
    let message = Message::node(Sequence::new(1), body);
    assert_eq!(
        found(&message, Release::R17),
        ["Association Setup Request: Metadata is newer than R17"]
    );
    assert!(found(&message, Release::R19).is_empty());
    let reduced = message.reduced_to(Release::R17).expect("an old message");
    assert!(found(&reduced, Release::R17).is_empty());
    let vendor = [0x80, 1, 0, 3, 0, 9, 1];
    let bytes = reduced.encode().expect("short");
    assert!(bytes.windows(vendor.len()).any(|part| part == vendor));
}

#[test]
fn a_newer_value_is_refused() {
    let cause = Cause::PFD_APPLICATION_ID_UNKNOWN;
    let body = AssociationUpdateResponse::new(NODE, cause);
    let message = Message::node(Sequence::new(1), body);
    let error = message.encode_in(Release::R17).expect_err("a newer cause");
    assert_eq!(
        error.to_string(),
        "Association Update Response / Cause: cause is newer than R17"
    );
    assert!(message.encode_in(Release::R19).is_ok());
}

#[test]
fn release_display_round_trips() {
    for release in [Release::R17, Release::R19] {
        assert_eq!(release.to_string().parse(), Ok(release));
    }
    assert!("R18".parse::<Release>().is_err());
}

/// Judges a message in both releases.
fn judged(bytes: &[u8], on: Interfaces) -> [Result<Interfaces, String>; 2] {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    [Release::R17, Release::R19].map(|release| {
        validate(&view, on.in_release(release)).map_err(|rejection| rejection.to_string())
    })
}

#[test]
fn release_17_does_not_require_newer_members() {
    // MBS sessions have had URRs since release 18: a receiver of release 17 ignores a broken one.
    let urr = tlv(6, &tlv(81, &[0, 0, 0, 1]));
    let bytes = session_message(52, &urr);
    let [old, new] = judged(&bytes, Interfaces::N4MB);
    assert_eq!(old, Ok(Interfaces::N4MB));
    let error = new.expect_err("a URR without its method");
    assert!(
        error.ends_with("Create URR[0]: Measurement Method is missing"),
        "{error}"
    );
    let [old, new] = judged(&bytes, Interfaces::N4);
    assert!(old.is_err() && new.is_err());
}

#[test]
fn incomplete_newer_group_is_ignored() {
    // Elements of a later release may lack anything.
    let newer = IeType::ALL.iter().copied().find(|ie| {
        let is_group = matches!(describe(*ie), Some(Descriptor::Group(_)));
        let member = MessageType::ASSOCIATION_SETUP_REQUEST.table();
        let row = member.and_then(|table| table.member(*ie));
        is_group && ie.since() == Release::R19 && row.is_some()
    });
    let stamp = tlv(96, &[0; 4]);
    let node = tlv(60, &[0, 127, 0, 0, 1]);
    let empty = tlv(newer.map_or(0, |ie| ie.0), &[]);
    let bytes = node_message(5, &[node, stamp, empty].concat());
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    assert_eq!(
        validate(&view, Interfaces::N4.in_release(Release::R17)),
        Ok(Interfaces::N4)
    );
    let found = findings(&view, Interfaces::N4.in_release(Release::R17));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        newer.is_none() || found[0].ends_with("is newer than R17"),
        "{found:?}"
    );
}

#[test]
fn findings_for_release_17_include_newer_flags() {
    let message = Message::node(Sequence::new(1), setup(UpFunctionFeatures::MOQ));
    let bytes = message.encode().expect("short");
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let found = findings(&view, Interfaces::N4.in_release(Release::R17));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        found.contains(
            &"Association Setup Request: UP Function Features has MOQ, which R17 does not have"
                .to_owned()
        ),
        "{found:?}"
    );
}

#[test]
fn newer_content_is_attributed_to_its_rule() {
    let rule = |inside: &[u8]| tlv(1, &[&tlv(56, &[0, 1])[..], inside].concat());
    let metadata = tlv(IeType::METADATA.0, &[1, 2]);
    let bytes = session_message(52, &[rule(&[]), rule(&metadata)].concat());
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let found = newer(&view, Release::R17);
    assert_eq!(found.len(), 1);
    let text = found[0].to_string();
    assert!(
        text.ends_with("Create PDR[1]: Metadata is newer than R17"),
        "{text}"
    );
}

fn newer_in(bytes: &[u8]) -> Vec<String> {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    let found = newer(&view, Release::R17);
    found.iter().map(ToString::to_string).collect()
}

/// A message as a receiver of release 17 sees it.
fn reduced(bytes: &[u8]) -> Vec<u8> {
    let message = Message::decode(bytes).expect("whole");
    let reduced = message.reduced_to(Release::R17).expect("an old message");
    reduced.encode().expect("short")
}

#[test]
fn older_element_is_newer_where_membership_is_newer() {
    let bar_id = tlv(IeType::BAR_ID.0, &[1]);
    let duration = tlv(IeType::DL_BUFFERING_DURATION.0, &[3]);
    assert_eq!(IeType::DL_BUFFERING_DURATION.since(), Release::R17);
    let bar = |members: &[u8]| session_message(52, &tlv(IeType::CREATE_BAR.0, members));
    let [old, new] = [bar(&bar_id), bar(&[&bar_id[..], &duration].concat())];
    assert_eq!(newer_in(&old), [""; 0]);
    let place = "Session Modification Request / Create BAR";
    let expected = format!("{place}: DL Buffering Duration is newer than R17");
    assert_eq!(newer_in(&new), [expected]);
    assert_eq!(reduced(&new), old);
}

#[test]
fn removing_newer_flag_removes_its_field() {
    let report = |peer: &[u8]| {
        let peers = tlv(IeType::REMOTE_GTPU_PEER.0, peer);
        let body = [
            tlv(IeType::NODE_ID.0, &[0, 127, 0, 0, 1]),
            tlv(IeType::NODE_REPORT_TYPE.0, &[1]),
            tlv(IeType::USER_PLANE_PATH_FAILURE_REPORT.0, &peers),
        ];
        node_message(12, &body.concat())
    };
    // V4 with its address, and RTS with its time.
    let old = report(&[0x02, 10, 0, 0, 1]);
    let new = report(&[0x12, 10, 0, 0, 1, 0xe8, 0x1f, 0xe7, 0xb4]);
    assert_eq!(newer_in(&old), [""; 0]);
    let found = newer_in(&new);
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "Remote GTP-U Peer has RTS, which R17 does not have";
    assert!(found[0].ends_with(expected), "{found:?}");
    assert_eq!(reduced(&new), old);
}

#[test]
fn removing_newer_flag_keeps_neighbouring_bits() {
    let rule = |flags: u8| {
        let members = [
            tlv(IeType::PDR_ID.0, &[0, 1]),
            tlv(IeType::PDI.0, &tlv(IeType::SOURCE_INTERFACE.0, &[0])),
            tlv(IeType::MULTIPATH_APPLICABLE_INDICATION.0, &[flags]),
        ];
        session_message(52, &tlv(IeType::CREATE_PDR.0, &members.concat()))
    };
    // MTAI is old and the lowest, MQAI is newer and the second, and the third is spare.
    for (flags, old) in [(1, 1), (2, 0), (3, 1), (4, 4), (5, 5)] {
        let found = newer_in(&rule(flags));
        assert_eq!(found.len(), usize::from(flags & 2 != 0), "{found:?}");
        assert!(found.iter().all(|text| text.contains(" has MQAI, ")));
        assert_eq!(reduced(&rule(flags)), rule(old), "{flags}");
    }
}

#[test]
fn release_17_ignores_malformed_release_19_group() {
    // Only N4 has the group, and it is meaningless without its identifier on any interface.
    let empty = tlv(IeType::N6_DELAY_MEASUREMENT_CONTROL_INFORMATION.0, &[]);
    let body = [tlv(60, &[0, 127, 0, 0, 1]), tlv(96, &[0; 4]), empty];
    let [old, new] = judged(&node_message(5, &body.concat()), Interfaces::ALL);
    assert_eq!(old, Ok(Interfaces::ALL));
    let error = new.expect_err("a group without its identifier");
    assert!(error.contains("Information ID is missing"), "{error}");
}
