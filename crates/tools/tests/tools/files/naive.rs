//! A tool that compares paths: the twin of each attack, against which the attack succeeds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Accepts a path that looks as if it were below the root, judging by its text as many tools do.
fn allowed(root: &Path, path: &str) -> io::Result<PathBuf> {
    let joined = root.join(path);
    if joined
        .to_string_lossy()
        .starts_with(&*root.to_string_lossy())
    {
        Ok(joined)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

pub(crate) fn read(root: &Path, path: &str) -> io::Result<Vec<u8>> {
    fs::read(allowed(root, path)?)
}

pub(crate) fn write(root: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    fs::write(allowed(root, path)?, bytes)
}
