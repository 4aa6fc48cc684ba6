//! `cargo xtask setup`: installs what proofs need, the only verb that changes the machine.

use crate::project::strict;
use crate::{Outcome, components, miri, term, tools};

/// Installs the proof tools, or the compilers of guests.
pub(crate) fn run(args: &[String]) -> Outcome {
    match args {
        [] => proof_tools(),
        [only] if only == "guests" => components::install_compilers(),
        _ => Err("setup takes `guests` or nothing".to_owned()),
    }
}

/// Installs the proof tools and says what is here. What is still missing is a failure only if
/// `CI=true`.
fn proof_tools() -> Outcome {
    for tool in tools::all() {
        if tools::version(tool).is_none() {
            tools::install(tool.package);
        }
    }
    miri::install();
    let mut missing = Vec::new();
    for tool in tools::all() {
        let line = tools::described(tool);
        term::line(&line.text);
        if !line.is_here {
            missing.push(tool.program);
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
