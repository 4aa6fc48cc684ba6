//! Damage to the files of a store between two runs of its node.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fastrand::Rng;

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// The journal ends in part of a group, as after a power failure during a write. No peer was
    /// acknowledged for that group.
    Torn,
    /// The end of the journal is missing.
    Cut,
    /// One bit of one file is flipped.
    Flipped,
}

impl Damage {
    /// Damages a store and returns the kind of damage.
    pub(super) fn inflict(store: &Path, random: &mut Rng) -> Result<Self, String> {
        let files = files(store)?;
        let newest = files
            .iter()
            .filter(|file| file.is_journal())
            .max_by_key(|file| file.changed);
        match (newest, random.u8(..3)) {
            (Some(journal), 0) => journal.tear(random).map(|()| Self::Torn),
            (Some(journal), 1) => journal.cut(random).map(|()| Self::Cut),
            _ => {
                let file = random.choice(&files).ok_or("the store has no files")?;
                file.flip(random).map(|()| Self::Flipped)
            }
        }
    }
}

/// A non-empty file of a store.
struct StoreFile {
    path: PathBuf,
    changed: std::time::SystemTime,
    /// The contents, without the empty end that journals have.
    bytes: Vec<u8>,
}

impl StoreFile {
    fn is_journal(&self) -> bool {
        self.path.extension().is_some_and(|it| it == "jnl")
    }

    fn open(&self) -> Result<File, String> {
        let opened = OpenOptions::new().write(true).open(&self.path);
        opened.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("cannot damage {}: {error}", self.path.display())
    }

    /// Returns a number of bytes, from one up to the smaller of `MAX_DAMAGE` and the size.
    fn random_length(&self, random: &mut Rng) -> usize {
        random.usize(1..=self.bytes.len().min(MAX_DAMAGE))
    }

    fn tear(&self, random: &mut Rng) -> Result<(), String> {
        let from = self.bytes.len() - self.random_length(random);
        let last = &self.bytes[from..];
        let half = &last[..last.len().div_ceil(2)];
        let written = self.open()?.write_all_at(half, self.bytes.len() as u64);
        written.map_err(|error| self.failed(&error))
    }

    fn cut(&self, random: &mut Rng) -> Result<(), String> {
        let left = self.bytes.len() - self.random_length(random);
        let cut = self.open()?.set_len(left as u64);
        cut.map_err(|error| self.failed(&error))
    }

    fn flip(&self, random: &mut Rng) -> Result<(), String> {
        let at = random.usize(..self.bytes.len());
        let flipped = self.bytes[at] ^ 1 << random.u8(..8);
        let written = self.open()?.write_all_at(&[flipped], at as u64);
        written.map_err(|error| self.failed(&error))
    }
}

/// Maximum number of bytes of a journal that are cut off or repeated.
const MAX_DAMAGE: usize = 600;

/// Returns the files that a store reads at its start.
fn files(store: &Path) -> Result<Vec<StoreFile>, String> {
    let mut found = Vec::new();
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default();
            if IGNORED_FILES.iter().any(|one| name == *one) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = fs::read(&path).map_err(failed)?;
            let end = bytes.iter().rposition(|&byte| byte != 0);
            bytes.truncate(end.map_or(0, |last| last + 1));
            let changed = fs::metadata(&path)
                .and_then(|data| data.modified())
                .map_err(failed)?;
            if !bytes.is_empty() {
                found.push(StoreFile {
                    path,
                    changed,
                    bytes,
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Files that a store does not read: a lock, reserved space, the copy made before the damage.
const IGNORED_FILES: [&str; 3] = ["lock", "reserve", "damaged"];
