//! Programs of other projects that may not be installed on this machine.

use std::process::{Command, Stdio};

/// Returns `true` if a program is installed; otherwise reports the skipped part, or fails where
/// nothing may be skipped.
pub(crate) fn is_here(program: &str) -> bool {
    let mut command = Command::new(program);
    let flag = if program == "go" {
        "version"
    } else {
        "--version"
    };
    command
        .arg(flag)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let here = command.status().is_ok_and(|status| status.success());
    assert!(
        here || std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{program} is not installed"
    );
    if !here {
        eprintln!("left out: {program} is not installed");
    }
    here
}
