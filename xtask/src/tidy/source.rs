//! Rust, line by line: lengths, banners, fences, sleeping and silenced lints. For TypeScript,
//! lengths, banners, and types that say nothing.

use std::mem;

use super::Finding;

/// Maximum number of lines of a file without its tests.
const FILE_LIMIT: usize = 1000;
/// Maximum number of columns of a line.
const LINE_LIMIT: usize = 100;

/// Sources that loom checks, whose atomics must come from the module that can replace them.
const CHECKED_BY_LOOM: &[&str] = &[
    "crates/runtime/src/",
    "crates/wasm/src/engine/calls.rs",
    "crates/wasm/src/guest_threads/turns.rs",
];
/// The module that replaces them, and files that must not use it: statics outlive models.
const PLAIN_ATOMICS: &[&str] = &[
    "crates/runtime/src/sync.rs",
    "crates/runtime/src/schedule/beat.rs",
];

/// Tests of promises about time, which would always hold in virtual time.
const REAL_TIME: &[&str] = &[
    "crates/runtime/tests/promises/",
    "crates/cli/tests/strowger/ends.rs",
    "crates/cli/tests/neighbours/",
    "crates/cli/tests/strowger/idle.rs",
    "crates/pfcp/tests/others/guarded.rs",
    "crates/pfcp-node/tests/lifetime/restoration.rs",
    "crates/wasm/src/guest/stopwatch.rs",
    "crates/wasm/tests/fairness/",
    "xtask/src/process.rs",
    "xtask/tests/hang.rs",
];

/// Words of a test that advances its clock itself.
const VIRTUAL_TIME: &[&str] = &["start_paused", "TestSystem", "time::pause("];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = check_lengths(path, text);
    // The samples of these rules would violate the rules.
    if path.starts_with("xtask/src/tidy") {
        return findings;
    }
    let test_file = is_test_file(path);
    let tests_begin = tests_begin(text);
    let real = REAL_TIME.iter().any(|folder| path.starts_with(folder));
    let paused = VIRTUAL_TIME.iter().any(|word| text.contains(word));
    let mut fenced = false;
    // A file that two test programs share: each of them uses a part.
    let mut shared = false;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let trimmed = line.trim_start();
        let mut found = |rule, what: &str| findings.push(Finding::new(path, number, rule, what));
        if let Some(comment) = comment(trimmed) {
            if let Some(info) = comment.strip_prefix("```") {
                fenced = !fenced;
                if info.split(',').any(|word| word.trim() == "ignore") {
                    found("fence", "an example that does not compile proves nothing");
                }
            } else if !fenced && is_banner(comment) {
                found("banner", "a file that needs headings needs splitting");
            }
            continue;
        }
        fenced = false;
        if trimmed.starts_with("#[ignore") {
            found("ignored-test", "run it or remove it");
        }
        let silenced = ["allow(dead_code", "expect(dead_code", "allow(unused"]
            .iter()
            .any(|a| line.contains(a));
        let was_shared = mem::replace(&mut shared, trimmed.starts_with("#[path ="));
        if silenced && !(test_file && was_shared) {
            found("dead-code", "delete what nobody uses");
        }
        if trimmed.starts_with("pub use ") && trimmed.contains("::*") {
            found("glob", "re-export each item by name");
        }
        let in_test = test_file || number >= tests_begin;
        let checked = CHECKED_BY_LOOM.iter().any(|place| path.starts_with(place))
            && !PLAIN_ATOMICS.contains(&path);
        if checked && !in_test && names_plain_atomics(line) {
            found(
                "atomics",
                "take them from `crate::sync`, or loom does not see them",
            );
        }
        let waits = line.contains("sleep(") || line.contains("sleep_until(");
        let sleeps = line.contains("thread::sleep(") || (waits && !paused);
        if in_test && sleeps && !real {
            found(
                "sleep",
                "wait for a message, or pause the clock and advance it",
            );
        }
    }
    findings
}

/// Checks TypeScript.
pub(super) fn check_typescript(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = check_lengths(path, text);
    for (at, line) in text.lines().enumerate() {
        let mut found = |rule, what: &str| findings.push(Finding::new(path, at + 1, rule, what));
        let trimmed = line.trim_start();
        if let Some(comment) = comment(trimmed) {
            if is_banner(comment) {
                found("banner", "a file that needs headings needs splitting");
            }
            continue;
        }
        if [": any", "<any", "any[]", "as any"]
            .iter()
            .any(|word| line.contains(word))
        {
            found("any", "say what it is, or `unknown` and parse it");
        }
        if line.contains("@ts-ignore") || line.contains("export default") {
            found("typescript", "no `@ts-ignore`, and named exports only");
        }
    }
    findings
}

fn check_lengths(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_LIMIT {
            let what = format!("{columns} columns, at most {LINE_LIMIT}");
            findings.push(Finding::new(path, at + 1, "line-length", what));
        }
    }
    let lines = text
        .lines()
        .count()
        .min(tests_begin(text).saturating_sub(1));
    if lines > FILE_LIMIT && !is_test_file(path) {
        let what = format!("{lines} lines without tests, at most {FILE_LIMIT}: split by idea");
        findings.push(Finding::new(path, FILE_LIMIT + 1, "file-length", what));
    }
    findings
}

/// Returns the line at which the tests at the end of a file begin.
fn tests_begin(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .enumerate()
        .position(|(at, line)| {
            *line == "#[cfg(test)]"
                && lines[at + 1..]
                    .iter()
                    .find(|next| !next.starts_with("#["))
                    .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
        })
        .map_or(usize::MAX, |at| at + 1)
}

/// Returns `true` if a line uses the atomics of the standard library.
fn names_plain_atomics(line: &str) -> bool {
    let library = ["std::", "core::"].iter().any(|name| line.contains(name));
    let other = line.contains("loom::");
    library && !other && line.contains("sync::") && line.contains("atomic")
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with(".test.ts")
}

/// Returns the text of a line that is only a comment.
fn comment(trimmed: &str) -> Option<&str> {
    let text = trimmed.strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
}

fn is_banner(comment: &str) -> bool {
    let run = |c: char| comment.chars().take_while(|&next| next == c).count() >= 4;
    comment
        .chars()
        .next()
        .is_some_and(|first| "=-*#~_+─━═".contains(first) && run(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(path, text)
            .into_iter()
            .map(|finding| finding.rule)
            .collect()
    }

    const LIB: &str = "crates/pfcp/src/wire.rs";
    const BEHAVIOUR: &str = "crates/pfcp/tests/framing.rs";

    #[test]
    fn typescript_that_says_nothing_is_found() {
        let found = |line: &str| {
            check_typescript("packages/a/src/b.ts", line)
                .into_iter()
                .map(|finding| finding.rule)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("let a: unknown = many;"), [""; 0]);
        assert_eq!(found("// Takes any: it is parsed."), [""; 0]);
        assert_eq!(found("let a: any = b;"), ["any"]);
        assert_eq!(found("// -------- ask --------"), ["banner"]);
        assert_eq!(found("export default a;"), ["typescript"]);
    }

    #[test]
    fn plain_code_is_accepted() {
        let text = "//! Model.\n//!\n//! | a | b |\n//! |---|---|\n//! ```text\n//! -----+-----\n\
                    //! ```\nfn sleep() {}\n";
        assert_eq!(rules(LIB, text), [""; 0]);
    }

    #[test]
    fn banner_is_found() {
        assert_eq!(rules(LIB, "// ==== Parsing ====\n"), ["banner"]);
        assert_eq!(rules(LIB, "    // --------\n"), ["banner"]);
        assert_eq!(rules(LIB, "/********/\n"), [""; 0]);
        assert_eq!(rules(LIB, "// ────────── framing\n"), ["banner"]);
    }

    #[test]
    fn example_that_is_not_compiled_is_found() {
        assert_eq!(
            rules(LIB, "/// ```rust,ignore\n/// x\n/// ```\n"),
            ["fence"]
        );
        assert_eq!(rules(LIB, "//! ```ignore\n"), ["fence"]);
    }

    #[test]
    fn ignored_test_is_found() {
        assert_eq!(
            rules(BEHAVIOUR, "#[ignore = \"slow\"]\nfn a() {}\n"),
            ["ignored-test"]
        );
    }

    #[test]
    fn atomics_that_loom_does_not_see_are_found() {
        let cell = "crates/runtime/src/cell.rs";
        let plain = "use std::sync::atomic::{AtomicU8, Ordering};\n";
        assert_eq!(rules(cell, plain), ["atomics"]);
        assert_eq!(rules(cell, "use std::sync::{Arc, atomic};\n"), ["atomics"]);
        assert_eq!(
            rules(cell, "    a: core::sync::atomic::AtomicBool,\n"),
            ["atomics"]
        );
        let seen = "use crate::sync::{AtomicU8, Ordering};\nuse std::sync::Arc;\n";
        assert_eq!(rules(cell, seen), [""; 0]);
        assert_eq!(
            rules(cell, "use ::loom::sync::atomic::AtomicU8;\n"),
            [""; 0]
        );
        let tests = format!("#[cfg(test)]\nmod tests {{\n    {plain}}}\n");
        assert_eq!(rules(cell, &tests), [""; 0]);
        assert_eq!(rules("crates/runtime/src/sync.rs", plain), [""; 0]);
        assert_eq!(rules("crates/runtime/src/schedule/beat.rs", plain), [""; 0]);
        assert_eq!(
            rules("crates/wasm/src/guest_threads/turns.rs", plain),
            ["atomics"]
        );
        assert_eq!(rules("crates/gateway/src/frame.rs", plain), [""; 0]);
    }

    #[test]
    fn silenced_dead_code_is_found() {
        assert_eq!(
            rules(LIB, "#[allow(dead_code)]\nfn a() {}\n"),
            ["dead-code"]
        );
        assert_eq!(rules(LIB, "#![allow(unused_imports)]\n"), ["dead-code"]);
        let shared = "#[path = \"../a.rs\"]\n#[expect(dead_code)]\nmod a;\n";
        assert_eq!(rules(LIB, shared), ["dead-code"]);
        assert!(rules(BEHAVIOUR, shared).is_empty());
    }

    #[test]
    fn glob_re_export_is_found() {
        assert_eq!(rules(LIB, "pub use ie::*;\n"), ["glob"]);
    }

    #[test]
    fn sleeping_test_is_found() {
        assert_eq!(rules(BEHAVIOUR, "std::thread::sleep(second);\n"), ["sleep"]);
        for wait in ["sleep(second)", "sleep_until(then)"] {
            let text = format!("tokio::time::{wait}.await;\n");
            assert_eq!(rules(BEHAVIOUR, &text), ["sleep"]);
        }
        let paused = "#[tokio::test(start_paused = true)]\ntokio::time::sleep(second).await;\n";
        assert_eq!(rules(BEHAVIOUR, paused), [""; 0]);
        let tail = "fn a() { sleep(1) }\n#[cfg(test)]\nmod tests {\n    sleep(1);\n}\n";
        assert_eq!(check(LIB, tail).len(), 1);
    }

    #[test]
    fn long_line_is_found() {
        assert_eq!(rules(LIB, &"x".repeat(101)), ["line-length"]);
        assert_eq!(rules(LIB, &"ä".repeat(100)), [""; 0]);
    }

    #[test]
    fn long_file_is_found_and_its_tests_do_not_count() {
        assert_eq!(rules(LIB, &"fn a() {}\n".repeat(1001)), ["file-length"]);
        let body = "fn a() {}\n".repeat(1000);
        let tail = "    #[test]\n    fn b() {}\n".repeat(300);
        let text = format!("{body}#[cfg(test)]\nmod tests {{\n{tail}}}\n");
        assert_eq!(rules(LIB, &text), [""; 0]);
        assert_eq!(
            rules("crates/pfcp/src/wire/tests.rs", &"fn a() {}\n".repeat(1001)),
            [""; 0]
        );
    }

    #[test]
    fn test_helpers_elsewhere_do_not_hide_a_long_file() {
        let text = format!(
            "#[cfg(test)]\nuse std::fmt;\n{}",
            "fn a() {}\n".repeat(1000)
        );
        assert_eq!(rules(LIB, &text), ["file-length"]);
    }
}
