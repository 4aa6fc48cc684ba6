//! Proof tools: programs by others that our results are compared with.

use std::process::{Command, Stdio};

use crate::project;
use crate::term::{self, TextStyle};
use crate::{Outcome, process, step};

/// A program that proves something which our own code cannot prove about itself.
pub(crate) struct ExternalTool {
    /// The program, and the option that prints its version.
    pub(crate) program: &'static str,
    pub(crate) version_flag: &'static str,
    /// The Debian package.
    pub(crate) package: &'static str,
    /// The property that stays unproven without the tool.
    pub(crate) proves: &'static str,
}

/// Every proof tool that a test looks for.
pub(crate) const TOOLS: &[ExternalTool] = &[
    ExternalTool {
        program: "tshark",
        version_flag: "--version",
        package: "tshark",
        proves: "names, integers, flags and addresses of every element agree with Wireshark",
    },
    ExternalTool {
        program: "go",
        version_flag: "version",
        package: "golang-go",
        proves: "go-pfcp reads what we encode, and we read what it builds",
    },
];

/// Counts instructions, which repeat where times do not.
pub(crate) const VALGRIND: ExternalTool = ExternalTool {
    program: "valgrind",
    version_flag: "--version",
    package: "valgrind",
    proves: "no change made the runtime slower",
};

/// A subcommand of cargo, which `cargo xtask setup` builds.
pub(crate) struct CargoTool {
    /// The package, and the name of its program.
    pub(crate) package: &'static str,
    subcommand: &'static str,
}

/// Mutates sources and runs the tests.
pub(crate) const MUTANTS: CargoTool = CargoTool {
    package: "cargo-mutants",
    subcommand: "mutants",
};

/// Builds and runs fuzz targets.
pub(crate) const FUZZ: CargoTool = CargoTool {
    package: "cargo-fuzz",
    subcommand: "fuzz",
};

/// Every subcommand of cargo that a verb needs.
pub(crate) const CARGO_TOOLS: &[CargoTool] = &[MUTANTS, FUZZ];

impl CargoTool {
    pub(crate) fn is_here(&self) -> bool {
        let mut command = Command::new("cargo");
        let version = process::output(command.args([self.subcommand, "--version"]));
        version.is_ok_and(|output| output.status.success())
    }

    /// Builds the tool from the registry, without optimisation: it waits for cargo most of the
    /// time.
    pub(crate) fn install(&self) {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--locked", "--debug", self.package]);
        if let Err(error) = step::run(&mut cargo) {
            term::note(&error);
        }
    }
}

/// Returns an error that says how to get a tool, if it is missing.
pub(crate) fn need(tool: &CargoTool) -> Outcome {
    match tool.is_here() {
        true => Ok(()),
        false => Err(format!(
            "{} is missing; get it: cargo xtask setup",
            tool.package
        )),
    }
}

/// Returns every proof tool that a verb looks for.
pub(crate) fn all() -> impl Iterator<Item = &'static ExternalTool> {
    TOOLS.iter().chain([&VALGRIND])
}

/// A line about a tool.
pub(crate) struct ToolLine {
    pub(crate) text: String,
    pub(crate) is_here: bool,
}

/// Says which version of a tool is here, or what stays unproven and how to get the tool.
pub(crate) fn described(tool: &ExternalTool) -> ToolLine {
    let program = tool.program;
    if let Some(version) = version(tool) {
        return ToolLine {
            text: format!("{program}: {version}"),
            is_here: true,
        };
    }
    let word = term::paint(TextStyle::Yellow, "missing");
    let (proves, package) = (tool.proves, tool.package);
    ToolLine {
        text: format!(
            "{program}: {word}; not proven: {proves}; get it: cargo xtask setup as root on Debian, \
             or the package {package}"
        ),
        is_here: false,
    }
}

/// Returns a line for each tool that a test looks for. Installs nothing.
///
/// # Errors
/// With `CI=true`, returns an error if a tool is missing.
pub(crate) fn look() -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let mut missing = Vec::new();
    for tool in TOOLS {
        let line = described(tool);
        lines.push(line.text);
        if !line.is_here {
            missing.push(tool.program);
        }
    }
    if !missing.is_empty() && project::strict() {
        let missing = missing.join(", ");
        return Err(format!(
            "CI=true and missing: {missing}; get them: cargo xtask setup"
        ));
    }
    Ok(lines)
}

/// Returns `true` if a tool is here, and else says how to get it.
pub(crate) fn is_here(tool: &ExternalTool) -> bool {
    let line = described(tool);
    if !line.is_here {
        term::note(&line.text);
    }
    line.is_here
}

/// Returns the version that the tool prints, if it is present.
pub(crate) fn version(tool: &ExternalTool) -> Option<String> {
    let output = process::output(Command::new(tool.program).arg(tool.version_flag)).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
}

fn may_install() -> bool {
    let root = process::output(Command::new("id").arg("-u"));
    let root = root.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    root && std::path::Path::new("/etc/debian_version").exists()
}

/// Installs a Debian package, if this is Debian and we may.
pub(crate) fn install(package: &str) {
    if !may_install() {
        return;
    }
    term::note(&format!("{package} is missing: installing it with apt-get"));
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        process::status(apt.stdout(Stdio::null())).is_ok_and(|status| status.success())
    };
    let install = ["install", "-y", "--no-install-recommends", package];
    // The package lists of a fresh container are empty; elsewhere they are good enough.
    if !apt(&install) && apt(&["update"]) {
        apt(&install);
    }
}
