//! `strowger component`: WebAssembly components, without a node.

mod build;
mod inspect;
mod new;
mod run;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use strowger_wasm::{Host, HostLimits, LoadError, Manifest, ManifestError};

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
    }
}

impl Which {
    /// The octets and the manifest.
    fn read(&self) -> Done<(Vec<u8>, Manifest)> {
        if self.file.extension().is_some_and(|end| end == "toml") {
            let manifest = manifest(&self.file)?;
            let Some(file) = &manifest.component.file else {
                let text = format!("{}: does not say `component.file`", self.file.display());
                return Err(Failure::input(text).hint("say where the component is"));
            };
            return Ok((octets(file)?, manifest));
        }
        let manifest = match &self.manifest {
            Some(path) => manifest(path)?,
            None => Manifest::new("component"),
        };
        Ok((octets(&self.file)?, manifest))
    }
}

fn octets(path: &Path) -> Done<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file(path, &error))
}

fn manifest(path: &Path) -> Done<Manifest> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let manifest = Manifest::parse(&text).map(|manifest| manifest.within(folder));
    manifest.map_err(|error| {
        let what = match error {
            ManifestError::Parse(error) => error.to_string(),
            error => error.to_string(),
        };
        Failure::input(format!("{}: {what}", path.display()))
    })
}

fn host() -> Done<Host> {
    let mut limits = HostLimits::default();
    (limits.instances, limits.waiting) = (4, 4);
    Host::new(limits).map_err(|error| Failure::outside(error.to_string()))
}

/// Why a component is not loaded, with what to do about it.
fn refused(which: &Which, error: &LoadError) -> Failure {
    let failure = Failure::input(format!("{}: {error}", which.file.display()));
    match error {
        LoadError::Denied(_) => {
            failure.hint("grant it in the manifest; `strowger component inspect` shows each import")
        }
        LoadError::Export { .. } => failure.hint("the contract is wit/component.wit"),
        _ => failure,
    }
}
