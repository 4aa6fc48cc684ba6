//! The folder of a store: its files, its lock and its format version.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::store::StoreError;
use crate::store::format::FORMAT;

/// A folder that is locked for this process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    format_damaged: bool,
    /// Held for the lifetime of the value.
    _lock: File,
}

impl Folder {
    /// Creates the folder if necessary, locks it, and checks that it contains a store of a
    /// supported format.
    pub(super) fn lock(path: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(io)?;
        let foreign = !path.join(FORMAT_FILE).exists()
            && fs::read_dir(path)
                .map_err(io)?
                .flatten()
                .any(|entry| entry.file_name() != LOCK_FILE);
        if foreign {
            let path = path.to_owned();
            return Err(StoreError::NotAStore { path });
        }
        let mut options = OpenOptions::new();
        let lock = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK_FILE))
            .map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.to_owned();
                return Err(StoreError::Locked { path });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let mut folder = Self {
            path: path.to_owned(),
            format_damaged: false,
            _lock: lock,
        };
        folder.check_format()?;
        Ok(folder)
    }

    fn check_format(&mut self) -> Result<(), StoreError> {
        let file = self.path.join(FORMAT_FILE);
        match fs::read_to_string(&file) {
            Ok(text) => match format_in(&text) {
                Some(found) if found > FORMAT => {
                    return Err(StoreError::Newer {
                        path: self.path.clone(),
                        found,
                        known: FORMAT,
                    });
                }
                Some(_) => return Ok(()),
                None => self.format_damaged = true,
            },
            Err(error) if error.kind() == ErrorKind::InvalidData => self.format_damaged = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(self.failed()(error)),
        }
        // Written to a separate file and renamed, so that a partial write is never visible.
        let aside = self.path.join("format.new");
        let write = || -> io::Result<()> {
            let mut out = File::create(&aside)?;
            out.write_all(format_text(FORMAT).as_bytes())?;
            out.sync_all()?;
            fs::rename(&aside, &file)
        };
        write().map_err(self.failed())
    }

    /// Returns `true` if the format version was damaged and has been written again.
    pub(super) fn format_damaged(&self) -> bool {
        self.format_damaged
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn head(&self) -> PathBuf {
        self.path.join("head")
    }

    pub(super) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join("db")
    }

    /// Returns the path where a new database is created while the old one exists.
    pub(super) fn new_database_path(&self) -> PathBuf {
        self.path.join("db.new")
    }

    fn damaged(&self) -> PathBuf {
        self.path.join("damaged")
    }

    /// Completes a salvage that was interrupted by a kill: the new database is used only if the old
    /// one has already been moved away.
    pub(super) fn finish_salvage(&self) -> io::Result<()> {
        if !self.new_database_path().exists() {
            return Ok(());
        }
        match self.database().exists() {
            true => fs::remove_dir_all(self.new_database_path()),
            false => fs::rename(self.new_database_path(), self.database()),
        }
    }

    /// Replaces the old database with the new one. The old one is kept for inspection.
    pub(super) fn replace(&self) -> io::Result<()> {
        if self.damaged().exists() {
            fs::remove_dir_all(self.damaged())?;
        }
        fs::rename(self.database(), self.damaged())?;
        fs::rename(self.new_database_path(), self.database())?;
        File::open(&self.path)?.sync_all()
    }

    /// Returns a function that converts an I/O error into an error of this store.
    pub(super) fn failed(&self) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError::Io { path, source }
    }
}

const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";

/// Returns the contents of the format file, with a digest so that a flipped bit does not result in
/// a different version.
fn format_text(format: u32) -> String {
    let line = format!("strowger store {format}");
    format!("{line}\n{:016x}\n", xxh3_64(line.as_bytes()))
}

fn format_in(text: &str) -> Option<u32> {
    let (line, _) = text.split_once('\n')?;
    let format = line.strip_prefix("strowger store ")?.parse().ok()?;
    (text == format_text(format)).then_some(format)
}
