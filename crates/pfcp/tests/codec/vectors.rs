//! Messages and values from the tests of other projects: decoding and encoding gives the same
//! bytes; exceptions are listed with the reason and with tshark's verdict.

use strowger_pfcp::ie::descriptor::canonical;
use strowger_pfcp::{IeType, Message, frames};

use crate::bytes::{hex, node_message, shared_json};
use crate::proof::Proof;
use crate::{tools, tshark};

/// Reads the vectors of a file: name and bytes.
fn vectors(path: &str) -> Vec<(String, Vec<u8>)> {
    let file = shared_json(path).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let vectors = file.as_array().into_iter().flatten();
    vectors
        .map(|vector| (text(&vector["name"]), hex(&text(&vector["hex"]))))
        .collect()
}

/// A vector that changes when it is decoded and encoded: the result here, and tshark's verdict.
type Odd = (String, String);

/// Asks tshark about these vectors: each is given with its bytes as a message.
fn judged(name: &str, odd: Vec<(String, Vec<u8>)>) -> Option<Vec<Odd>> {
    if !tools::is_here("tshark") {
        return None;
    }
    let (names, messages): (Vec<String>, Vec<Vec<u8>>) = odd.into_iter().unzip();
    let verdicts = tshark::told(name, &messages);
    let verdicts = verdicts
        .into_iter()
        .map(|theirs| match theirs.complaints[..] {
            [] => "accepts".to_owned(),
            _ => theirs.complaints.join(", "),
        });
    let mut odd: Vec<Odd> = names.into_iter().zip(verdicts).collect();
    odd.sort();
    Some(odd)
}

fn expected(rows: &[(&str, &str)]) -> Vec<Odd> {
    let owned = |(ours, theirs): &(&str, &str)| ((*ours).to_owned(), (*theirs).to_owned());
    rows.iter().map(owned).collect()
}

#[test]
fn foreign_messages_round_trip() {
    let mut odd = Vec::new();
    let vectors = vectors("pfcp/vectors/messages.json");
    let mut proof = Proof::by("vector");
    for (name, bytes) in &vectors {
        for frame in frames(bytes) {
            let again = frame.and_then(|frame| {
                let again = Message::decode(frame.bytes)?.encode()?;
                Ok((again == frame.bytes).then_some(frame.bytes))
            });
            match again {
                Ok(Some(bytes)) => proof.message_and_elements(bytes),
                Ok(None) => odd.push((format!("{name}: other bytes"), bytes.clone())),
                Err(error) => odd.push((format!("{name}: {error}"), bytes.clone())),
            }
        }
    }
    if vectors.is_empty() {
        return;
    }
    if let Some(odd) = judged("messages", odd) {
        assert_eq!(odd, expected(&MESSAGES), "{odd:#?}");
    }
    proof.record();
}

const MESSAGES: [(&str, &str); 4] = [
    // Tests of the header alone.
    (
        "No-SEID: Heartbeat Request: Recovery Time Stamp is missing",
        "accepts",
    ),
    (
        "Session: Session Establishment Request: Node ID is missing",
        "accepts",
    ),
    // An incomplete rule, without elements that the specification requires.
    (
        "TestMarshal: Session Establishment Request / Create PDR[0]: PDI is missing",
        "accepts",
    ),
    (
        "TestUnmarshal: Session Establishment Request / Create PDR[0]: PDI is missing",
        "accepts",
    ),
];

#[test]
fn foreign_elements_round_trip() {
    let mut odd = Vec::new();
    let vectors = vectors("pfcp/vectors/ies.json");
    let mut proof = Proof::by("vector");
    for (name, bytes) in &vectors {
        let (head, value) = bytes.split_at(4);
        let ie = IeType(u16::from_be_bytes([head[0], head[1]]));
        let what = match canonical(ie, value) {
            None => "no row".to_owned(),
            Some(Ok(again)) if again == value => {
                proof.element(ie);
                continue;
            }
            Some(Ok(again)) if value.starts_with(&again) => {
                let more = value.len() - again.len();
                format!("{more} bytes more than the fields have")
            }
            Some(Ok(again)) => format!("{again:02x?} for {value:02x?}"),
            Some(Err(error)) => error.to_string(),
        };
        odd.push((format!("{name}: {what}"), node_message(1, bytes)));
    }
    if vectors.is_empty() {
        return;
    }
    if let Some(odd) = judged("elements", odd) {
        assert_eq!(odd, expected(&ELEMENTS), "{odd:#?}");
    }
    proof.record();
}

const ELEMENTS: [(&str, &str); 10] = [
    // A byte of flags that are all zero may be omitted.
    ("ApplyAction: 1 bytes more than the fields have", "accepts"),
    // Spare bits are set.
    (
        "DownlinkDataServiceInformation/HasALL: [03, 3f, 3f] for [03, ff, ff]",
        "accepts",
    ),
    (
        "DownlinkDataServiceInformation/HasPPI: [01, 3f] for [01, ff]",
        "accepts",
    ),
    // No flag announces the MAC addresses.
    (
        "PMFAddressInformation/Both: 12 bytes more than the fields have",
        UNDECODED,
    ),
    (
        "PMFAddressInformation/IPv6: 12 bytes more than the fields have",
        UNDECODED,
    ),
    // Only the types for two addresses have a second one.
    (
        "RedirectInformation/URL/2: 35 bytes more than the fields have",
        UNDECODED,
    ),
    // In release 16 the type had other members inside a FAR.
    (
        "RedundantTransmissionParameters/FAR: Redundant Transmission Parameters: F-TEID is missing",
        "accepts",
    ),
    // Release 19 removed the third flag.
    ("ReportingFrequency: [03] for [07]", "accepts"),
    // Like the first.
    (
        "ReportingTriggers: 1 bytes more than the fields have",
        "accepts",
    ),
    // The element of a vendor.
    (
        "VendorSpecific: no row",
        "IE not decoded yet(WS:No vendor dissector)",
    ),
];

const UNDECODED: &str = "IE data not decoded by WS yet";
