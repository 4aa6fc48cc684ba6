//! Octets from the tests of other projects.

use strowger_pfcp::ie::descriptor::canonical;
use strowger_pfcp::{IeType, Message, frames};

use crate::octets::{hex, shared_json};
use crate::proof::Proof;

/// Reads the vectors of a file: name and octets.
fn vectors(path: &str) -> Vec<(String, Vec<u8>)> {
    let file = shared_json(path).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let vectors = file.as_array().into_iter().flatten();
    vectors
        .map(|vector| (text(&vector["name"]), hex(&text(&vector["hex"]))))
        .collect()
}

#[test]
fn messages_of_others_encode_to_the_same_octets() {
    let expected = vec![
        // Tests of the header alone.
        "No-SEID: Heartbeat Request: Recovery Time Stamp is missing",
        "Session: Session Establishment Request: Node ID is missing",
        // A sketch of a rule, without what the specification asks of it.
        "TestMarshal: Session Establishment Request / Create PDR[0]: PDI is missing",
        "TestUnmarshal: Session Establishment Request / Create PDR[0]: PDI is missing",
    ];
    let mut odd = Vec::new();
    let vectors = vectors("pfcp/vectors/messages.json");
    let mut proof = Proof::by("vector");
    for (name, octets) in &vectors {
        for frame in frames(octets) {
            let again = frame.and_then(|frame| {
                let again = Message::decode(frame.octets)?.encode()?;
                Ok((again == frame.octets).then_some(frame.octets))
            });
            match again {
                Ok(Some(octets)) => proof.message_and_elements(octets),
                Ok(None) => odd.push(format!("{name}: other octets")),
                Err(error) => odd.push(format!("{name}: {error}")),
            }
        }
    }
    assert!(vectors.is_empty() || odd == expected, "{odd:#?}");
    proof.record();
}

#[test]
fn elements_of_others_encode_to_the_same_octets() {
    let expected = vec![
        // An octet of flags that are all zero may be left out.
        "ApplyAction: 1 octets more than the fields have",
        // Spare bits are set.
        "DownlinkDataServiceInformation/HasALL: [03, 3f, 3f] for [03, ff, ff]",
        "DownlinkDataServiceInformation/HasPPI: [01, 3f] for [01, ff]",
        // No flag says that there are MAC addresses.
        "PMFAddressInformation/Both: 12 octets more than the fields have",
        "PMFAddressInformation/IPv6: 12 octets more than the fields have",
        // Only the types of two addresses have a second one.
        "RedirectInformation/URL/2: 35 octets more than the fields have",
        // Release 16 had other members for the type inside of a FAR.
        "RedundantTransmissionParameters/FAR: Redundant Transmission Parameters: F-TEID is missing",
        // Release 19 took the third flag back.
        "ReportingFrequency: [03] for [07]",
        // As the first.
        "ReportingTriggers: 1 octets more than the fields have",
        // The element of a vendor.
        "VendorSpecific: no row",
    ];
    let mut odd = Vec::new();
    let vectors = vectors("pfcp/vectors/ies.json");
    let mut proof = Proof::by("vector");
    for (name, octets) in &vectors {
        let (head, value) = octets.split_at(4);
        let ie = IeType(u16::from_be_bytes([head[0], head[1]]));
        match canonical(ie, value) {
            None => odd.push(format!("{name}: no row")),
            Some(Ok(again)) if again == value => proof.element(ie),
            Some(Ok(again)) if value.starts_with(&again) => {
                let more = value.len() - again.len();
                odd.push(format!("{name}: {more} octets more than the fields have"));
            }
            Some(Ok(again)) => odd.push(format!("{name}: {again:02x?} for {value:02x?}")),
            Some(Err(error)) => odd.push(format!("{name}: {error}")),
        }
    }
    odd.sort();
    assert!(vectors.is_empty() || odd == expected, "{odd:#?}");
    proof.record();
}
