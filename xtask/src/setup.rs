//! `cargo xtask setup`: installs what proofs need, the only verb that changes the machine.

use crate::project::strict;
use crate::tools::{self, CargoTool};
use crate::{Outcome, components, miri, term};

/// Options of `cargo xtask setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    /// Leave out the tools that only `ci --full` needs, which take minutes to build
    #[arg(long)]
    short: bool,
    /// Install only the compilers of components
    #[arg(value_parser = ["guests"])]
    only: Option<String>,
}

/// Installs the proof tools, or the compilers of guests.
pub(crate) fn run(args: &SetupArgs) -> Outcome {
    match (&args.only, args.short) {
        (Some(_), _) => components::install_compilers(),
        (None, true) => proof_tools(&[]),
        (None, false) => proof_tools(tools::CARGO_TOOLS),
    }
}

/// Installs the proof tools and says what is here. What is still missing is a failure only if
/// `CI=true`.
fn proof_tools(subcommands: &[CargoTool]) -> Outcome {
    for tool in tools::all() {
        if tools::version(tool).is_none() {
            tools::install(tool.package);
        }
    }
    miri::install();
    for tool in subcommands.iter().filter(|tool| !tool.is_here()) {
        tool.install();
    }
    let mut missing = Vec::new();
    for tool in tools::all() {
        let line = tools::described(tool);
        term::line(&line.text);
        if !line.is_here {
            missing.push(tool.program);
        }
    }
    for tool in subcommands {
        let package = tool.package;
        if tool.is_here() {
            term::line(&format!("{package}: here"));
        } else {
            term::line(&format!(
                "{package}: missing; get it: cargo install {package}"
            ));
            missing.push(package);
        }
    }
    let miri = if miri::has_miri() {
        "here"
    } else {
        "missing; get it: rustup toolchain install nightly --component miri,rust-src"
    };
    term::line(&format!("miri: {miri}"));
    match missing.as_slice() {
        [] => Ok(()),
        missing if strict() => Err(format!("CI=true and missing: {}", missing.join(", "))),
        _ => Ok(()),
    }
}
