//! Captures recorded by others, which live beside the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds the captures, or says what is not tested without them.
pub(crate) fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp/captures");
    let Ok(files) = folder.read_dir() else {
        return left_out("captures", &format!("{} is not there", folder.display()));
    };
    let mut found: Vec<PathBuf> = files
        .map(|file| file.expect("the folder can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|e| e == "pcap" || e == "pcapng")
        })
        .collect();
    found.sort();
    found
}

/// Says whether tshark is there, and what is not tested without it.
pub(crate) fn tshark_is_here() -> bool {
    let here = Command::new("tshark").arg("--version").output().is_ok();
    if !here {
        let _: Vec<()> = left_out("agreement with tshark", "tshark is not installed");
    }
    here
}

/// Prints what is left out; a failure where everything must be there.
pub(crate) fn left_out<T>(what: &str, why: &str) -> Vec<T> {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{what}: {why}"
    );
    eprintln!("left out: {what}: {why}");
    Vec::new()
}
