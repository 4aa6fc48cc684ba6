//! `strowger pfcp decode`.

use crate::binary::{fed, strowger};
use crate::captures::captures;

const HEARTBEAT: &str = "2001000c00000100006000040a0b0c0d";

#[test]
fn hex_and_standard_input_are_read() {
    let spaced = "# a comment\n\n20 01 00 0c 00 00 01 00 00 60 00 04 0a 0b 0c 0d\n";
    for ran in [
        strowger(["pfcp", "decode", "--hex", HEARTBEAT]),
        fed(["pfcp", "decode", "-"], HEARTBEAT.as_bytes()),
        fed(["pfcp", "decode", "-"], spaced.as_bytes()),
    ] {
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("Heartbeat Request"), "{}", ran.out);
    }
}

#[test]
fn wrong_hex_is_input_that_cannot_be_understood() {
    let ran = strowger(["pfcp", "decode", "--hex", "20x1"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.starts_with("error: --hex: 'x' in column 3"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("\nhint: "), "{}", ran.err);
}

#[test]
fn missing_file_is_something_outside() {
    let ran = strowger(["pfcp", "decode", "no-such-file.pcap"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.starts_with("error: no-such-file.pcap: "),
        "{}",
        ran.err
    );
}

#[test]
fn octets_of_one_message_are_read_as_they_stand() {
    let octets = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 10, 11, 12, 13];
    let ran = fed(["pfcp", "decode", "-"], &octets);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("Heartbeat Request"), "{}", ran.out);
}

#[test]
fn check_ends_with_its_counts() {
    let ran = strowger(["pfcp", "decode", "--check", "--json", "--hex", "40010004"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.last_object()["errors"], 1);
    assert_eq!(ran.objects()[0]["octets"], "40010004");
}

#[test]
fn captures_of_others_decode_whole_and_encode_to_themselves() {
    for capture in captures() {
        let path = capture.to_str().expect("the path is text");
        let ran = strowger(["pfcp", "decode", path, "--check", "--json"]);
        assert_eq!(ran.code, 0, "{path}: {}", ran.err);
        let last = ran.last_object();
        assert!(last["messages"].as_u64() > Some(0), "{path}: {last}");
        for key in ["errors", "opaque"] {
            assert_eq!(last[key], 0, "{path}: {last}");
        }
        for key in ["decoded", "identical"] {
            assert_eq!(last[key], last["messages"], "{path}: {last}");
        }
    }
}

#[test]
fn text_shows_elements_as_a_tree() {
    let ran = strowger(["pfcp", "decode", "--hex", HEARTBEAT]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[1], "Heartbeat Request (1), sequence 1");
    assert!(
        lines[2].starts_with("  Recovery Time Stamp (96): "),
        "{}",
        ran.out
    );
}

#[test]
fn messages_of_one_datagram_are_told_apart() {
    let bundle = format!("24{}{HEARTBEAT}", &HEARTBEAT[2..]);
    let ran = strowger(["pfcp", "decode", "--json", "--hex", &bundle]);
    let follows: Vec<bool> = ran
        .objects()
        .iter()
        .map(|o| o["follow_on"] == true)
        .collect();
    assert_eq!(follows, [true, false]);
}

/// An establishment, its response, a modification of the session and a deletion of another.
const CALL: &str = "\
213200260000000000000000000001000039000d0200000000000000017f000002003c0005007f000002\n\
2133002b00000000000000010000010000130001010039000d02000000000000002a7f000001003c0005007f000001\n\
2134000c000000000000002a00000200\n\
2136000c000000000000002b00000300\n";

#[test]
fn a_session_is_all_that_was_said_about_it() {
    let ran = fed(
        ["pfcp", "decode", "-", "--session", "0x2a", "--json"],
        CALL.as_bytes(),
    );
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let names: Vec<_> = ran
        .objects()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn a_ladder_shows_who_said_what() {
    let ran = fed(
        ["pfcp", "decode", "-", "--ladder", "--session", "1"],
        CALL.as_bytes(),
    );
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert!(
        ran.out.contains("Session Establishment Response"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("Request accepted"), "{}", ran.out);
    assert!(!ran.out.contains("Deletion"), "{}", ran.out);
}

#[test]
fn a_filter_that_leaves_nothing_says_so() {
    let ran = strowger([
        "pfcp",
        "decode",
        "--hex",
        HEARTBEAT,
        "--type",
        "establishment",
    ]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no message matches"), "{}", ran.err);
    let ran = strowger(["pfcp", "decode", "--hex", HEARTBEAT, "--type", "gtp"]);
    assert_eq!(ran.code, 2);
}
