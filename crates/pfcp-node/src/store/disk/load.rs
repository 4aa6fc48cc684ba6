//! Loading of a store, and the check that it is complete.
//!
//! A store is complete if its last group is the one in the head file or a later one, and the
//! digests of its records add up to the sum in that group. Otherwise records are searched for in
//! the files themselves, by their magic number, length and checksum.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::panic::{catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use fjall::Slice;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::database::Database;
use super::head::HeadMark;
use crate::store::StoreLoss;
use crate::store::format::{HeadRecord, MAGIC, ReadRecord, Record, RecordKey};

/// The records of a store, and the known damage.
#[derive(Debug, Default)]
pub(in crate::store) struct StoreContents {
    /// The newest record of each key, except heads.
    pub(in crate::store) records: BTreeMap<RecordKey, ReadRecord>,
    /// The newest head, and the number of its group.
    pub(in crate::store) head: Option<(u64, HeadRecord)>,
    /// Number of records that differ from what was written, and of failed reads.
    pub(in crate::store) damaged: u64,
    /// Descriptions of the damage.
    pub(super) notes: Vec<String>,
}

impl StoreContents {
    /// Reads all records of an open database.
    pub(super) fn of(database: &Database) -> Self {
        let mut contents = Self::default();
        let (raw, waiting) = sync_channel(QUEUED_CHUNKS);
        let waiting = Mutex::new(waiting);
        let (failed, read) = thread::scope(|scope| {
            let readers: Vec<_> = (0..threads())
                .map(|_| scope.spawn(|| DecodedRecords::all(&waiting)))
                .collect();
            let mut chunk = Vec::new();
            let failed = database.read(|key, value| {
                chunk.push((key, value));
                if chunk.len() == RECORDS_PER_CHUNK {
                    // The decoding threads receive until this sender is dropped.
                    let _ = raw.send(std::mem::take(&mut chunk));
                }
            });
            let _ = raw.send(chunk);
            drop(raw);
            let read: Vec<_> = readers.into_iter().map(ScopedJoinHandle::join).collect();
            (failed, read)
        });
        contents.damaged = failed;
        for decoded in read {
            let decoded = decoded.unwrap_or_else(|why| resume_unwind(why));
            contents.damaged += decoded.damaged;
            decoded
                .reads
                .into_iter()
                .for_each(|read| contents.take(read));
        }
        contents
    }

    fn take(&mut self, read: ReadRecord) {
        if let Record::HeadRecord(head) = read.record {
            if self
                .head
                .as_ref()
                .is_none_or(|(commit, _)| *commit <= read.commit)
            {
                self.head = Some((read.commit, head));
            }
            return;
        }
        let key = read.record.key();
        match self.records.get(&key) {
            Some(there) if there.commit > read.commit => {}
            _ => _ = self.records.insert(key, read),
        }
    }

    /// Adds the records that are found in the contents of files, if they are newer.
    pub(super) fn search(&mut self, files: &[Vec<u8>]) {
        let mut removed: FxHashMap<RecordKey, u64> = FxHashMap::default();
        for bytes in files {
            for read in records_in(bytes) {
                if let Record::HeadRecord(head) = &read.record {
                    for key in &head.removed {
                        let commit = removed.entry(key.clone()).or_default();
                        *commit = read.commit.max(*commit);
                    }
                }
                self.take(read);
            }
        }
        // A record older than the last removal of its key was found in an obsolete part of a file.
        self.records
            .retain(|key, read| removed.get(key).is_none_or(|&commit| read.commit > commit));
    }

    /// Returns the number of sessions.
    pub(super) fn sessions(&self) -> u64 {
        let is_session = |key: &&RecordKey| matches!(key, RecordKey::Session(_));
        self.records.keys().filter(is_session).count() as u64
    }

    /// Returns the wrapping sum of the digests of all records.
    pub(super) fn sum(&self) -> u64 {
        let sums = self.records.values().map(|read| read.sum);
        sums.fold(0, u64::wrapping_add)
    }

    /// Compares the contents with their head and the head file. Returns the missing data; `None` if
    /// the contents are complete.
    pub(super) fn loss(&self, mark: Option<HeadMark>) -> Option<StoreLoss> {
        let (commit, head) = match &self.head {
            Some((commit, head)) => (*commit, Some(head)),
            None => (0, None),
        };
        let expected = head.map(|head| head.sessions);
        let marked = mark.map_or(0, |mark| mark.commit);
        let groups_missing = marked.saturating_sub(commit);
        let mut detail = self.notes.clone();
        let mut lost = false;
        if groups_missing > 0 {
            lost = true;
            detail.push("the last groups are missing".to_owned());
        }
        match head {
            Some(head) if head.sum != self.sum() || head.sessions != self.sessions() => {
                lost = true;
                detail.push("the records are not those that were written".to_owned());
            }
            None if !self.records.is_empty() => {
                lost = true;
                detail.push("the state of the whole is missing".to_owned());
            }
            _ => {}
        }
        // A process that ended during its first write has not responded to any request.
        if mark.is_none() && head.is_some() && commit > 1 {
            lost = true;
            detail.push("the file `head` cannot be read".to_owned());
        }
        lost.then(|| StoreLoss {
            damaged: self.damaged,
            groups_missing,
            sessions_expected: expected,
            sessions_found: self.sessions(),
            detail: detail.join("; "),
        })
    }
}

/// The key and the encoded value of a record in the database.
type RawEntry = (Slice, Slice);

/// The records that one thread decoded.
#[derive(Debug, Default)]
struct DecodedRecords {
    reads: Vec<ReadRecord>,
    damaged: u64,
}

impl DecodedRecords {
    /// Decodes chunks until the sender is dropped.
    fn all(waiting: &Mutex<Receiver<Vec<RawEntry>>>) -> Self {
        let mut decoded = Self::default();
        loop {
            let chunk = waiting.lock().recv();
            let Ok(chunk) = chunk else {
                return decoded;
            };
            // Damaged data may cause a panic, and the sender would block if the chunks were not
            // received any more.
            match catch_unwind(|| Self::of(&chunk)) {
                Ok(part) => {
                    decoded.reads.extend(part.reads);
                    decoded.damaged += part.damaged;
                }
                Err(_) => decoded.damaged += 1,
            }
        }
    }

    fn of(chunk: &[RawEntry]) -> Self {
        let mut decoded = Self::default();
        for (key, value) in chunk {
            match Record::decode(value) {
                Some(read) if read.record.key().encode() == **key => decoded.reads.push(read),
                _ => decoded.damaged += 1,
            }
        }
        decoded
    }
}

/// Returns the number of threads that share the work of a start.
pub(crate) fn threads() -> usize {
    let cores = thread::available_parallelism();
    cores.map_or(1, NonZeroUsize::get).min(MAX_THREADS)
}

/// The number of records per chunk, and the capacity of the channel in chunks.
const RECORDS_PER_CHUNK: usize = 512;
const QUEUED_CHUNKS: usize = 16;
const MAX_THREADS: usize = 8;

/// Returns the intact records in a byte string.
fn records_in(bytes: &[u8]) -> impl Iterator<Item = ReadRecord> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(rest) = bytes.get(at..) {
            let next = rest
                .windows(MAGIC.len())
                .position(|window| window == MAGIC)?;
            at += next;
            match Record::decode(&bytes[at..]) {
                Some(read) => {
                    at += read.bytes;
                    return Some(read);
                }
                None => at += 1,
            }
        }
        None
    })
}

/// Returns the contents of the files below a folder that `wanted` selects, without the zeros at the
/// end of journals. Files that cannot be read are omitted.
pub(super) fn bytes_of(folder: &Path, wanted: fn(&Path) -> bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&path)
                && let Ok(bytes) = without_empty_end(&path)
            {
                found.push(bytes);
            }
        }
    }
    found
}

/// Reads a file up to its last byte that is not zero. Journals are preallocated and mostly empty,
/// so their zeros are skipped in large pieces and not kept in memory.
fn without_empty_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut piece, zeros) = (vec![0; READ_SIZE], vec![0; READ_SIZE]);
    let (mut bytes, mut skipped) = (Vec::new(), 0);
    loop {
        let length = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece[..length] == zeros[..length] {
            skipped += length;
            continue;
        }
        bytes.resize(bytes.len() + skipped, 0);
        bytes.extend_from_slice(&piece[..length]);
        skipped = 0;
    }
    let end = bytes.iter().rposition(|&byte| byte != 0);
    bytes.truncate(end.map_or(0, |last| last + 1));
    Ok(bytes)
}

/// The number of bytes that are read at a time.
const READ_SIZE: usize = 1 << 16;

/// Returns `true` if a file is a journal of the database. Opening the database modifies its
/// journals.
pub(super) fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}
