//! What release 17 does not have is found, refused when it is sent, or left out.

use std::net::IpAddr;

use strowger_pfcp::ie::{Cause, UpFunctionFeatures};
use strowger_pfcp::message::{AssociationSetupRequest, AssociationUpdateResponse};
use strowger_pfcp::validate::newer;
use strowger_pfcp::{IeType, Index, Message, MessageView, Release, Sequence};

const NODE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn setup(features: UpFunctionFeatures) -> AssociationSetupRequest {
    AssociationSetupRequest::new(NODE, 1).up_function_features(features)
}

fn found(message: &Message, release: Release) -> Vec<String> {
    let octets = message.encode().expect("short");
    let mut index = Index::new();
    let view = MessageView::decode(&octets, &mut index).expect("well-formed");
    newer(&view, release)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_newer_flag_is_named_refused_and_left_out() {
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
    let octets = reduced
        .encode_in(Release::R17)
        .expect("nothing newer is left");
    let expected = Message::node(Sequence::new(1), setup(old));
    assert_eq!(
        Message::decode(&octets).expect("well-formed").body,
        expected.body
    );
}

#[test]
fn a_newer_element_is_left_out_and_what_is_old_stays() {
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
    let octets = reduced.encode().expect("short");
    assert!(octets.windows(vendor.len()).any(|part| part == vendor));
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
fn releases_are_read_as_they_are_written() {
    for release in [Release::R17, Release::R19] {
        assert_eq!(release.to_string().parse(), Ok(release));
    }
    assert!("R18".parse::<Release>().is_err());
}
