//! The file beside the database that says how far it has come.
//!
//! The database drops what follows a damaged octet of its journal and says nothing. This file is
//! written after each group and before its answers, so that a database with an older group than
//! the one named here has lost something that was acknowledged. It has two slots, written in
//! turn, in sectors of their own: one of them is whole at any time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The last group that was committed.
    pub(super) commit: u64,
    /// What the node tells its peers.
    pub(super) recovery: u32,
    /// Where digests of requests start.
    pub(super) seed: u64,
}

/// The open file.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: File,
    /// Where the next mark goes.
    next: u64,
}

/// What was found in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The newest mark that is whole.
    pub(super) mark: Option<Mark>,
    /// How many slots are neither whole nor empty.
    pub(super) damaged: u64,
}

impl HeadFile {
    /// Opens the file, or makes an empty one.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Found)> {
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
            let mut octets = [0; LENGTH];
            match file.read_exact_at(&mut octets, at) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(error),
            }
            *slot = Mark::read(&octets);
            damaged += u64::from(slot.is_none() && octets != [0; LENGTH]);
        }
        let [first, second] = slots;
        let newest = first.max_by_commit(second);
        let next = match newest {
            Some(mark) if first == Some(mark) => SECTOR,
            _ => 0,
        };
        let found = Found {
            mark: newest,
            damaged,
        };
        Ok((Self { file, next }, found))
    }

    /// Writes a mark in place of the older one.
    pub(super) fn write(&mut self, mark: Mark) -> io::Result<()> {
        self.file.write_all_at(&mark.octets(), self.next)?;
        self.next = SECTOR - self.next;
        Ok(())
    }

    /// Makes the last mark survive the system as well.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

trait Newest {
    fn max_by_commit(self, other: Self) -> Self;
}

impl Newest for Option<Mark> {
    fn max_by_commit(self, other: Self) -> Self {
        [self, other]
            .into_iter()
            .flatten()
            .max_by_key(|mark| mark.commit)
    }
}

impl Mark {
    fn octets(self) -> [u8; LENGTH] {
        let mut octets = [0; LENGTH];
        octets[..4].copy_from_slice(&MAGIC);
        octets[4..12].copy_from_slice(&self.commit.to_be_bytes());
        octets[12..16].copy_from_slice(&self.recovery.to_be_bytes());
        octets[16..24].copy_from_slice(&self.seed.to_be_bytes());
        let sum = xxh3_64(&octets[..24]);
        octets[24..].copy_from_slice(&sum.to_be_bytes());
        octets
    }

    fn read(octets: &[u8; LENGTH]) -> Option<Self> {
        let (front, sum) = octets.split_last_chunk::<8>()?;
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
