//! `cargo xtask components`: rebuilds the guests, and checks whether the fixtures are identical to
//! the result.
//!
//! A guest in Rust is built by `strowger component build`. Any other guest has a script `build.sh`
//! that writes a core module, which is wrapped. The bytes depend on the compiler, so the compiler
//! of the fixtures is recorded beside them.

mod compiler;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::compiler::{C, Rust};
use crate::project::{self, Project};
use crate::{Outcome, chaos, step, term};

/// Installs the compilers of guests where Debian has them.
pub(crate) fn install_compilers() -> Outcome {
    compiler::install()
}

const GUESTS: &str = "components";
const FIXTURES: &str = "fixtures/components";
/// The hashes, as `sha256sum` writes them.
const SUMS: &str = "SHA256SUMS";
/// The compilers of the fixtures.
const COMPILERS: &str = "COMPILERS";

/// Options of `cargo xtask components`.
#[derive(Debug, clap::Args)]
pub(crate) struct ComponentsArgs {
    /// Build only these guests
    guests: Vec<String>,
    /// Save the result to fixtures/components
    #[arg(long)]
    save: bool,
}

/// Builds all guests, or the named ones.
pub(crate) fn run(project: &Project, args: &ComponentsArgs) -> Outcome {
    let (save, named) = (args.save, &args.guests);
    let all = guests(project)?;
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(format!("no guest `{unknown}`: {}", all.join(", ")));
    }
    let chosen = all
        .into_iter()
        .filter(|name| named.is_empty() || named.contains(name));
    let strowger = chaos::build(project)?;
    let out = project.folder(GUESTS)?;
    let mut records = CompilerRecords::read(project);
    let mut compilers = FoundCompilers::default();
    let mut differ = Vec::new();
    for name in chosen {
        let (built, compiler) = compilers.build(project, &strowger, &name, &out)?;
        let fixture = project.root().join(FIXTURES).join(wasm_file(&name));
        let (new, old) = (read(&built)?, fs::read(&fixture).ok());
        let bytes = new.len();
        let found = match &old {
            Some(old) if *old == new => "as the fixture".to_owned(),
            Some(old) => {
                let at = new.iter().zip(old).take_while(|(new, old)| new == old);
                let (at, old) = (at.count(), old.len());
                format!("differs from the fixture of {old} bytes, from byte {at} on")
            }
            None => "has no fixture".to_owned(),
        };
        term::line(&format!("{name:<12} {bytes:>9} bytes  {found}"));
        if save {
            project::write(&fixture, &new)?;
            records.0.insert(name, compiler);
        } else if old.is_none_or(|old| old != new) {
            differ.push(match records.0.get(&name) {
                Some(by) if *by != compiler => {
                    format!("{name} (compiled here by {compiler}, the fixture by {by})")
                }
                _ => format!("{name} (compiled by {compiler})"),
            });
        }
    }
    if save {
        records.write(project)?;
        return write_sums(project);
    }
    if differ.is_empty() {
        return Ok(());
    }
    let (differ, built) = (differ.join(", "), out.display());
    Err(format!("not the fixtures: {differ}; they are in {built}"))
}

/// Returns the folders that have a manifest of their name, or a fixture.
fn guests(project: &Project) -> Result<Vec<String>, String> {
    let folder = project.root().join(GUESTS);
    let mut names = Vec::new();
    let entries = fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(&folder, &error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let fixture = project.root().join(FIXTURES).join(wasm_file(name));
        if path.join(format!("{name}.toml")).is_file() || fixture.is_file() {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The compilers found so far: building one guest needs only one of them.
#[derive(Default)]
struct FoundCompilers {
    rust: Option<Rust>,
    c: Option<C>,
}

impl FoundCompilers {
    /// Builds a guest, and returns its path and the version of the compiler.
    fn build(
        &mut self,
        project: &Project,
        strowger: &Path,
        name: &str,
        out: &Path,
    ) -> Result<(PathBuf, String), String> {
        let from = project.root().join(GUESTS).join(name);
        let built = out.join(wasm_file(name));
        let mut wrap = Command::new(strowger);
        wrap.args(["component", "build", "--out"]).arg(&built);
        if from.join("Cargo.toml").is_file() {
            let rust = match self.rust.take() {
                Some(rust) => rust,
                None => Rust::find()?,
            };
            let rust = self.rust.insert(rust);
            wrap.envs(rust.rustc.map(|rustc| ("RUSTC", rustc)));
            step::output(wrap.arg(&from))?;
            return Ok((built, rust.version.clone()));
        }
        let c = match self.c.take() {
            Some(c) => c,
            None => C::find()?,
        };
        let c = self.c.insert(c);
        let module = out.join(format!("{name}.core.wasm"));
        let mut script = Command::new(from.join("build.sh"));
        c.set_environment(&mut script);
        script.env("WORK", out.join("quickjs"));
        step::run(script.arg(&module))?;
        step::output(wrap.arg(&module))?;
        Ok((built, c.version.clone()))
    }
}

/// The compiler of each fixture, in lines of `name: compiler`.
struct CompilerRecords(BTreeMap<String, String>);

impl CompilerRecords {
    fn read(project: &Project) -> Self {
        let text = fs::read_to_string(project.root().join(FIXTURES).join(COMPILERS));
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        Self(lines.map(|(a, b)| (a.to_owned(), b.to_owned())).collect())
    }

    fn text(&self) -> String {
        let lines = self.0.iter();
        lines.map(|(name, by)| format!("{name}: {by}\n")).collect()
    }

    fn write(&self, project: &Project) -> Outcome {
        project::write(&project.root().join(FIXTURES).join(COMPILERS), self.text())
    }
}

/// Writes the hashes of all fixtures to a file.
fn write_sums(project: &Project) -> Outcome {
    let folder = project.root().join(FIXTURES);
    let files = fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".wasm")).collect();
    names.sort();
    let mut sum = Command::new("sha256sum");
    let sums = step::output(sum.current_dir(&folder).args(&names))?;
    let file = folder.join(SUMS);
    project::write(&file, sums)
}

fn wasm_file(name: &str) -> String {
    format!("{name}.wasm")
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| failed(file, &error))
}

fn failed(what: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", what.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_records_round_trip() {
        let text = "echo: rustc 1\nupper: clang 2: 3\n";
        let mut records = CompilerRecords::parse(text);
        assert_eq!(records.0["upper"], "clang 2: 3");
        assert_eq!(records.text(), text);
        records.0.insert("echo".to_owned(), "rustc 2".to_owned());
        assert_eq!(records.text(), "echo: rustc 2\nupper: clang 2: 3\n");
    }
}
