//! Verbs of the project in pages: each must be in the help, with its options.

use clap::Command;

use super::Finding;

/// Checks every `cargo xtask` of a page against the help of its verb.
pub(super) fn check(path: &str, page: &str, verbs: &Command) -> Vec<Finding> {
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
            let mut wrong = |what: String| {
                findings.push(Finding::new(path, at + 1, "command", what));
            };
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
            if let Some(part) = part.filter(|part| !has_word(&said, part)) {
                wrong(format!("the help of `bench` has no part `{part}`"));
            }
            // Options after `--` are those of another program.
            let options = command.split_whitespace().take_while(|word| *word != "--");
            let options = options.filter(|word| word.starts_with("--"));
            for option in options.filter(|option| !has_word(&said, option)) {
                wrong(format!("the help of `{verb}` has no `{option}`"));
            }
        }
    }
    findings
}

/// Returns `true` for a word that is neither an option nor a placeholder.
fn is_word(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase())
}

fn has_word(text: &str, word: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    text.split(|letter| !is_inner(letter))
        .any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(page: &str) -> Vec<String> {
        let option = |name| clap::Arg::new(name).long(name);
        let bench = Command::new("bench").about("PART is n4, runtime or tools");
        let bench = bench.args([option("quick"), option("json")]);
        let verbs = Command::new("xtask").subcommands([Command::new("tidy"), bench]);
        let found = check("docs/page.md", page, &verbs).into_iter();
        found.map(|finding| finding.what).collect()
    }

    #[test]
    fn verbs_of_the_help_are_accepted_wherever_they_stand() {
        for page in [
            "run `cargo xtask tidy`.",
            "$ cargo xtask bench runtime --quick # ours, --slow is none",
            "cargo xtask bench tools --json",
            "cargo xtask tidy -- --of-another-program",
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
