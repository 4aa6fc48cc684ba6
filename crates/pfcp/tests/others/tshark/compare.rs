//! A message of ours as JSON beside the same message as tshark shows it.

use serde_json::Value;

use super::map::{self, Compared, Map};
use crate::pdml::{self, Field};

/// Compares the type, the header and every element.
pub(crate) fn message(
    map: &Map,
    at: &str,
    ours: &Value,
    theirs: &pdml::Message,
    compared: &mut Compared,
) {
    let header = Field {
        fields: theirs.fields.iter().filter(is_leaf).cloned().collect(),
        ..Field::default()
    };
    let kind = header
        .member("pfcp.msg_type")
        .unwrap_or_else(|| panic!("{at}: no type"));
    let name = map::named(&kind.label, "Message Type: PFCP ");
    assert_eq!(ours["name"], name, "{at}: name of the message");
    let mut fields = ours.clone();
    let members = fields.as_object_mut().expect("a message is an object");
    for key in ["name", "ies", "frame"] {
        members.remove(key);
    }
    map.compare("header", at, &fields, &header, compared);
    elements(map, at, &ours["ies"], &theirs.fields, compared);
}

fn is_leaf(field: &&Field) -> bool {
    field.member("pfcp.ie_type").is_none()
}

/// Compares elements one by one: the same number, in the same order, with the same names.
fn elements(map: &Map, at: &str, ours: &Value, theirs: &[Field], compared: &mut Compared) {
    let ours = ours
        .as_array()
        .unwrap_or_else(|| panic!("{at}: no array of elements"));
    let theirs: Vec<&Field> = theirs.iter().filter(|field| !is_leaf(field)).collect();
    assert_eq!(ours.len(), theirs.len(), "{at}: number of elements");
    for (ours, theirs) in ours.iter().zip(theirs) {
        compared.elements += 1;
        let kind = theirs.member("pfcp.ie_type").expect("is an element");
        let at = format!("{at} / {}", ours["name"].as_str().unwrap_or("?"));
        assert_eq!(ours["type"].to_string(), kind.show, "{at}: type");
        if kind.show.parse::<u16>().is_ok_and(|ie| ie > map::LAST) {
            continue;
        }
        map.compare_name(&at, ours, &map::named(&kind.label, "IE Type: "), compared);
        if ours.get("ies").is_some() {
            elements(map, &at, &ours["ies"], &theirs.fields, compared);
            compared.agreed.insert(kind.show.clone());
        } else {
            map.compare(&kind.show, &at, &ours["value"], theirs, compared);
        }
    }
}
