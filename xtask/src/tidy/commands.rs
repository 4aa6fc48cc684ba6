//! Verbs of the project in pages: each must be in the help, with its options.

use super::Finding;

/// Checks every `cargo xtask` of a page against the help.
pub(super) fn check(path: &str, page: &str, help: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in page.lines().enumerate() {
        for command in line.split("cargo xtask ").skip(1) {
            let end = command.find(['`', '|', '\n', ')']).unwrap_or(command.len());
            let command = command[..end].split(" #").next().unwrap_or_default();
            let mut words = command.split_whitespace();
            // Skip placeholders, and the command without a verb.
            let Some(verb) = words.next().filter(|verb| is_word(verb)) else {
                continue;
            };
            let said: String = paragraphs(help, verb).collect();
            let mut wrong = |what: String| {
                findings.push(Finding::new(path, at + 1, "command", what));
            };
            if said.is_empty() {
                wrong(format!("there is no `cargo xtask {verb}`"));
            } else if verb != "test" {
                // The arguments of `test` are for cargo.
                let part = words.next().filter(|part| verb == "bench" && is_word(part));
                if let Some(part) = part.filter(|part| !has_word(&said, part)) {
                    wrong(format!("the help of `bench` has no part `{part}`"));
                }
                let options = command
                    .split_whitespace()
                    .filter(|word| word.starts_with("--"));
                for option in options.filter(|option| !has_word(&said, option)) {
                    wrong(format!("the help of `{verb}` has no `{option}`"));
                }
            }
        }
    }
    findings
}

/// Returns `true` for a word that is neither an option nor a placeholder.
fn is_word(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase())
}

/// Returns the help of a verb, which may be in several places.
fn paragraphs<'a>(help: &'a str, verb: &'a str) -> impl Iterator<Item = &'a str> {
    let mut is_of_it = false;
    help.split_inclusive('\n').filter(move |line| {
        if let Some(rest) = line.strip_prefix("  ")
            && !rest.starts_with(' ')
        {
            is_of_it = rest.split_whitespace().next() == Some(verb);
        } else if line.trim().is_empty() {
            is_of_it = false;
        }
        is_of_it
    })
}

fn has_word(text: &str, word: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    text.split(|letter| !is_inner(letter))
        .any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Usage: x

  tidy          words
  bench PART    PART is n4 or runtime
                (--quick: short)
  bench tools   more (--json)

Environment: CI
";

    fn wrong(page: &str) -> Vec<String> {
        let found = check("docs/page.md", page, HELP).into_iter();
        found.map(|finding| finding.what).collect()
    }

    #[test]
    fn verbs_of_the_help_are_accepted_wherever_they_stand() {
        for page in [
            "run `cargo xtask tidy`.",
            "$ cargo xtask bench runtime --quick # ours, --slow is none",
            "cargo xtask bench tools --json",
            "cargo xtask VERB, `cargo xtask`",
            "| `cargo xtask bench PART` | `other` |",
        ] {
            assert_eq!(wrong(page), [""; 0], "{page}");
        }
    }

    #[test]
    fn what_the_help_does_not_have_is_found() {
        assert_eq!(
            wrong("cargo xtask tidied"),
            ["there is no `cargo xtask tidied`"]
        );
        assert_eq!(
            wrong("`cargo xtask tidy --all`"),
            ["the help of `tidy` has no `--all`"]
        );
        assert_eq!(
            wrong("cargo xtask bench wasm"),
            ["the help of `bench` has no part `wasm`"]
        );
    }
}
