//! The root: a directory handle through which every path is resolved, and the quota for additions
//! below it.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, OpenOptions, OpenOptionsExt};
use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::error::{FileError, FileRule};
use super::message::EntryKind;
use super::path::{GivenPath, RootedPath};
use super::spec::{FileLimits, FilesSpec};
use super::temp_file::TempFileSweeps;

/// A check that returns `true` when long work must stop.
pub(super) type StopCheck<'a> = &'a dyn Fn() -> bool;

/// A root directory. All operations are synchronous; those that may take long check a
/// [`StopCheck`].
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) root: Dir,
    /// The absolute path, with links resolved.
    pub(super) root_path: PathBuf,
    pub(super) read_only: bool,
    pub(super) limits: FileLimits,
    /// Number of directory entries that were scanned, over all incarnations.
    pub(super) scanned: Arc<AtomicU64>,
    pub(super) sweeps: TempFileSweeps,
    /// Shared by all incarnations, so additions by earlier ones still count.
    used: Arc<Mutex<QuotaAmount>>,
}

/// The parent directory of an entry. The root needs no opening.
pub(super) enum ParentDir<'a> {
    Root(&'a Dir),
    Below(Dir),
}

impl Deref for ParentDir<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Self::Root(dir) => dir,
            Self::Below(dir) => dir,
        }
    }
}

/// The amount added below the root, or the change made by one call.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuotaAmount {
    /// Bytes of files.
    pub(super) bytes: u64,
    /// Number of entries, including directories.
    pub(super) entries: u64,
}

/// The size of an entry and everything below it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TreeSize {
    pub(super) amount: QuotaAmount,
    /// Number of directory levels.
    pub(super) height: usize,
}

impl Disk {
    /// Opens the root without reading its contents, so that the size of the tree does not delay
    /// the first call.
    pub(super) fn open(spec: &FilesSpec) -> io::Result<Self> {
        let name = fs::canonicalize(&spec.root)?;
        let root = Dir::open_ambient_dir(&name, ambient_authority())?;
        Ok(Self {
            root,
            root_path: name,
            read_only: spec.read_only,
            limits: spec.limits,
            scanned: spec.watch.scanned(),
            sweeps: TempFileSweeps::default(),
            used: spec.watch.used(),
        })
    }

    /// Measures the contents of a directory, scanning no more than `left` entries.
    fn measure_contents(&self, dir: &Dir, level: usize, left: &mut usize) -> io::Result<TreeSize> {
        let mut sum = TreeSize::default();
        for entry in dir.entries()? {
            if *left == 0 {
                break;
            }
            *left -= 1;
            self.scanned.fetch_add(1, Ordering::Relaxed);
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else {
                continue; // Another process removed it meanwhile.
            };
            sum.amount.entries += 1;
            if metadata.is_dir() {
                let mut below = TreeSize::default();
                // A directory that cannot be opened cannot be filled through here either.
                if level <= self.limits.depth
                    && let Ok(dir) = entry.open_dir()
                {
                    below = self.measure_contents(&dir, level + 1, left)?;
                }
                sum.amount.entries += below.amount.entries;
                sum.amount.bytes = sum.amount.bytes.saturating_add(below.amount.bytes);
                sum.height = sum.height.max(below.height + 1);
            } else {
                sum.amount.bytes = sum
                    .amount
                    .bytes
                    .saturating_add(reclaimable_bytes(&metadata));
            }
        }
        Ok(sum)
    }

    /// Measures an entry that is about to move or be removed, including its contents.
    pub(super) fn measure(&self, dir: &Dir, name: &Path) -> io::Result<TreeSize> {
        let metadata = dir.symlink_metadata(name)?;
        let mut sum = TreeSize::default();
        if metadata.is_dir() {
            sum = self.measure_contents(&dir.open_dir(name)?, 0, &mut self.limits.scan.clone())?;
            sum.height += 1;
        } else {
            sum.amount.bytes = reclaimable_bytes(&metadata);
        }
        sum.amount.entries += 1;
        Ok(sum)
    }

    /// Validates a path.
    pub(super) fn rooted<'a>(&self, given: &'a GivenPath<'_>) -> Result<RootedPath<'a>, FileError> {
        RootedPath::new(given, &self.root_path, &self.limits)
    }

    /// Validates a path that will be written to.
    pub(super) fn rooted_for_writing<'a>(
        &self,
        given: &'a GivenPath<'_>,
    ) -> Result<RootedPath<'a>, FileError> {
        let rooted = self.rooted(given)?;
        if self.read_only {
            return Err(rooted.refused(FileRule::ReadOnly));
        }
        Ok(rooted)
    }

    /// The absolute path of a rooted path, for display.
    pub(super) fn absolute(&self, rooted: RootedPath<'_>) -> PathBuf {
        self.root_path.join(rooted.path).components().collect()
    }

    /// Opens a regular file. Does not block on a FIFO, and refuses devices.
    pub(super) fn open_file(
        &self,
        rooted: RootedPath<'_>,
        options: &mut OpenOptions,
    ) -> Result<(File, fs::Metadata), FileError> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
        let opened = self.root.open_with(rooted.path, options);
        let file = opened.map_err(rooted.failed())?.into_std();
        let metadata = file.metadata().map_err(rooted.failed())?;
        if metadata.is_file() {
            Ok((file, metadata))
        } else if metadata.is_dir() {
            let path = rooted.given.to_owned();
            Err(FileError::IsDirectory { path })
        } else {
            Err(rooted.refused(FileRule::Special))
        }
    }

    /// Opens the directory in which an entry is created, removed or replaced. Returns it with the
    /// name of the entry.
    pub(super) fn open_parent<'a>(
        &self,
        rooted: RootedPath<'a>,
    ) -> Result<(ParentDir<'_>, &'a Path), FileError> {
        let (parent, name) = rooted.split()?;
        let dir = match parent.to_str() {
            Some(".") => ParentDir::Root(&self.root),
            _ => ParentDir::Below(self.root.open_dir(parent).map_err(rooted.failed())?),
        };
        Ok((dir, Path::new(name)))
    }

    /// The amount added below the root.
    pub(super) fn used(&self) -> QuotaAmount {
        *self.used.lock()
    }

    /// Checks that the quota allows `more`.
    pub(super) fn check_quota(
        &self,
        more: QuotaAmount,
        rooted: RootedPath<'_>,
    ) -> Result<(), FileError> {
        let (used, limits) = (self.used(), &self.limits);
        let is_beyond = |more: u64, used: u64, limit| more > 0 && used.saturating_add(more) > limit;
        if is_beyond(more.entries, used.entries, limits.entries) {
            let (limit, wanted) = (limits.entries, more.entries);
            return Err(rooted.over_limit(FileRule::Entries, limit, used.entries, wanted));
        }
        if is_beyond(more.bytes, used.bytes, limits.bytes) {
            let (limit, wanted) = (limits.bytes, more.bytes);
            return Err(rooted.over_limit(FileRule::Bytes, limit, used.bytes, wanted));
        }
        Ok(())
    }

    /// Records additions and removals. Removals free at most as much quota as was used, so the
    /// contents below the root never exceed the original amount plus the quota.
    pub(super) fn record(&self, added: QuotaAmount, removed: QuotaAmount) {
        let mut used = self.used.lock();
        let balance =
            |now: u64, added: u64, removed: u64| now.saturating_add(added).saturating_sub(removed);
        used.bytes = balance(used.bytes, added.bytes, removed.bytes);
        used.entries = balance(used.entries, added.entries, removed.entries);
    }
}

/// Number of bytes freed by removing an entry: none if the file has another link.
pub(super) fn reclaimable_bytes(metadata: &cap_std::fs::Metadata) -> u64 {
    use cap_std::fs::MetadataExt as _;
    match metadata.is_file() && metadata.nlink() == 1 {
        true => metadata.len(),
        false => 0,
    }
}

/// Converts a file type to an entry kind.
pub(super) fn entry_kind(file_type: FileType) -> EntryKind {
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

/// Returns `true` if a file may be written in place: with a second link, another name outside
/// the root may share its contents.
pub(super) fn has_single_link(metadata: &fs::Metadata) -> bool {
    metadata.nlink() == 1
}
