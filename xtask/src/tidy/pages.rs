//! Pages: their verbs must be in the help with their options, their Rust must be quoted from code
//! that is compiled, and the models, weakenings and seeded bugs that they name must exist.

use clap::Command;
use serde_json::{Map, Value};

use super::{Finding, has_word};

/// The files that pages are compared with.
pub(super) struct Sources {
    /// The texts of files that may be quoted.
    pub(super) quoted: Vec<String>,
    /// The texts of files with models, weakenings and seeded bugs.
    pub(super) proofs: Vec<String>,
    pub(super) verbs: Command,
}

pub(super) fn check(path: &str, page: &str, sources: &Sources) -> Vec<Finding> {
    let Sources {
        quoted,
        proofs,
        verbs,
    } = sources;
    let mut findings = Vec::new();
    if path.ends_with(".md") {
        let wrong = wrong_commands(page, verbs).into_iter();
        findings.extend(wrong.map(|(line, what)| Finding::new(path, line, "command", what)));
    }
    if path == "README.md" || path.starts_with("docs/") && path.ends_with(".md") {
        let what = "this code is in no file of bench/compare or examples and in no README of a \
                    crate, so nothing compiles it";
        let unquoted = unquoted(page, quoted).into_iter();
        findings.extend(unquoted.map(|line| Finding::new(path, line, "quote", what)));
    }
    if path.starts_with("docs/internals/") {
        let exists = |name: &str| proofs.iter().any(|source| has_word(source, name));
        let unknown = named_proofs(page).into_iter();
        findings.extend(
            unknown
                .filter(|(_, name)| !exists(name))
                .map(|(line, name)| {
                    let what = format!("there is no model, weakening or seeded bug `{name}`");
                    Finding::new(path, line, "proof", what)
                }),
        );
    }
    if path == "docs/performance.json" {
        let wrong = unexplained(page).into_iter();
        findings.extend(wrong.map(|what| Finding::new(path, 1, "figures", what)));
    }
    findings
}

/// Lists the measured parts that do not say when, where and how they were measured.
fn unexplained(figures: &str) -> Vec<String> {
    let parts: Map<String, Value> = match serde_json::from_str(figures) {
        Ok(parts) => parts,
        Err(error) => return vec![format!("this is no JSON: {error}")],
    };
    let mut wrong = Vec::new();
    for (part, held) in &parts {
        let is_missing = |key: &&str| held["run"][*key].as_str().is_none_or(str::is_empty);
        let keys = ["command", "commit", "date", "processor", "system"];
        let missing: Vec<&str> = keys.into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            wrong.push(format!(
                "part `{part}` has no {missing}; `cargo xtask bench {part}` measures it again"
            ));
        }
    }
    wrong
}

/// Checks every `cargo xtask` of a page against the help of its verb.
fn wrong_commands(page: &str, verbs: &Command) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    for (at, line) in page.lines().enumerate() {
        for command in line.split("cargo xtask ").skip(1) {
            let end = command.find(['`', '|', '\n', ')']).unwrap_or(command.len());
            let command = command[..end].split(" #").next().unwrap_or_default();
            let mut words = command.split_whitespace();
            // Skip placeholders, and the command without a verb.
            let Some(verb) = words.next().filter(|verb| is_word(verb)) else {
                continue;
            };
            let mut wrong = |what: String| wrong.push((at + 1, what));
            let Some(known) = verbs.find_subcommand(verb) else {
                wrong(format!("there is no `cargo xtask {verb}`"));
                continue;
            };
            // The arguments of `test` are for cargo.
            if verb == "test" {
                continue;
            }
            let said = known.clone().render_long_help().to_string();
            let part = words.next().filter(|part| verb == "bench" && is_word(part));
            if let Some(part) = part.filter(|part| !says(&said, part)) {
                wrong(format!("the help of `bench` has no part `{part}`"));
            }
            // Options after `--` belong to another program.
            let options = command.split_whitespace().take_while(|word| *word != "--");
            let options = options.filter(|word| word.starts_with("--"));
            for option in options.filter(|option| !says(&said, option)) {
                wrong(format!("the help of `{verb}` has no `{option}`"));
            }
        }
    }
    wrong
}

/// Returns `true` for a word that is neither an option nor a placeholder.
fn is_word(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase())
}

fn says(help: &str, word: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    help.split(|letter| !is_inner(letter))
        .any(|one| one == word)
}

/// Returns `true` if a file has models, weakenings or seeded bugs.
pub(super) fn has_proofs(path: &str) -> bool {
    const NAMES: [&str; 3] = ["/loom.rs", "/weakening.rs", "/seeded_bug.rs"];
    path.starts_with("crates/") && NAMES.iter().any(|name| path.ends_with(name))
}

/// Returns the models that a page names, and what follows the words "weakening" and "bug", with
/// their lines.
fn named_proofs(page: &str) -> Vec<(usize, &str)> {
    const WORDS: [&str; 6] = ["eakening", "eakenings", "bug", "bugs", "bug:", "bugs:"];
    let (mut named, mut line, mut is_listed) = (Vec::new(), 1, false);
    // Every second part is code.
    for (at, part) in page.split('`').enumerate() {
        let text = part.trim();
        if at % 2 == 0 {
            let follows = WORDS.iter().any(|word| text.ends_with(word));
            is_listed = follows || is_listed && text == ",";
        } else if is_listed || part.contains("loom::") {
            named.extend(part.rsplit("::").next().map(|name| (line, name)));
        }
        line += part.matches('\n').count();
    }
    named
}

/// Returns `true` if a file is compiled and may be quoted. The READMEs of crates are doctests.
pub(super) fn may_be_quoted(path: &str) -> bool {
    let folder = path.starts_with("bench/compare/") || path.starts_with("examples/");
    folder && path.ends_with(".rs") || path.starts_with("crates/") && path.ends_with("/README.md")
}

/// Returns the lines of Rust blocks that are not, line by line, in one of the sources. Indentation
/// does not count.
fn unquoted(page: &str, sources: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line.trim());
        let block: Vec<&str> = body.take_while(|line| *line != "```").collect();
        let is_rust = language == "rust" || language.starts_with("rust,");
        if is_rust && !sources.iter().any(|source| quotes(source, &block)) {
            found.push(at + 1);
        }
    }
    found
}

fn quotes(source: &str, block: &[&str]) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    !block.is_empty() && lines.windows(block.len()).any(|window| window == block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_their_machine_or_date_are_found() {
        let complete = r#"{ "wasm": { "run": { "command": "cargo xtask bench wasm",
            "commit": "12ab", "date": "2026-01-01", "processor": "EPYC", "system": "Linux 6" },
            "rows": [] } }"#;
        assert!(unexplained(complete).is_empty());
        let without = complete
            .replace("\"2026-01-01\"", "null")
            .replace("12ab", "");
        assert_eq!(
            unexplained(&without),
            ["part `wasm` has no commit, date; `cargo xtask bench wasm` measures it again"]
        );
        assert_eq!(unexplained("[").len(), 1);
    }

    #[test]
    fn commands_that_the_help_does_not_have_are_found() {
        let option = |name| clap::Arg::new(name).long(name);
        let bench = Command::new("bench").about("PART is n4, runtime or tools");
        let bench = bench.args([option("quick"), option("json")]);
        let verbs = Command::new("xtask").subcommands([Command::new("tidy"), bench]);
        for (page, wrong) in [
            ("run `cargo xtask tidy`.", None),
            (
                "$ cargo xtask bench runtime --quick # ours, --slow is none",
                None,
            ),
            ("cargo xtask bench tools --json", None),
            ("cargo xtask tidy -- --of-another-program", None),
            ("cargo xtask VERB, `cargo xtask`", None),
            ("| `cargo xtask bench PART` | `other` |", None),
            (
                "cargo xtask tidied",
                Some("there is no `cargo xtask tidied`"),
            ),
            (
                "`cargo xtask tidy --all`",
                Some("the help of `tidy` has no `--all`"),
            ),
            (
                "cargo xtask bench wasm",
                Some("the help of `bench` has no part `wasm`"),
            ),
        ] {
            let found = wrong_commands(page, &verbs);
            let found: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
            assert_eq!(found, Vec::from_iter(wrong), "{page}");
        }
    }

    #[test]
    fn code_that_nothing_compiles_is_found() {
        let source = "fn a() {\n    b();\n}\n\nfn c() {}\n".to_owned();
        for (page, lines) in [
            ("```rust\nfn a() {\n    b();\n}\n```\n", &[][..]),
            ("- so:\n  ```rust\n  b();\n  ```\n", &[]),
            ("```erlang\nd() -> ok.\n```\n```\nfn d() {}\n```\n", &[]),
            ("text\n```rust\nfn d() {}\n```\n", &[2]),
            ("```rust,no_run\nfn a() {\n}\n```\n", &[1]),
            ("```rust\n```\n", &[1]),
        ] {
            assert_eq!(
                unquoted(page, std::slice::from_ref(&source)),
                lines,
                "{page}"
            );
        }
        assert!(may_be_quoted("bench/compare/kameo.rs") && may_be_quoted("examples/ask.rs"));
        assert!(may_be_quoted("crates/pfcp/README.md"));
        assert!(!may_be_quoted("bench/src/lib.rs") && !may_be_quoted("README.md"));
        let page = "```rust\nfn d() {}\n```\n";
        let sources = Sources {
            quoted: Vec::new(),
            proofs: Vec::new(),
            verbs: Command::new("xtask"),
        };
        let found = |path| check(path, page, &sources).len();
        let pages = ["docs/guides/tokio.md", "README.md", "SECURITY.md"];
        assert_eq!(pages.map(found), [1, 1, 0]);
    }

    #[test]
    fn proofs_that_do_not_exist_are_found() {
        let page = "A `Type`, weakenings `A`, `B`; bug `C`.\n```sh\n`x`\n```\nSeeded bugs:\n`D`,\n\
                    `E` and `F`, `mailbox::loom::wakes`\n";
        let named = [
            (1, "A"),
            (1, "B"),
            (1, "C"),
            (6, "D"),
            (7, "E"),
            (7, "wakes"),
        ];
        assert_eq!(named_proofs(page), named);
        let sources = Sources {
            quoted: Vec::new(),
            proofs: vec!["A, B, C,".to_owned(), "fn wakes() {}".to_owned()],
            verbs: Command::new("xtask"),
        };
        let found = check("docs/internals/scheduler.md", page, &sources);
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [6, 7]);
        assert_eq!(check("docs/code.md", page, &sources), []);
    }
}
