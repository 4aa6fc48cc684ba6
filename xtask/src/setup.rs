//! `cargo xtask setup`: installs what proofs need, the only verb that changes the machine.

use crate::{Outcome, components, term, tools};

/// Options of `cargo xtask setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    /// Skip the tools that only `ci --full` needs, which take minutes to build
    #[arg(long)]
    short: bool,
    /// Install only the compilers for components
    #[arg(value_parser = ["guests"])]
    only: Option<String>,
}

/// Installs the compilers of guests, or the proof tools, and says what is here. What is still
/// missing is a failure only if `CI=true`.
pub(crate) fn run(args: &SetupArgs) -> Outcome {
    if args.only.is_some() {
        return components::install_compilers();
    }
    let lines = tools::install_all(args.short)?;
    lines.iter().for_each(|line| term::line(line));
    Ok(())
}
