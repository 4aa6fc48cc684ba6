//! `strowger pfcp replay`.

use std::process::Command;
use std::time::Duration;

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Header, MessageType, Seid, Sequence};
use strowger_pfcp_node::CaptureWriter;

use crate::binary::{strowger, strowger_with_input};
use crate::captures::{captures, has_tshark};
use crate::guarded;
use crate::running::Running;
use crate::upf::Upf;

const SMF: &str = "10.0.0.1:8805";
const UPF: &str = "10.0.0.2:8805";

/// A capture of one session: established, modified and deleted, each with its response.
fn one_session() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = CaptureWriter::new(&mut bytes).expect("memory takes it");
    let session = [0, 57, 0, 13, 2, 0, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 2];
    let accepted = [0, 19, 0, 1, 1];
    for (at, kind) in [50, 51, 52, 53, 54, 55].into_iter().enumerate() {
        let kind = MessageType(kind);
        let seid = if kind.0 % 2 == 1 {
            1
        } else {
            u64::from(kind.0 > 50) * 9
        };
        let mut body = if kind.is_response() {
            accepted.to_vec()
        } else {
            Vec::new()
        };
        if kind.0 <= 51 {
            body.extend_from_slice(&session);
        }
        let header = Header::session(kind, Seid(seid), Sequence::new(u32::from(kind.0 / 2)));
        let mut message = Vec::new();
        header.encode(body.len(), &mut message).expect("short");
        message.extend_from_slice(&body);
        let (src, dst) = if kind.is_request() {
            (SMF, UPF)
        } else {
            (UPF, SMF)
        };
        let (src, dst) = (src.parse().expect("address"), dst.parse().expect("address"));
        let time = Duration::from_millis(u64::try_from(at).expect("small"));
        writer
            .write(time, src, dst, &message)
            .expect("memory takes it");
    }
    drop(writer);
    bytes
}

#[test]
fn requests_use_the_seids_of_the_live_node() {
    let upf = Upf::start(Some(Cause::REQUEST_ACCEPTED));
    let args = ["pfcp", "replay", "-", "--to", &upf.address(), "--json"];
    let ran = strowger_with_input(args, &one_session());
    let seen = upf.stop();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let last = ran.last_object();
    for (key, value) in [
        ("sent", 3),
        ("answered", 3),
        ("accepted", 3),
        ("lost", 0),
        ("agreed", 3),
    ] {
        assert_eq!(last[key], value, "{key}: {last}");
    }
    assert_eq!(last["causes"], serde_json::json!({ "1": 3 }));
    assert_eq!(seen.unknown_sessions, 0);
}

#[test]
fn refusal_of_a_captured_acceptance_is_a_difference() {
    let upf = Upf::start(Some(Cause::NO_RESOURCES_AVAILABLE));
    let ran = strowger_with_input(
        ["pfcp", "replay", "-", "--to", &upf.address(), "--json"],
        &one_session(),
    );
    upf.stop();
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.starts_with("error: 3 responses differ"),
        "{}",
        ran.err
    );
    let first = &ran.objects()[0];
    assert_eq!(
        (&first["captured"], &first["answered"]),
        (&1.into(), &75.into())
    );
}

#[test]
fn unanswered_request_counts_as_lost() {
    let upf = Upf::start(None);
    let patience = ["--wait", "10ms", "--tries", "2", "--json"];
    let address = upf.address();
    let args = ["pfcp", "replay", "-", "--to", &address]
        .into_iter()
        .chain(patience);
    let ran = strowger_with_input(args, &one_session());
    let seen = upf.stop();
    assert_eq!(ran.code, 1);
    assert_eq!(ran.last_object()["lost"], 3);
    assert_eq!(seen.requests, 6);
}

#[test]
fn captures_are_replayed_completely() {
    for capture in captures() {
        let upf = Upf::start(Some(Cause::REQUEST_ACCEPTED));
        let path = capture.to_str().expect("the path is text");
        let ran = strowger_with_input(
            ["pfcp", "replay", path, "--to", &upf.address(), "--json"],
            b"",
        );
        let seen = upf.stop();
        let last = ran.last_object();
        assert_eq!(last["lost"], 0, "{path}: {last}");
        assert_eq!(last["sent"], seen.requests, "{path}: {last}");
        assert_eq!(seen.unknown_sessions, 0, "{path}: {last}");
    }
}

#[test]
fn node_answers_captures_as_recorded_or_for_a_listed_reason() {
    let captures = captures();
    for capture in &captures {
        // Each capture gets its own node: they name the same tunnels and users.
        let node = Running::start("");
        let path = capture.to_str().expect("the path is text");
        let ran = strowger(["pfcp", "replay", path, "--to", &node.n4, "--json"]);
        assert_eq!(ran.code, 0, "{path}: {} {}", ran.err, ran.out);
        let last = ran.last_object();
        assert_eq!(last["answered"], last["sent"], "{path}: {last}");
        assert_eq!(last["different"], 0, "{path}: {last}");
    }
}

#[test]
fn listed_reasons_match_tshark() {
    let rows = include_str!("../../../pfcp-cli/src/replay/differences.tsv");
    let captures = captures();
    if captures.is_empty() || !has_tshark() {
        return;
    }
    for row in rows.lines().filter(|row| !row.starts_with('#')) {
        let cells: Vec<&str> = row.split('\t').collect();
        let [_, _, _, _, why, capture, filter, fields, values] = cells[..] else {
            panic!("nine cells, not {}: {row}", cells.len());
        };
        let path = captures.iter().find(|path| path.ends_with(capture));
        let path = path.unwrap_or_else(|| panic!("{capture} is not there"));
        let mut tshark = Command::new("tshark");
        tshark
            .args([
                "-n",
                "-T",
                "fields",
                "-E",
                "separator= ",
                "-Y",
                filter,
                "-r",
            ])
            .arg(path);
        tshark.args(fields.split(' ').flat_map(|field| ["-e", field]));
        let seen = guarded::output(&mut tshark).stdout;
        let seen = String::from_utf8(seen).expect("fields are text");
        let seen: Vec<&str> = seen.lines().map(str::trim_end).collect();
        assert_eq!(seen, values.split(';').collect::<Vec<_>>(), "{why}");
    }
}
