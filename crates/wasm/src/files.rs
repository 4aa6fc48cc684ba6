//! Files below folders that a component was granted.
//!
//! A folder is opened once, and everything below it is reached from that handle, name by name:
//! each step opens one name in the folder that is open, and follows no link. So there is no path
//! that could lead elsewhere, whatever others do to the folders meanwhile, and none is compared.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::contract::Refusal;
use crate::manifest::FilesGrant;

/// A folder that was granted.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    grant: FilesGrant,
    /// What is below it, once somebody wanted to write.
    used: Option<Used>,
}

/// The files below a folder.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    octets: u64,
    files: usize,
}

/// The longest path, and the deepest.
const PATH: usize = 4096;
const DEPTH: usize = 32;
/// The most names in a folder that is listed, and of all folders that are measured.
const ENTRIES: usize = 10_000;
/// The most names of one listing.
const LIST: u32 = 1000;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Nobody waits for the other end of a pipe.
const PLAIN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// What the system says, in the words of the contract.
fn refusal(error: Errno) -> Refusal {
    match error {
        Errno::NOENT | Errno::NOTDIR => Refusal::Unknown,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Refusal::Limit,
        Errno::LOOP
        | Errno::ACCESS
        | Errno::PERM
        | Errno::ROFS
        | Errno::ISDIR
        | Errno::NXIO
        | Errno::NAMETOOLONG => Refusal::Denied,
        _ => Refusal::Failed,
    }
}

fn failed(error: &io::Error) -> Refusal {
    let code = error.raw_os_error();
    code.map_or(Refusal::Failed, |code| {
        refusal(Errno::from_raw_os_error(code))
    })
}

/// The names of a path; at least one.
fn names(path: &str) -> Result<Vec<&str>, Refusal> {
    let names: Vec<_> = path.split('/').take(DEPTH + 1).collect();
    let plain = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains('\0');
    if path.len() > PATH || names.len() > DEPTH || !names.iter().all(plain) {
        return Err(Refusal::Denied);
    }
    Ok(names)
}

impl Root {
    pub(crate) fn open(grant: &FilesGrant) -> Result<Self, Refusal> {
        // Where the folder itself is, the manifest says; links on the way are its own.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, &grant.path, flags, Mode::empty());
        let folder = opened.map_err(|error| {
            let path = grant.path.display();
            tracing::warn!(%path, %error, "cannot open a folder that a component was granted");
            Refusal::Failed
        })?;
        Ok(Self {
            folder,
            grant: grant.clone(),
            used: None,
        })
    }

    /// The folder in which the last name of a path is, and that name.
    fn reach<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Refusal> {
        let names = names(path)?;
        let (last, way) = names.split_last().ok_or(Refusal::Denied)?;
        Ok((self.walk(way)?, last))
    }

    fn walk(&self, way: &[&str]) -> Result<OwnedFd, Refusal> {
        let own = self.folder.try_clone();
        let mut folder = own.map_err(|error| failed(&error))?;
        for name in way {
            let next = rustix::fs::openat(&folder, *name, FOLDER, Mode::empty());
            folder = next.map_err(refusal)?;
        }
        Ok(folder)
    }

    /// Opens a plain file, with its length.
    fn file(&self, path: &str, flags: OFlags) -> Result<(File, u64), Refusal> {
        let (folder, name) = self.reach(path)?;
        let file = rustix::fs::openat(&folder, name, PLAIN | flags, Mode::from(0o600));
        let file = File::from(file.map_err(refusal)?);
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        // What has another name is somebody else's as well.
        let shared = metadata.nlink() > 1 && !(flags & OFlags::RDWR).is_empty();
        if !metadata.is_file() || shared {
            return Err(Refusal::Denied);
        }
        Ok((file, metadata.len()))
    }

    pub(crate) fn size(&self, path: &str) -> Result<u64, Refusal> {
        self.file(path, OFlags::RDONLY).map(|(_, size)| size)
    }

    pub(crate) fn read(&self, path: &str, offset: u64, count: usize) -> Result<Vec<u8>, Refusal> {
        let (file, size) = self.file(path, OFlags::RDONLY)?;
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut octets = vec![0; count.min(left)];
        let mut done = 0;
        while done < octets.len() {
            let read = file.read_at(&mut octets[done..], offset + done as u64);
            match read.map_err(|error| failed(&error))? {
                0 => break,
                more => done += more,
            }
        }
        octets.truncate(done);
        Ok(octets)
    }

    /// Writes at an offset; makes the file if it is not there.
    pub(crate) fn write(&mut self, path: &str, offset: u64, octets: &[u8]) -> Result<(), Refusal> {
        let end = offset.checked_add(octets.len() as u64);
        let end = end.ok_or(Refusal::Limit)?;
        // Nothing, written far away, makes no file longer.
        let end = if octets.is_empty() { 0 } else { end };
        let (file, size) = match self.writable(path) {
            Err(Refusal::Unknown) => {
                self.make_room(end, 1)?;
                self.used = None;
                self.file(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?
            }
            found => found?,
        };
        self.make_room(end.saturating_sub(size), 0)?;
        let used = self.used.take();
        let written = file.write_all_at(octets, offset);
        written.map_err(|error| failed(&error))?;
        self.used = used.map(|used| Used {
            octets: used.octets + end.saturating_sub(size),
            ..used
        });
        Ok(())
    }

    /// Makes a file so long: cuts it off, or puts zeros at its end.
    pub(crate) fn resize(&mut self, path: &str, size: u64) -> Result<(), Refusal> {
        let (file, old) = self.writable(path)?;
        self.make_room(size.saturating_sub(old), 0)?;
        self.used = None;
        file.set_len(size).map_err(|error| failed(&error))
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, path: &str) -> Result<(), Refusal> {
        if !self.grant.write {
            return Err(Refusal::Denied);
        }
        let (folder, name) = self.reach(path)?;
        self.used = None;
        // A name is removed, not what a link points to.
        rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(refusal)
    }

    /// The files, and with `/` at their end the folders, in a folder: in their order, those after
    /// the one named.
    pub(crate) fn list(&self, path: &str, after: &str, most: u32) -> Result<Vec<String>, Refusal> {
        let way = match path {
            "" => Vec::new(),
            path => names(path)?,
        };
        let folder = self.walk(&way)?;
        let mut found = Vec::new();
        entries(folder.as_fd(), &mut |name, kind| {
            let mut name = name.to_owned();
            if kind == FileType::Directory {
                name.push('/');
            }
            found.push(name);
            found.len() <= ENTRIES
        })?;
        if found.len() > ENTRIES {
            return Err(Refusal::Limit);
        }
        found.sort_unstable();
        let from = found.partition_point(|name| name.as_str() <= after);
        let most = most.min(LIST) as usize;
        Ok(found.drain(from..).take(most).collect())
    }

    fn writable(&self, path: &str) -> Result<(File, u64), Refusal> {
        if !self.grant.write {
            return Err(Refusal::Denied);
        }
        self.file(path, OFlags::RDWR)
    }

    /// Sees to it that there may be so much more.
    fn make_room(&mut self, octets: u64, files: usize) -> Result<(), Refusal> {
        let used = match self.used {
            Some(used) => used,
            None => self.measure()?,
        };
        self.used = Some(used);
        let room = self.grant.size as u64;
        let fits = used
            .octets
            .checked_add(octets)
            .is_some_and(|sum| sum <= room);
        if fits && used.files + files <= self.grant.files {
            Ok(())
        } else {
            Err(Refusal::Limit)
        }
    }

    /// Counts what is below the folder. One folder is open at a time, however many there are.
    fn measure(&self) -> Result<Used, Refusal> {
        let mut used = Used::default();
        let mut seen = 0;
        let mut left = vec![String::new()];
        while let Some(path) = left.pop() {
            let way: Vec<_> = path.split('/').skip(1).collect();
            if way.len() > DEPTH {
                return Err(Refusal::Limit);
            }
            let folder = self.walk(&way)?;
            let mut files = Vec::new();
            entries(folder.as_fd(), &mut |name, kind| {
                match kind {
                    FileType::Directory => left.push(format!("{path}/{name}")),
                    _ => files.push(name.to_owned()),
                }
                seen += 1;
                seen <= ENTRIES
            })?;
            if seen > ENTRIES {
                return Err(Refusal::Limit);
            }
            for name in files {
                let found = rustix::fs::statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW);
                // What is gone meanwhile does not count.
                if let Ok(found) = found {
                    used.octets += u64::try_from(found.st_size).unwrap_or(0);
                    used.files += 1;
                }
            }
        }
        Ok(used)
    }
}

/// Shows the plain files and the folders in a folder, until it is told to stop.
fn entries(
    folder: BorrowedFd<'_>,
    show: &mut dyn FnMut(&str, FileType) -> bool,
) -> Result<(), Refusal> {
    for entry in Dir::read_from(folder).map_err(refusal)? {
        let entry = entry.map_err(refusal)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
                FileType::from_raw_mode(found.map_err(refusal)?.st_mode)
            }
            known => known,
        };
        let plain = matches!(kind, FileType::RegularFile | FileType::Directory);
        if plain && !matches!(name, "." | "..") && !show(name, kind) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
