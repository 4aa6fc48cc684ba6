//! `cargo xtask tidy`: the rules of the style guide that neither rustc nor clippy checks.
//!
//! [`layout`] checks the places of files, [`lines`] their lines, [`links`] the links of documents,
//! [`pages`] compares documents with the code and the verbs that they show, [`packages`] reads
//! `cargo metadata`, [`words`] compares names with the glossary. A rule is a function from text to
//! findings, so each is tested on a bad sample.

mod layout;
mod lines;
mod links;
mod packages;
mod pages;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use crate::Outcome;
use crate::project::{self, Project};
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
/// A word that ends in `-` may be a prefix of a longer word.
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
    let texts = |is_wanted: fn(&str) -> bool| {
        let wanted = files.iter().filter(|path| is_wanted(path));
        wanted.filter_map(read).collect()
    };
    let sources = pages::Sources {
        quoted: texts(pages::may_be_quoted),
        proofs: texts(pages::has_proofs),
        verbs,
    };
    let rejected = words::rejected(&project::read(&project.root().join(words::GLOSSARY))?);
    let (mut documents, mut code) = (BTreeMap::new(), BTreeMap::new());
    for path in &files {
        let Some(text) = read(path) else {
            continue;
        };
        findings.extend(lines::check(path, &text));
        findings.extend(pages::check(path, &text, &sources));
        if path.ends_with("Cargo.lock") {
            findings.extend(packages::check_lock(path, &text));
        }
        findings.extend(words::check(path, &text, &rejected));
        if path.ends_with(".md") {
            documents.insert(path.as_str(), text);
        } else if path.ends_with(".rs") {
            code.insert(path.as_str(), text);
        }
    }
    findings.extend(links::check(&files, &documents));
    findings.extend(words::check_names(&code));
    let (ours, theirs) = project.packages()?;
    findings.extend(packages::check_ours(&ours));
    let policy = project::read(&project.root().join("deny.toml"))?;
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
