//! `strowger pfcp encode`.

use serde_json::{Value, json};

use crate::binary::{strowger, strowger_with_input};

const HEARTBEAT: &str = "2001000c00000100006000040a0b0c0d";

fn heartbeat() -> Value {
    let ran = strowger(["pfcp", "decode", "--json", "--hex", HEARTBEAT]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.last_object()
}

#[test]
fn decoded_message_encodes_to_its_bytes() {
    let ran = strowger_with_input(["pfcp", "encode"], heartbeat().to_string().as_bytes());
    assert_eq!((ran.code, ran.out.trim()), (0, HEARTBEAT), "{}", ran.err);
}

#[test]
fn changed_field_changes_only_its_bytes() {
    let mut object = heartbeat();
    object["ies"][0]["value"]["recovery_time_stamp"] = 1.into();
    let ran = strowger_with_input(["pfcp", "encode"], object.to_string().as_bytes());
    assert_eq!(ran.out.trim(), "2001000c000001000060000400000001");
}

#[test]
fn multi_line_object_is_read() {
    let pretty = format!("{:#}\n\n{:#}", heartbeat(), heartbeat());
    let ran = strowger_with_input(["pfcp", "encode", "-"], pretty.as_bytes());
    assert_eq!(
        ran.out,
        format!("{HEARTBEAT}\n{HEARTBEAT}\n"),
        "{}",
        ran.err
    );
}

#[test]
fn bundled_messages_stay_together() {
    let bundle = format!("24{}{HEARTBEAT}", &HEARTBEAT[2..]);
    let json = strowger(["pfcp", "decode", "--json", "--hex", &bundle]);
    assert_eq!(json.objects().len(), 2);
    let ran = strowger_with_input(["pfcp", "encode"], json.out.as_bytes());
    assert_eq!(ran.out.trim(), bundle);
}

#[test]
fn undecodable_bytes_are_passed_through() {
    let json = strowger(["pfcp", "decode", "--json", "--hex", "40010004"]);
    let ran = strowger_with_input(["pfcp", "encode"], json.out.as_bytes());
    assert_eq!((ran.code, ran.out.trim()), (0, "40010004"));
}

#[test]
fn invalid_json_is_refused_with_line_and_column() {
    let ran = strowger_with_input(["pfcp", "encode"], b"{\"type\": 1,\n oops}");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("line 2 column 2"), "{}", ran.err);
    assert!(ran.err.contains("\nhint: "), "{}", ran.err);
}

#[test]
fn wrong_field_is_named_with_its_line_and_path() {
    let mut object = heartbeat();
    object["ies"][0]["value"]["recovery_time_stamp"] = json!("soon");
    let ran = strowger_with_input(
        ["pfcp", "encode"],
        format!("{}\n{object}", heartbeat()).as_bytes(),
    );
    assert_eq!(ran.code, 2);
    for part in ["line 2", "ies[0]", "recovery_time_stamp"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert_eq!(ran.out.trim(), HEARTBEAT, "what came before is written");
}

#[test]
fn written_capture_keeps_its_addresses_and_times() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("again.pcapng");
    let path = path.to_str().expect("the path is text");
    let mut object = heartbeat();
    object["frame"] = json!({
        "src": "10.0.0.1:8805",
        "dst": "10.0.0.2:8805",
        "time": "2026-01-02T03:04:05.000000006Z",
    });
    let ran = strowger_with_input(
        ["pfcp", "encode", "--pcap", path],
        object.to_string().as_bytes(),
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    let again = strowger(["pfcp", "decode", "--json", path]).last_object();
    object["frame"]["number"] = 1.into();
    assert_eq!(again, object);
}
