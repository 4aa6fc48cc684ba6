//! Programs by others that verbs and tests need.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::term::{self, TextStyle};
use crate::{Outcome, process, project, step};

/// A program that proves something which our own code cannot prove about itself.
pub(crate) struct ExternalTool {
    pub(crate) name: &'static str,
    /// The command that prints its version.
    version: &'static [&'static str],
    source: Source,
    /// The property that stays unproven without the tool.
    proves: &'static str,
}

enum Source {
    /// A Debian package.
    Debian(&'static str),
    /// A package of the registry, named as the tool, and further arguments of `cargo install`.
    Cargo(&'static [&'static str]),
    /// A component of the nightly toolchain, or the toolchain itself.
    Rustup,
}

pub(crate) const VALGRIND: ExternalTool = ExternalTool {
    name: "valgrind",
    version: &["valgrind", "--version"],
    source: Source::Debian("valgrind"),
    proves: "no change made the runtime slower, and none of its bytes is read before it is written",
};

pub(crate) const STRACE: ExternalTool = ExternalTool {
    name: "strace",
    version: &["strace", "--version"],
    source: Source::Debian("strace"),
    proves: "acknowledged increments of durable actors survive a loss of power",
};

pub(crate) const NIGHTLY: ExternalTool = ExternalTool {
    name: "a nightly toolchain",
    version: &["rustc", "+nightly", "--version"],
    source: Source::Rustup,
    proves: "no input and no interleaving leads to undefined behaviour",
};

pub(crate) const MIRI: ExternalTool = ExternalTool {
    name: "miri",
    version: &["cargo", "+nightly", "miri", "--version"],
    source: Source::Rustup,
    proves: "the runtime has no undefined behaviour",
};

pub(crate) const MUTANTS: ExternalTool = ExternalTool {
    name: "cargo-mutants",
    version: &["cargo", "mutants", "--version"],
    source: Source::Cargo(&[]),
    proves: "a test notices each mutation",
};

pub(crate) const FUZZ: ExternalTool = ExternalTool {
    name: "cargo-fuzz",
    version: &["cargo", "fuzz", "--version"],
    source: Source::Cargo(&[]),
    proves: "no input of others makes a decoder panic",
};

pub(crate) const MDBOOK: ExternalTool = ExternalTool {
    name: "mdbook",
    version: &["mdbook", "--version"],
    // Without its server, which is half of it.
    source: Source::Cargo(&[
        "--version=~0.5",
        "--no-default-features",
        "--features=search",
    ]),
    proves: "the book in docs/ builds",
};

pub(crate) const PYTHON: ExternalTool = ExternalTool {
    name: "python3-venv",
    // Debian has the module without what creates an environment.
    version: &["python3", "-c", "import ensurepip, sys; print(sys.version)"],
    source: Source::Debian("python3-venv"),
    proves: "the official Python client of agents reads long answers to their end",
};

/// The tools that tests look for.
const TEST_TOOLS: [ExternalTool; 2] = [
    ExternalTool {
        name: "tshark",
        version: &["tshark", "--version"],
        source: Source::Debian("tshark"),
        proves: "names, integers, flags and addresses of every element agree with Wireshark",
    },
    ExternalTool {
        name: "go",
        version: &["go", "version"],
        source: Source::Debian("golang-go"),
        proves: "go-pfcp reads what we encode, and we read what it builds",
    },
];

/// The other tools that `cargo xtask setup` installs, and those that only `ci --full` needs; most
/// take minutes to build.
const PROOF_TOOLS: [ExternalTool; 2] = [VALGRIND, MIRI];
const FULL_TOOLS: [ExternalTool; 5] = [MUTANTS, FUZZ, MDBOOK, STRACE, PYTHON];

impl ExternalTool {
    /// Returns the version that the tool prints, if it is present.
    fn version(&self) -> Option<String> {
        let output =
            process::output(Command::new(self.version[0]).args(&self.version[1..])).ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default();
        output.status.success().then(|| line.to_owned())
    }

    pub(crate) fn is_here(&self) -> bool {
        self.version().is_some()
    }

    fn advice(&self) -> String {
        match self.source {
            Source::Debian(package) => {
                format!("cargo xtask setup as root on Debian, or the package {package}")
            }
            Source::Cargo(args) => {
                let args = [&[self.name], args].concat().join(" ");
                format!("cargo xtask setup, or cargo install {args}")
            }
            Source::Rustup => {
                "rustup toolchain install nightly --component miri,rust-src".to_owned()
            }
        }
    }

    /// Says which version is here, or as an error what stays unproven and how to get the tool.
    fn describe(&self) -> Result<String, String> {
        let (name, proves) = (self.name, self.proves);
        if let Some(version) = self.version() {
            return Ok(format!("{name}: {version}"));
        }
        let word = term::paint(TextStyle::Yellow, "missing");
        let advice = self.advice();
        Err(format!(
            "{name}: {word}; not proven: {proves}; get it: {advice}"
        ))
    }

    fn install(&self) {
        match self.source {
            Source::Debian(package) => install(package),
            Source::Cargo(args) => {
                // Without optimisation: it waits for cargo most of the time.
                let mut cargo = Command::new("cargo");
                cargo
                    .args(["install", "--locked", "--debug", self.name])
                    .args(args);
                if let Err(error) = step::run(&mut cargo) {
                    term::note(&error);
                }
            }
            Source::Rustup if NIGHTLY.is_here() => {
                let add = [
                    "component",
                    "add",
                    "--toolchain",
                    "nightly",
                    "miri",
                    "rust-src",
                ];
                succeeds(Command::new("rustup").args(add).stdout(Stdio::null()));
            }
            Source::Rustup => (),
        }
    }
}

/// Returns an error that says how to get a tool, if it is missing.
pub(crate) fn need(tool: &ExternalTool) -> Outcome {
    match tool.is_here() {
        true => Ok(()),
        false => Err(format!(
            "{} is missing; get it: {}",
            tool.name,
            tool.advice()
        )),
    }
}

/// Returns a line for each tool that a test looks for. Installs nothing.
///
/// # Errors
/// With `CI=true`, returns an error if a tool is missing.
pub(crate) fn check_all() -> Result<Vec<String>, String> {
    describe_all(&TEST_TOOLS.iter().collect::<Vec<_>>())
}

/// Installs the tools that are missing, without those that take minutes to build if `short`, and
/// returns a line for each.
///
/// # Errors
/// With `CI=true`, returns an error if a tool is still missing.
pub(crate) fn install_all(short: bool) -> Result<Vec<String>, String> {
    let full = FULL_TOOLS.iter().filter(|_| !short);
    let tools: Vec<_> = TEST_TOOLS.iter().chain(&PROOF_TOOLS).chain(full).collect();
    tools
        .iter()
        .filter(|tool| !tool.is_here())
        .for_each(|tool| tool.install());
    describe_all(&tools)
}

fn describe_all(tools: &[&ExternalTool]) -> Result<Vec<String>, String> {
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    for tool in tools {
        let line = tool.describe();
        // Each verb that needs a nightly toolchain checks that itself.
        if line.is_err() && !matches!(tool.source, Source::Rustup) {
            missing.push(tool.name);
        }
        lines.push(line.unwrap_or_else(|missing| missing));
    }
    if missing.is_empty() || !project::strict() {
        return Ok(lines);
    }
    let (lines, missing) = (lines.join("\n"), missing.join(", "));
    Err(format!(
        "CI=true and missing: {missing}; get them: cargo xtask setup\n{lines}"
    ))
}

/// Returns the instructions that a program executes, which repeat where times do not.
pub(crate) fn instructions(program: &Path, args: &[&str]) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let shown = step::display(valgrind.arg(program).args(args));
    let output = process::output(&mut valgrind)?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("`{shown}` ended with {}:\n{text}", output.status));
    }
    parse_instructions(&text).ok_or_else(|| format!("`{shown}` printed no count:\n{text}"))
}

/// Parses the number in callgrind's line `==1== Collected : 1234`.
fn parse_instructions(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn succeeds(command: &mut Command) -> bool {
    process::status(command).is_ok_and(|status| status.success())
}

/// Installs a Debian package, if this is Debian and we may.
pub(crate) fn install(package: &str) {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !Path::new("/etc/debian_version").exists() {
        return;
    }
    term::note(&format!("{package} is missing: installing it with apt-get"));
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        succeeds(apt.stdout(Stdio::null()))
    };
    let install = ["install", "-y", "--no-install-recommends", package];
    // The package lists of a fresh container are empty; elsewhere they are good enough.
    if !apt(&install) && apt(&["update"]) {
        apt(&install);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrind_output_is_parsed() {
        let text = "==7== Events    : Ir\n==7== Collected : 60310\n==7==\n";
        assert_eq!(parse_instructions(text), Some(60310));
        assert_eq!(parse_instructions("==7== killed"), None);
    }
}
