//! `strowger component`: WebAssembly components, without a node and on one.

mod build;
mod deployed;
mod inspect;
mod new;
mod run;

use std::path::PathBuf;

use clap::Subcommand;
use strowger_wasm::{Caps, Host, HostLimits, LoadError, Manifest};

use crate::component::{by_manifest, manifest, not_loaded, octets};
use crate::exit::{Done, Failure};
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Writes a package to begin with.
    New(new::Args),
    /// Builds a package into a component.
    Build(build::Args),
    /// Shows what a component imports, and why what is refused is refused.
    Inspect(inspect::Args),
    /// Runs a component and asks it each line of standard input.
    Run(run::Args),
    /// Lists the components of a running node.
    List(deployed::ListArgs),
    /// Starts a component on a running node.
    Deploy(deployed::DeployArgs),
    /// Puts another version in the place of one that runs on a node; no message is lost.
    Upgrade(deployed::UpgradeArgs),
    /// Puts the version before in the place of the one that runs on a node.
    Rollback(deployed::RollbackArgs),
    /// Ends a component of a running node.
    Remove(deployed::RemoveArgs),
}

/// Which component, and what it is granted.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The component, or its manifest if the name ends in `.toml`.
    file: PathBuf,
    /// The manifest of a component that is given by itself; without one, nothing is granted.
    #[arg(long)]
    manifest: Option<PathBuf>,
}

pub(crate) fn run(command: &Command, output: &mut Output) -> Done {
    match command {
        Command::New(args) => new::run(args, output),
        Command::Build(args) => build::run(args, output),
        Command::Inspect(args) => inspect::run(args, output),
        Command::Run(args) => run::run(args, output),
        Command::List(args) => deployed::list(args, output),
        Command::Deploy(args) => deployed::deploy(args, output),
        Command::Upgrade(args) => deployed::upgrade(args, output),
        Command::Rollback(args) => deployed::rollback(args, output),
        Command::Remove(args) => deployed::remove(args, output),
    }
}

impl Which {
    /// The octets and the manifest.
    fn read(&self) -> Done<(Vec<u8>, Manifest)> {
        if self.file.extension().is_some_and(|end| end == "toml") {
            return by_manifest(&self.file);
        }
        let manifest = match &self.manifest {
            Some(path) => manifest(path)?,
            None => Manifest::new("component"),
        };
        Ok((octets(&self.file)?, manifest))
    }
}

/// A host for one component, whose manifest may ask for so much.
fn host(caps: Caps) -> Done<Host> {
    let mut limits = HostLimits::default();
    limits.caps = caps;
    (limits.instances, limits.waiting) = (4, 4);
    Host::new(limits).map_err(|error| Failure::outside(error.to_string()))
}

fn refused(which: &Which, error: &LoadError) -> Failure {
    not_loaded(&which.file, error)
}
