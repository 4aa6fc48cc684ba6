//! JSON both ways, without loss.

use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::json;
use strowger_pfcp::{Index, MessageView, from_json, to_json};

use crate::framing::messages;
use crate::octets::{node_message, tlv};

#[test]
fn an_element_has_type_name_and_named_fields() {
    let octets = node_message(1, &tlv(192, &[2, 127, 0, 0, 1]));
    let mut index = Index::new();
    let view = MessageView::decode(&octets, &mut index).expect("well-formed");
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
fn flags_follow_from_the_fields_that_are_given() {
    let message = json!({
        "type": 1, "sequence": 1,
        "ies": [{ "type": 192, "value": { "ipv4": "127.0.0.1" } }],
    });
    let octets = from_json(&message).expect("a message");
    assert_eq!(octets, node_message(1, &tlv(192, &[2, 127, 0, 0, 1])));
}

#[test]
fn an_error_names_the_place_and_the_key() {
    let message = json!({
        "type": 1, "sequence": 1,
        "ies": [{ "type": 96, "value": { "recovery_time_stamp": "now" } }],
    });
    let error = from_json(&message)
        .expect_err("a text for a number")
        .to_string();
    assert_eq!(
        error,
        "message / ies[0]: recovery_time_stamp is missing or malformed"
    );
}

proptest! {
    #[test]
    fn octets_survive_json(octets in messages()) {
        let mut index = Index::new();
        if let Ok(view) = MessageView::decode(&octets, &mut index) {
            let again = from_json(&to_json(&view)).expect("what was written can be read");
            prop_assert_eq!(again, octets);
        }
    }
}
