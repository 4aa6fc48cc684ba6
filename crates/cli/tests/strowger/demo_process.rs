//! A demo in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use strowger_pfcp::Seid;
use tempfile::TempDir;

use crate::binary::strowger;
use crate::guarded::Guarded;

/// A demo that runs until it is ended or dropped.
pub(crate) struct Demo {
    pub(crate) child: Guarded,
    pub(crate) lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    pub(crate) n4: String,
    pub(crate) control: String,
    pub(crate) folder: TempDir,
}

impl Demo {
    pub(crate) fn start(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command
            .args(["demo", "--json", "--port", "0", "--control"])
            .arg(folder.path().join("control.sock"))
            .args(args)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = Guarded::spawn(&mut command);
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = object(&mut lines);
        let text = |key: &str| first[key].as_str().expect("text").to_owned();
        let (n4, control) = (text("n4"), text("control"));
        Self {
            child,
            lines,
            n4,
            control,
            folder,
        }
    }

    pub(crate) fn sessions(&self) -> Vec<Value> {
        let ran = strowger(["pfcp", "sessions", "--json", "--control", &self.control]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.objects()
    }

    /// The Maximum Bitrate of the only QER of a session on the node, in both directions.
    pub(crate) fn rates(&self, seid: Seid) -> (u64, u64) {
        let seid = seid.0.to_string();
        let ran = strowger([
            "pfcp",
            "sessions",
            "--json",
            "--control",
            &self.control,
            &seid,
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let text = ran.out.replace([' ', '\n'], "");
        let number = |key: &str| {
            let (_, rest) = text.split_once(&format!("\"{key}\":")).expect("a rate");
            let end = rest.find(|letter: char| !letter.is_ascii_digit());
            rest[..end.unwrap_or(rest.len())].parse().expect("a number")
        };
        (number("ul_mbr"), number("dl_mbr"))
    }

    /// Waits for the end; returns the exit code and the summary.
    pub(crate) fn ended(&mut self) -> (Option<i32>, Value) {
        let last = object(&mut self.lines);
        (self.child.wait().code(), last)
    }

    /// Ends the demo with SIGINT.
    pub(crate) fn interrupt(&mut self) -> (Option<i32>, Value) {
        self.end_with("INT")
    }

    /// Ends the demo with a signal, such as `TERM`.
    pub(crate) fn end_with(&mut self, signal: &str) -> (Option<i32>, Value) {
        send(signal, &self.child);
        self.ended()
    }
}

/// Sends a signal, such as `TERM`, to a process.
pub(crate) fn send(signal: &str, to: &Guarded) {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), to.id().to_string()])
        .status();
    assert!(sent.expect("kill is installed").success());
}

pub(crate) fn object(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    let line = lines.next().expect("a line").expect("output is text");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}
