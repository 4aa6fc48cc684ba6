//! Captures recorded with other implementations, stored beside the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds the captures, or reports the tests that are skipped without them.
pub(crate) fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp/captures");
    let Ok(files) = folder.read_dir() else {
        return report_skipped("captures", &format!("{} is not there", folder.display()));
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

/// Returns `true` if tshark is installed; otherwise reports the tests that are skipped.
pub(crate) fn has_tshark() -> bool {
    let here = Command::new("tshark").arg("--version").output().is_ok();
    if !here {
        let _: Vec<()> = report_skipped("agreement with tshark", "tshark is not installed");
    }
    here
}

/// Reports a skipped part; fails where nothing may be skipped.
pub(crate) fn report_skipped<T>(what: &str, why: &str) -> Vec<T> {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{what}: {why}"
    );
    eprintln!("left out: {what}: {why}");
    Vec::new()
}
