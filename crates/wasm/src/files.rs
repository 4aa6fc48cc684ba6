//! File access below granted directories.
//!
//! A granted directory is opened once, and everything below it is reached from that handle, one
//! name at a time. Each step opens one name in the open directory and follows no link. No path can
//! therefore lead outside, even if others change the directories meanwhile, and no paths are
//! compared.
//!
//! # Usage
//!
//! The usage below a directory is counted: each operation adds its own change. All that have a
//! directory open, whatever their component and incarnation, share one count, which the host keeps.
//! Changes by others (another process, a grant of a directory above or below) are not seen as they
//! happen, so the directory is also measured, in [`GrantedDir::check_quota`]:
//!
//! - before the first write of the process that grows it,
//! - after an operation that failed halfway, whose change is unknown,
//! - before a write is refused, if the last measurement is old for what it took
//!   ([`RECHECK_FACTOR`]): others may have removed files,
//! - before a write that grows it, if the last measurement is old ([`MAX_AGE`], [`AGE_FACTOR`]):
//!   others may have added files.
//!
//! A crash of a component loses no change, as the operation and its count are one host call. The
//! count ends with the process.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::contract::Refusal;
use crate::host_call::HostCall;
use crate::manifest::FilesGrant;
use crate::seeded_bug::{Bug, seeded};

/// A granted directory.
#[derive(Debug)]
pub(crate) struct GrantedDir {
    dir: OwnedFd,
    grant: FilesGrant,
    usage: SharedDirUsage,
}

/// The usage of one directory, `None` if it is unknown.
type SharedDirUsage = Arc<Mutex<Option<DirUsage>>>;

/// The size and number of the files below a directory.
#[derive(Debug, Clone, Copy)]
struct DirUsage {
    bytes: u64,
    files: usize,
    /// Time of the last measurement.
    measured: Instant,
    /// Duration of the last measurement.
    took: Duration,
}

impl DirUsage {
    fn grown(self, bytes: u64, files: usize) -> Self {
        Self {
            bytes: self.bytes.saturating_add(bytes),
            files: self.files.saturating_add(files),
            ..self
        }
    }

    /// Saturates: others may have removed what was counted, and added what is removed now.
    fn shrunk(self, bytes: u64, files: usize) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(bytes),
            files: self.files.saturating_sub(files),
            ..self
        }
    }

    fn fits(self, bytes: u64, files: usize, grant: &FilesGrant) -> bool {
        let bytes = self.bytes.checked_add(bytes);
        let files = self.files.checked_add(files);
        bytes.is_some_and(|sum| sum <= grant.size as u64)
            && files.is_some_and(|sum| sum <= grant.files)
    }

    /// Returns `true` if it is older than `least` and `factor` times the duration of measuring it.
    fn is_older(self, least: Duration, factor: u32) -> bool {
        self.measured.elapsed() >= least.max(self.took.saturating_mul(factor))
    }
}

/// The usage of each directory that components write to, by device and inode.
#[derive(Debug, Default)]
pub(crate) struct DirUsages(Mutex<FxHashMap<(u64, u64), SharedDirUsage>>);

impl DirUsages {
    fn get(&self, dir: (u64, u64)) -> SharedDirUsage {
        let mut all = self.0.lock();
        // A directory that no component has open is forgotten, but not so soon that each restart of
        // a component measures it.
        all.retain(|_, usage| {
            let recent = || {
                let usage = *usage.lock();
                usage.is_some_and(|usage| !usage.is_older(FORGET_AGE, AGE_FACTOR))
            };
            Arc::strong_count(usage) > 1 || recent()
        });
        Arc::clone(all.entry(dir).or_default())
    }
}

/// Minimum age of a measurement, and multiple of its duration, before a write that grows the
/// directory measures it again.
const MAX_AGE: Duration = Duration::from_secs(10);
const AGE_FACTOR: u32 = 1000;
/// The same before a refusal. Measuring takes a hundredth of the time at most, even for a component
/// that does nothing but pass its quota.
const RECHECK_AGE: Duration = Duration::from_millis(10);
const RECHECK_FACTOR: u32 = 100;
/// Minimum age of the usage of a directory that is not open.
const FORGET_AGE: Duration = Duration::from_secs(60);
/// Number of entries or bytes after which an operation checks its call.
const STEP_ENTRIES: usize = 256;
const STEP_BYTES: usize = 256 << 10;
/// Maximum length of a path in bytes, and maximum number of names in it.
const MAX_PATH: usize = 4096;
const MAX_DEPTH: usize = 32;
/// Maximum number of entries in a directory to be listed. With more entries than this and its grant
/// below a directory, nothing is added.
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
    pub(crate) fn open(grant: &FilesGrant, usages: &DirUsages) -> Result<Self, Errno> {
        let dir = File::from(open(&grant.path)?);
        let found = dir.metadata();
        let found = found.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let usage = usages.get((found.dev(), found.ino()));
        Ok(Self {
            dir: dir.into(),
            grant: grant.clone(),
            usage,
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

    pub(crate) fn read(
        &self,
        path: &str,
        offset: u64,
        count: usize,
        call: &mut dyn HostCall,
    ) -> Result<Vec<u8>, Refusal> {
        let (file, size) = self.open_file(path, OFlags::RDONLY)?;
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; count.min(left)];
        let mut done = 0;
        while done < bytes.len() {
            let end = bytes.len().min(done + STEP_BYTES);
            let read = file.read_at(&mut bytes[done..end], offset + done as u64);
            match read.map_err(|error| io_refusal(&error))? {
                0 => break,
                more => done += more,
            }
            check_step(call)?;
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// Writes at an offset, and creates the file if it does not exist.
    pub(crate) fn write(
        &self,
        path: &str,
        offset: u64,
        bytes: &[u8],
        call: &mut dyn HostCall,
    ) -> Result<(), Refusal> {
        let end = offset.checked_add(bytes.len() as u64);
        let end = end.ok_or(Refusal::Limit)?;
        // Writing no bytes does not extend the file, whatever the offset.
        let end = if bytes.is_empty() { 0 } else { end };
        // Held over check, change and count: others with this directory wait, and no measurement
        // sees half of a change.
        let mut usage = self.usage.lock();
        let (file, size, created) = match self.writable(path) {
            Err(Refusal::Unknown) => {
                self.check_quota(&mut usage, end, 1, call)?;
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                let (file, size) = self.open_file(path, flags)?;
                (file, size, 1)
            }
            found => {
                let (file, size) = found?;
                self.check_quota(&mut usage, end.saturating_sub(size), 0, call)?;
                (file, size, 0)
            }
        };
        // Unknown until everything is written.
        let before = usage.take();
        let mut at = offset;
        for step in bytes.chunks(STEP_BYTES) {
            let written = file.write_all_at(step, at);
            written.map_err(|error| io_refusal(&error))?;
            at += step.len() as u64;
            check_step(call)?;
        }
        *usage = before.map(|before| before.grown(end.saturating_sub(size), created));
        Ok(())
    }

    /// Sets the length of a file: truncates it or appends zeros.
    pub(crate) fn resize(
        &self,
        path: &str,
        size: u64,
        call: &mut dyn HostCall,
    ) -> Result<(), Refusal> {
        let mut usage = self.usage.lock();
        let (file, old) = self.writable(path)?;
        self.check_quota(&mut usage, size.saturating_sub(old), 0, call)?;
        let before = usage.take();
        file.set_len(size).map_err(|error| io_refusal(&error))?;
        *usage = before.map(|before| {
            let grown = before.grown(size.saturating_sub(old), 0);
            grown.shrunk(old.saturating_sub(size), 0)
        });
        Ok(())
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &str) -> Result<(), Refusal> {
        if !self.grant.write {
            return Err(Refusal::Denied);
        }
        let (dir, name) = self.open_parent(path)?;
        let mut usage = self.usage.lock();
        let found = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
        // This removes the name itself, even if it is a link.
        rustix::fs::unlinkat(&dir, name, AtFlags::empty()).map_err(refusal)?;
        // As in a measurement, only regular files count.
        if let Ok(found) = found
            && FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        {
            let size = u64::try_from(found.st_size).unwrap_or(0);
            *usage = usage.map(|before| before.shrunk(size, 1));
        }
        Ok(())
    }

    /// Returns the names of files and directories (these with a trailing `/`) in a directory,
    /// sorted, starting after `after`.
    pub(crate) fn list(
        &self,
        path: &str,
        after: &str,
        most: u32,
        call: &mut dyn HostCall,
    ) -> Result<Vec<String>, Refusal> {
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
            let stopped = found.len().is_multiple_of(STEP_ENTRIES) && !call.may_continue();
            !stopped && found.len() <= MAX_ENTRIES
        })?;
        check_step(call)?;
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

    /// Checks that `bytes` more bytes and `files` more files fit in the quota, and measures the
    /// directory if that is due.
    fn check_quota(
        &self,
        usage: &mut Option<DirUsage>,
        bytes: u64,
        files: usize,
        call: &mut dyn HostCall,
    ) -> Result<(), Refusal> {
        if bytes == 0 && files == 0 {
            return Ok(());
        }
        let is_due = usage.is_none_or(|used| {
            used.is_older(MAX_AGE, AGE_FACTOR)
                || !used.fits(bytes, files, &self.grant)
                    && used.is_older(RECHECK_AGE, RECHECK_FACTOR)
        });
        if is_due || seeded(Bug::FolderMeasuredAtEachWrite) {
            // Its duration depends on the files of others too, so the call is not charged for it.
            let mut measured = Err(Refusal::Failed);
            call.run_aside(&mut |stop| measured = self.measure(stop));
            *usage = Some(measured?);
        }
        match usage.is_some_and(|used| used.fits(bytes, files, &self.grant)) {
            true => Ok(()),
            false => Err(Refusal::Limit),
        }
    }

    /// Measures the usage below the directory. Only one directory is open at a time, whatever their
    /// number.
    fn measure(&self, stop: &AtomicBool) -> Result<DirUsage, Refusal> {
        let began = Instant::now();
        let (mut bytes, mut files, mut seen) = (0_u64, 0, 0);
        let max = MAX_ENTRIES.max(self.grant.files);
        let mut left = vec![String::new()];
        while let Some(path) = left.pop() {
            let way: Vec<_> = path.split('/').skip(1).collect();
            if way.len() > MAX_DEPTH {
                seen = usize::MAX;
                break;
            }
            let dir = match self.open_dir(&way) {
                Ok(dir) => dir,
                // A directory that has disappeared meanwhile does not count.
                Err(Refusal::Unknown) if !way.is_empty() => continue,
                Err(refused) => return Err(refused),
            };
            let mut names = Vec::new();
            entries(dir.as_fd(), &mut |name, kind| {
                match kind {
                    FileType::Directory => left.push(format!("{path}/{name}")),
                    _ => names.push(name.to_owned()),
                }
                seen += 1;
                seen <= max && !stop.load(Ordering::Relaxed)
            })?;
            for name in names {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let found = rustix::fs::statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW);
                // A file that has disappeared meanwhile does not count.
                if let Ok(found) = found {
                    bytes += u64::try_from(found.st_size).unwrap_or(0);
                    files += 1;
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Refusal::Failed);
            }
            if seen > max {
                break;
            }
        }
        // More than can be counted is more than any quota, until the next measurement.
        if seen > max {
            (bytes, files) = (u64::MAX, usize::MAX);
        }
        Ok(DirUsage {
            bytes,
            files,
            measured: Instant::now(),
            took: began.elapsed(),
        })
    }
}

/// Ends an operation whose call must end.
fn check_step(call: &mut dyn HostCall) -> Result<(), Refusal> {
    match call.may_continue() {
        true => Ok(()),
        false => Err(Refusal::Failed),
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
