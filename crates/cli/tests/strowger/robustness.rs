//! `strowger pfcp robustness` against our own node.

use serde_json::Value;

use crate::binary::strowger;
use crate::running::Running;

#[test]
fn node_passes_and_the_totals_add_up() {
    let live = Running::start("");
    let ran = strowger(["pfcp", "robustness", &live.n4, "--sessions", "20", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).expect("an object");
    let rows = report["rows"].as_array().expect("rows");
    let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
    assert_eq!(report["sent"], sum("sent"));
    assert_eq!(report["passed"], sum("sent"));
    assert_eq!(report["unharmed"], 20);
    assert!(
        rows.iter()
            .all(|row| !row["clauses"].as_array().expect("a list").is_empty())
    );
    live.assert_unharmed();
    live.end();
}

#[test]
fn unreadable_case_file_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("cases.json");
    let text = r#"{"cases": [{"name": "odd", "hex": "200", "expect": {"answer": "none"}}]}"#;
    std::fs::write(&path, text).expect("the folder is writable");
    let path = path.display().to_string();
    let ran = strowger(["pfcp", "robustness", "127.0.0.1:9", "--cases", &path]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("`odd`: 3 hex digits"), "{}", ran.err);
}
