//! `strowger pfcp decode`.

use crate::binary::{strowger, strowger_with_input};
use crate::captures::captures;

const HEARTBEAT: &str = "2001000c00000100006000040a0b0c0d";

#[test]
fn hex_and_standard_input_are_read() {
    let spaced = "# a comment\n\n20 01 00 0c 00 00 01 00 00 60 00 04 0a 0b 0c 0d\n";
    for ran in [
        strowger(["pfcp", "decode", "--hex", HEARTBEAT]),
        strowger_with_input(["pfcp", "decode", "-"], HEARTBEAT.as_bytes()),
        strowger_with_input(["pfcp", "decode", "-"], spaced.as_bytes()),
    ] {
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("Heartbeat Request"), "{}", ran.out);
    }
}

#[test]
fn invalid_hex_is_an_input_error() {
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
fn missing_file_is_an_environment_error() {
    let ran = strowger(["pfcp", "decode", "no-such-file.pcap"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.starts_with("error: no-such-file.pcap: "),
        "{}",
        ran.err
    );
}

#[test]
fn raw_bytes_of_a_message_are_read() {
    let bytes = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 10, 11, 12, 13];
    let ran = strowger_with_input(["pfcp", "decode", "-"], &bytes);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("Heartbeat Request"), "{}", ran.out);
}

#[test]
fn check_ends_with_counts() {
    let ran = strowger(["pfcp", "decode", "--check", "--json", "--hex", "40010004"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.last_object()["errors"], 1);
    assert_eq!(ran.objects()[0]["octets"], "40010004");
}

#[test]
fn captures_decode_completely_and_encode_identically() {
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
fn bundled_messages_are_separated() {
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
const ONE_SESSION: &str = "\
213200260000000000000000000001000039000d0200000000000000017f000002003c0005007f000002\n\
2133002b00000000000000010000010000130001010039000d02000000000000002a7f000001003c0005007f000001\n\
2134000c000000000000002a00000200\n\
2136000c000000000000002b00000300\n";

#[test]
fn session_filter_selects_all_messages_of_a_session() {
    let ran = strowger_with_input(
        ["pfcp", "decode", "-", "--session", "0x2a", "--json"],
        ONE_SESSION.as_bytes(),
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
fn ladder_shows_senders_and_messages() {
    let ran = strowger_with_input(
        ["pfcp", "decode", "-", "--ladder", "--session", "1"],
        ONE_SESSION.as_bytes(),
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
fn filter_without_matches_is_reported() {
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
