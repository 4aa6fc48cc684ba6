//! `cargo xtask tidy`: the rules of the style guide that neither rustc nor clippy checks.
//!
//! [`layout`] checks the places of files, [`source`] reads Rust and TypeScript line by line,
//! [`words`] reads every text, [`quotes`] compares pages with the code that they show, [`commands`]
//! compares them with the existing verbs, [`packages`] reads `cargo metadata`. A rule is a function
//! from text to findings, so each is tested on a bad sample.

mod commands;
mod layout;
mod packages;
mod prose;
mod quotes;
mod source;
mod words;

use std::fmt;

use crate::Outcome;
use crate::project::Project;
use crate::term::{self, TextStyle};

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.path, self.line, self.rule, self.what
        )
    }
}

/// Returns `true` if a text has a word or phrase that is not a part of longer words.
///
/// A word that ends in `-` may go on.
fn has_word(text: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word)
            && (word.ends_with('-') || !after.is_some_and(part_of_word))
    })
}

/// Checks the whole repository and reports all findings at once.
pub(crate) fn run(project: &Project) -> Outcome {
    let files = project.files()?;
    let mut verbs = <crate::Cli as clap::CommandFactory>::command();
    verbs.build();
    let mut findings = layout::check(&files);
    let read = |path: &String| std::fs::read_to_string(project.root().join(path)).ok();
    let shown: Vec<String> = files
        .iter()
        .filter(|path| quotes::is_source(path))
        .filter_map(read)
        .collect();
    for path in &files {
        let Ok(text) = std::fs::read_to_string(project.root().join(path)) else {
            continue;
        };
        findings.extend(words::check(path, &text));
        if quotes::is_page(path) {
            findings.extend(quotes::check(path, &text, &shown));
        }
        if path.ends_with(".md") {
            findings.extend(commands::check(path, &text, &verbs));
        }
        if path.ends_with(".rs") {
            findings.extend(source::check(path, &text));
            findings.extend(prose::check(path, &text));
        }
        if path.ends_with(".ts") {
            findings.extend(source::check_typescript(path, &text));
        }
        if path.ends_with("Cargo.lock") {
            findings.extend(packages::check_lock(path, &text));
        }
    }
    let (ours, theirs) = project.packages()?;
    findings.extend(packages::check_floors(&ours));
    findings.extend(packages::check_small(&ours));
    findings.extend(packages::check_metadata(&ours));
    let policy = std::fs::read_to_string(project.root().join("deny.toml"))
        .map_err(|error| format!("cannot read deny.toml: {error}"))?;
    findings.extend(packages::check_policy(&theirs, &policy)?);
    findings.sort();
    findings.dedup();
    for finding in &findings {
        term::line(&finding.to_string());
    }
    let seen = format!(
        "{} files, {} packages",
        files.len(),
        ours.len() + theirs.len()
    );
    if findings.is_empty() {
        term::note(&format!(
            "{}: {seen}",
            term::paint(TextStyle::Green, "tidy")
        ));
        return Ok(());
    }
    Err(format!(
        "{} findings in {seen}; CONTRIBUTING.md says why each rule is",
        findings.len()
    ))
}
