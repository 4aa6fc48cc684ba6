//! `cargo xtask components`: builds the guests anew, and says whether the fixtures are what comes
//! out.
//!
//! A guest in Rust is built by `strowger component build`; any other has a script `build.sh` that
//! writes a core module, which is wrapped. The octets are those of a compiler, so the one that made
//! the fixtures is written down beside them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::project::Project;
use crate::tools::{self, Tool};
use crate::{Outcome, chaos, step, term};

const GUESTS: &str = "components";
const FIXTURES: &str = "fixtures/components";
/// The hashes, as `sha256sum` writes them.
const SUMS: &str = "SHA256SUMS";
/// Who compiled the fixtures.
const COMPILERS: &str = "COMPILERS";

const TARGET: &str = "wasm32-unknown-unknown";

const CLANG: Tool = Tool {
    program: "clang",
    version_flag: "--version",
    package: "clang",
    proves: "guests in C are what their sources say",
};

const LINKER: Tool = Tool {
    program: "wasm-ld",
    version_flag: "--version",
    package: "lld",
    proves: "guests in C are what their sources say",
};

/// Builds all guests, or those that are named.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let save = args.iter().any(|arg| arg == "--save");
    let named: Vec<&String> = args.iter().filter(|arg| *arg != "--save").collect();
    let all = guests(project)?;
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(format!("no guest `{unknown}`: {}", all.join(", ")));
    }
    let chosen = all
        .into_iter()
        .filter(|name| named.is_empty() || named.contains(&name));
    let strowger = chaos::build(project)?;
    let out = project.target().join(GUESTS);
    made(fs::create_dir_all(&out), &out)?;
    let (mut compilers, rust) = (Compilers::read(project), Rust::find()?);
    let mut differ = Vec::new();
    for name in chosen {
        let mut wrap = Command::new(&strowger);
        let compiler = if is_rust(project, &name) {
            wrap.envs(rust.compiler.map(|rustc| ("RUSTC", rustc)));
            rust.version.clone()
        } else {
            c(&name)?
        };
        let built = build(project, wrap, &name, &out)?;
        let fixture = project.root().join(FIXTURES).join(wasm(&name));
        let (new, old) = (read(&built)?, fs::read(&fixture).unwrap_or_default());
        let octets = new.len();
        if new == old {
            term::line(&format!("{name:<12} {octets:>9} octets  as the fixture"));
        } else {
            let line = format!("differs from the fixture, {}", old.len());
            term::line(&format!("{name:<12} {octets:>9} octets  {line}"));
        }
        if save {
            made(fs::write(&fixture, &new), &fixture)?;
            compilers.set(&name, &compiler);
        } else if new != old {
            differ.push(match compilers.of(&name) {
                Some(by) if by != compiler => {
                    format!("{name} (compiled here by {compiler}, the fixture by {by})")
                }
                _ => name,
            });
        }
    }
    if save {
        compilers.write(project)?;
        return sums(project);
    }
    if differ.is_empty() {
        return Ok(());
    }
    let (differ, built) = (differ.join(", "), out.display());
    Err(format!("not the fixtures: {differ}; they are in {built}"))
}

/// The folders that have a manifest of their name.
fn guests(project: &Project) -> Result<Vec<String>, String> {
    let folder = project.root().join(GUESTS);
    let mut names = Vec::new();
    let entries = fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(&folder, &error))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| path.join(format!("{name}.toml")).is_file()) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn place(project: &Project, name: &str) -> PathBuf {
    project.root().join(GUESTS).join(name)
}

fn is_rust(project: &Project, name: &str) -> bool {
    place(project, name).join("Cargo.toml").is_file()
}

/// Builds one guest; where it is.
fn build(project: &Project, mut wrap: Command, name: &str, out: &Path) -> Result<PathBuf, String> {
    let from = place(project, name);
    let built = out.join(wasm(name));
    wrap.args(["component", "build", "--out"]).arg(&built);
    if is_rust(project, name) {
        step::output(wrap.arg(&from))?;
        return Ok(built);
    }
    let module = out.join(format!("{name}.core.wasm"));
    step::run(Command::new(from.join("build.sh")).arg(&module))?;
    step::output(wrap.arg(&module))?;
    Ok(built)
}

/// Who builds guests in Rust: what `strowger component build` takes by itself, else the compiler
/// of Debian, which is told to it.
struct Rust {
    version: String,
    compiler: Option<&'static str>,
}

impl Rust {
    fn find() -> Result<Self, String> {
        let plain = || Command::new("rustc");
        let nightly = || {
            let mut rustc = Command::new("rustc");
            // The toolchain that runs us may be pinned by a variable that goes first.
            rustc.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN");
            rustc
        };
        let library = said(plain(), &["--print", "target-libdir", "--target", TARGET]);
        if library.is_some_and(|folder| Path::new(&folder).is_dir()) {
            return Self::of(plain(), "", None);
        }
        for rustc in [&plain as &dyn Fn() -> Command, &nightly] {
            let root = said(rustc(), &["--print", "sysroot"]);
            if root.is_some_and(|root| has_sources(&root)) {
                return Self::of(rustc(), LIBRARY, None);
            }
        }
        DEBIAN.into_iter().for_each(tools::install);
        if has_sources("/usr") {
            return Self::of(Command::new(DEBIAN_RUSTC), LIBRARY, Some(DEBIAN_RUSTC));
        }
        let hint = format!("rustup target add {TARGET}");
        Err(format!("Rust has neither {TARGET} nor its sources: {hint}"))
    }

    fn of(rustc: Command, more: &str, compiler: Option<&'static str>) -> Result<Self, String> {
        let version = said(rustc, &["--version"]).ok_or("rustc does not say its version")?;
        Ok(Self {
            version: format!("{version}{more}"),
            compiler,
        })
    }
}

/// Said of a compiler that builds its library as well.
const LIBRARY: &str = " with its library";
/// A Rust of a distribution, and where it is.
const DEBIAN: [&str; 2] = ["rustc-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

fn has_sources(root: &str) -> bool {
    Path::new(root)
        .join("lib/rustlib/src/rust/library")
        .is_dir()
}

/// What a command prints, if it is there and does.
fn said(mut command: Command, args: &[&str]) -> Option<String> {
    let output = command.args(args).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn c(name: &str) -> Result<String, String> {
    for tool in [CLANG, LINKER] {
        if !tools::obtain(&tool) {
            let (program, package) = (tool.program, tool.package);
            return Err(format!("{name} needs {program} (Debian: {package})"));
        }
    }
    let version = |tool: &Tool| tools::version(tool).unwrap_or_default();
    Ok(format!("{}, {}", version(&CLANG), version(&LINKER)))
}

/// Who compiled each fixture: `name: compiler` in lines.
struct Compilers(Vec<(String, String)>);

impl Compilers {
    fn read(project: &Project) -> Self {
        let text = fs::read_to_string(project.root().join(FIXTURES).join(COMPILERS));
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        Self(lines.map(|(a, b)| (a.to_owned(), b.to_owned())).collect())
    }

    fn of(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(guest, _)| guest == name);
        found.map(|(_, compiler)| compiler.as_str())
    }

    fn set(&mut self, name: &str, compiler: &str) {
        self.0.retain(|(guest, _)| guest != name);
        self.0.push((name.to_owned(), compiler.to_owned()));
        self.0.sort();
    }

    fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (name, by)| {
            // Text grows.
            let _ = writeln!(text, "{name}: {by}");
            text
        })
    }

    fn write(&self, project: &Project) -> Outcome {
        let file = project.root().join(FIXTURES).join(COMPILERS);
        made(fs::write(&file, self.text()), &file)
    }
}

/// Writes the hashes of all fixtures down.
fn sums(project: &Project) -> Outcome {
    let folder = project.root().join(FIXTURES);
    let files = fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".wasm")).collect();
    names.sort();
    let mut sum = Command::new("sha256sum");
    let sums = step::output(sum.current_dir(&folder).args(&names))?;
    let file = folder.join(SUMS);
    made(fs::write(&file, sums), &file)
}

fn wasm(name: &str) -> String {
    format!("{name}.wasm")
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| failed(file, &error))
}

fn made(done: std::io::Result<()>, what: &Path) -> Outcome {
    done.map_err(|error| failed(what, &error))
}

fn failed(what: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", what.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_written_as_they_are_read() {
        let text = "echo: rustc 1\nupper: clang 2: 3\n";
        let mut compilers = Compilers::parse(text);
        assert_eq!(compilers.of("upper"), Some("clang 2: 3"));
        assert_eq!(compilers.of("other"), None);
        assert_eq!(compilers.text(), text);
        compilers.set("echo", "rustc 2");
        assert_eq!(compilers.text(), "echo: rustc 2\nupper: clang 2: 3\n");
    }
}
