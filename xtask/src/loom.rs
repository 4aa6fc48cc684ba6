//! `cargo xtask loom`: every interleaving of threads in the small state machines of the runtime.
//!
//! The models are beside the code (`src/**/loom.rs`) and check that very code, through
//! `crate::sync`. To prove that they notice errors, orderings are weakened in a copy of the crate:
//! for each of them a model must fail.

mod weakenings;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::project::Project;
use crate::{Outcome, step, term};
use weakenings::{OF_ONE_MODEL, WEAKENINGS, Weakening};

/// Maximum number of preemptions by the scheduler; loom's authors find that two or three find
/// nearly every bug.
const PREEMPTIONS: &str = "3";

/// Time limit of a model.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the models; with `--weaken`, also on each weakened copy.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let weaken = match args {
        [] => false,
        [one] if one == "--weaken" => true,
        _ => return Err("loom knows no option but --weaken".to_owned()),
    };
    check(project, weaken).map(|said| term::note(&said))
}

/// Runs the models, and returns a phrase with the number of those that hold.
pub(crate) fn check(project: &Project, weaken: bool) -> Result<String, String> {
    let mut models = models(project, project.root(), "loom", "loom");
    let output = process::output_within(&mut models, LIMIT * 2)?;
    let output = output.ok_or("the models do not end")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        term::note(&String::from_utf8_lossy(&output.stderr));
        term::note(&said);
        return Err(format!(
            "`{}` ended with {}",
            step::shown(&models),
            output.status
        ));
    }
    let count = passed(&said);
    if count == 0 {
        return Err("no model ran: is there one below crates/runtime/src?".to_owned());
    }
    if !weaken {
        return Ok(format!("{count} models hold"));
    }
    let all = WEAKENINGS.iter().map(|weakening| ("loom", weakening));
    for alone in all {
        weakened(project, &[alone])?;
    }
    for group in groups(OF_ONE_MODEL) {
        weakened(project, &group)?;
    }
    let weak = WEAKENINGS.len() + OF_ONE_MODEL.len();
    Ok(format!(
        "{count} models hold, and fail for each of {weak} weakenings"
    ))
}

/// Returns a command that runs the models of the crate in `root` whose names contain `name`, built
/// in a folder of their own.
fn models(project: &Project, root: &Path, folder: &str, name: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .env("RUSTFLAGS", "--cfg strowger_loom")
        .env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_TARGET_DIR", project.target().join(folder));
    cargo.args(["test", "--locked", "-p", "strowger", "--lib", name]);
    cargo
}

/// A weakening, with the part of the names of the models that may notice it.
type Aimed<'a> = (&'a str, &'a Weakening);

/// Groups weakenings that can be made at the same time: of different files, for different models.
fn groups(all: &'static [(&str, Weakening)]) -> Vec<Vec<Aimed<'static>>> {
    let mut groups: Vec<Vec<Aimed<'static>>> = Vec::new();
    for (model, weakening) in all {
        let is_apart = |(other, with): &Aimed<'_>| other != model && with.file != weakening.file;
        let fits = |group: &&mut Vec<Aimed<'_>>| group.iter().all(is_apart);
        match groups.iter_mut().find(fits) {
            Some(group) => group.push((model, weakening)),
            None => groups.push(vec![(model, weakening)]),
        }
    }
    groups
}

/// Applies weakenings to a copy. Returns an error unless a model fails for each.
fn weakened(project: &Project, group: &[Aimed<'_>]) -> Outcome {
    let copy = project.copied("loom-copy", |_| false)?;
    for (_, weakening) in group {
        weaken(&copy, weakening)?;
    }
    for (model, Weakening { name, .. }) in group {
        assert_noticed(project, &copy, model, name)?;
        term::note(&format!("  {name:<44} found"));
    }
    Ok(())
}

fn weaken(copy: &Path, weakening: &Weakening) -> Outcome {
    let Weakening {
        name,
        file,
        from,
        to,
    } = weakening;
    let path = copy.join("crates/runtime/src").join(file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
    let count = text.matches(from).count();
    if count != 1 {
        return Err(format!(
            "{name}: `{from}` stands {count} times in {file}, not once"
        ));
    }
    std::fs::write(&path, text.replacen(from, to, 1)).map_err(|error| format!("{file}: {error}"))
}

/// Returns an error unless a model of the weakened copy fails.
fn assert_noticed(project: &Project, copy: &Path, model: &str, name: &str) -> Outcome {
    // Cargo considers both to be the same package: in a shared folder it would use the build of the
    // copy for the models.
    let mut models = models(project, copy, "loom-weak", model);
    // A model that never ends has noticed the weakening as well.
    let Some(output) = process::output_within(&mut models, LIMIT)? else {
        return Ok(());
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("test result: FAILED") {
        return Ok(());
    }
    if output.status.success() {
        return Err(match passed(&said) {
            0 => format!("{name}: there is no model `{model}`"),
            _ => format!("{name}: every model holds without it"),
        });
    }
    let why = String::from_utf8_lossy(&output.stderr);
    // Loom aborts the process if it cannot unwind.
    if why.contains("SIGABRT") || why.contains("panicked at") {
        return Ok(());
    }
    Err(format!("{name}: the weakened copy does not build\n{why}"))
}

/// Returns the number of passed tests.
fn passed(said: &str) -> u64 {
    let counts = said.lines().filter_map(|line| {
        let rest = line.strip_prefix("test result: ok. ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_weakened_at_a_time_is_apart() {
        let groups = groups(OF_ONE_MODEL);
        assert_eq!(
            groups.iter().map(Vec::len).sum::<usize>(),
            OF_ONE_MODEL.len()
        );
        assert!(groups.len() < OF_ONE_MODEL.len(), "some are together");
        for group in groups {
            for (at, (model, weakening)) in group.iter().enumerate() {
                for (other, with) in &group[..at] {
                    assert!(model != other && weakening.file != with.file, "{model}");
                }
            }
        }
    }

    #[test]
    fn models_are_counted() {
        let said = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        assert_eq!(passed(said), 3);
        assert_eq!(passed("test result: FAILED. 1 passed; 1 failed\n"), 0);
    }
}
