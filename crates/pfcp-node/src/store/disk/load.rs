//! What is there when a store is opened, and whether that is all.
//!
//! A store is whole when its last group is the one that the head file names, or a later one, and
//! the digests of its records add up to what that group said. When it is not, the records are
//! looked for in the files themselves, each by its magic, length and checksum.

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
use super::head::Mark;
use crate::store::StoreLoss;
use crate::store::format::{Head, MAGIC, Place, Read, Record};

/// The records of a store, and what is known about what is not there.
#[derive(Debug, Default)]
pub(in crate::store) struct Contents {
    /// The newest record of each place, but for heads.
    pub(in crate::store) records: BTreeMap<Place, Read>,
    /// The newest head, and its group.
    pub(in crate::store) head: Option<(u64, Head)>,
    /// Records that were not what had been written, and reads that failed.
    pub(in crate::store) damaged: u64,
    /// What was found, in words.
    pub(super) notes: Vec<String>,
}

impl Contents {
    /// Reads an open database.
    pub(super) fn of(database: &Database) -> Self {
        let mut contents = Self::default();
        let (raw, waiting) = sync_channel(CHUNKS);
        let waiting = Mutex::new(waiting);
        let (failed, read) = thread::scope(|scope| {
            let readers: Vec<_> = (0..threads())
                .map(|_| scope.spawn(|| Decoded::all(&waiting)))
                .collect();
            let mut chunk = Vec::new();
            let failed = database.read(|key, value| {
                chunk.push((key, value));
                if chunk.len() == CHUNK {
                    // Whoever decodes goes on until this end is closed.
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

    fn take(&mut self, read: Read) {
        if let Record::Head(head) = read.record {
            if self
                .head
                .as_ref()
                .is_none_or(|(commit, _)| *commit <= read.commit)
            {
                self.head = Some((read.commit, head));
            }
            return;
        }
        let place = read.record.place();
        match self.records.get(&place) {
            Some(there) if there.commit > read.commit => {}
            _ => _ = self.records.insert(place, read),
        }
    }

    /// Adds what is found in the octets of files, where it is newer.
    pub(super) fn search(&mut self, files: &[Vec<u8>]) {
        let mut removed: FxHashMap<Place, u64> = FxHashMap::default();
        for octets in files {
            for read in found_in(octets) {
                if let Record::Head(head) = &read.record {
                    for place in &head.removed {
                        let commit = removed.entry(place.clone()).or_default();
                        *commit = read.commit.max(*commit);
                    }
                }
                self.take(read);
            }
        }
        self.records.retain(|place, read| {
            removed
                .get(place)
                .is_none_or(|&commit| read.commit > commit)
        });
    }

    /// How many sessions there are.
    pub(super) fn sessions(&self) -> u64 {
        let is_session = |place: &&Place| matches!(place, Place::Session(_));
        self.records.keys().filter(is_session).count() as u64
    }

    /// The sum of the digests of all records.
    pub(super) fn sum(&self) -> u64 {
        let sums = self.records.values().map(|read| read.sum);
        sums.fold(0, u64::wrapping_add)
    }

    /// Says what is missing, given what the head file says; `None` when nothing is.
    pub(super) fn loss(&self, mark: Option<Mark>) -> Option<StoreLoss> {
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
        // A process that ended in its very first write has told nobody anything.
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

/// A record as the database has it: its key, and its octets.
type Raw = (Slice, Slice);

/// What one thread made of its part of the records.
#[derive(Debug, Default)]
struct Decoded {
    reads: Vec<Read>,
    damaged: u64,
}

impl Decoded {
    /// Decodes what comes until nothing more does.
    fn all(waiting: &Mutex<Receiver<Vec<Raw>>>) -> Self {
        let mut decoded = Self::default();
        loop {
            let chunk = waiting.lock().recv();
            let Ok(chunk) = chunk else {
                return decoded;
            };
            // Octets of a disk are not trusted to keep what reads them from panicking, and whoever
            // hands out the chunks waits until they are taken.
            match catch_unwind(|| Self::of(&chunk)) {
                Ok(part) => {
                    decoded.reads.extend(part.reads);
                    decoded.damaged += part.damaged;
                }
                Err(_) => decoded.damaged += 1,
            }
        }
    }

    fn of(chunk: &[Raw]) -> Self {
        let mut decoded = Self::default();
        for (key, value) in chunk {
            match Record::decode(value) {
                Some(read) if read.record.place().key() == **key => decoded.reads.push(read),
                _ => decoded.damaged += 1,
            }
        }
        decoded
    }
}

/// Threads that share the work of a start.
pub(crate) fn threads() -> usize {
    let cores = thread::available_parallelism();
    cores.map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// Records that are handed over together, and how many such chunks wait at most.
const CHUNK: usize = 512;
const CHUNKS: usize = 16;
const MOST_THREADS: usize = 8;

/// The whole records in some octets.
fn found_in(octets: &[u8]) -> impl Iterator<Item = Read> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(rest) = octets.get(at..) {
            let next = rest
                .windows(MAGIC.len())
                .position(|window| window == MAGIC)?;
            at += next;
            match Record::decode(&octets[at..]) {
                Some(read) => {
                    at += read.octets;
                    return Some(read);
                }
                None => at += 1,
            }
        }
        None
    })
}

/// The octets of the files below a folder that `wanted` picks, without the empty end that journals
/// have. A file that cannot be read is left out.
pub(super) fn octets_of(folder: &Path, wanted: fn(&Path) -> bool) -> Vec<Vec<u8>> {
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
                && let Ok(octets) = without_empty_end(&path)
            {
                found.push(octets);
            }
        }
    }
    found
}

/// Reads a file up to its last octet that is not zero. Journals are made long, and stay nearly
/// empty: a start does not look at each octet of that, nor keeps it.
fn without_empty_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut piece, zeros) = (vec![0; PIECE], vec![0; PIECE]);
    let (mut octets, mut skipped) = (Vec::new(), 0);
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
        octets.resize(octets.len() + skipped, 0);
        octets.extend_from_slice(&piece[..length]);
        skipped = 0;
    }
    let end = octets.iter().rposition(|&octet| octet != 0);
    octets.truncate(end.map_or(0, |last| last + 1));
    Ok(octets)
}

/// Octets of a file that are read at a time.
const PIECE: usize = 1 << 16;

/// Says that a file is a journal of the database, which it changes when it is opened.
pub(super) fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}
