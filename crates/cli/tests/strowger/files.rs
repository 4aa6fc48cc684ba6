//! Components and manifests that tests write.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// Files of components in a directory of their own.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn place(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    /// Writes a manifest that names a file; returns its path.
    pub(crate) fn manifest(&self, name: &str, file: &str, more: &str) -> String {
        let text = format!("[component]\nname = {name:?}\nfile = {file:?}\n{more}\n");
        fs::write(self.path(&format!("{name}.toml")), text).expect("the file is accessible");
        self.place(&format!("{name}.toml"))
    }
}
