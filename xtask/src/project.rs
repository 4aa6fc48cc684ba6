//! The repository as the verbs see it: its root, its files, its packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Outcome, step};

/// The repository that this program was built in.
pub(crate) struct Project {
    root: PathBuf,
}

/// A package of the workspace, or one of its dependencies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) description: Option<String>,
    /// The registry or repository of the package; `None` for our own.
    pub(crate) source: Option<String>,
    /// Names of the direct dependencies, of any kind.
    pub(crate) asks_for: Vec<String>,
    pub(crate) publishes: bool,
    /// `true` if the registry has a page of text to show.
    pub(crate) has_readme: bool,
    /// The manifest; relative to the root for our own packages.
    pub(crate) manifest: String,
}

impl Project {
    /// Finds the root: the folder above this package, as cargo reports it at run time.
    pub(crate) fn locate() -> Result<Self, String> {
        let here = std::env::var("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
        let root = Path::new(&here)
            .parent()
            .ok_or("xtask has no parent folder")?;
        if root.join("Cargo.lock").is_file() {
            return Ok(Self {
                root: root.to_owned(),
            });
        }
        Err(format!(
            "no workspace at {}: run `cargo xtask` inside the clone",
            root.display()
        ))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder that cargo builds into.
    pub(crate) fn target(&self) -> PathBuf {
        let given = std::env::var_os("CARGO_TARGET_DIR");
        given.map_or_else(|| self.root.join("target"), |path| self.root.join(path))
    }

    /// Creates a folder below the target folder.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.target().join(name);
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Returns the progress of a long run whose results hold as long as `mark` is the same.
    pub(crate) fn progress(&self, verb: &str, mark: String) -> Result<Progress, String> {
        let file = self.folder(verb)?.join("progress");
        Ok(Progress { file, mark })
    }

    /// Returns the folder of captures, vectors and facts beside the repository.
    pub(crate) fn shared(&self) -> PathBuf {
        self.root.parent().unwrap_or(&self.root).join("shared")
    }

    /// Returns a `cargo` command that runs at the root.
    pub(crate) fn cargo(&self) -> Command {
        // The toolchain that runs us may be pinned by variables that would bind nightly runs too.
        let mut command = Command::new("cargo");
        command.current_dir(&self.root);
        command
    }

    /// Returns every file that is tracked, or new and not ignored, relative to the root and sorted.
    pub(crate) fn files(&self) -> Result<Vec<String>, String> {
        let mut git = Command::new("git");
        git.current_dir(&self.root);
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let mut files: Vec<String> = step::output(&mut git)?
            .lines()
            .filter(|file| self.root.join(file).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Returns the members of the workspace, and all of their dependencies.
    pub(crate) fn packages(&self) -> Result<(Vec<Package>, Vec<Package>), String> {
        let text = step::output(self.cargo().args(["metadata", "--format-version", "1"]))?;
        let all: Value = serde_json::from_str(&text)
            .map_err(|error| format!("cargo metadata wrote no JSON: {error}"))?;
        let packages = all["packages"]
            .as_array()
            .ok_or("cargo metadata lists no packages")?;
        Ok(packages
            .iter()
            .map(|entry| self.package(entry))
            .partition(|one| one.source.is_none()))
    }

    fn package(&self, entry: &Value) -> Package {
        let text = |key: &str| entry[key].as_str().map(str::to_owned);
        let manifest = text("manifest_path").unwrap_or_default();
        let manifest = Path::new(&manifest)
            .strip_prefix(&self.root)
            .map_or_else(|_| manifest.clone(), |inside| inside.display().to_string());
        let asks_for = entry["dependencies"]
            .as_array()
            .map_or_else(Vec::new, |list| {
                list.iter()
                    .filter_map(|one| one["name"].as_str().map(str::to_owned))
                    .collect()
            });
        Package {
            name: text("name").unwrap_or_default(),
            version: text("version").unwrap_or_default(),
            licence: text("license"),
            description: text("description"),
            source: text("source"),
            asks_for,
            publishes: entry["publish"]
                .as_array()
                .is_none_or(|list| !list.is_empty()),
            has_readme: entry["readme"].is_string(),
            manifest,
        }
    }
}

/// The progress of a run that an interrupted one resumes.
#[derive(Debug)]
pub(crate) struct Progress {
    file: PathBuf,
    mark: String,
}

impl Progress {
    /// Returns the progress of an interrupted run, or the beginning.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> T {
        let kept = read(&self.file).unwrap_or_default();
        let kept = kept.split_once('\n').filter(|(mark, _)| *mark == self.mark);
        let done = kept.and_then(|(_, done)| serde_json::from_str(done).ok());
        done.unwrap_or_default()
    }

    pub(crate) fn write(&self, done: &impl Serialize) -> Outcome {
        write(&self.file, format!("{}\n{}", self.mark, json!(done)))
    }

    /// Lets the next run begin anew.
    pub(crate) fn remove(&self) -> Outcome {
        std::fs::remove_file(&self.file)
            .map_err(|error| format!("cannot remove {}: {error}", self.file.display()))
    }
}

/// Reads a text file. An error names it.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Writes a file. An error names it.
pub(crate) fn write(file: &Path, contents: impl AsRef<[u8]>) -> Outcome {
    std::fs::write(file, contents)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Returns `true` if a missing tool or fixture is a failure.
pub(crate) fn strict() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_resumes_only_with_the_same_mark() {
        let name = format!("xtask-progress-{}", std::process::id());
        let progress = |mark: &str| Progress {
            file: std::env::temp_dir().join(&name),
            mark: mark.to_owned(),
        };
        progress("a").write(&3000).expect("a file of our own");
        assert_eq!(progress("a").read::<u64>(), 3000);
        assert_eq!(progress("b").read::<u64>(), 0);
        progress("a").remove().expect("it exists");
        assert_eq!(progress("a").read::<u64>(), 0);
    }
}
