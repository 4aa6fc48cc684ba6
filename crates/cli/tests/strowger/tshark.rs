//! Every capture, read by tshark and by our decoder: frames, names, integers, flags, addresses,
//! bytes.
//!
//! `fields.tsv` beside the tests of the codec maps tshark's fields to ours; `unmapped.tsv` lists
//! the fields that have no counterpart on one side, with the reason, and no other field may be
//! unmapped.

#[path = "../../../pfcp/tests/others/tshark/compare.rs"]
mod compare;
#[path = "../../../pfcp/tests/others/tshark/map.rs"]
mod map;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use self::map::{Compared, Map};
use crate::binary::{strowger, strowger_with_input};
use crate::captures::{captures, has_tshark};
use crate::guarded;
use crate::pdml;

#[test]
fn names_and_values_match_tshark() {
    if !has_tshark() {
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
            compare::message(&map, &at, ours, &theirs, &mut compared);
        });
        assert_eq!(left.next(), None, "{}: only we have it", capture.display());
    }
    if compared.values > 0 {
        map.check(&compared);
        eprintln!(
            "{} values in {} elements of {} types agree",
            compared.values,
            compared.elements,
            compared.agreed.len()
        );
    }
}

#[test]
fn encoded_json_matches_the_payload_of_tshark() {
    if !has_tshark() {
        return;
    }
    for capture in captures() {
        let json = strowger(["pfcp", "decode", text(&capture), "--json"]);
        assert_eq!(json.code, 0, "{}", json.err);
        let bytes = strowger_with_input(["pfcp", "encode"], json.out.as_bytes());
        assert_eq!(bytes.code, 0, "{}", bytes.err);
        let mut tshark = Command::new("tshark");
        tshark
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
            .arg(&capture);
        let theirs = guarded::output(&mut tshark);
        let theirs = String::from_utf8(theirs.stdout).expect("hex is text");
        let ours: Vec<&str> = bytes.out.lines().collect();
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
