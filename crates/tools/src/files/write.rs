//! Writing files, and creating, moving and removing entries. The actor performs one such call at a
//! time: between the check of the quota and the write, no other call through this actor adds
//! anything.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::{OpenOptions, PermissionsExt as _};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::disk::{Disk, QuotaAmount, has_single_link, reclaimable_bytes};
use super::error::{FileError, FileRule};
use super::message::{
    AppendRequest, BeginWriteRequest, CommitWriteRequest, CreateDirectoryRequest, DeleteRequest,
    FilePart, RenameRequest, WriteMode, WriteRequest,
};
use super::path::{GivenPath, RootedPath};
use super::read::display_name;
use super::replace::{
    NotReplaced, Original, TempFile, check_writable, in_place_only, replace_file,
};
use super::temp_file::is_temp_name;

impl Disk {
    /// Writes a whole file.
    pub(super) fn write(&self, write: &WriteRequest) -> Result<(), FileError> {
        let given = GivenPath::new(&write.path);
        let rooted = self.rooted_for_writing(&given)?;
        self.check_write_size(write.bytes.len() as u64, rooted)?;
        match write.mode {
            WriteMode::InPlace => self.write_bytes_in_place(rooted, &write.bytes, SyncToDisk::No),
            WriteMode::Atomic => self.replace(rooted, &write.bytes, SyncToDisk::No),
            WriteMode::Durable => self.replace(rooted, &write.bytes, SyncToDisk::Yes),
        }
    }

    fn write_bytes_in_place(
        &self,
        rooted: RootedPath<'_>,
        bytes: &[u8],
        sync: SyncToDisk,
    ) -> Result<(), FileError> {
        let length = bytes.len() as u64;
        self.write_in_place(rooted, length, sync, |file| file.write_all(bytes))
    }

    fn write_in_place(
        &self,
        rooted: RootedPath<'_>,
        length: u64,
        sync: SyncToDisk,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let mut options = OpenOptions::new();
        let (mut file, before) = self.open_or_create(rooted, options.write(true), |_| length)?;
        // Truncating a file before writing costs many times more than overwriting it.
        let written = write(&mut file).and_then(|()| {
            if length < before {
                file.set_len(length)
            } else {
                Ok(())
            }
        });
        let written = written.and_then(|()| match sync {
            SyncToDisk::Yes => file.sync_all(),
            SyncToDisk::No => Ok(()),
        });
        let now = match &written {
            Ok(()) => length,
            Err(_) => file.metadata().map_or(length, |metadata| metadata.len()),
        };
        self.record(bytes_only(now), bytes_only(before));
        written.map_err(rooted.failed())
    }

    /// Checks that one call may write `length` bytes.
    fn check_write_size(&self, length: u64, rooted: RootedPath<'_>) -> Result<(), FileError> {
        if length > self.limits.file {
            return Err(rooted.over_limit(FileRule::Size, self.limits.file, 0, length));
        }
        Ok(())
    }

    /// Appends to a file of any size.
    pub(super) fn append(&self, append: &AppendRequest) -> Result<(), FileError> {
        let given = GivenPath::new(&append.path);
        let rooted = self.rooted_for_writing(&given)?;
        let length = append.bytes.len() as u64;
        self.check_write_size(length, rooted)?;
        let after = |before: u64| before.saturating_add(length);
        let mut options = OpenOptions::new();
        let (mut file, before) = self.open_or_create(rooted, options.append(true), after)?;
        let written = file.write_all(&append.bytes);
        let now = file
            .metadata()
            .map_or_else(|_| after(before), |metadata| metadata.len());
        self.record(bytes_only(now), bytes_only(before));
        written.map_err(rooted.failed())
    }

    /// Opens or creates a file for writing, if the quota allows its length after the write. Returns
    /// the file and its current length.
    fn open_or_create(
        &self,
        rooted: RootedPath<'_>,
        options: &mut OpenOptions,
        after: impl Fn(u64) -> u64,
    ) -> Result<(File, u64), FileError> {
        let opened = self.open_unshared(rooted, options)?;
        let before = opened.as_ref().map_or(0, |(_, before)| *before);
        let more = QuotaAmount {
            bytes: after(before).saturating_sub(before),
            entries: u64::from(opened.is_none()),
        };
        self.check_quota(more, rooted)?;
        if let Some(opened) = opened {
            return Ok(opened);
        }
        let (file, _) = self.open_file(rooted, options.create_new(true))?;
        self.record(ONE_ENTRY, QuotaAmount::default());
        Ok((file, 0))
    }

    /// Opens an existing file to write it in place. Returns it with its length, or `None` if it
    /// does not exist.
    fn open_unshared(
        &self,
        rooted: RootedPath<'_>,
        options: &mut OpenOptions,
    ) -> Result<Option<(File, u64)>, FileError> {
        if rooted.is_root() {
            return Err(rooted.refused(FileRule::Root));
        }
        match self.open_file(rooted, options) {
            Ok((_, metadata)) if !has_single_link(&metadata) => {
                Err(rooted.refused(FileRule::Linked))
            }
            Ok((file, metadata)) => {
                check_mode(metadata.mode(), rooted)?;
                Ok(Some((file, metadata.len())))
            }
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file, or creates it, by renaming a temporary file.
    pub(super) fn replace(
        &self,
        rooted: RootedPath<'_>,
        bytes: &[u8],
        sync: SyncToDisk,
    ) -> Result<(), FileError> {
        let target = self.replaced_entry(rooted)?;
        let rooted = target.at(rooted);
        let added = QuotaAmount {
            bytes: bytes.len() as u64,
            entries: 1,
        };
        let removed = target.amount();
        let more = QuotaAmount {
            bytes: added.bytes.saturating_sub(removed.bytes),
            entries: added.entries - removed.entries,
        };
        self.check_quota(more, rooted)?;
        let (dir, name) = self.open_parent(rooted)?;
        match replace_file(&dir, name, bytes, target.is_there(), sync) {
            Ok(()) => {}
            Err(NotReplaced::InPlaceOnly) => return self.write_bytes_in_place(rooted, bytes, sync),
            Err(NotReplaced::Failed(error)) => return Err(rooted.failed()(error)),
        }
        self.record(added, removed);
        self.sweeps.record_replacement(rooted.split()?.0);
        Ok(())
    }

    /// Creates an empty temporary file that will replace a file.
    pub(super) fn begin_write(&self, begin: &BeginWriteRequest) -> Result<FilePart, FileError> {
        let given = GivenPath::new(&begin.path);
        let rooted = self.rooted_for_writing(&given)?;
        let target = self.replaced_entry(rooted)?;
        let rooted = target.at(rooted);
        self.check_quota(ONE_ENTRY, rooted)?;
        let (dir, _) = self.open_parent(rooted)?;
        let mut parent = rooted.split()?.0;
        let is_there = target.is_there();
        let created = TempFile::create(&dir, is_there).or_else(|error| {
            match in_place_only(error, is_there) {
                NotReplaced::Failed(error) => Err(error),
                // `commit` copies the bytes then, so they may be anywhere below the root.
                NotReplaced::InPlaceOnly => {
                    parent = Path::new(".");
                    TempFile::create(&self.root, is_there)
                }
            }
        });
        let name = created.map_err(rooted.failed())?.name;
        self.record(ONE_ENTRY, QuotaAmount::default());
        self.sweeps.record_temp_file(parent);
        let path: PathBuf = parent.join(name).components().collect();
        let (text, uri) = display_name(path.as_os_str(), || self.root_path.join(&path));
        let part = uri.unwrap_or(text);
        Ok(FilePart { part })
    }

    /// Replaces a file, or creates it, with a temporary file of [`Self::begin_write`].
    pub(super) fn commit_write(&self, commit: &CommitWriteRequest) -> Result<(), FileError> {
        let (part, path) = (GivenPath::new(&commit.part), GivenPath::new(&commit.path));
        let (part, rooted) = (
            self.rooted_for_writing(&part)?,
            self.rooted_for_writing(&path)?,
        );
        let invalid = |message| Err(FileError::InvalidArguments { message });
        let (part_dir, part_name) = self.open_parent(part)?;
        if !is_temp_name(part_name.as_os_str().as_encoded_bytes()) {
            return invalid("`part` is not a path that `begin` has returned");
        }
        let mut temp = TempFile::open(&part_dir, part_name).map_err(part.failed())?;
        let metadata = temp.file.metadata().map_err(part.failed())?;
        if !metadata.is_file() || !has_single_link(&metadata) {
            return invalid("`part` is not a file that `begin` has created");
        }
        if metadata.len() != commit.length {
            return invalid("`part` does not have `length` bytes: write all of it again");
        }
        let target = self.replaced_entry(rooted)?;
        let rooted = target.at(rooted);
        if target.old.as_ref().map(file_id) == Some((metadata.dev(), metadata.ino())) {
            return invalid("`part` and `path` are the same file");
        }
        let (dir, name) = self.open_parent(rooted)?;
        let sync = match commit.durable {
            true => SyncToDisk::Yes,
            false => SyncToDisk::No,
        };
        let replaced = Original::open(&dir, name, target.is_there())
            .and_then(|old| temp.persist((&dir, name), old.as_ref(), sync));
        match replaced {
            Ok(()) => self.record(QuotaAmount::default(), target.amount()),
            Err(NotReplaced::InPlaceOnly) => {
                let copy = |file: &mut File| io::copy(&mut temp.file, file).map(drop);
                self.write_in_place(rooted, commit.length, sync, copy)?;
                part_dir.remove_file(part_name).map_err(part.failed())?;
                let removed = QuotaAmount {
                    bytes: commit.length,
                    entries: 1,
                };
                self.record(QuotaAmount::default(), removed);
            }
            Err(NotReplaced::Failed(error)) => return Err(rooted.failed()(error)),
        }
        self.sweeps.record_replacement(rooted.split()?.0);
        Ok(())
    }

    /// Finds the entry that a replacement of `rooted` replaces, which is the target of a link, and
    /// checks that it may be written.
    fn replaced_entry(&self, rooted: RootedPath<'_>) -> Result<ReplacedEntry, FileError> {
        let mut entry = ReplacedEntry {
            path: rooted.path.to_owned(),
            old: self.existing_metadata(rooted)?,
        };
        let is_link = |old: &cap_std::fs::Metadata| old.is_symlink();
        if entry.old.as_ref().is_some_and(is_link) {
            let led = self.root.canonicalize(rooted.path);
            entry.path = led.map_err(rooted.failed())?;
            entry.old = self.existing_metadata(entry.at(rooted))?;
        }
        let Some(old) = &entry.old else {
            return Ok(entry);
        };
        if old.is_dir() {
            let path = rooted.given.to_owned();
            return Err(FileError::IsDirectory { path });
        }
        if !old.is_file() {
            return Err(rooted.refused(FileRule::Special));
        }
        check_mode(old.permissions().mode(), rooted)?;
        let (dir, name) = self.open_parent(entry.at(rooted))?;
        check_writable(&dir, name).map_err(rooted.failed())?;
        Ok(entry)
    }

    /// Returns the metadata of a path, or `None` if it does not exist; a link is not followed.
    fn existing_metadata(
        &self,
        rooted: RootedPath<'_>,
    ) -> Result<Option<cap_std::fs::Metadata>, FileError> {
        match self.root.symlink_metadata(rooted.path) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(rooted.failed()(error)),
        }
    }

    /// Creates a directory and its missing parents.
    pub(super) fn create_directory(&self, make: &CreateDirectoryRequest) -> Result<(), FileError> {
        let given = GivenPath::new(&make.path);
        let rooted = self.rooted_for_writing(&given)?;
        let mut made = PathBuf::new();
        for part in rooted.path.components() {
            made.push(part);
            match self.root.metadata(&made) {
                Ok(metadata) if metadata.is_dir() => continue,
                Ok(_) => {
                    let path = rooted.given.to_owned();
                    return Err(FileError::NotDirectory { path });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(rooted.failed()(error)),
            }
            self.check_quota(ONE_ENTRY, rooted)?;
            match self.root.create_dir(&made) {
                Ok(()) => self.record(ONE_ENTRY, QuotaAmount::default()),
                // Another process created it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(rooted.failed()(error)),
            }
        }
        Ok(())
    }

    /// Renames an entry.
    pub(super) fn rename(&self, rename: &RenameRequest) -> Result<(), FileError> {
        let (from, to) = (GivenPath::new(&rename.from), GivenPath::new(&rename.to));
        let (from, to) = (
            self.rooted_for_writing(&from)?,
            self.rooted_for_writing(&to)?,
        );
        let (from_dir, from_name) = self.open_parent(from)?;
        let (to_dir, to_name) = self.open_parent(to)?;
        let weight = self.measure(&from_dir, from_name).map_err(from.failed())?;
        let levels = to.path.components().count() + weight.height;
        if levels > self.limits.depth {
            let limit = self.limits.depth as u64;
            return Err(to.over_limit(FileRule::Depth, limit, 0, levels as u64));
        }
        let flags = RenameFlags::NOREPLACE;
        let mut removed = QuotaAmount::default();
        match renameat_with(&*from_dir, from_name, &*to_dir, to_name, flags) {
            Err(Errno::EXIST) if rename.replace => {
                let old = from_dir
                    .symlink_metadata(from_name)
                    .map_err(from.failed())?;
                let new = to_dir.symlink_metadata(to_name).map_err(to.failed())?;
                if file_id(&old) == file_id(&new) {
                    return Ok(()); // The kernel would change nothing, so no quota is freed.
                }
                removed = self.measure(&to_dir, to_name).map_err(to.failed())?.amount;
                let flags = RenameFlags::empty();
                renameat_with(&*from_dir, from_name, &*to_dir, to_name, flags)
            }
            result => result,
        }
        .map_err(to.failed_at())?;
        self.record(QuotaAmount::default(), removed);
        Ok(())
    }

    /// Removes an entry.
    pub(super) fn delete(&self, delete: &DeleteRequest) -> Result<(), FileError> {
        let given = GivenPath::new(&delete.path);
        let rooted = self.rooted_for_writing(&given)?;
        let (dir, name) = self.open_parent(rooted)?;
        let metadata = dir.symlink_metadata(name).map_err(rooted.failed())?;
        if !metadata.is_dir() {
            dir.remove_file(name).map_err(rooted.failed())?;
            let removed = QuotaAmount {
                bytes: reclaimable_bytes(&metadata),
                entries: 1,
            };
            self.record(QuotaAmount::default(), removed);
            return Ok(());
        }
        if !delete.recursive {
            dir.remove_dir(name).map_err(rooted.failed())?;
            self.record(QuotaAmount::default(), ONE_ENTRY);
            return Ok(());
        }
        let before = self.measure(&dir, name).map_err(rooted.failed())?.amount;
        let removed = dir.remove_dir_all(name);
        // Count again: entries that could not be removed still exist.
        let left = self.measure(&dir, name).map(|left| left.amount);
        self.record(left.unwrap_or_default(), before);
        removed.map_err(rooted.failed())
    }
}

/// The entry that a replacement replaces or creates; not a link.
struct ReplacedEntry {
    /// The path relative to the root.
    path: PathBuf,
    /// The metadata of the file, if it exists.
    old: Option<cap_std::fs::Metadata>,
}

impl ReplacedEntry {
    /// The path of the entry, with the text of the path that led to it.
    fn at<'a>(&'a self, rooted: RootedPath<'a>) -> RootedPath<'a> {
        let path = &self.path;
        RootedPath { path, ..rooted }
    }

    fn is_there(&self) -> bool {
        self.old.is_some()
    }

    /// The amount that its replacement frees.
    fn amount(&self) -> QuotaAmount {
        self.old
            .as_ref()
            .map_or_else(QuotaAmount::default, |old| QuotaAmount {
                bytes: reclaimable_bytes(old),
                entries: 1,
            })
    }
}

/// The numbers of the device and of the inode, which all links to a file share.
fn file_id(metadata: &cap_std::fs::Metadata) -> (u64, u64) {
    use cap_std::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// The choice to sync a file to the disk before the reply, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncToDisk {
    Yes,
    No,
}

/// Checks that the mode of a file lets somebody write it. The rule holds for each way of writing,
/// and for root, whom the kernel would let write.
fn check_mode(mode: u32, rooted: RootedPath<'_>) -> Result<(), FileError> {
    match mode & 0o222 {
        0 => Err(rooted.refused(FileRule::Mode)),
        _ => Ok(()),
    }
}

/// The amount of one empty entry.
const ONE_ENTRY: QuotaAmount = QuotaAmount {
    bytes: 0,
    entries: 1,
};

/// An amount of bytes alone.
const fn bytes_only(bytes: u64) -> QuotaAmount {
    QuotaAmount { bytes, entries: 0 }
}
