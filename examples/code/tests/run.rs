//! The example runs and prints the expected output.

#[path = "../../../crates/pfcp/tests/others/guarded.rs"]
#[allow(dead_code, reason = "the example is run to its end")]
mod guarded;

use std::process::Command;

#[test]
fn code_transforms_a_file() {
    let expected = [
        "3 calls",
        "Almon owes 320",
        "Emma owes 160",
        "ReferenceError: fetch is not defined",
        "exceeded the limit `memory` of 16777216 bytes",
        "round and round",
        "given up: 1, under way: 0",
    ];
    let output = guarded::output(&mut Command::new(env!("CARGO_BIN_EXE_file_to_code")));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("the example prints text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{text}");
    for (line, begins) in lines.iter().zip(expected) {
        assert!(line.starts_with(begins), "{line}");
    }
}
