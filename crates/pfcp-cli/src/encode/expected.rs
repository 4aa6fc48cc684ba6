//! Explanations of errors in JSON messages: what was expected.

use serde_json::Value;
use strowger_pfcp::ie::descriptor::{Descriptor, FieldKind, describe};
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::{IeType, JsonError};

/// Says where a message is wrong, what was expected there and what was found.
pub(super) fn explain(message: &Value, error: &JsonError, vendors: &Dictionary) -> String {
    let JsonError::Key { path, key } = error else {
        return error.to_string();
    };
    // The error gives names; people also look for the indices in their own JSON.
    let mut object = message;
    let mut way = vec![element_name(message)];
    for step in path.steps() {
        object = &object["ies"][step.place];
        way.push(format!("ies[{}] {}", step.place, element_name(object)));
    }
    let top = way.len() == 1;
    let field = &object["value"][key.as_str()];
    let found = if field.is_null() {
        &object[key.as_str()]
    } else {
        field
    };
    let found = match found {
        Value::Null => "missing".to_owned(),
        found => format!("found {found}"),
    };
    format!(
        "{}: {key}: expected {}, {found}",
        way.join(" / "),
        describe_expected(object, key, top, vendors)
    )
}

fn element_name(object: &Value) -> String {
    match &object["name"] {
        Value::String(name) => name.clone(),
        _ => format!("type {}", object["type"]),
    }
}

fn describe_expected(object: &Value, key: &str, top: bool, vendors: &Dictionary) -> String {
    match (key, top) {
        ("type", true) => up_to(0xff),
        ("sequence", true) => up_to(0x00ff_ffff),
        ("seid", true) => up_to(u64::MAX),
        ("priority", true) => up_to(15),
        ("spare", true) | ("type" | "enterprise", false) => up_to(0xffff),
        ("ies", _) => "an array of elements".to_owned(),
        ("value", _) => "an object of fields".to_owned(),
        ("hex" | "tail" | "spare", false) => HEX.to_owned(),
        _ => field_kind(object, key, vendors)
            .and_then(describe_field)
            .unwrap_or_else(|| "a value".to_owned()),
    }
}

const HEX: &str = "hex digits, two per byte";

/// Finds the kind of field that a key of an element denotes.
fn field_kind(object: &Value, key: &str, vendors: &Dictionary) -> Option<FieldKind> {
    let ie = IeType(u16::try_from(object["type"].as_u64()?).ok()?);
    if let Some(enterprise) = object["enterprise"].as_u64() {
        let row = vendors.row(u16::try_from(enterprise).ok()?, ie)?;
        let field = row.layout().iter().find(|field| field.name() == key)?;
        return Some(field.kind());
    }
    let Descriptor::Leaf(leaf) = describe(ie)? else {
        return None;
    };
    let field = leaf
        .fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(key))?;
    Some(field.kind)
}

/// Describes the values of a field.
fn describe_field(kind: FieldKind) -> Option<String> {
    Some(match kind {
        FieldKind::Bits { width: 1, .. } => "true or false".to_owned(),
        FieldKind::Bits { width, .. } | FieldKind::Number { width, .. } => {
            up_to(u64::MAX >> (64 - width.clamp(1, 64)))
        }
        FieldKind::Signed { bytes } => {
            let most = i64::MAX >> (64 - 8 * bytes.clamp(1, 8));
            format!("a number from {} to {most}", -1 - most)
        }
        FieldKind::Time => format!("seconds since 1900, {}", up_to(u64::from(u32::MAX))),
        FieldKind::Ipv4 => "text with an IPv4 address".to_owned(),
        FieldKind::Ipv6 => "text with an IPv6 address".to_owned(),
        FieldKind::Mac => "text with a MAC address such as 00:00:5e:00:53:01".to_owned(),
        FieldKind::Bytes(_) => HEX.to_owned(),
        FieldKind::List(each, _) => {
            format!("an array, each of it {}", describe_field(each.kind())?)
        }
        FieldKind::Digits(_) => "text of decimal digits".to_owned(),
        FieldKind::Text(_) | FieldKind::Labels(_) => {
            "text, or an object {\"hex\": \"...\"}".to_owned()
        }
        _ => return None,
    })
}

fn up_to(most: u64) -> String {
    format!("a number up to {most}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strowger_pfcp::from_json;

    use super::*;

    fn wrong(message: &Value) -> String {
        let error = from_json(message).expect_err("it is wrong");
        explain(message, &error, &Dictionary::new())
    }

    #[test]
    fn nested_field_is_named_with_its_value() {
        let message = json!({
            "type": 50, "name": "Session Establishment Request", "seid": 0, "sequence": 1,
            "ies": [{ "type": 1, "name": "Create PDR", "ies": [
                { "type": 56, "name": "PDR ID", "value": { "rule_id": 70000 } },
            ] }],
        });
        let text = wrong(&message);
        assert!(
            text.contains("Create PDR") && text.contains("PDR ID"),
            "{text}"
        );
        assert!(
            text.contains("rule_id: expected a number up to 65535, found 70000"),
            "{text}"
        );
    }

    #[test]
    fn missing_fields_are_named() {
        let text = wrong(&json!({ "type": 1, "name": "Heartbeat Request", "ies": [] }));
        let wanted = "sequence: expected a number up to 16777215, missing";
        assert_eq!(text, format!("Heartbeat Request: {wanted}"));
        let text = wrong(&json!([1, 2]));
        assert!(
            text.ends_with("type: expected a number up to 255, missing"),
            "{text}"
        );
    }

    #[test]
    fn flags_and_addresses_are_distinguished_from_numbers() {
        let cause = |value: Value| {
            wrong(&json!({ "type": 2, "sequence": 1, "ies": [{ "type": 57, "value": value }] }))
        };
        let text = cause(json!({ "v4": true, "v6": false, "seid": 1, "ipv4": 7 }));
        assert!(
            text.contains("expected text with an IPv4 address, found 7"),
            "{text}"
        );
    }
}
