//! Words that do not belong in the repository, in any kind of file.

use super::{Finding, has_word};

const LATER: &str = "do it, or write the limit as a fact";

/// Banned words, each with its rule and what to do instead.
const BANNED: &[(&str, &str, &str)] = &[
    ("TODO", "unfinished", LATER),
    ("FIXME", "unfinished", LATER),
    ("XXX", "unfinished", LATER),
    ("TASK-", "planning", "plans are not part of the code"),
    ("ADR-", "planning", "say the reason, not its number"),
];

/// Beginnings of paths and addresses that exist on one machine only.
const PRIVATE: &[&str] = &["/work/", "/root/", "/home/", "/Users/"];

const TEXTS: &[&str] = &["rs", "ts", "toml", "md", "yml", "yaml", "sh", "run"];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let ending = path.rsplit(['.', '/']).next().unwrap_or_default();
    // The rules and their bad samples contain every banned word.
    if !TEXTS.contains(&ending) || path.starts_with("xtask/src/tidy") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut found = |rule, what: String| findings.push(Finding::new(path, at + 1, rule, what));
        for (word, rule, why) in BANNED {
            if has_word(line, word) {
                found(rule, format!("`{word}`: {why}"));
            }
        }
        // A state may be called a phase; a numbered phase is a plan.
        if numbered(line, "Phase ") {
            found("planning", "plans are not part of the code".to_owned());
        }
        if names_issue(path, line) {
            found(
                "issue-number",
                "the reason belongs here, its number in the history".to_owned(),
            );
        }
        for place in PRIVATE {
            if at_word_start(line, place) {
                found("private-path", format!("`{place}` exists on one machine"));
            }
        }
        let registry = line.contains("[source.") || line.contains("[registries.");
        if path.ends_with("config.toml") && registry {
            found(
                "registry",
                "a registry of one machine belongs to its environment".to_owned(),
            );
        }
    }
    findings
}

fn at_word_start(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/)}*".contains(c))
    })
}

fn numbered(line: &str, word: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    line.match_indices(word)
        .any(|(at, _)| digit(&line[at + word.len()..]))
}

/// Returns `true` for `#123` in a comment or in prose, and for "issue 123" anywhere.
fn names_issue(path: &str, line: &str) -> bool {
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let lower = line.to_lowercase();
    let mut spoken = lower
        .match_indices("issue ")
        .map(|(at, word)| &lower[at + word.len()..]);
    if spoken.any(|rest| digit(rest.trim_start_matches('#'))) {
        return true;
    }
    let prose = if path.ends_with(".rs") || path.ends_with(".ts") {
        line.split_once("//").map_or("", |(_, comment)| comment)
    } else if path.ends_with(".md") {
        line
    } else {
        ""
    };
    prose.match_indices('#').any(|(at, _)| {
        let before = prose[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || c == '(') && digit(&prose[at + 1..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, line: &str) -> Vec<&'static str> {
        check(path, line)
            .into_iter()
            .map(|finding| finding.rule)
            .collect()
    }

    const LIB: &str = "crates/pfcp/src/wire.rs";

    #[test]
    fn ordinary_words_are_accepted() {
        for line in [
            "// A phase of the moon.",
            "enum Phase { Starting, Running }",
            "let s = r#\"123\"#;",
            "#[test]",
            "let color = \"#1234\";",
            "// The issue with 3 peers.",
            "const XXXX: u8 = 1;",
            "join(env!(\"CARGO_MANIFEST_DIR\")).join(\"../../../shared/pfcp\")",
        ] {
            assert_eq!(rules(LIB, line), [""; 0], "{line}");
        }
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(rules(LIB, "// TODO: later"), ["unfinished"]);
        assert_eq!(rules(LIB, "// FIXME(x)"), ["unfinished"]);
        assert_eq!(rules("docs/guide.md", "TODO"), ["unfinished"]);
    }

    #[test]
    fn planning_is_found() {
        assert_eq!(rules(LIB, "// Phase 4 does this"), ["planning"]);
        assert_eq!(rules(LIB, "/// see TASK-12"), ["planning"]);
        assert_eq!(rules(LIB, "/// see ADR-WASM-031"), ["planning"]);
    }

    #[test]
    fn issue_number_is_found() {
        assert_eq!(rules(LIB, "x(); // see #12"), ["issue-number"]);
        assert_eq!(rules(LIB, "/// Mends issue 12."), ["issue-number"]);
        assert_eq!(rules("docs/guide.md", "as in (#7)"), ["issue-number"]);
    }

    #[test]
    fn path_of_one_machine_is_found() {
        assert_eq!(rules(LIB, "open(\"/work/shared\")"), ["private-path"]);
        assert_eq!(rules("README.md", "cd /home/me"), ["private-path"]);
        assert_eq!(rules(LIB, "open(root + \"docs/work/a\")"), [""; 0]);
    }

    #[test]
    fn private_registry_is_found() {
        assert_eq!(
            rules(".cargo/config.toml", "[source.crates-io]"),
            ["registry"]
        );
    }
}
