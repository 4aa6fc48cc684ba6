//! The message model of docs/messages.md, checked against the vectors in fixtures/messages.

use std::path::Path;

use serde_json::Value;
use strowger::{
    Address, Envelope, Fault, FaultCode, ReceiverCredit, SendDecision, SenderCredit, SlowReader,
};

fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/messages");
    let text = std::fs::read_to_string(path.join(name)).expect("the vectors are there");
    serde_json::from_str(&text).expect("the vectors are JSON")
}

fn list<'a>(vectors: &'a Value, key: &str) -> &'a Vec<Value> {
    let list = vectors[key].as_array().expect("a list of vectors");
    assert!(!list.is_empty(), "{key}");
    list
}

#[test]
fn address_parsing_matches_vectors() {
    let vectors = vectors("addresses.json");
    for vector in list(&vectors, "valid") {
        let text = vector["text"].as_str().expect("text");
        let address: Address = text.parse().expect(text);
        let keys: Vec<Value> = address.keys().map(Value::from).collect();
        assert_eq!(Value::from(keys), vector["keys"], "{text}");
        assert_eq!(address.to_string(), text);
        assert_eq!(Address::from_path(address.path()).as_ref(), Ok(&address));
    }
    for vector in list(&vectors, "invalid") {
        let text = vector["text"].as_str().expect("text");
        let fault = text.parse::<Address>().expect_err(text);
        assert_eq!(fault.code.as_str(), vector["code"], "{text}: {fault}");
    }
}

#[test]
fn envelope_json_matches_vectors() {
    let vectors = vectors("envelopes.json");
    for vector in list(&vectors, "valid") {
        let message = &vector["message"];
        let envelope = Envelope::from_json(message);
        let envelope = envelope.unwrap_or_else(|fault| panic!("{}: {fault}", vector["name"]));
        assert_eq!(&envelope.to_json(), message, "{}", vector["name"]);
    }
    for vector in list(&vectors, "invalid") {
        let fault = Envelope::from_json(&vector["message"]);
        let fault = fault.map_or_else(|fault| fault, |_| panic!("{} is read", vector["name"]));
        assert_eq!(
            fault.code.as_str(),
            vector["code"],
            "{}: {fault}",
            vector["name"]
        );
    }
}

#[test]
fn error_json_matches_vectors() {
    let vectors = vectors("errors.json");
    for vector in list(&vectors, "valid") {
        let error = &vector["error"];
        let fault = Fault::from_json(error).expect("it is an error");
        assert_eq!(fault.code.as_str(), vector["code"], "{error}");
        assert_eq!(fault.retryable, vector["retryable"], "{error}");
        assert_eq!(fault.details.as_deref(), error.get("details"));
        let mut written = fault.to_json();
        written["code"] = error["code"].clone();
        assert_eq!(&written, error);
    }
    for vector in list(&vectors, "invalid") {
        let fault = Fault::from_json(&vector["error"]).expect_err("it is no error");
        assert_eq!(fault.code.as_str(), vector["code"], "{}", vector["error"]);
    }
}

#[test]
fn every_code_defines_retryable() {
    for code in FaultCode::ALL {
        let fault = Fault::new(code, "why");
        assert_eq!(fault.retryable, code.is_retryable());
        assert_eq!(Fault::from_json(&fault.to_json()), Ok(fault));
    }
}

#[test]
fn documented_codes_match() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/messages.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let (_, table) = page
        .split_once("| code | meaning | retryable |\n|---|---|---|\n")
        .expect("a table of codes");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let rows: Vec<(&str, &str)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].trim_matches('`'), cells[2])
        })
        .collect();
    let retryable = |code: FaultCode| if code.is_retryable() { "yes" } else { "no" };
    let ours = FaultCode::ALL.map(|code| (code.as_str(), retryable(code)));
    assert_eq!(rows, ours);
}

/// The largest credit that counts: docs/messages.md, Credit.
const MOST: u32 = 1 << 20;

#[test]
fn sender_credit_matches_vectors() {
    let vectors = vectors("credits.json");
    for vector in list(&vectors, "source") {
        let mut outlet = SenderCredit::new(SlowReader::Wait, MOST);
        let mut left = 0;
        for step in list(vector, "steps") {
            if let Some(more) = step["grant"].as_u64() {
                // Servers ignore credit beyond the maximum; here it is a fault.
                let more = u32::try_from(more).expect("a number").min(MOST - left);
                outlet.grant(more).expect("within the most");
                left += more;
            } else {
                let sent = matches!(outlet.decide(), SendDecision::Send { .. });
                assert_eq!(sent, step["send"], "{}", vector["name"]);
                left -= u32::from(sent);
            }
            assert_eq!(left, step["left"], "{}", vector["name"]);
        }
    }
}

#[test]
fn receiver_credit_matches_vectors() {
    let vectors = vectors("credits.json");
    for vector in list(&vectors, "reader") {
        let window = vector["window"].as_u64().expect("a window");
        let mut inlet = ReceiverCredit::new(u32::try_from(window).expect("a number"));
        let mut credit = inlet.take_grant();
        assert_eq!(credit, vector["first"], "{window}");
        for after in list(vector, "after") {
            assert!(credit > 0, "the source may send");
            inlet.on_item().expect("within the credit");
            inlet.on_taken();
            let more = inlet.take_grant();
            assert_eq!(more, *after, "{window}");
            credit = credit - 1 + more;
        }
    }
}
