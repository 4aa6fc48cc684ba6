//! Proofs that a change pulls in: what it touches decides.

use std::process::Command;

use crate::project::Project;
use crate::step;

/// The variable that names the commit with which a change is compared.
pub(crate) const BASE: &str = "STROWGER_CI_BASE";

/// Path prefixes, and the steps of `--full` that a change below them needs.
const TRIGGERS: [(&str, &[&str]); 5] = [
    ("crates/runtime/src/schedule/", &["miri", "bugs"]),
    ("crates/runtime/src/mailbox", &["bugs"]),
    ("crates/runtime/src/supervision", &["bugs"]),
    ("crates/pfcp/src/", &["conformance"]),
    ("bench/", &["bench-clippy"]),
];

/// Returns the steps of `--full` that the files need which changed since the base.
///
/// The base is the commit in `STROWGER_CI_BASE`, which a hosted workflow sets to the target of the
/// change. Without it, nothing is pulled in: the nightly run has all proofs.
pub(super) fn needed_steps(project: &Project) -> Result<Vec<&'static str>, String> {
    let Some(base) = base()? else {
        return Ok(Vec::new());
    };
    let mut git = Command::new("git");
    git.current_dir(project.root());
    git.args(["diff", "--name-only", &format!("{base}...HEAD"), "--"]);
    let changed = step::output(&mut git)
        .map_err(|error| format!("{BASE}={base} is not a commit to compare with: {error}"))?;
    Ok(triggered_steps(changed.lines()))
}

/// Returns the commit in `STROWGER_CI_BASE`, if it is set.
pub(crate) fn base() -> Result<Option<String>, String> {
    let base = std::env::var_os(BASE).filter(|base| !base.is_empty());
    base.map(|base| {
        base.into_string()
            .map_err(|_| format!("{BASE} is not UTF-8"))
    })
    .transpose()
}

fn triggered_steps<'a>(changed: impl IntoIterator<Item = &'a str>) -> Vec<&'static str> {
    let mut steps = Vec::new();
    for file in changed {
        let pulls = TRIGGERS
            .iter()
            .filter(|(prefix, _)| file.starts_with(prefix));
        for step in pulls.flat_map(|(_, needed)| *needed) {
            if !steps.contains(step) {
                steps.push(*step);
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_change_requires_miri_and_seeded_bugs() {
        let changed = ["README.md", "crates/runtime/src/schedule/pool.rs"];
        assert_eq!(triggered_steps(changed), ["miri", "bugs"]);
        let both = [
            "crates/runtime/src/mailbox.rs",
            "crates/pfcp/src/wire/walk.rs",
        ];
        assert_eq!(triggered_steps(both), ["bugs", "conformance"]);
        assert_eq!(triggered_steps(["docs/pfcp.md"]), [""; 0]);
    }
}
