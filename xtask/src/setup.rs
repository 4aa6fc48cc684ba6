//! `cargo xtask setup`: installs what proofs need, the only verb that changes the machine.

use crate::project::strict;
use crate::tools::{self, CargoTool};
use crate::{Outcome, components, miri, term};

/// Installs the proof tools, or the compilers of guests.
pub(crate) fn run(args: &[String]) -> Outcome {
    match args {
        [] => proof_tools(tools::CARGO_TOOLS),
        [only] if only == "--short" => proof_tools(&[]),
        [only] if only == "guests" => components::install_compilers(),
        _ => Err("setup takes `guests`, `--short` or nothing".to_owned()),
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
