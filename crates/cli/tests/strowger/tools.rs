//! Tools of a node: granted, called, watched.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Ran, strowger};
use crate::metrics::{self, get};
use crate::running::Running;

/// A directory with a file in it, and a secret beside the directory.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("data")).expect("the file is accessible");
    fs::write(folder.path().join("data/note.txt"), "call back").expect("the file is accessible");
    fs::write(folder.path().join("secret"), "no").expect("the file is accessible");
    folder
}

fn files_config(folder: &TempDir, more: &str) -> String {
    let root = folder.path().join("data");
    format!("[[tools.files]]\nroot = {root:?}\n{more}\n")
}

fn ask(node: &Running, to: &str, payload: &Value) -> Ran {
    node.ask(["ask", to, &payload.to_string(), "--deadline", "60s"])
}

#[test]
fn only_granted_files_are_reachable() {
    let folder = folder();
    let node = Running::start(&files_config(&folder, ""));
    let read = ask(&node, "tools/files#read", &json!({ "path": "note.txt" }));
    assert_eq!(
        (read.code, read.out.as_str()),
        (0, "call back"),
        "{}",
        read.err
    );

    let file = json!({ "path": "octets", "base64": "AP8K" });
    let written = ask(&node, "@(tools/files) write", &file);
    assert_eq!(written.code, 0, "{}", written.err);
    let there = fs::read(folder.path().join("data/octets")).expect("it was written");
    assert_eq!(there, [0, 255, 10]);

    // The type of the message may be part of its payload.
    let listed = ask(
        &node,
        "@(tools/files)",
        &json!({ "type": "list", "path": "" }),
    );
    assert_eq!(listed.code, 0, "{}", listed.err);
    assert!(listed.out.contains("note.txt") && listed.out.contains("octets"));
    let unsaid = node.ask(["ask", "tools/files", "{}"]);
    assert!(
        unsaid.err.contains("name one of them: tools/files#"),
        "{}",
        unsaid.err
    );
    let without = node.ask(["ask", "tools/files#list", "--json"]);
    assert_eq!(without.last_object()["entries"][0]["name"], "note.txt");

    for path in ["../secret", "/etc/passwd", "note.txt/../../secret"] {
        let refused = ask(&node, "tools/files#read", &json!({ "path": path }));
        assert_ne!(refused.code, 0, "{path}");
        assert!(!refused.out.contains("no"), "{}", refused.out);
    }
    let refused = ask(&node, "tools/files#read", &json!({ "path": "../secret" }));
    assert!(refused.err.contains("(rule: outside)"), "{}", refused.err);
}

#[test]
fn roots_have_names_and_limits_of_their_own() {
    let (work, library) = (folder(), folder());
    let node = Running::start(&format!(
        "{}{}",
        files_config(&work, "octets = 10"),
        files_config(&library, "name = \"library\"\nread_only = true")
    ));
    let tree = node.ask(["tree", "/tools"]).out;
    assert!(tree.contains("files") && tree.contains("library"), "{tree}");
    let write = json!({ "path": "more", "text": "another" });
    assert_eq!(ask(&node, "tools/files#write", &write).code, 0);
    let full = ask(&node, "tools/files#append", &write);
    assert!(full.err.contains("(rule: octets)"), "{}", full.err);
    let refused = ask(&node, "tools/library#write", &write);
    assert!(refused.err.contains("(rule: read-only)"), "{}", refused.err);
    let read = ask(&node, "tools/library#read", &json!({ "path": "note.txt" }));
    assert_eq!(read.out, "call back", "{}", read.err);
}

#[test]
fn calls_of_tools_are_shown_in_listings() {
    let folder = folder();
    let node = Running::start(&files_config(&folder, metrics::LISTEN));
    for path in ["note.txt", "../secret", "nothing"] {
        ask(&node, "tools/files#read", &json!({ "path": path }));
    }
    let write = json!({ "path": "new.txt", "text": "call back" });
    ask(&node, "tools/files#write", &write);
    let rows = node.ask(["ps", "/tools", "--json"]).objects();
    let row = rows.iter().find(|row| row["path"] == "/tools/files");
    let counts = &row.expect("it is an actor")["tool"];
    let quota = json!([
        { "name": "octets", "used": 9, "most": 1_073_741_824 },
        { "name": "entries", "used": 1, "most": 100_000 },
    ]);
    let expected = json!({ "calls": 4, "refused": 1, "failed": 1, "quota": quota });
    assert_eq!(*counts, expected);
    let text = node.ask(["ps", "/tools"]).out;
    let said = "4 calls, 1 refused, 1 failed, 9 of 1073741824 octets, 1 of 100000 entries";
    assert!(text.contains(said), "{text}");
    let actor = node
        .ask(["inspect", "/tools/files", "--json"])
        .last_object();
    assert_eq!(actor["details"]["tool"]["verbs"]["read"]["octets"], 9);

    let (_, page) = get(&node, "/metrics");
    for outcome in ["done", "refused", "failed"] {
        let series = format!("{{tool=\"files\",verb=\"read\",outcome=\"{outcome}\"}} 1");
        assert!(page.contains(&series), "{series}: {page}");
    }
    assert!(
        page.contains("strowger_tool_files_bytes{tool=\"files\"} 9"),
        "{page}"
    );

    let logged = node.ask(["logs", "/tools/files", "--json"]).objects();
    let audit: Vec<&str> = logged
        .iter()
        .filter(|line| line["target"] == "strowger::audit")
        .filter_map(|line| line["text"].as_str())
        // The audit also records the writer and the endpoint.
        .filter(|text| text.starts_with("file call"))
        .collect();
    assert_eq!(audit.len(), 4, "{logged:?}");
    assert!(
        audit[1].contains("../secret") && audit[1].contains("outside"),
        "{audit:?}"
    );
}

#[test]
fn panic_keeps_address_and_statistics() {
    let folder = folder();
    let node = Running::start(&files_config(&folder, ""));
    let read = json!({ "path": "note.txt" });
    assert_eq!(ask(&node, "tools/files#read", &read).out, "call back");
    let killed = node.ask(["kill", "/tools/files", "--panic", "--json"]);
    assert_eq!(killed.last_object()["restarted"], true, "{}", killed.err);
    assert_eq!(ask(&node, "tools/files#read", &read).out, "call back");
    let usage = node
        .ask(["ask", "tools/files#usage", "--json"])
        .last_object();
    assert_eq!(usage["verbs"]["read"]["calls"], 2, "{usage}");
}

#[test]
fn missing_root_is_reported_before_the_start() {
    let folder = folder();
    let config = folder.path().join("node.toml");
    fs::write(&config, "[[tools.files]]\nroot = \"missing\"\n").expect("the file is accessible");
    let config = config.to_str().expect("text");
    for verb in [
        &["check", config][..],
        &["run", "--port", "0", "--config", config],
    ] {
        let ran = strowger(verb.iter().copied());
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("missing: No such file"), "{}", ran.err);
        assert!(
            ran.err.contains("hint: `tools.files` must name"),
            "{}",
            ran.err
        );
    }
    let good = folder.path().join("good.toml");
    fs::write(&good, "[[tools.files]]\nroot = \"data\"\n").expect("the file is accessible");
    let ran = strowger(["check", good.to_str().expect("text")]);
    assert!(
        ran.out.contains("allowed directories: files"),
        "{}{}",
        ran.out,
        ran.err
    );
}
