//! File access below granted directories.
//!
//! A granted directory is opened once, and everything below it is reached from that handle, one
//! name at a time. Each step opens one name in the open directory and follows no link. No path can
//! therefore lead outside, even if others change the directories meanwhile, and no paths are
//! compared.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::contract::Refusal;
use crate::manifest::FilesGrant;

/// A granted directory.
#[derive(Debug)]
pub(crate) struct GrantedDir {
    dir: OwnedFd,
    grant: FilesGrant,
    /// Usage below the directory; measured before the first write.
    used: Option<DirUsage>,
}

/// The size and number of the files below a directory.
#[derive(Debug, Clone, Copy, Default)]
struct DirUsage {
    bytes: u64,
    files: usize,
}

/// Maximum length of a path in bytes, and maximum number of names in it.
const MAX_PATH: usize = 4096;
const MAX_DEPTH: usize = 32;
/// Maximum number of entries in a directory to be listed, and in all directories to be measured.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of names that one listing returns.
const MAX_LISTED: u32 = 1000;

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags for an intermediate directory, which need not be readable.
#[cfg(target_os = "linux")]
const INTERMEDIATE_FLAGS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const INTERMEDIATE_FLAGS: OFlags = DIRECTORY_FLAGS;
/// Flags for a file. `NONBLOCK`: opening a FIFO must not wait for the other end.
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Maps an error of the system to a refusal of the contract.
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

fn io_refusal(error: &io::Error) -> Refusal {
    let code = error.raw_os_error();
    code.map_or(Refusal::Failed, |code| {
        refusal(Errno::from_raw_os_error(code))
    })
}

/// Splits a path into its names, of which there is at least one.
fn split_path(path: &str) -> Result<Vec<&str>, Refusal> {
    let names: Vec<_> = path.split('/').take(MAX_DEPTH + 1).collect();
    let plain = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains('\0');
    if path.len() > MAX_PATH || names.len() > MAX_DEPTH || !names.iter().all(plain) {
        return Err(Refusal::Denied);
    }
    Ok(names)
}

/// Opens a directory whose path was resolved when the component was loaded. That path was checked
/// against the caps of the node, so a link created since then is not followed.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        return Err(Errno::INVAL);
    }
    let names: Vec<_> = components.map(|one| one.as_os_str()).collect();
    let first = if names.is_empty() {
        DIRECTORY_FLAGS
    } else {
        INTERMEDIATE_FLAGS
    };
    let mut dir = rustix::fs::openat(CWD, "/", first, Mode::empty())?;
    for (at, name) in names.iter().enumerate() {
        let flags = if at + 1 == names.len() {
            DIRECTORY_FLAGS
        } else {
            INTERMEDIATE_FLAGS
        };
        dir = rustix::fs::openat(&dir, *name, flags, Mode::empty())?;
    }
    Ok(dir)
}

impl GrantedDir {
    pub(crate) fn open(grant: &FilesGrant) -> Result<Self, Errno> {
        let opened = open(&grant.path);
        Ok(Self {
            dir: opened?,
            grant: grant.clone(),
            used: None,
        })
    }

    /// Opens the parent directory of a path; returns it with the last name.
    fn open_parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Refusal> {
        let names = split_path(path)?;
        let (last, way) = names.split_last().ok_or(Refusal::Denied)?;
        Ok((self.open_dir(way)?, last))
    }

    fn open_dir(&self, way: &[&str]) -> Result<OwnedFd, Refusal> {
        let own = self.dir.try_clone();
        let mut dir = own.map_err(|error| io_refusal(&error))?;
        for name in way {
            let next = rustix::fs::openat(&dir, *name, DIRECTORY_FLAGS, Mode::empty());
            dir = next.map_err(refusal)?;
        }
        Ok(dir)
    }

    /// Opens a regular file; returns it with its length.
    fn open_file(&self, path: &str, flags: OFlags) -> Result<(File, u64), Refusal> {
        let (dir, name) = self.open_parent(path)?;
        let file = rustix::fs::openat(&dir, name, FILE_FLAGS | flags, Mode::from(0o600));
        let file = File::from(file.map_err(refusal)?);
        let metadata = file.metadata().map_err(|error| io_refusal(&error))?;
        // A file with several hard links may also be reachable from outside, so it is not written.
        let shared = metadata.nlink() > 1 && !(flags & OFlags::RDWR).is_empty();
        if !metadata.is_file() || shared {
            return Err(Refusal::Denied);
        }
        Ok((file, metadata.len()))
    }

    pub(crate) fn size(&self, path: &str) -> Result<u64, Refusal> {
        self.open_file(path, OFlags::RDONLY).map(|(_, size)| size)
    }

    pub(crate) fn read(&self, path: &str, offset: u64, count: usize) -> Result<Vec<u8>, Refusal> {
        let (file, size) = self.open_file(path, OFlags::RDONLY)?;
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; count.min(left)];
        let mut done = 0;
        while done < bytes.len() {
            let read = file.read_at(&mut bytes[done..], offset + done as u64);
            match read.map_err(|error| io_refusal(&error))? {
                0 => break,
                more => done += more,
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// Writes at an offset, and creates the file if it does not exist.
    pub(crate) fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let end = offset.checked_add(bytes.len() as u64);
        let end = end.ok_or(Refusal::Limit)?;
        // Writing no bytes does not extend the file, whatever the offset.
        let end = if bytes.is_empty() { 0 } else { end };
        let (file, size) = match self.writable(path) {
            Err(Refusal::Unknown) => {
                self.check_quota(end, 1)?;
                self.used = None;
                self.open_file(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?
            }
            found => found?,
        };
        self.check_quota(end.saturating_sub(size), 0)?;
        let used = self.used.take();
        let written = file.write_all_at(bytes, offset);
        written.map_err(|error| io_refusal(&error))?;
        self.used = used.map(|used| DirUsage {
            bytes: used.bytes + end.saturating_sub(size),
            ..used
        });
        Ok(())
    }

    /// Sets the length of a file: truncates it or appends zeros.
    pub(crate) fn resize(&mut self, path: &str, size: u64) -> Result<(), Refusal> {
        let (file, old) = self.writable(path)?;
        self.check_quota(size.saturating_sub(old), 0)?;
        self.used = None;
        file.set_len(size).map_err(|error| io_refusal(&error))
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, path: &str) -> Result<(), Refusal> {
        if !self.grant.write {
            return Err(Refusal::Denied);
        }
        let (dir, name) = self.open_parent(path)?;
        self.used = None;
        // This removes the name itself, even if it is a link.
        rustix::fs::unlinkat(&dir, name, AtFlags::empty()).map_err(refusal)
    }

    /// Returns the names of files and directories (these with a trailing `/`) in a directory,
    /// sorted, starting after `after`.
    pub(crate) fn list(&self, path: &str, after: &str, most: u32) -> Result<Vec<String>, Refusal> {
        let way = match path {
            "" => Vec::new(),
            path => split_path(path)?,
        };
        let dir = self.open_dir(&way)?;
        let mut found = Vec::new();
        entries(dir.as_fd(), &mut |name, kind| {
            let mut name = name.to_owned();
            if kind == FileType::Directory {
                name.push('/');
            }
            found.push(name);
            found.len() <= MAX_ENTRIES
        })?;
        if found.len() > MAX_ENTRIES {
            return Err(Refusal::Limit);
        }
        found.sort_unstable();
        let from = found.partition_point(|name| name.as_str() <= after);
        let most = most.min(MAX_LISTED) as usize;
        Ok(found.drain(from..).take(most).collect())
    }

    fn writable(&self, path: &str) -> Result<(File, u64), Refusal> {
        if !self.grant.write {
            return Err(Refusal::Denied);
        }
        self.open_file(path, OFlags::RDWR)
    }

    /// Checks that `bytes` more bytes and `files` more files fit in the quota.
    fn check_quota(&mut self, bytes: u64, files: usize) -> Result<(), Refusal> {
        let used = match self.used {
            Some(used) => used,
            None => self.measure()?,
        };
        self.used = Some(used);
        let quota = self.grant.size as u64;
        let fits = used
            .bytes
            .checked_add(bytes)
            .is_some_and(|sum| sum <= quota);
        if fits && used.files + files <= self.grant.files {
            Ok(())
        } else {
            Err(Refusal::Limit)
        }
    }

    /// Measures the usage below the directory. Only one directory is open at a time, whatever their
    /// number.
    fn measure(&self) -> Result<DirUsage, Refusal> {
        let mut used = DirUsage::default();
        let mut seen = 0;
        let mut left = vec![String::new()];
        while let Some(path) = left.pop() {
            let way: Vec<_> = path.split('/').skip(1).collect();
            if way.len() > MAX_DEPTH {
                return Err(Refusal::Limit);
            }
            let dir = self.open_dir(&way)?;
            let mut files = Vec::new();
            entries(dir.as_fd(), &mut |name, kind| {
                match kind {
                    FileType::Directory => left.push(format!("{path}/{name}")),
                    _ => files.push(name.to_owned()),
                }
                seen += 1;
                seen <= MAX_ENTRIES
            })?;
            if seen > MAX_ENTRIES {
                return Err(Refusal::Limit);
            }
            for name in files {
                let found = rustix::fs::statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW);
                // A file that has disappeared meanwhile does not count.
                if let Ok(found) = found {
                    used.bytes += u64::try_from(found.st_size).unwrap_or(0);
                    used.files += 1;
                }
            }
        }
        Ok(used)
    }
}

/// Calls `visit` for each regular file and directory in a directory, until it returns `false`.
fn entries(
    dir: BorrowedFd<'_>,
    visit: &mut dyn FnMut(&str, FileType) -> bool,
) -> Result<(), Refusal> {
    for entry in Dir::read_from(dir).map_err(refusal)? {
        let entry = entry.map_err(refusal)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                FileType::from_raw_mode(found.map_err(refusal)?.st_mode)
            }
            known => known,
        };
        let plain = matches!(kind, FileType::RegularFile | FileType::Directory);
        if plain && !matches!(name, "." | "..") && !visit(name, kind) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
