//! The root: a directory handle through which every path is resolved, and the account of what is
//! below it.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, FileType, OpenOptions, OpenOptionsExt};
use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::error::{FileError, Rule};
use super::message::EntryKind;
use super::place::Place;
use super::spec::{FileLimits, FilesSpec};

/// Whether work that takes long is to end.
pub(super) type Stop<'a> = &'a dyn Fn() -> bool;

/// One root. All of its work is synchronous; what may take long looks at a flag.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) root: Dir,
    /// Absolute, with its links resolved.
    pub(super) name: PathBuf,
    pub(super) read_only: bool,
    pub(super) limits: FileLimits,
    account: Mutex<Account>,
}

/// The directory of an entry. The root is open already.
pub(super) enum Parent<'a> {
    Root(&'a Dir),
    Below(Dir),
}

impl Deref for Parent<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Self::Root(dir) => dir,
            Self::Below(dir) => dir,
        }
    }
}

/// How much there is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    /// Octets of all files.
    pub(super) octets: u64,
    /// Entries, directories among them.
    pub(super) entries: u64,
}

/// What is at and below an entry.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Weight {
    pub(super) account: Account,
    /// Levels of directories.
    pub(super) height: usize,
}

/// How the name of a file begins that is written beside the one that it will replace.
pub(super) const BESIDE: &str = ".strowger-";

/// How old such a file is when nobody can be writing it any more.
const FORSAKEN: Duration = Duration::from_secs(3600);

impl Disk {
    /// Opens the root and counts what is below it, which takes a while when that is much.
    pub(super) fn open(spec: &FilesSpec, stop: Stop<'_>) -> io::Result<Self> {
        let name = fs::canonicalize(&spec.root)?;
        let root = Dir::open_ambient_dir(&name, ambient_authority())?;
        let disk = Self {
            root,
            name,
            read_only: spec.read_only,
            limits: spec.limits,
            account: Mutex::default(),
        };
        let counted = disk.count(&disk.root, 0, stop)?;
        *disk.account.lock() = counted.account;
        Ok(disk)
    }

    /// Counts a directory, up to one entry more than the quota has and one level more than a path
    /// may have; on the way it removes what writers left that were killed.
    fn count(&self, dir: &Dir, level: usize, stop: Stop<'_>) -> io::Result<Weight> {
        let mut sum = Weight::default();
        for entry in dir.entries()? {
            if sum.account.entries > self.limits.entries || stop() {
                break;
            }
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else {
                continue; // Somebody else removed it meanwhile.
            };
            if !self.read_only && is_forsaken(&entry, &metadata) {
                let _ = dir.remove_file(entry.file_name());
                continue;
            }
            sum.account.entries += 1;
            if metadata.is_file() {
                sum.account.octets = sum.account.octets.saturating_add(metadata.len());
            } else if metadata.is_dir() {
                let mut below = Weight::default();
                // What cannot be opened cannot be filled through here either.
                if level <= self.limits.depth
                    && let Ok(dir) = entry.open_dir()
                {
                    below = self.count(&dir, level + 1, stop)?;
                }
                sum.account.entries += below.account.entries;
                sum.account.octets = sum.account.octets.saturating_add(below.account.octets);
                sum.height = sum.height.max(below.height + 1);
            }
        }
        Ok(sum)
    }

    /// An entry that is about to go elsewhere: itself, and what it holds.
    pub(super) fn weigh(&self, dir: &Dir, name: &Path) -> io::Result<Weight> {
        let metadata = dir.symlink_metadata(name)?;
        let mut sum = Weight::default();
        if metadata.is_dir() {
            sum = self.count(&dir.open_dir(name)?, 0, &|| false)?;
            sum.height += 1;
        } else if metadata.is_file() {
            sum.account.octets = metadata.len();
        }
        sum.account.entries += 1;
        Ok(sum)
    }

    /// Checks a path.
    pub(super) fn place<'a>(&self, said: &'a str) -> Result<Place<'a>, FileError> {
        Place::new(said, &self.name, &self.limits)
    }

    /// Checks a path that is to be written to.
    pub(super) fn writable<'a>(&self, said: &'a str) -> Result<Place<'a>, FileError> {
        let place = self.place(said)?;
        if self.read_only {
            return Err(place.refused(Rule::ReadOnly));
        }
        Ok(place)
    }

    /// Opens a file that is one: no FIFO makes it wait, and no device is read.
    pub(super) fn open_file(
        &self,
        place: Place<'_>,
        options: &mut OpenOptions,
    ) -> Result<(File, fs::Metadata), FileError> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
        let opened = self.root.open_with(place.path, options);
        let file = opened.map_err(place.failed())?.into_std();
        let metadata = file.metadata().map_err(place.failed())?;
        if metadata.is_file() {
            Ok((file, metadata))
        } else if metadata.is_dir() {
            let path = place.said.to_owned();
            Err(FileError::IsDirectory { path })
        } else {
            Err(place.refused(Rule::Special))
        }
    }

    /// The directory below which an entry is made, removed or replaced, and its name.
    pub(super) fn open_parent<'a>(
        &self,
        place: Place<'a>,
    ) -> Result<(Parent<'_>, &'a Path), FileError> {
        let (parent, name) = place.split()?;
        let dir = match parent.to_str() {
            Some(".") => Parent::Root(&self.root),
            _ => Parent::Below(self.root.open_dir(parent).map_err(place.failed())?),
        };
        Ok((dir, Path::new(name)))
    }

    /// What is below the root, as far as this actor knows.
    pub(super) fn account(&self) -> Account {
        *self.account.lock()
    }

    /// Whether there is room for so much more.
    pub(super) fn has_room(&self, more: Account, place: Place<'_>) -> Result<(), FileError> {
        let account = self.account();
        if more.entries > 0 && account.entries.saturating_add(more.entries) > self.limits.entries {
            return Err(place.refused(Rule::Entries));
        }
        if more.octets > 0 && account.octets.saturating_add(more.octets) > self.limits.octets {
            return Err(place.refused(Rule::Octets));
        }
        Ok(())
    }

    /// Enters what has come and what has gone.
    pub(super) fn enter(&self, come: Account, gone: Account) {
        let mut account = self.account.lock();
        let balance =
            |now: u64, come: u64, gone: u64| now.saturating_add(come).saturating_sub(gone);
        account.octets = balance(account.octets, come.octets, gone.octets);
        account.entries = balance(account.entries, come.entries, gone.entries);
    }
}

/// Whether an entry is what a writer left that was killed, long ago.
fn is_forsaken(entry: &DirEntry, metadata: &cap_std::fs::Metadata) -> bool {
    let age = || {
        let written = metadata.modified().ok()?.into_std();
        SystemTime::now().duration_since(written).ok()
    };
    metadata.is_file()
        && entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(BESIDE.as_bytes())
        && age().is_some_and(|age| age > FORSAKEN)
}

/// What an entry is.
pub(super) fn kind(file_type: FileType) -> EntryKind {
    if file_type.is_file() {
        EntryKind::File
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Special
    }
}

/// Whether a file may be written in place: a second link may be another's.
pub(super) fn is_alone(metadata: &fs::Metadata) -> bool {
    metadata.nlink() == 1
}
