//! The root: a directory handle through which every path is resolved, and the account of what was
//! added below it.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, FileType, OpenOptions, OpenOptionsExt};
use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::error::{FileError, Rule};
use super::message::EntryKind;
use super::place::{Place, Said};
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
    /// It outlives incarnations: what one has added the next has not to add again.
    account: Arc<Mutex<Account>>,
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

/// How much was added below the root, or comes and goes with one call.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    /// Bytes of files.
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
    /// Opens the root, and removes what writers left below it that were killed.
    pub(super) fn open(spec: &FilesSpec, stop: Stop<'_>) -> io::Result<Self> {
        let name = fs::canonicalize(&spec.root)?;
        let root = Dir::open_ambient_dir(&name, ambient_authority())?;
        let disk = Self {
            root,
            name,
            read_only: spec.read_only,
            limits: spec.limits,
            account: spec.watch.account(),
        };
        if !disk.read_only {
            disk.sweep(&disk.root, 0, &mut disk.limits.scan.clone(), stop);
        }
        Ok(disk)
    }

    /// Removes what writers left that were killed, as far as a look at so many entries finds it.
    fn sweep(&self, dir: &Dir, level: usize, left: &mut usize, stop: Stop<'_>) {
        let Ok(entries) = dir.entries() else {
            return;
        };
        for entry in entries.flatten() {
            if *left == 0 || stop() {
                return;
            }
            *left -= 1;
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && level <= self.limits.depth {
                if let Ok(below) = entry.open_dir() {
                    self.sweep(&below, level + 1, left, stop);
                }
            } else if is_forsaken(&entry) {
                let _ = dir.remove_file(entry.file_name());
            }
        }
    }

    /// Weighs what is in a directory, as far as a look at so many entries goes.
    fn count(&self, dir: &Dir, level: usize, left: &mut usize) -> io::Result<Weight> {
        let mut sum = Weight::default();
        for entry in dir.entries()? {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else {
                continue; // Somebody else removed it meanwhile.
            };
            sum.account.entries += 1;
            if metadata.is_dir() {
                let mut below = Weight::default();
                // What cannot be opened cannot be filled through here either.
                if level <= self.limits.depth
                    && let Ok(dir) = entry.open_dir()
                {
                    below = self.count(&dir, level + 1, left)?;
                }
                sum.account.entries += below.account.entries;
                sum.account.octets = sum.account.octets.saturating_add(below.account.octets);
                sum.height = sum.height.max(below.height + 1);
            } else {
                sum.account.octets = sum.account.octets.saturating_add(freed(&metadata));
            }
        }
        Ok(sum)
    }

    /// An entry that is about to go elsewhere: itself, and what it holds.
    pub(super) fn weigh(&self, dir: &Dir, name: &Path) -> io::Result<Weight> {
        let metadata = dir.symlink_metadata(name)?;
        let mut sum = Weight::default();
        if metadata.is_dir() {
            sum = self.count(&dir.open_dir(name)?, 0, &mut self.limits.scan.clone())?;
            sum.height += 1;
        } else {
            sum.account.octets = freed(&metadata);
        }
        sum.account.entries += 1;
        Ok(sum)
    }

    /// Checks a path.
    pub(super) fn place<'a>(&self, said: &'a Said<'_>) -> Result<Place<'a>, FileError> {
        Place::new(said, &self.name, &self.limits)
    }

    /// Checks a path that is to be written to.
    pub(super) fn writable<'a>(&self, said: &'a Said<'_>) -> Result<Place<'a>, FileError> {
        let place = self.place(said)?;
        if self.read_only {
            return Err(place.refused(Rule::ReadOnly));
        }
        Ok(place)
    }

    /// The absolute path of a place, to name it.
    pub(super) fn absolute(&self, place: Place<'_>) -> PathBuf {
        self.name.join(place.path).components().collect()
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

    /// What was added below the root.
    pub(super) fn account(&self) -> Account {
        *self.account.lock()
    }

    /// Whether so much more may be added.
    pub(super) fn has_room(&self, more: Account, place: Place<'_>) -> Result<(), FileError> {
        let (used, limits) = (self.account(), &self.limits);
        let is_beyond = |more: u64, used: u64, most| more > 0 && used.saturating_add(more) > most;
        if is_beyond(more.entries, used.entries, limits.entries) {
            let (most, wanted) = (limits.entries, more.entries);
            return Err(place.beyond(Rule::Entries, most, used.entries, wanted));
        }
        if is_beyond(more.octets, used.octets, limits.octets) {
            let (most, wanted) = (limits.octets, more.octets);
            return Err(place.beyond(Rule::Octets, most, used.octets, wanted));
        }
        Ok(())
    }

    /// Enters what has come and what has gone. What goes makes room again, and no more of it than
    /// was added: below the root there is never more than there was before and the quota.
    pub(super) fn enter(&self, come: Account, gone: Account) {
        let mut account = self.account.lock();
        let balance =
            |now: u64, come: u64, gone: u64| now.saturating_add(come).saturating_sub(gone);
        account.octets = balance(account.octets, come.octets, gone.octets);
        account.entries = balance(account.entries, come.entries, gone.entries);
    }
}

/// Whether an entry is what a writer left that was killed, long ago.
fn is_forsaken(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    if !name.as_encoded_bytes().starts_with(BESIDE.as_bytes()) {
        return false; // Most entries, of which nothing more has to be asked.
    }
    let Ok(metadata) = entry.metadata() else {
        return false;
    };
    let age = || {
        let written = metadata.modified().ok()?.into_std();
        SystemTime::now().duration_since(written).ok()
    };
    metadata.is_file() && age().is_some_and(|age| age > FORSAKEN)
}

/// How many bytes go when an entry goes. A file with another name stays.
pub(super) fn freed(metadata: &cap_std::fs::Metadata) -> u64 {
    use cap_std::fs::MetadataExt as _;
    match metadata.is_file() && metadata.nlink() == 1 {
        true => metadata.len(),
        false => 0,
    }
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
