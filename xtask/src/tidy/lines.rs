//! Rules about single lines: words in any text, comments, Rust, TypeScript; and about lengths.

use super::{Finding, has_word};

/// Maximum number of lines of a file without its tests.
const FILE_LIMIT: usize = 1000;
/// Maximum number of columns of a line.
const LINE_LIMIT: usize = 100;

/// The endings of files that are read.
const TEXTS: &[&str] = &["rs", "ts", "toml", "md", "yml", "yaml", "sh", "run"];

/// Beginnings of paths and addresses that exist on one machine only.
const PRIVATE: &[&str] = &["/work/", "/root/", "/home/", "/Users/"];

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
    "crates/cli/tests/strowger/forced_shutdown.rs",
    "crates/cli/tests/neighbours/",
    "crates/cli/tests/strowger/idle.rs",
    "crates/cli/tests/strowger/stdio.rs",
    "crates/durable/tests/durable/full_disk.rs",
    "crates/pfcp/tests/others/guarded.rs",
    "crates/pfcp-node/tests/lifetime/restoration.rs",
    "crates/wasm/src/guest/cpu_meter.rs",
    "crates/wasm/tests/fairness/",
    "xtask/src/process.rs",
    "xtask/tests/hang.rs",
];

/// Words of a test that advances its clock itself.
const VIRTUAL_TIME: &[&str] = &["start_paused", "TestSystem", "time::pause("];

/// Beginnings of docs that name no thing and no deed.
const OPENINGS: &[&str] = &[
    "What", "Who", "Whose", "Whether", "Which", "Where", "When", "Why", "How", "Whatever",
    "Whoever",
];

/// Phrases of a translation.
const PHRASES: &[&str] = &[
    "one who",
    "those who",
    "so many",
    "that which",
    "to and fro",
    "comes to rest",
    "what becomes of",
];

/// A line and its surroundings.
struct Line<'a> {
    path: &'a str,
    text: &'a str,
    /// `true` in a code block of a comment.
    is_fenced: bool,
    /// `true` if the docs of an item begin here.
    opens_docs: bool,
    /// `true` if a paragraph of docs begins here.
    opens_paragraph: bool,
    /// `true` if these docs end here too.
    closes_docs: bool,
    in_test: bool,
    /// `true` if the tests of the file advance their clock themselves.
    is_paused: bool,
    /// `true` below the path of a file that two test programs share, of which each uses a part.
    is_shared: bool,
}

/// Receives a broken rule and what to do instead.
type Found<'a> = &'a mut dyn FnMut(&'static str, &str);

fn check_text(line: &Line<'_>, found: Found<'_>) {
    let Line { path, text, .. } = *line;
    if has_any(text, &["TODO", "FIXME", "XXX"]) {
        found("unfinished", "do it, or write the limit as a fact");
    }
    // A state may be called a phase; a numbered phase is a plan.
    if has_any(text, &["TASK-", "ADR-"]) || is_numbered(text, "Phase ") {
        found("planning", "plans are not part of the code; say the reason");
    }
    if names_issue(line) {
        found(
            "issue-number",
            "the reason belongs here, its number in the history",
        );
    }
    if PRIVATE.iter().any(|place| begins_word(text, place)) {
        found("private-path", "this path exists on one machine");
    }
    let is_source = text.contains("[source.") || text.contains("[registries.");
    if path.ends_with("config.toml") && is_source {
        found(
            "registry",
            "a registry of one machine belongs to its environment",
        );
    }
}

fn check_comment(line: &Line<'_>, comment: &str, found: Found<'_>) {
    let info = comment.strip_prefix("```");
    if info.is_some_and(|info| info.split(',').any(|word| word.trim() == "ignore")) {
        found("fence", "an example that does not compile proves nothing");
    }
    if !line.is_fenced && is_banner(comment) {
        found("banner", "a file that needs headings needs splitting");
    }
    // Users or maintainers of a crate read the comments of its sources.
    let is_read = line.path.contains("/src/");
    let mut words = comment
        .split_whitespace()
        .skip(usize::from(begins_item(comment)));
    let opens = line.opens_paragraph && !line.is_fenced;
    if is_read && opens && OPENINGS.contains(&words.next().unwrap_or_default()) {
        found(
            "opening",
            "begin with a noun, or with a verb in the third person",
        );
    }
    let is_short =
        line.text.starts_with("///") && matches!(comment.split_whitespace().count(), 1 | 2);
    if is_read
        && line.opens_docs
        && line.closes_docs
        && is_short
        && !comment.starts_with("Print JSON")
    {
        found(
            "short-docs",
            "name the object, its unit or its effect, or write no comment on a private item",
        );
    }
    if is_read && has_any(&comment.to_lowercase(), PHRASES) {
        found(
            "phrase",
            "name the actor, the thing or the limit; `in both directions`; `is idle`",
        );
    }
}

fn check_rust(line: &Line<'_>, found: Found<'_>) {
    let Line { path, text, .. } = *line;
    if text.starts_with("#[ignore") {
        found("ignored-test", "run it or remove it");
    }
    let silences = ["allow(dead_code", "expect(dead_code", "allow(unused"];
    // Of an attribute that depends on a feature, which is on the lines before.
    let is_conditional = begins_with_any(text.trim_start(), &silences);
    let may_be_dead = is_conditional || line.is_shared && is_test_file(path);
    if contains_any(text, &silences) && !may_be_dead {
        found("dead-code", "delete what nobody uses");
    }
    if text.starts_with("pub use ") && text.contains("::*") {
        found("glob", "re-export each item by name");
    }
    let is_checked = begins_with_any(path, CHECKED_BY_LOOM) && !PLAIN_ATOMICS.contains(&path);
    if is_checked && !line.in_test && names_plain_atomics(text) {
        found(
            "atomics",
            "take them from `crate::sync`, or loom does not see them",
        );
    }
    let waits = contains_any(text, &["sleep(", "sleep_until("]) && !line.is_paused;
    let sleeps = waits || text.contains("thread::sleep(");
    if line.in_test && sleeps && !begins_with_any(path, REAL_TIME) {
        found(
            "sleep",
            "wait for a message, or pause the clock and advance it",
        );
    }
}

fn check_typescript(line: &Line<'_>, found: Found<'_>) {
    if contains_any(line.text, &[": any", "<any", "any[]", "as any"]) {
        found("any", "say what it is, or `unknown` and parse it");
    }
    if contains_any(line.text, &["@ts-ignore", "export default"]) {
        found("typescript", "no `@ts-ignore`, and named exports only");
    }
}

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let ending = path.rsplit(['.', '/']).next().unwrap_or_default();
    if !TEXTS.contains(&ending) {
        return Vec::new();
    }
    let is_code = ending == "rs" || ending == "ts";
    let mut findings = Vec::new();
    let tests_begin = tests_begin(text);
    if is_code {
        check_lengths(path, text, tests_begin, &mut findings);
    }
    // The rules and their bad samples would break the rules.
    if path.starts_with("xtask/src/tidy") {
        return findings;
    }
    let is_paused = contains_any(text, VIRTUAL_TIME);
    let (mut is_fenced, mut was_docs, mut is_shared) = (false, false, false);
    let mut after_paragraph = false;
    let mut lines = text.lines().map(str::trim_start).enumerate().peekable();
    while let Some((at, text)) = lines.next() {
        let comment = text.strip_prefix("//").filter(|_| is_code);
        let comment = comment.map(|text| text.trim_start_matches(['/', '!']).trim());
        let comment = comment.or_else(|| typescript_docs(text).filter(|_| ending == "ts"));
        let is_fence = comment.is_some_and(|comment| comment.starts_with("```"));
        is_fenced = comment.is_some() && (is_fenced ^ is_fence);
        let begins_docs = |text: &str| match ending {
            "ts" => typescript_docs(text).is_some(),
            _ => text.starts_with("///") || text.starts_with("//!"),
        };
        let is_docs = begins_docs(text);
        let line = Line {
            path,
            text,
            is_fenced,
            opens_docs: is_docs && !was_docs,
            opens_paragraph: is_docs
                && (!was_docs || after_paragraph || comment.is_some_and(begins_item)),
            closes_docs: !lines.peek().is_some_and(|(_, next)| begins_docs(next)),
            in_test: is_test_file(path) || at >= tests_begin,
            is_paused,
            is_shared,
        };
        was_docs = is_docs;
        after_paragraph = comment.is_some_and(|comment| comment.is_empty() || is_heading(comment));
        is_shared = text.starts_with("#[path =") || (is_shared && comment.is_some());
        let mut found = |rule, advice: &str| {
            findings.push(Finding::new(
                path,
                at + 1,
                rule,
                format!("{advice}: `{text}`"),
            ));
        };
        check_text(&line, &mut found);
        match comment {
            Some(comment) => check_comment(&line, comment, &mut found),
            None if ending == "rs" => check_rust(&line, &mut found),
            None if ending == "ts" => check_typescript(&line, &mut found),
            None => (),
        }
    }
    findings
}

fn check_lengths(path: &str, text: &str, tests_begin: usize, findings: &mut Vec<Finding>) {
    for (at, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_LIMIT {
            let what = format!("{columns} columns, at most {LINE_LIMIT}");
            findings.push(Finding::new(path, at + 1, "line-length", what));
        }
    }
    let lines = text.lines().count().min(tests_begin);
    if lines > FILE_LIMIT && !is_test_file(path) {
        let what = format!("{lines} lines without tests, at most {FILE_LIMIT}: split by idea");
        findings.push(Finding::new(path, FILE_LIMIT + 1, "file-length", what));
    }
}

/// Returns the number of lines above the tests at the end of a file.
fn tests_begin(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: &usize| {
        let mut next = lines[at + 1..]
            .iter()
            .skip_while(|next| next.starts_with("#["));
        let is_module = |next: &&str| next.starts_with("mod ") && next.ends_with('{');
        lines[*at] == "#[cfg(test)]" && next.next().is_some_and(is_module)
    };
    (0..lines.len()).find(begins).unwrap_or(usize::MAX)
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with(".test.ts")
}

/// Returns the text of a line of a TypeScript doc comment.
fn typescript_docs(line: &str) -> Option<&str> {
    let line = match line {
        "*" => "",
        line => line
            .strip_prefix("/**")
            .or_else(|| line.strip_prefix("* "))?,
    };
    Some(line.trim_end_matches("*/").trim())
}

fn is_heading(comment: &str) -> bool {
    comment.starts_with('#')
}

/// Returns `true` for a heading and an item of a list.
fn begins_item(comment: &str) -> bool {
    is_heading(comment) || comment.starts_with("- ") || comment.starts_with("* ")
}

fn is_banner(comment: &str) -> bool {
    let first = comment
        .chars()
        .next()
        .filter(|first| "=-*#~_+─━═".contains(*first));
    first.is_some_and(|first| comment.chars().take_while(|next| *next == first).count() >= 4)
}

/// Returns `true` if a line uses the atomics of the standard library.
fn names_plain_atomics(line: &str) -> bool {
    let library = contains_any(line, &["std::", "core::"]);
    library && !line.contains("loom::") && line.contains("sync::") && line.contains("atomic")
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| has_word(text, word))
}

fn contains_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

fn begins_with_any(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn begins_word(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/)}*".contains(c))
    })
}

fn is_numbered(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| begins_with_digit(&line[at + word.len()..]))
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns `true` for `#123` in a comment or in prose, and for "issue 123" anywhere.
fn names_issue(line: &Line<'_>) -> bool {
    let lower = line.text.to_lowercase();
    if is_numbered(&lower, "issue ") || is_numbered(&lower, "issue #") {
        return true;
    }
    let prose = match line.path.rsplit('.').next() {
        Some("rs" | "ts") => line
            .text
            .split_once("//")
            .map_or("", |(_, comment)| comment),
        Some("md") => line.text,
        _ => "",
    };
    prose.match_indices('#').any(|(at, _)| {
        let before = prose[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || c == '(') && begins_with_digit(&prose[at + 1..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule that a file breaks, if any; its path; its text.
    const SAMPLES: &str = r##"- crates/pfcp/src/wire.rs // A phase of the moon.
- crates/pfcp/src/wire.rs enum Phase { Starting, Running }
- crates/pfcp/src/wire.rs let s = r#"123"#; let color = "#1234";
- crates/pfcp/src/wire.rs #[test]
- crates/pfcp/src/wire.rs // The issue with 3 peers.
- crates/pfcp/src/wire.rs const XXXX: u8 = 1;
- crates/pfcp/src/wire.rs join(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp")
unfinished crates/pfcp/src/wire.rs // TODO: later
unfinished crates/pfcp/src/wire.rs // FIXME(x)
unfinished docs/guide.md TODO
planning crates/pfcp/src/wire.rs // Phase 4 does this
planning crates/pfcp/src/wire.rs /// As in TASK-12
planning crates/pfcp/src/wire.rs /// As in ADR-WASM-031
issue-number crates/pfcp/src/wire.rs x(); // see #12
issue-number crates/pfcp/src/wire.rs /// Mends issue 12.
issue-number docs/guide.md as in (#7)
private-path crates/pfcp/src/wire.rs open("/work/shared")
private-path README.md cd /home/me
- crates/pfcp/src/wire.rs open(root + "docs/work/a")
registry .cargo/config.toml [source.crates-io]
- crates/pfcp/src/wire.rs //! Model.\n//!\n//! |---|---|\n//! ```text\n//! -----+-----\n//! ```
banner crates/pfcp/src/wire.rs // ==== Parsing ====
banner crates/pfcp/src/wire.rs     // --------
- crates/pfcp/src/wire.rs /********/
banner crates/pfcp/src/wire.rs // ────────── framing
fence crates/pfcp/src/wire.rs /// ```rust,ignore\n/// x\n/// ```
fence crates/pfcp/src/wire.rs //! ```ignore
opening crates/pfcp/src/wire.rs /// Whether it runs.\nfn a() {}
opening crates/pfcp/src/wire.rs /// Which one to take.\nfn a() {}
short-docs crates/pfcp/src/wire.rs /// The peer.\npeer: u8,
- crates/pfcp/src/wire.rs /// The peer.\n///\n/// It may be lost.\npeer: u8,
- crates/pfcp/src/wire.rs /// Print JSON\njson: bool,
- crates/pfcp/src/wire.rs // The peer.
opening crates/pfcp/src/wire.rs //! What a node does.
- crates/pfcp/src/wire.rs /// Returns `true`.\n/// How often: twice.\nfn a() {}
opening crates/pfcp/src/wire.rs //! A node.\n//!\n//! What it does is this.
opening crates/pfcp/src/wire.rs /// A node.\n///\n/// # Panics\n/// When it ends.\nfn a() {}
opening crates/pfcp/src/wire.rs //! A node.\n//!\n//! # Who it asks
opening crates/pfcp/src/wire.rs //! A node:\n//! - What it asks.
- crates/pfcp/src/wire.rs /// A node.\n///\n/// ```text\n///\n/// What\n/// ```\nfn a() {}
- crates/pfcp/src/wire.rs /// Whatsapp sends it.\nfn a() {}
- crates/pfcp/tests/framing.rs /// What is noticed.
phrase crates/pfcp/src/wire.rs // One who waits.
- crates/pfcp/src/wire.rs // Someone who waits.
- crates/pfcp/src/wire.rs let text = "one who";
ignored-test crates/pfcp/tests/framing.rs #[ignore = "slow"]\nfn a() {}
dead-code crates/pfcp/src/wire.rs #[allow(dead_code)]\nfn a() {}
dead-code crates/pfcp/src/wire.rs #![allow(unused_imports)]
dead-code crates/pfcp/src/wire.rs #[path = "../a.rs"]\n#[expect(dead_code)]\nmod a;
- crates/pfcp/tests/framing.rs #[path = "../a.rs"]\n#[expect(dead_code)]\nmod a;
- crates/pfcp/src/wire.rs #[cfg_attr(\n    not(feature = "a"),\n    expect(dead_code)\n)]\nmod a;
glob crates/pfcp/src/wire.rs pub use ie::*;
atomics crates/runtime/src/cell.rs use std::sync::atomic::{AtomicU8, Ordering};
atomics crates/runtime/src/cell.rs use std::sync::{Arc, atomic};
atomics crates/runtime/src/cell.rs     a: core::sync::atomic::AtomicBool,
- crates/runtime/src/cell.rs use crate::sync::{AtomicU8, Ordering};\nuse std::sync::Arc;
- crates/runtime/src/cell.rs use ::loom::sync::atomic::AtomicU8;
- crates/runtime/src/cell.rs #[cfg(test)]\nmod tests {\n    use std::sync::atomic::AtomicU8;\n}
- crates/runtime/src/sync.rs use std::sync::atomic::{AtomicU8, Ordering};
- crates/runtime/src/schedule/beat.rs use std::sync::atomic::{AtomicU8, Ordering};
atomics crates/wasm/src/guest_threads/turns.rs use std::sync::atomic::{AtomicU8, Ordering};
- crates/gateway/src/frame.rs use std::sync::atomic::{AtomicU8, Ordering};
- crates/pfcp/src/wire.rs std::thread::sleep(second);
sleep crates/pfcp/tests/framing.rs std::thread::sleep(second);
sleep crates/pfcp/tests/framing.rs tokio::time::sleep(second).await;
sleep crates/pfcp/tests/framing.rs tokio::time::sleep_until(then).await;
- crates/pfcp/tests/framing.rs #[tokio::test(start_paused = true)]\nsleep(second).await;
sleep crates/pfcp/src/wire.rs fn a() { sleep(1) }\n#[cfg(test)]\nmod tests {\n    sleep(1);\n}
- packages/a/src/b.ts let a: unknown = many;
- packages/a/src/b.ts // Takes any: it is parsed.
any packages/a/src/b.ts let a: any = b;
opening packages/a/src/b.ts /** What it asks. */
opening packages/a/src/b.ts /**\n * What it asks.\n */
opening packages/a/src/b.ts /**\n * A node.\n *\n * What it asks.\n */
- packages/a/src/b.ts /**\n * A node.\n * What it asks.\n */\nconst What = 1;
banner packages/a/src/b.ts // -------- ask --------
typescript packages/a/src/b.ts export default a;"##;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let found = check(path, text).into_iter();
        found.map(|finding| finding.rule).collect()
    }

    #[test]
    fn broken_rules_of_each_sample_are_found() {
        for sample in SAMPLES.lines() {
            let [broken, path, text] = sample.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{sample}");
            };
            let broken = Vec::from_iter((broken != "-").then_some(broken));
            assert_eq!(rules(path, &text.replace("\\n", "\n")), broken, "{sample}");
        }
    }

    #[test]
    fn long_lines_and_files_are_found_and_tests_at_the_end_do_not_count() {
        let body = "fn a() {}\n".repeat(1000);
        let tests = format!("mod tests {{\n{}}}\n", "    fn b() {}\n".repeat(300));
        let (lib, test) = ("a/src/lib.rs", "a/src/wire/tests.rs");
        let longer = format!("{body}\n");
        for (path, text, broken) in [
            (lib, "x".repeat(101), &["line-length"][..]),
            (lib, "ä".repeat(100), &[]),
            (lib, longer.clone(), &["file-length"]),
            (lib, format!("{body}#[cfg(test)]\n{tests}"), &[]),
            (lib, format!("#[cfg(test)]\n{body}"), &["file-length"]),
            (test, longer, &[]),
        ] {
            assert_eq!(rules(path, &text), broken, "{path}: {}", text.len());
        }
    }
}
