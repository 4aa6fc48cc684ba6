//! Writing, and what makes, moves and removes entries. One call is done at a time: between the
//! look at the quota and the write nobody else writes through this actor.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::disk::{Account, BESIDE, Disk, freed, is_alone};
use super::error::{FileError, Rule};
use super::message::{Append, Delete, Make, Rename, Write, WriteMode};
use super::place::{Place, Said};

impl Disk {
    /// Writes a whole file.
    pub(super) fn write(&self, write: &Write) -> Result<(), FileError> {
        let said = Said::new(&write.path);
        let place = self.writable(&said)?;
        self.is_small(write.octets.len() as u64, place)?;
        match write.mode {
            WriteMode::Inplace => self.write_in_place(place, &write.octets),
            WriteMode::Atomic => self.replace(place, &write.octets, Sync::No),
            WriteMode::Durable => self.replace(place, &write.octets, Sync::Yes),
        }
    }

    fn write_in_place(&self, place: Place<'_>, octets: &[u8]) -> Result<(), FileError> {
        let length = octets.len() as u64;
        let mut options = OpenOptions::new();
        let (mut file, before) = self.open_or_make(place, options.write(true), |_| length)?;
        // Cutting a file off first costs many times what writing over it does.
        let written = file.write_all(octets).and_then(|()| {
            if length < before {
                file.set_len(length)
            } else {
                Ok(())
            }
        });
        let now = match &written {
            Ok(()) => length,
            Err(_) => file.metadata().map_or(length, |metadata| metadata.len()),
        };
        self.enter(of_octets(now), of_octets(before));
        written.map_err(place.failed())
    }

    /// Whether one call may write so much.
    fn is_small(&self, length: u64, place: Place<'_>) -> Result<(), FileError> {
        if length > self.limits.file {
            return Err(place.beyond(Rule::Size, self.limits.file, 0, length));
        }
        Ok(())
    }

    /// Writes behind the end of a file, whatever its size.
    pub(super) fn append(&self, append: &Append) -> Result<(), FileError> {
        let said = Said::new(&append.path);
        let place = self.writable(&said)?;
        let length = append.octets.len() as u64;
        self.is_small(length, place)?;
        let after = |before: u64| before.saturating_add(length);
        let mut options = OpenOptions::new();
        let (mut file, before) = self.open_or_make(place, options.append(true), after)?;
        let written = file.write_all(&append.octets);
        let now = file
            .metadata()
            .map_or_else(|_| after(before), |metadata| metadata.len());
        self.enter(of_octets(now), of_octets(before));
        written.map_err(place.failed())
    }

    /// Opens a file to be written, or makes it, if there is room for what it will hold; with how
    /// many octets it has.
    fn open_or_make(
        &self,
        place: Place<'_>,
        options: &mut OpenOptions,
        after: impl Fn(u64) -> u64,
    ) -> Result<(File, u64), FileError> {
        let opened = self.open_own(place, options)?;
        let before = opened.as_ref().map_or(0, |(_, before)| *before);
        let more = Account {
            octets: after(before).saturating_sub(before),
            entries: u64::from(opened.is_none()),
        };
        self.has_room(more, place)?;
        if let Some(opened) = opened {
            return Ok(opened);
        }
        let (file, _) = self.open_file(place, options.create_new(true))?;
        self.enter(ENTRY, Account::default());
        Ok((file, 0))
    }

    /// Opens a file that is there, to be written in place, with its length.
    fn open_own(
        &self,
        place: Place<'_>,
        options: &mut OpenOptions,
    ) -> Result<Option<(File, u64)>, FileError> {
        if place.is_root() {
            return Err(place.refused(Rule::Root));
        }
        match self.open_file(place, options) {
            Ok((_, metadata)) if !is_alone(&metadata) => Err(place.refused(Rule::Linked)),
            Ok((file, metadata)) => Ok(Some((file, metadata.len()))),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a new file in the place of an old one, or of none.
    pub(super) fn replace(
        &self,
        place: Place<'_>,
        octets: &[u8],
        sync: Sync,
    ) -> Result<(), FileError> {
        let led: PathBuf;
        let mut place = place;
        let mut old = self.look(place)?;
        if old.as_ref().is_some_and(cap_std::fs::Metadata::is_symlink) {
            // What the link leads to is replaced, not the link.
            led = self.root.canonicalize(place.path).map_err(place.failed())?;
            place.path = &led;
            old = self.look(place)?;
        }
        let mut gone = Account::default();
        if let Some(old) = &old {
            if old.is_dir() {
                let path = place.said.to_owned();
                return Err(FileError::IsDirectory { path });
            }
            if !old.is_file() {
                return Err(place.refused(Rule::Special));
            }
            gone = Account {
                octets: freed(old),
                entries: 1,
            };
        }
        let come = Account {
            octets: octets.len() as u64,
            entries: 1,
        };
        let more = Account {
            octets: come.octets.saturating_sub(gone.octets),
            entries: come.entries - gone.entries,
        };
        self.has_room(more, place)?;
        let (dir, name) = self.open_parent(place)?;
        let mode = old.map(|old| {
            use cap_std::fs::PermissionsExt as _;
            old.permissions().mode()
        });
        put(&dir, name, octets, mode, sync).map_err(place.failed())?;
        self.enter(come, gone);
        Ok(())
    }

    /// What is at a path, if anything is; a link is not followed.
    fn look(&self, place: Place<'_>) -> Result<Option<cap_std::fs::Metadata>, FileError> {
        match self.root.symlink_metadata(place.path) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(place.failed()(error)),
        }
    }

    /// Makes a directory, with those above it.
    pub(super) fn make(&self, make: &Make) -> Result<(), FileError> {
        let said = Said::new(&make.path);
        let place = self.writable(&said)?;
        let mut made = PathBuf::new();
        for part in place.path.components() {
            made.push(part);
            match self.root.metadata(&made) {
                Ok(metadata) if metadata.is_dir() => continue,
                Ok(_) => {
                    let path = place.said.to_owned();
                    return Err(FileError::NotDirectory { path });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(place.failed()(error)),
            }
            self.has_room(ENTRY, place)?;
            match self.root.create_dir(&made) {
                Ok(()) => self.enter(ENTRY, Account::default()),
                // Somebody else was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(place.failed()(error)),
            }
        }
        Ok(())
    }

    /// Gives an entry another name.
    pub(super) fn rename(&self, rename: &Rename) -> Result<(), FileError> {
        let (from, to) = (Said::new(&rename.from), Said::new(&rename.to));
        let (from, to) = (self.writable(&from)?, self.writable(&to)?);
        let (from_dir, from_name) = self.open_parent(from)?;
        let (to_dir, to_name) = self.open_parent(to)?;
        let weight = self.weigh(&from_dir, from_name).map_err(from.failed())?;
        if to.path.components().count() + weight.height > self.limits.depth {
            return Err(to.refused(Rule::Depth));
        }
        let flags = RenameFlags::NOREPLACE;
        let mut gone = Account::default();
        match renameat_with(&*from_dir, from_name, &*to_dir, to_name, flags) {
            Err(Errno::EXIST) if rename.replace => {
                gone = self.weigh(&to_dir, to_name).map_err(to.failed())?.account;
                let flags = RenameFlags::empty();
                renameat_with(&*from_dir, from_name, &*to_dir, to_name, flags)
            }
            result => result,
        }
        .map_err(to.failed_at())?;
        self.enter(Account::default(), gone);
        Ok(())
    }

    /// Removes an entry.
    pub(super) fn delete(&self, delete: &Delete) -> Result<(), FileError> {
        let said = Said::new(&delete.path);
        let place = self.writable(&said)?;
        let (dir, name) = self.open_parent(place)?;
        let metadata = dir.symlink_metadata(name).map_err(place.failed())?;
        if !metadata.is_dir() {
            dir.remove_file(name).map_err(place.failed())?;
            let gone = Account {
                octets: freed(&metadata),
                entries: 1,
            };
            self.enter(Account::default(), gone);
            return Ok(());
        }
        if !delete.recursive {
            dir.remove_dir(name).map_err(place.failed())?;
            self.enter(Account::default(), ENTRY);
            return Ok(());
        }
        let before = self.weigh(&dir, name).map_err(place.failed())?.account;
        let removed = dir.remove_dir_all(name);
        // What could not be removed is still there.
        let left = self.weigh(&dir, name).map(|left| left.account);
        self.enter(left.unwrap_or_default(), before);
        removed.map_err(place.failed())
    }
}

/// Whether a file is on the disk before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Yes,
    No,
}

/// One entry without octets.
const ENTRY: Account = Account {
    octets: 0,
    entries: 1,
};

/// An account of octets alone.
const fn of_octets(octets: u64) -> Account {
    Account { octets, entries: 0 }
}

/// Writes a file beside another and puts it in that one's place.
fn put(dir: &Dir, name: &Path, octets: &[u8], mode: Option<u32>, sync: Sync) -> io::Result<()> {
    let number = BESIDES.fetch_add(1, Ordering::Relaxed);
    let beside = format!("{BESIDE}{}-{number}", std::process::id());
    let mut options = OpenOptions::new();
    let file = dir.open_with(&beside, options.write(true).create_new(true))?;
    let written = fill(&mut file.into_std(), octets, mode, sync)
        .and_then(|()| dir.rename(&beside, dir, name));
    if written.is_err() {
        let _ = dir.remove_file(&beside);
    } else if sync == Sync::Yes {
        // The name, too, has to be on the disk.
        dir.open(".")?.sync_all()?;
    }
    written
}

/// Tells apart what is written beside.
static BESIDES: AtomicU64 = AtomicU64::new(0);

fn fill(file: &mut File, octets: &[u8], mode: Option<u32>, sync: Sync) -> io::Result<()> {
    if let Some(mode) = mode {
        file.set_permissions(std::fs::Permissions::from_mode(mode & 0o777))?;
    }
    file.write_all(octets)?;
    match sync {
        Sync::Yes => file.sync_all(),
        Sync::No => Ok(()),
    }
}
