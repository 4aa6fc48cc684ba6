//! Programs by others that may not be on this machine.

use std::process::{Command, Stdio};

/// Says whether a program is here, and what is left out without it; that is a failure where
/// everything must be there.
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
