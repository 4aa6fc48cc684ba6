//! Test binaries: built once, and run as often as a verb likes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::step;

/// The binary of a test target.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    /// The target: `storm`, or the name of the library for its unit tests.
    pub(crate) name: String,
    path: PathBuf,
    /// The folder in which cargo would run it: that of its package.
    pub(crate) folder: PathBuf,
}

/// Builds the binaries that a `cargo test` command would run.
pub(crate) fn build(cargo: &mut Command) -> Result<Vec<Binary>, String> {
    let text = step::output(cargo.args(["--no-run", "--message-format=json"]))?;
    let binaries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| {
            let path = message["executable"].as_str()?;
            message["profile"]["test"].as_bool()?.then_some(())?;
            let manifest = Path::new(message["manifest_path"].as_str()?);
            Some(Binary {
                name: message["target"]["name"].as_str()?.to_owned(),
                path: PathBuf::from(path),
                folder: manifest.parent()?.to_owned(),
            })
        });
    Ok(binaries.collect())
}

impl Binary {
    /// Returns a binary that was built before, which runs in a folder.
    pub(crate) fn prebuilt(path: &Path, folder: &Path) -> Self {
        Self {
            name: path.display().to_string(),
            path: path.to_owned(),
            folder: folder.to_owned(),
        }
    }

    /// Returns a binary that does not exist.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: PathBuf::new(),
            folder: PathBuf::new(),
        }
    }

    /// Returns a command that runs the binary where cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        command
    }

    /// Returns a command that lets another program run the binary.
    pub(crate) fn run_by(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).arg(&self.path).current_dir(&self.folder);
        command
    }

    /// Returns a string that changes whenever the binary is rebuilt.
    pub(crate) fn stamp(&self) -> String {
        let built = std::fs::metadata(&self.path).and_then(|data| data.modified());
        let since = built
            .ok()
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        format!("{}-{:?}", self.path.display(), since.unwrap_or_default())
    }
}
