//! Rules about names: words that the glossary rejects, and types that share a name.

use std::collections::BTreeMap;

use super::{Finding, has_word};

/// The page that says which word is used for which thing.
pub(super) const GLOSSARY: &str = "docs/internals/glossary.md";

/// Returns the words that the glossary rejects: those in backquotes in its last column.
pub(super) fn rejected(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with('|'));
    let columns = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let words = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    words.map(str::to_owned).collect()
}

/// Returns the name that a line defines, if it defines an item.
fn defined(line: &str) -> Option<(&str, &str)> {
    const KINDS: &[&str] = &[
        "struct", "enum", "union", "trait", "type", "fn", "mod", "const", "static",
    ];
    let mut words = line.split_whitespace();
    let kind = words.find(|word| {
        let is_before = word.starts_with("pub") || matches!(*word, "async" | "unsafe" | "in");
        !is_before && !word.ends_with(')')
    })?;
    let kind = KINDS.iter().find(|known| **known == kind)?;
    let rest = words.next()?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some((kind, &rest[..end.unwrap_or(rest.len())]))
}

/// Returns `true` if one of the words that a name is composed of is `word`.
fn is_composed_of(name: &str, word: &str) -> bool {
    let mut lower = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !lower.ends_with('_') && name.contains(char::is_lowercase) {
            lower.push('_');
        }
        lower.extend(c.to_lowercase());
    }
    let parts = format!("_{}_", lower.trim_matches('_'));
    parts.contains(&format!("_{word}_")) || parts.contains(&format!("_{word}s_"))
}

/// Finds rejected words in the names and comments of a source file.
pub(super) fn check(path: &str, text: &str, rejected: &[String]) -> Vec<Finding> {
    // The rules and their bad samples would break the rules.
    if !path.ends_with(".rs") || !path.contains("/src/") || path.starts_with("xtask/src/tidy") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let broken = |word: &&String| match line.strip_prefix("//") {
            // Code in a comment may name a key of a format.
            Some(comment) => {
                let prose = comment.split('`').step_by(2);
                prose
                    .into_iter()
                    .any(|prose| has_word(&prose.to_lowercase(), word))
            }
            None => defined(line).is_some_and(|(_, name)| is_composed_of(name, word)),
        };
        if let Some(word) = rejected.iter().find(broken) {
            let what = format!("{GLOSSARY} has another word for `{word}`: `{line}`");
            findings.push(Finding::new(path, at + 1, "word", what));
        }
    }
    findings
}

/// Finds types that are visible beyond their module and share a name within their crate.
pub(super) fn check_names(sources: &BTreeMap<&str, String>) -> Vec<Finding> {
    let mut first: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, text) in sources {
        // Alternatives under `cfg`, of which a build has one.
        if path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("without_"))
        {
            continue;
        }
        // Comparisons have one type for each peer, in programs of their own.
        let package = path.split_once("/src/").map(|(package, _)| package);
        let Some(package) = package.filter(|_| !path.starts_with("bench/")) else {
            continue;
        };
        let lines = text.lines().enumerate();
        for (at, line) in lines.take_while(|(_, line)| !line.starts_with("mod tests {")) {
            // Indented are macros, and modules that are alternatives under `cfg`.
            let visible = ["pub ", "pub(crate) ", "pub(super) ", "pub(in "];
            let Some((kind, name)) = defined(line) else {
                continue;
            };
            let is_type = matches!(kind, "struct" | "enum" | "union" | "trait" | "type");
            if !is_type || !visible.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            if let Some(other) = first.insert((package, name), path) {
                let what = format!("{other} has a `{name}` too; a reader needs two names");
                findings.push(Finding::new(path, at + 1, "name", what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_words_are_those_in_backquotes() {
        let glossary = "| term | meaning | not |\n|---|---|---|\n| exit | `why` it ended | end |\n\
                        | ward | a hall | `berth`, slot, `let in` |\n";
        assert_eq!(rejected(glossary), ["berth", "let in"]);
    }

    #[test]
    fn rejected_words_are_found_in_names_and_comments() {
        let rejected = ["berth".to_owned(), "let in".to_owned()];
        for (line, is_found) in [
            ("pub(crate) struct BerthTable;", true),
            ("    fn free_berths(&self) {", true),
            ("const FREE_BERTH: u8 = 1;", true),
            ("pub(in crate::a) enum Berth {", true),
            ("/// The berth of a ship.", true),
            ("// Clients that were let in.", true),
            ("// The key `berth` of the answer.", false),
            ("struct Berthing;", false),
            ("let berth = 1;", false),
            ("// The berthing.", false),
        ] {
            let found = !check("crates/pfcp/src/wire.rs", line, &rejected).is_empty();
            assert_eq!(found, is_found, "{line}");
        }
        assert!(check("crates/pfcp/tests/a.rs", "struct Berth;", &rejected).is_empty());
    }

    #[test]
    fn visible_types_with_one_name_are_found() {
        let sources = |second: &str| {
            BTreeMap::from([
                ("crates/a/src/b.rs", "pub(super) struct State;\n".to_owned()),
                ("crates/a/src/c.rs", format!("\n{second}\n")),
                ("crates/d/src/b.rs", "pub struct State;".to_owned()),
            ])
        };
        let found = check_names(&sources("pub(crate) enum State {}"));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].path.as_str(), found[0].line),
            ("crates/a/src/c.rs", 2)
        );
        for other in [
            "enum State {}",
            "pub fn State() {}",
            "mod tests {\npub struct State;",
        ] {
            assert_eq!(check_names(&sources(other)), [], "{other}");
        }
    }
}
