//! Common behaviour of all commands: help, versions, exit codes, pipes that close.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::binary::{command, run, strowger};
use crate::guarded::Guarded;

#[test]
fn help_lists_exit_codes_and_verbs() {
    let ran = strowger(["--help"]);
    assert_eq!(ran.code, 0);
    for part in ["Exit codes:", "pfcp", "completions", "STROWGER_LOG"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[test]
fn version_matches_the_package() {
    let version = concat!("strowger ", env!("CARGO_PKG_VERSION"));
    assert_eq!(strowger(["-V"]).out.trim(), version);
    // Of a release with the commit and its date.
    let build = option_env!("STROWGER_BUILD").map(|build| format!("strowger {build}"));
    let ran = strowger(["--version"]);
    assert_eq!(ran.out.trim(), build.as_deref().unwrap_or(version));
}

#[test]
fn unknown_verb_is_a_usage_error() {
    let ran = strowger(["dmeo"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
}

#[test]
fn invalid_log_filter_is_named() {
    for (filter, is_valid) in [("a=b=c", false), ("info,strowger=debug", true), ("", true)] {
        let mut command = command(["completions", "bash"]);
        let ran = run(command.env("STROWGER_LOG", filter), b"");
        assert_eq!(ran.code, 0);
        let is_named = ran
            .err
            .starts_with(&format!("STROWGER_LOG={filter}: invalid"));
        assert_eq!(is_named, !is_valid, "{filter}: {}", ran.err);
    }
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = strowger(["completions", shell]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.out.contains("replay"),
            "{shell} does not know `pfcp replay`"
        );
    }
}

#[test]
fn every_command_gets_a_manual_page() {
    let folder = tempfile::tempdir().expect("a directory for temporary files");
    let pages = folder.path().join("man1");
    let to = pages.to_str().expect("text");
    let ran = strowger(["man", to]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for (page, part) in [
        ("strowger.1", "Exit codes"),
        ("strowger-run.1", "config"),
        ("strowger-pfcp-replay.1", "OPTIONS"),
    ] {
        let text = std::fs::read_to_string(pages.join(page));
        let text = text.unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(
            text.contains(".TH") && text.contains(part),
            "{page}: {text}"
        );
    }
    // A file is in the way.
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file of our own");
    let ran = strowger(["man", file.to_str().expect("text")]);
    assert_eq!(ran.code, 3, "{}", ran.err);
}

#[test]
fn closed_output_pipe_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
    command.args(["completions", "bash"]);
    let mut child = Guarded::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut first = String::new();
    BufReader::with_capacity(1, child.stdout.take().expect("piped"))
        .read_line(&mut first)
        .expect("there is a line");
    let ended = child.output();
    assert!(ended.status.success(), "{:?}", ended.status);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn redirected_output_has_no_colours() {
    let ran = strowger([
        "pfcp",
        "decode",
        "--hex",
        "2001000c00000100006000040a0b0c0d",
    ]);
    assert!(!ran.out.contains('\x1b'), "{:?}", ran.out);
}
