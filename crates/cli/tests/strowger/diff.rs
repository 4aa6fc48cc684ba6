//! `strowger pfcp diff`.

use std::path::Path;

use crate::binary::{strowger, strowger_with_input};
use crate::captures::captures;

const HEARTBEAT: &str = "2001000c00000100006000040a0b0c0d";
const LATER_HEARTBEAT: &str = "2001000c00000200006000040a0b0c0e";

#[test]
fn message_equals_itself() {
    let ran = strowger(["pfcp", "diff", HEARTBEAT, HEARTBEAT]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let summary = "1 messages in A, 1 in B: 1 equal, 0 different, 0 only in A, 0 only in B\n";
    assert_eq!(ran.out, summary);
}

#[test]
fn differences_are_listed_line_by_line_with_exit_code_1() {
    let ran = strowger(["pfcp", "diff", HEARTBEAT, LATER_HEARTBEAT]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "Heartbeat Request: sequence 1 -> 2",
            "Heartbeat Request / Recovery Time Stamp: \
             2041-06-10T10:57:17Z -> 2041-06-10T10:57:18Z",
        ]
    );
    assert!(ran.err.starts_with("error: 2 differences"), "{}", ran.err);
}

#[test]
fn ignored_elements_are_no_difference() {
    for ignore in [
        "sequence,time",
        "run",
        "Sequence, recovery time stamp",
        "sequence,96",
    ] {
        let ran = strowger([
            "pfcp",
            "diff",
            HEARTBEAT,
            LATER_HEARTBEAT,
            "--ignore",
            ignore,
        ]);
        assert_eq!(ran.code, 0, "{ignore}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn unknown_name_is_refused_with_suggestions() {
    let ran = strowger([
        "pfcp",
        "diff",
        HEARTBEAT,
        LATER_HEARTBEAT,
        "--ignore",
        "pdr/stamp",
    ]);
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.err.lines().next(),
        Some("error: --ignore: unknown element \"pdr\" (in \"pdr/stamp\")")
    );
    assert!(ran.err.contains("Create PDR (1)"), "{}", ran.err);
}

#[test]
fn unreadable_input_is_named() {
    let ran = strowger(["pfcp", "diff", HEARTBEAT, "no-such-file.pcap"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.starts_with("error: no-such-file.pcap: "),
        "{}",
        ran.err
    );
    let ran = strowger(["pfcp", "diff", "-", "-"]);
    assert_eq!(ran.code, 2);
    let broken = &HEARTBEAT.replace("00600004", "00600005");
    let ran = strowger(["pfcp", "diff", HEARTBEAT, broken]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out
            .starts_with("B cannot be decoded: Heartbeat Request / Recovery Time Stamp: "),
        "{}",
        ran.out
    );
}

#[test]
fn json_and_hex_compare_equal() {
    let json = strowger(["pfcp", "decode", "--json", "--hex", HEARTBEAT]).out;
    let ran = strowger_with_input(["pfcp", "diff", HEARTBEAT, "-"], json.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn json_differences_have_a_path_and_both_values() {
    let ran = strowger(["pfcp", "diff", HEARTBEAT, LATER_HEARTBEAT, "--json"]);
    let objects = ran.objects();
    assert_eq!(objects[0]["field"], "sequence");
    assert_eq!(objects[1]["path"][0], "Recovery Time Stamp");
    assert_eq!(objects[1]["ies"][0], 96);
    assert_eq!(objects[1]["kind"], "changed");
    assert_eq!(objects[2]["summary"]["differences"], 2);
}

/// Changes the numbers in a capture as another run of the same scenario would choose them.
fn second_run(path: &Path) -> String {
    let path = path.to_str().expect("the path is text");
    let ran = strowger(["pfcp", "decode", path, "--json"]);
    let mut lines = Vec::new();
    for mut message in ran.objects() {
        if message["frame"]["quoted"] == true {
            continue;
        }
        let sequence = message["sequence"].as_u64().unwrap_or(0);
        message["sequence"] = ((sequence + 77) & 0x00ff_ffff).into();
        if let Some(seid @ 1..) = message["seid"].as_u64() {
            message["seid"] = (seid ^ 0x5000).into();
        }
        renumber(&mut message["ies"]);
        // The elements in another order.
        if let Some(ies) = message["ies"].as_array_mut() {
            ies.reverse();
        }
        lines.push(message.to_string());
    }
    lines.join("\n")
}

fn renumber(ies: &mut serde_json::Value) {
    for ie in ies.as_array_mut().into_iter().flatten() {
        renumber(&mut ie["ies"]);
        if ie["ies"].is_null() {
            ie.as_object_mut().expect("an object").remove("ies");
        }
        let value = &mut ie["value"];
        for key in ["seid", "teid"] {
            if let Some(number) = value[key].as_u64() {
                value[key] = (number ^ 0x5000).into();
            }
        }
        if let Some(time) = value["recovery_time_stamp"].as_u64() {
            value["recovery_time_stamp"] = (time ^ 1).into();
        }
        if value.is_null() {
            ie.as_object_mut().expect("an object").remove("value");
        }
    }
}

#[test]
fn second_run_differs_only_in_the_numbers_it_chooses() {
    for capture in captures() {
        let path = capture.to_str().expect("the path is text");
        if path.contains("pfcpsim") {
            // This capture has thousands of messages: as many as the others have cases.
            continue;
        }
        let other = second_run(&capture);
        let args = ["pfcp", "diff", path, "-", "--json"];
        let ran = strowger_with_input(args, other.as_bytes());
        assert_eq!(ran.code, 1, "{path}: {}", ran.err);
        let summary = ran.last_object()["summary"].clone();
        assert_eq!(summary["only_left"], 0, "{path}: {summary}");
        assert_eq!(summary["only_right"], 0, "{path}: {summary}");
        let args = ["pfcp", "diff", path, "-", "--json", "--ignore", "run"];
        let ran = strowger_with_input(args, other.as_bytes());
        assert_eq!(ran.code, 0, "{path}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn missing_message_is_found_by_its_session() {
    let captures = captures();
    let Some(capture) = captures.iter().find(|path| path.ends_with("tc1.pcap")) else {
        return;
    };
    let path = capture.to_str().expect("the path is text");
    let json = strowger(["pfcp", "decode", path, "--json"]).out;
    let without: Vec<&str> = json
        .lines()
        .filter(|line| !line.contains("\"name\":\"Session Modification Response\""))
        .collect();
    let ran = strowger_with_input(["pfcp", "diff", path, "-"], without.join("\n").as_bytes());
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.out
            .contains("Session 1: Session Modification Response 1 (frame "),
        "{}",
        ran.out
    );
    let ignore = "session modification response";
    let args = ["pfcp", "diff", path, "-", "--ignore", ignore];
    assert_eq!(
        strowger_with_input(args, without.join("\n").as_bytes()).code,
        0
    );
}
