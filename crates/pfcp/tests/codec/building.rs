//! Values that cannot be encoded: an error names the element before any byte is written.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use strowger_pfcp::ie::ApplyAction;
use strowger_pfcp::ie::descriptor::canonical;
use strowger_pfcp::ie::{
    ApplicationIdsPfds, CTag, CreateFar, CreatePdr, CreateQer, CreateTrafficEndpoint, CreateUrr,
    DestinationInterface, FTeid, ForwardingParameters, FqCsid, GateStatus, L2tpTunnelInformation,
    LnsAddress, MacAddressesDetected, Mbr, MeasurementMethod, NodeId, NodeIdType,
    OuterHeaderCreation, Pdi, PfdContents, PfdContext, Qfi, ReportingTriggers, SdfFilter,
    SourceInterface, TunnelPreference, UeIpAddress, UserId,
};
use strowger_pfcp::message::{
    PfdManagementRequest, SessionEstablishmentRequest, SessionModificationRequest,
};
use strowger_pfcp::{
    ErrorKind, Ie, IeType, Index, Interfaces, Message, MessageView, Seid, Sequence, from_json,
    to_json,
};

use crate::bytes::{hex, node_message, tlv};

const NODE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn establishment(pdrs: impl IntoIterator<Item = CreatePdr>) -> Message {
    let body = SessionEstablishmentRequest::new(NODE, (1, NODE)).create_pdrs(pdrs);
    Message::session(Seid(0), Sequence::new(1), body)
}

/// The error for a value in an element of its own.
fn refused<T: Ie>(value: &T) -> String {
    let mut out = vec![7];
    let error = value.encode_into(&mut out).expect_err("no such value");
    assert_eq!(out, [7], "nothing is appended");
    assert_eq!(error.path().last(), Some(T::TYPE));
    error.to_string()
}

#[test]
fn oversized_number_is_refused_not_truncated() {
    assert_eq!(refused(&Qfi(64)), "QFI: qfi is out of range");
    assert_eq!(
        refused(&TunnelPreference(0x0100_0000)),
        "L2TP Tunnel Preference: tunnel_preference is out of range".replace(
            "L2TP Tunnel Preference",
            &TunnelPreference::TYPE.to_string()
        )
    );
    let mbr = Mbr {
        ul_mbr: 1 << 40,
        dl_mbr: 0,
    };
    assert_eq!(refused(&mbr), "MBR: ul_mbr is out of range");
    assert_eq!(
        refused(&SourceInterface(16)),
        "Source Interface: interface is out of range"
    );
    let tag = CTag {
        pcp: 8,
        ..CTag::default()
    };
    assert_eq!(refused(&tag), "C-TAG: pcp is out of range");
    for (number, fits) in [(0, true), (63, true), (64, false), (255, false)] {
        assert_eq!(Qfi(number).encode_into(&mut Vec::new()).is_ok(), fits);
    }
}

#[test]
fn oversized_bytes_are_refused_not_truncated() {
    let user = UserId {
        imsi: Some(vec![1; 256].into()),
        ..UserId::default()
    };
    assert_eq!(refused(&user), "User ID: imsi is out of range");
    let filter = SdfFilter::flow(&"x".repeat(0x1_0000));
    assert_eq!(
        refused(&filter),
        "SDF Filter: flow_description is out of range"
    );
    let addresses = MacAddressesDetected {
        mac_addresses: [[0; 6]; 256].into_iter().collect(),
        ..MacAddressesDetected::default()
    };
    assert!(refused(&addresses).ends_with(": mac_addresses is out of range"));
}

#[test]
fn media_identifications_form_a_list() {
    let media = [&[1, 2][..], &[3], &[]];
    let filter = SdfFilter {
        multiplexed_media: Some(media.into_iter().collect()),
        ..SdfFilter::default()
    };
    // SMMII, a spare byte, the number of identifiers, and each identifier after its length.
    let bytes = hex("20000300020102000103");
    let bytes = [bytes, vec![0, 0]].concat();
    let message = node_message(1, &[tlv(96, &[0; 4]), tlv(23, &bytes)].concat());
    let mut index = Index::new();
    let view = MessageView::decode(&message, &mut index).expect("a message");
    let part = view.root().parts().nth(1).expect("the filter");
    assert_eq!(SdfFilter::from_part(part).as_ref(), Ok(&filter));
    let json = to_json(&view);
    assert_eq!(
        json["ies"][1]["value"]["multiplexed_media"],
        json!(["0102", "03", ""])
    );
    assert_eq!(from_json(&json).expect("JSON"), message);
    assert!(view.to_string().contains("multiplexed media [0x0102, 0x03"));
    // A count that is too high is an error; bytes after the identifiers are kept.
    for (count, is_list) in [(2, true), (3, true), (4, false)] {
        let mut bytes = bytes.clone();
        bytes[2] = count;
        let read = canonical(IeType::SDF_FILTER, &bytes).expect("a row");
        assert_eq!(read.is_ok(), is_list, "{count}");
    }
    let many = SdfFilter {
        multiplexed_media: Some(vec![[7]; 256].into_iter().collect()),
        ..SdfFilter::default()
    };
    assert_eq!(
        refused(&many),
        "SDF Filter: multiplexed_media is out of range"
    );
}

#[test]
fn list_with_inconsistent_count_or_length_is_refused() {
    let mut sets = FqCsid::of(NODE, &[1, 2]);
    sets.number_of_csids = 3;
    assert_eq!(
        refused(&sets),
        "FQ-CSID: csids contradicts the fields before it"
    );
    let contents = PfdContents {
        additional_url: Some([vec![b'x'; 0x1_0000]].into_iter().collect()),
        ..PfdContents::default()
    };
    assert_eq!(
        refused(&contents),
        "PFD contents: additional_url is out of range"
    );
}

#[test]
fn contradictory_flags_and_fields_are_refused() {
    let mut tunnel = FTeid::new(7, NODE);
    tunnel.ipv4 = None;
    assert_eq!(
        refused(&tunnel),
        "F-TEID: ipv4 contradicts the fields before it"
    );
    let mut chosen = FTeid::choose_ipv4();
    chosen.teid = Some(1);
    assert_eq!(
        refused(&chosen),
        "F-TEID: teid contradicts the fields before it"
    );
    let mut node = NodeId::from(NODE);
    node.node_id_type = NodeIdType::FQDN;
    assert_eq!(
        refused(&node),
        "Node ID: ipv4 contradicts the fields before it"
    );
    let header = OuterHeaderCreation {
        gtpu_udp_ipv4: true,
        ..OuterHeaderCreation::default()
    };
    assert_eq!(
        refused(&header),
        "Outer Header Creation: teid contradicts the fields before it"
    );
    // The second tag would be read as the first.
    let addresses = MacAddressesDetected {
        s_tag: Some(vec![1, 2, 3].into()),
        ..MacAddressesDetected::default()
    };
    assert!(refused(&addresses).ends_with(": s_tag contradicts the fields before it"));
}

#[test]
fn encode_error_names_element_path() {
    let mut tunnel = FTeid::new(7, NODE);
    tunnel.ipv4 = None;
    let pdr = |id: u16, tunnel: FTeid| {
        let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(tunnel);
        CreatePdr::new(id, pdi).precedence(1).far_id(1)
    };
    let fine = FTeid::new(8, NODE);
    let message = establishment([pdr(1, fine), pdr(2, tunnel), pdr(3, fine), pdr(4, tunnel)]);
    let error = message.encode().expect_err("a tunnel without its address");
    assert_eq!(
        error.to_string(),
        "Session Establishment Request / Create PDR[1] / PDI / F-TEID: \
         ipv4 contradicts the fields before it"
    );
    assert_eq!(error.kind(), ErrorKind::Contradiction { field: "ipv4" });
    let mut buffer = vec![1, 2, 3];
    assert!(message.encode_into(&mut buffer).is_err());
    assert_eq!(buffer, [1, 2, 3]);
}

#[test]
fn oversized_element_error_names_its_path() {
    let filters = |count: usize| {
        let filters = (0..count).map(|_| SdfFilter::flow(&"x".repeat(1000)));
        Pdi::new(SourceInterface::ACCESS).sdf_filters(filters)
    };
    let pdr = |id: u16, count| CreatePdr::new(id, filters(count)).precedence(1).far_id(1);
    let error = establishment([pdr(1, 1), pdr(2, 66)]).encode();
    assert_eq!(
        error.expect_err("65 bytes of 1000").to_string(),
        "Session Establishment Request / Create PDR[1] / PDI: \
         66533 bytes do not fit the length field"
    );
    let error = establishment([pdr(1, 40), pdr(2, 40)]).encode();
    let error = error.expect_err("each fits, both do not").to_string();
    assert!(
        error.starts_with("Session Establishment Request: "),
        "{error}"
    );
}

#[test]
fn message_priority_is_limited_to_four_bits() {
    let mut message = establishment([]);
    message.header.priority = Some(16);
    assert_eq!(
        message.encode().expect_err("five bits").to_string(),
        "Session Establishment Request: priority is out of range"
    );
}

fn unsendable(body: impl Into<strowger_pfcp::message::Body>, on: Interfaces) -> String {
    let body = body.into();
    let message = if body.message_type().is_session() {
        Message::session(Seid(1), Sequence::new(1), body)
    } else {
        Message::node(Sequence::new(1), body)
    };
    let mut out = vec![9];
    let error = message.encode_for(on, &mut out).expect_err("no message");
    assert_eq!(out, [9], "nothing is appended");
    error.to_string()
}

#[test]
fn encode_for_refuses_missing_mandatory_and_conditional_members() {
    let pdr = CreatePdr::new(1, Pdi::new(SourceInterface::ACCESS)).far_id(1);
    let body = SessionModificationRequest::new().create_pdrs([pdr]);
    assert_eq!(
        unsendable(body.clone(), Interfaces::N4),
        "Session Modification Request / Create PDR[0]: Precedence is missing"
    );
    let message = Message::session(Seid(1), Sequence::new(1), body);
    let on = message.encode_for(Interfaces::ALL, &mut Vec::new());
    assert_eq!(on.expect("fine there"), Interfaces::SXA);

    let forward = CreateFar::new(1, ApplyAction::FORW);
    let body = SessionModificationRequest::new().create_fars([forward]);
    assert_eq!(
        unsendable(body, Interfaces::N4),
        "Session Modification Request / Create FAR[0]: \
         Forwarding Parameters is missing (§7.5.2.3)"
    );
    let rule = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH);
    let body = SessionModificationRequest::new().create_urrs([rule]);
    assert_eq!(
        unsendable(body, Interfaces::N4),
        "Session Modification Request / Create URR[0]: Volume Threshold is missing (§7.5.2.4)"
    );
    let empty = ApplicationIdsPfds::new("video").pfd_contexts([PfdContext::new()]);
    let body = PfdManagementRequest::new().application_id_s_pfds([empty]);
    let error = unsendable(body, Interfaces::N4);
    assert!(
        error.ends_with("/ PFD context[0]: PFD contents is missing"),
        "{error}"
    );
}

#[test]
fn encode_for_accepts_valid_message() {
    let endpoint = CreateTrafficEndpoint::new(1)
        .local_f_teid((7, NODE))
        .ue_ip_addresses([UeIpAddress::source(NODE)]);
    let to = ForwardingParameters::new(DestinationInterface::ACCESS)
        .outer_header_creation(OuterHeaderCreation::from((7, NODE)));
    let far = CreateFar::new(1, ApplyAction::FORW).forwarding_parameters(to);
    let qer = CreateQer::new(1, GateStatus::default()).qos_flow_identifier(Qfi(9));
    let body = SessionModificationRequest::new()
        .create_traffic_endpoints([endpoint])
        .create_fars([far])
        .create_qers([qer])
        .fq_csids([FqCsid::of(NODE, &[1, 2])]);
    let message = Message::session(Seid(1), Sequence::new(1), body);
    let mut out = Vec::new();
    let on = message.encode_for(Interfaces::N4, &mut out);
    assert_eq!(on.expect("acceptable"), Interfaces::N4);
    assert_eq!(Message::decode(&out).expect("well-formed"), message);
    let tunnel = L2tpTunnelInformation::new(LnsAddress::from(NODE));
    assert!(!tunnel.to_string().is_empty());
    for contents in [
        PfdContents::flow("permit out ip from any to assigned"),
        PfdContents::url("http://example.org"),
        PfdContents::domain("example.org"),
    ] {
        let mut bytes = Vec::new();
        contents.encode_into(&mut bytes).expect("short");
        assert_eq!(
            PfdContents::decode(&bytes[4..]).expect("well-formed"),
            contents
        );
    }
}
