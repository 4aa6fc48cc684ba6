//! The mark: the number of the last committed group, in a file beside the database.
//!
//! It is written after each group and before the group is acknowledged, so a database whose last
//! group is older than the mark has lost acknowledged writes. Two slots in separate sectors are
//! written alternately, so that one of them is always intact.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// The open file.
#[derive(Debug)]
pub(super) struct MarkFile {
    file: File,
    /// The offset of the next write.
    next: u64,
}

/// The contents of the file when it was opened.
#[derive(Debug, Default)]
pub(super) struct FoundMark {
    /// The number of the last committed group; 0 in a new store.
    pub(super) group: u64,
    /// The format of the store, if this version does not know it.
    pub(super) unknown_format: Option<u8>,
}

impl MarkFile {
    /// The format of stores that this version writes. It reads the earlier ones as well: in the
    /// first one, each batch wrote the head of its entity; up to the second one, a group did not
    /// have the number of the one before it.
    pub(super) const FORMAT: u8 = 3;

    /// Opens the file, or creates an empty one.
    pub(super) fn open(path: &Path) -> io::Result<(Self, FoundMark)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path)?;
        let (found, next) = read_slots(&file)?;
        Ok((Self { file, next }, found))
    }

    /// Overwrites the older slot.
    pub(super) fn write(&mut self, group: u64) -> io::Result<()> {
        self.file
            .write_all_at(&encode(Self::FORMAT, group), self.next)?;
        self.next = SECTOR - self.next;
        Ok(())
    }

    /// Locks the file. Returns `false` if another process has locked it.
    pub(super) fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Syncs the file to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl FoundMark {
    /// Reads the file without changing it. A file that does not exist is empty.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            file => Ok(read_slots(&file?)?.0),
        }
    }
}

/// Reads both slots. Returns the contents, and the offset of the next write.
fn read_slots(file: &File) -> io::Result<(FoundMark, u64)> {
    let mut found = FoundMark::default();
    let mut next = 0;
    for at in [0, SECTOR] {
        let mut slot = [0; LENGTH];
        match file.read_exact_at(&mut slot, at) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
            read => read?,
        }
        match decode(&slot) {
            Some((1..=MarkFile::FORMAT, group)) if group >= found.group => {
                found.group = group;
                next = SECTOR - at;
            }
            Some((1..=MarkFile::FORMAT, _)) | None => {}
            Some((format, _)) => found.unknown_format = Some(format),
        }
    }
    Ok((found, next))
}

fn encode(format: u8, group: u64) -> [u8; LENGTH] {
    let mut slot = [0; LENGTH];
    slot[..3].copy_from_slice(&MAGIC);
    slot[3] = format;
    slot[4..12].copy_from_slice(&group.to_be_bytes());
    let digest = xxh3_64(&slot[..12]);
    slot[12..].copy_from_slice(&digest.to_be_bytes());
    slot
}

/// Returns the format and the group of a slot; `None` if it is empty or damaged.
fn decode(slot: &[u8; LENGTH]) -> Option<(u8, u64)> {
    let (front, digest) = slot.split_last_chunk::<8>()?;
    let group = front.get(4..)?.first_chunk()?;
    let is_intact = front.starts_with(&MAGIC) && xxh3_64(front) == u64::from_be_bytes(*digest);
    is_intact.then(|| (front[3], u64::from_be_bytes(*group)))
}

const MAGIC: [u8; 3] = *b"SWd";
const LENGTH: usize = 20;
const SECTOR: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_slot_leaves_the_previous_mark() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mark");
        let (mut file, found) = MarkFile::open(&path).expect("it opens");
        assert_eq!(found.group, 0);
        for group in 1..=3 {
            file.write(group).expect("it is written");
        }
        assert_eq!(MarkFile::open(&path).expect("it opens").1.group, 3);
        // The third mark is in the first slot.
        file.file.write_all_at(&[0xff], 5).expect("it is written");
        let (mut file, found) = MarkFile::open(&path).expect("it opens");
        assert_eq!(found.group, 2);
        file.write(4).expect("it is written");
        assert_eq!(MarkFile::open(&path).expect("it opens").1.group, 4);
    }
    #[test]
    fn mark_of_the_first_format_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mark");
        std::fs::write(&path, encode(1, 7)).expect("it is written");
        let (mut file, found) = MarkFile::open(&path).expect("it opens");
        assert_eq!((found.group, found.unknown_format), (7, None));
        file.write(8).expect("it is written");
        assert_eq!(MarkFile::open(&path).expect("it opens").1.group, 8);
        let later = MarkFile::FORMAT + 1;
        std::fs::write(&path, encode(later, 9)).expect("it is written");
        let found = FoundMark::read(&path).expect("it is readable");
        assert_eq!(found.unknown_format, Some(later));
    }
}
