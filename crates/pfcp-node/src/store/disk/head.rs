//! The head file, which records the last committed group outside the database.
//!
//! The database silently drops everything after a damaged byte of its journal. This file is written
//! after each group and before its responses, so a database whose last group is older than the one
//! in this file has lost acknowledged data. It has two slots in separate sectors that are written
//! alternately, so at any time at least one of them is intact.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// The contents of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadMark {
    /// The number of the last committed group.
    pub(super) commit: u64,
    /// The Recovery Time Stamp of the node.
    pub(super) recovery: u32,
    /// The seed of the digests of requests.
    pub(super) seed: u64,
}

/// The open head file.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: File,
    /// The offset of the next write.
    next: u64,
}

/// The contents of the file when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadContents {
    /// The newest intact mark.
    pub(super) mark: Option<HeadMark>,
    /// Number of slots that are neither intact nor empty.
    pub(super) damaged: u64,
}

impl HeadFile {
    /// Opens the file, or creates an empty one.
    pub(super) fn open(path: &Path) -> io::Result<(Self, HeadContents)> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut slots = [None; 2];
        let mut damaged = 0;
        for (slot, at) in slots.iter_mut().zip([0, SECTOR]) {
            let mut bytes = [0; LENGTH];
            match file.read_exact_at(&mut bytes, at) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(error),
            }
            *slot = HeadMark::read(&bytes);
            damaged += u64::from(slot.is_none() && bytes != [0; LENGTH]);
        }
        let [first, second] = slots;
        let newest = first.max_by_commit(second);
        let next = match newest {
            Some(mark) if first == Some(mark) => SECTOR,
            _ => 0,
        };
        let found = HeadContents {
            mark: newest,
            damaged,
        };
        Ok((Self { file, next }, found))
    }

    /// Overwrites the older mark.
    pub(super) fn write(&mut self, mark: HeadMark) -> io::Result<()> {
        self.file.write_all_at(&mark.bytes(), self.next)?;
        self.next = SECTOR - self.next;
        Ok(())
    }

    /// Syncs the file to the disk, so that the last mark survives the end of the operating system.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

trait MaxByCommit {
    fn max_by_commit(self, other: Self) -> Self;
}

impl MaxByCommit for Option<HeadMark> {
    fn max_by_commit(self, other: Self) -> Self {
        [self, other]
            .into_iter()
            .flatten()
            .max_by_key(|mark| mark.commit)
    }
}

impl HeadMark {
    fn bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&self.commit.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.recovery.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.seed.to_be_bytes());
        let sum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8; LENGTH]) -> Option<Self> {
        let (front, sum) = bytes.split_last_chunk::<8>()?;
        if !front.starts_with(&MAGIC) || xxh3_64(front) != u64::from_be_bytes(*sum) {
            return None;
        }
        Some(Self {
            commit: u64::from_be_bytes(*front[4..].first_chunk()?),
            recovery: u32::from_be_bytes(*front[12..].first_chunk()?),
            seed: u64::from_be_bytes(*front[16..].first_chunk()?),
        })
    }
}

const MAGIC: [u8; 4] = *b"SWh1";
const LENGTH: usize = 32;
const SECTOR: u64 = 4096;
