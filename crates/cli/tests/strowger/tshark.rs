//! Every capture, read by tshark and by us: frames, names, integers, flags, addresses, octets.
//!
//! `tshark/fields.tsv` says which of tshark's fields is which of ours; what has no counterpart on
//! one side is listed in `tshark/unmapped.tsv` with the reason, and nothing else may be unmapped.

mod map;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use self::map::{Compared, Map};
use crate::binary::{fed, strowger};
use crate::captures::{captures, tshark_is_here};
use crate::pdml::{self, Field};

#[test]
fn names_and_values_are_those_of_tshark() {
    if !tshark_is_here() {
        return;
    }
    let map = Map::read();
    let mut compared = Compared::default();
    for capture in captures() {
        let ours = decoded(&capture);
        let mut left = ours.iter();
        pdml::each_message(&capture, |theirs| {
            let at = format!("{} frame {}", capture.display(), theirs.frame);
            let ours = left
                .next()
                .unwrap_or_else(|| panic!("{at}: only tshark has it"));
            assert_eq!(ours["frame"]["number"], theirs.frame, "{at}");
            message(&map, &at, ours, &theirs, &mut compared);
        });
        assert_eq!(left.next(), None, "{}: only we have it", capture.display());
    }
    if compared.values > 0 {
        assert_eq!(
            compared.unmapped,
            map.unmapped(),
            "unmapped.tsv lists what has no counterpart"
        );
        let rows = map.rows();
        let unused: Vec<_> = rows.difference(&compared.used).collect();
        assert!(
            unused.is_empty(),
            "no capture has what fields.tsv says of {unused:?}"
        );
        eprintln!(
            "{} values in {} elements agree",
            compared.values, compared.elements
        );
    }
}

#[test]
fn encoded_json_is_the_payload_that_tshark_shows() {
    if !tshark_is_here() {
        return;
    }
    for capture in captures() {
        let json = strowger(["pfcp", "decode", text(&capture), "--json"]);
        assert_eq!(json.code, 0, "{}", json.err);
        let octets = fed(["pfcp", "encode"], json.out.as_bytes());
        assert_eq!(octets.code, 0, "{}", octets.err);
        let theirs = Command::new("tshark")
            .args([
                "-n",
                "-Y",
                "pfcp",
                "-T",
                "fields",
                "-e",
                "udp.payload",
                "-r",
            ])
            .arg(&capture)
            .output()
            .expect("tshark runs");
        let theirs = String::from_utf8(theirs.stdout).expect("hex is text");
        let ours: Vec<&str> = octets.out.lines().collect();
        let theirs: Vec<&str> = theirs.lines().collect();
        assert_eq!(ours.len(), theirs.len(), "{}", capture.display());
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "{}: datagram {at}", capture.display());
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

fn decoded(capture: &Path) -> Vec<Value> {
    let ran = strowger(["pfcp", "decode", text(capture), "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.objects()
}

fn message(map: &Map, at: &str, ours: &Value, theirs: &pdml::Message, compared: &mut Compared) {
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

/// Compares elements one by one: as many, in the same order, with the same names.
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
        map.compare_name(&at, ours, &map::named(&kind.label, "IE Type: "), compared);
        if ours.get("ies").is_some() {
            elements(map, &at, &ours["ies"], &theirs.fields, compared);
        } else {
            map.compare(&kind.show, &at, &ours["value"], theirs, compared);
        }
    }
}
