//! `cargo xtask mutants`: `cargo mutants` over the code that changed; a test must notice each
//! mutation.
//!
//! `.cargo/mutants.toml` excludes mutations that no test can notice, each with its reason.

use std::process::Command;

use crate::ci::changes;
use crate::project::{self, Project};
use crate::{Outcome, step, term, tools};

/// Options of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct MutantsArgs {
    /// Options of `cargo mutants`; `--file GLOB` mutates whole files instead of the changed lines
    #[arg(last = true)]
    pub(crate) options: Vec<String>,
}

/// Runs `cargo mutants` with `options`, on the changed lines unless an option selects others.
pub(crate) fn run(project: &Project, options: &[String]) -> Outcome {
    tools::need(&tools::MUTANTS)?;
    let folder = project.folder("mutants")?;
    let mut mutants = project.cargo();
    mutants.args(["mutants", "--output"]).arg(&folder);
    // Each mutation rebuilds one crate and its tests.
    mutants
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    // The copy of the sources would confuse cargo in the target folder of the originals.
    mutants.env("CARGO_TARGET_DIR", folder.join("target"));
    let is_given = |names: &[&str]| {
        let given = |option: &String| names.iter().any(|name| option.starts_with(name));
        options.iter().any(given)
    };
    if !is_given(&["--package", "-p"]) {
        mutants.arg("--workspace");
    }
    if !is_given(&["--file", "-f", "--in-diff"]) {
        let diff = difference(project)?;
        if diff.is_empty() {
            term::note("no line of the sources differs from the base");
            return Ok(());
        }
        let file = folder.join("changes.diff");
        project::write(&file, diff)?;
        mutants.arg("--in-diff").arg(&file);
    }
    step::run(mutants.args(options))
}

/// Returns the difference of the sources to the commit that they share with the base.
fn difference(project: &Project) -> Result<String, String> {
    let base = changes::base()?;
    let base = base.as_deref().unwrap_or("main");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        step::output(git.current_dir(project.root()).args(args))
    };
    let shared = git(&["merge-base", base, "HEAD"]);
    let shared =
        shared.map_err(|error| format!("`{base}` is no base; set {}: {error}", changes::BASE))?;
    git(&["diff", shared.trim(), "--", "*.rs"])
}
