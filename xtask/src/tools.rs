//! Proof tools: programs by others that our results are compared with.

use std::process::{Command, Stdio};

use crate::project;
use crate::term::{self, TextStyle};

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

/// Installs missing tools if possible, and returns a line for each tool.
///
/// # Errors
/// With `CI=true`, returns an error if a tool is missing and cannot be installed.
pub(crate) fn ensure() -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let mut missing = Vec::new();
    for tool in TOOLS {
        if version(tool).is_none() {
            install(tool.package);
        }
        match version(tool) {
            Some(version) => lines.push(format!("{}: {version}", tool.program)),
            None => {
                let word = term::paint(TextStyle::Yellow, "missing");
                lines.push(format!(
                    "{}: {word}; not proven: {}",
                    tool.program, tool.proves
                ));
                missing.push(tool.program);
            }
        }
    }
    if !missing.is_empty() && project::strict() {
        return Err(format!("CI=true and missing: {}", missing.join(", ")));
    }
    Ok(lines)
}

/// Returns `true` if a tool is present, after an attempt to install it.
pub(crate) fn obtain(tool: &ExternalTool) -> bool {
    if version(tool).is_none() {
        install(tool.package);
    }
    let here = version(tool).is_some();
    if !here {
        let unproven = tool.proves;
        term::note(&format!(
            "{}: missing; not proven: {unproven}",
            tool.program
        ));
    }
    here
}

/// Returns the version that the tool prints, if it is present.
pub(crate) fn version(tool: &ExternalTool) -> Option<String> {
    let output = Command::new(tool.program)
        .arg(tool.version_flag)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
}

fn may_install() -> bool {
    let root = Command::new("id").arg("-u").output();
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
        Command::new("apt-get")
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let install = ["install", "-y", "--no-install-recommends", package];
    // The package lists of a fresh container are empty; elsewhere they are good enough.
    if !apt(&install) && apt(&["update"]) {
        apt(&install);
    }
}
