//! The prose of comments: how the docs of an item begin, and phrases that nobody says.

use super::{Finding, has_word};

/// Beginnings of docs that name no thing and no deed.
const OPENINGS: &[&str] = &[
    "What", "Who", "Whose", "Whether", "How", "Whatever", "Whoever",
];

/// Phrases of a translation, with what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("one who", "name the actor, the caller, the sender"),
    ("those who", "name the actors, the callers, the senders"),
    ("so many", "say `this number of`, or name the limit"),
    ("that which", "name the thing"),
    ("to and fro", "say `in both directions`"),
    ("comes to rest", "say `is idle`"),
    ("what becomes of", "name the result"),
];

/// Checks the comments of a Rust source; tests and examples are not read by users of a crate.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    // The rules and their bad samples are text to them as well.
    let is_source = path.contains("/src/") && !path.starts_with("xtask/src/tidy");
    if !is_source {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        let mut found = |rule, what: String| findings.push(Finding::new(path, at + 1, rule, what));
        let trimmed = line.trim_start();
        let docs = trimmed
            .strip_prefix("///")
            .or_else(|| trimmed.strip_prefix("//!"));
        if let (Some(docs), false) = (docs, is_inside) {
            let first = docs.split_whitespace().next().unwrap_or_default();
            if OPENINGS.contains(&first) {
                found(
                    "opening",
                    format!("`{first}`: begin with a noun, or with a verb in the third person"),
                );
            }
        }
        is_inside = docs.is_some();
        if let Some(comment) = trimmed.strip_prefix("//") {
            let comment = comment.to_lowercase();
            for (phrase, instead) in PHRASES {
                if has_word(&comment, phrase) {
                    found("phrase", format!("`{phrase}`: {instead}"));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let findings = check(path, text);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    const LIB: &str = "crates/a/src/lib.rs";

    #[test]
    fn an_opening_that_names_nothing_is_found_where_docs_begin() {
        assert_eq!(rules(LIB, "/// Whether it runs.\nfn a() {}\n"), ["opening"]);
        assert_eq!(rules(LIB, "//! What a node does.\n"), ["opening"]);
        assert!(
            rules(
                LIB,
                "/// Returns `true`.\n/// How often: twice.\nfn a() {}\n"
            )
            .is_empty()
        );
        assert!(rules(LIB, "/// Whatsapp.\nfn a() {}\n").is_empty());
        assert!(rules("crates/a/tests/b.rs", "/// What is noticed.\n").is_empty());
    }

    #[test]
    fn phrases_are_found_as_words_of_a_comment() {
        assert_eq!(rules(LIB, "// One who waits.\n"), ["phrase"]);
        assert!(rules(LIB, "// Someone who waits.\n").is_empty());
        assert!(rules(LIB, "let text = \"one who\";\n").is_empty());
    }
}
