//! JSON in both directions, without loss.

use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::json;
use strowger_pfcp::{Index, MessageView, from_json, to_json};

use crate::bytes::{node_message, tlv};
use crate::framing::messages;

#[test]
fn an_element_has_type_name_and_named_fields() {
    let bytes = node_message(1, &tlv(192, &[2, 127, 0, 0, 1]));
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let value = json!({ "mpl": false, "v4": true, "ipv4": "127.0.0.1", "v6": false });
    assert_eq!(
        to_json(&view),
        json!({
            "type": 1, "name": "Heartbeat Request", "sequence": 1,
            "ies": [{ "type": 192, "name": "Source IP Address", "value": value }],
        })
    );
}

#[test]
fn flags_are_derived_from_given_fields() {
    let message = json!({
        "type": 1, "sequence": 1,
        "ies": [{ "type": 192, "value": { "ipv4": "127.0.0.1" } }],
    });
    let bytes = from_json(&message).expect("a message");
    assert_eq!(bytes, node_message(1, &tlv(192, &[2, 127, 0, 0, 1])));
}

fn error(message: &serde_json::Value) -> String {
    from_json(message).expect_err("no message").to_string()
}

#[test]
fn json_error_names_path_and_key() {
    let message = |ies: serde_json::Value| json!({ "type": 1, "sequence": 1, "ies": ies });
    let stamp = json!([{ "type": 96, "value": { "recovery_time_stamp": "now" } }]);
    assert_eq!(
        error(&message(stamp)),
        "Heartbeat Request / Recovery Time Stamp: recovery_time_stamp is missing or malformed"
    );
    assert_eq!(
        error(&message(json!([{ "name": "no type" }]))),
        "Heartbeat Request / ies[0]: type is missing or malformed"
    );
    assert_eq!(
        error(&json!({ "type": 300 })),
        "message: type is missing or malformed"
    );
    assert_eq!(
        error(&json!({ "type": 1, "sequence": 0x0100_0000 })),
        "Heartbeat Request: sequence is missing or malformed"
    );
}

#[test]
fn nested_json_error_names_full_path() {
    let teid = |teid: u64| json!({ "type": 21, "value": { "teid": teid } });
    let pdi = |teid_value: u64| {
        json!({ "type": 2, "ies": [
            { "type": 20, "value": { "interface": 0 } },
            teid(teid_value),
        ] })
    };
    let pdr = |id: u16, teid: u64| {
        let name = json!({ "type": 56, "value": { "rule_id": id } });
        json!({ "type": 1, "ies": [name, pdi(teid)] })
    };
    let message =
        |pdrs: [serde_json::Value; 2]| json!({ "type": 50, "seid": 0, "sequence": 1, "ies": pdrs });
    assert_eq!(
        error(&message([pdr(1, 1), pdr(2, 0x1_0000_0000)])),
        "Session Establishment Request / Create PDR[1] / PDI / F-TEID: \
         teid is missing or malformed"
    );
    let mut deep = json!([]);
    for _ in 0..20 {
        deep = json!([{ "type": 2, "ies": deep }]);
    }
    let message = json!({ "type": 50, "seid": 0, "sequence": 1, "ies": deep });
    assert!(
        error(&message).ends_with("PDI / PDI: nested too deep"),
        "{}",
        error(&message)
    );
}

proptest! {
    #[test]
    fn json_round_trips_bytes(bytes in messages()) {
        let mut index = Index::new();
        if let Ok(view) = MessageView::decode(&bytes, &mut index) {
            let again = from_json(&to_json(&view)).expect("what was written can be read");
            prop_assert_eq!(again, bytes);
        }
    }
}
