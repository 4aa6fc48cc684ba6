//! `strowger component`: WebAssembly components, with and without a node.

mod build;
mod deployed;
mod follow;
mod inspect;
mod new;
mod run;
mod sign;

use std::path::PathBuf;

use clap::Subcommand;
use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::signature::TrustPolicy;
use strowger_wasm::{Host, HostLimits, LoadError, Manifest};

use crate::component::{load_failure, read_bytes, read_manifest, read_with_manifest};
use crate::exit::{CliResult, Failure};
use crate::output::Output;

/// The description of the command in listings.
pub(super) const ABOUT: &str = "Create, build, sign, run and deploy WebAssembly components";

#[derive(Debug, Subcommand)]
pub(crate) enum ComponentCommand {
    /// Create a package for a new component.
    New(new::ComponentNewArgs),
    /// Build a package or a core module into a component.
    Build(build::ComponentBuildArgs),
    /// List a component's imports and explain each one that is denied.
    Inspect(inspect::ComponentInspectArgs),
    /// Generate a signing key.
    Keygen(sign::KeygenArgs),
    /// Sign a component's manifest and code.
    Sign(sign::SignArgs),
    /// Verify the signature of a component.
    Verify(sign::VerifyArgs),
    /// Print the statement to sign, for external signing tools.
    Digest(sign::DigestArgs),
    /// Run a component locally, with one request per line of standard input.
    Run(run::ComponentRunArgs),
    /// List the components of a running node.
    List(deployed::ListArgs),
    /// Deploy a component on a running node.
    Deploy(deployed::DeployArgs),
    /// Replace a running component with another version, without losing messages.
    Upgrade(deployed::UpgradeArgs),
    /// Restore the previous version of a running component.
    Rollback(deployed::RollbackArgs),
    /// Remove a component from a running node.
    Remove(deployed::RemoveArgs),
}

/// The arguments that select a component and its manifest.
#[derive(Debug, clap::Args)]
pub(crate) struct ComponentFileArgs {
    /// Component (.wasm), or its manifest (.toml).
    file: PathBuf,
    /// Manifest to use if FILE is a component; without one, nothing is granted.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

pub(crate) fn run(command: &ComponentCommand, output: &mut Output) -> CliResult {
    match command {
        ComponentCommand::New(args) => new::run(args, output),
        ComponentCommand::Build(args) => build::run(args, output),
        ComponentCommand::Inspect(args) => inspect::run(args, output),
        ComponentCommand::Keygen(args) => sign::keygen(args, output),
        ComponentCommand::Sign(args) => sign::sign(args, output),
        ComponentCommand::Verify(args) => sign::verify(args, output),
        ComponentCommand::Digest(args) => sign::digest(args, output),
        ComponentCommand::Run(args) => run::run(args, output),
        ComponentCommand::List(args) => deployed::list(args, output),
        ComponentCommand::Deploy(args) => deployed::deploy(args, output),
        ComponentCommand::Upgrade(args) => deployed::upgrade(args, output),
        ComponentCommand::Rollback(args) => deployed::rollback(args, output),
        ComponentCommand::Remove(args) => deployed::remove(args, output),
    }
}

impl ComponentFileArgs {
    /// Reads the bytes of the component and its manifest.
    fn read(&self) -> CliResult<(Vec<u8>, Manifest)> {
        if self.file.extension().is_some_and(|end| end == "toml") {
            return read_with_manifest(&self.file);
        }
        let manifest = match &self.manifest {
            Some(path) => read_manifest(path)?,
            None => Manifest::new("component"),
        };
        Ok((read_bytes(&self.file)?, manifest))
    }
}

/// Returns a host for one component, whose manifest may ask for up to `caps` and must satisfy
/// `trust`.
fn host(caps: ManifestCaps, trust: TrustPolicy) -> CliResult<Host> {
    let mut limits = HostLimits::default();
    (limits.caps, limits.trust) = (caps, trust);
    (limits.instances, limits.waiting) = (4, 4);
    Host::new(limits).map_err(|error| Failure::outside(error.to_string()))
}

fn load_refusal(component: &ComponentFileArgs, error: &LoadError) -> Failure {
    load_failure(&component.file, error)
}
