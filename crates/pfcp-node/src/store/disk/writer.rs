//! The thread that writes the store: queued writes are combined into groups.
//!
//! A write waits for the group in progress and then for its own, and additionally for the groups
//! ahead of it in the queue. It never waits for a timer.
//!
//! ```text
//!             a group fails                    the reserve exists again
//!   writing ───────────────▶ short of room ◀──────────────▶ writing
//!                               │     ▲
//!                reopening fails▼     │reopened
//!                             closed ─┘       deletions are applied in memory, and written later
//! ```

use std::collections::hash_map::Entry as Slot;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use tokio::sync::oneshot;

use super::database::{Database, KeyValue};
use super::folder::Folder;
use super::head::{HeadFile, HeadMark};
use super::load::StoreContents;
use crate::config::{Durability, StoreConfig};
use crate::store::format::{HeadRecord, Record, RecordKey};
use crate::store::{MemoryStore, StoreChange, StoreError, StoreHealth, StoreLoss, WriteRefused};

/// A write, and the sender for its outcome.
#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) changes: Vec<StoreChange>,
    pub(super) done: oneshot::Sender<Result<(), WriteRefused>>,
}

/// The state of the writer that other threads can read.
#[derive(Debug)]
pub(super) struct WriterStatus {
    path: PathBuf,
    loss: Option<StoreLoss>,
    refusing: AtomicBool,
    groups: AtomicU64,
    writes: AtomicU64,
    refused: AtomicU64,
    /// The total time of all groups and the time of the longest one, in nanoseconds.
    committing: AtomicU64,
    longest: AtomicU64,
    bytes: AtomicU64,
}

impl WriterStatus {
    pub(super) fn new(path: &Path, loss: Option<StoreLoss>) -> Self {
        Self {
            path: path.to_owned(),
            loss,
            refusing: AtomicBool::new(false),
            groups: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            committing: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    fn committed(&self, writes: usize, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        self.committing.fetch_add(took, Ordering::Relaxed);
        self.longest.fetch_max(took, Ordering::Relaxed);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn health(&self) -> StoreHealth {
        StoreHealth {
            path: Some(self.path.clone()),
            refusing: self.refusing.load(Ordering::Relaxed),
            groups: self.groups.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            committing: Duration::from_nanos(self.committing.load(Ordering::Relaxed)),
            longest: Duration::from_nanos(self.longest.load(Ordering::Relaxed)),
            bytes: self.bytes.load(Ordering::Relaxed),
            loss: self.loss.clone(),
        }
    }
}

/// The digests of the existing records, by key.
#[derive(Debug, Default)]
struct RecordDigests {
    sessions: FxHashMap<Seid, u64>,
    associations: FxHashMap<NodeName, u64>,
    answers: FxHashMap<u32, u64>,
    applications: FxHashMap<Vec<u8>, u64>,
}

impl RecordDigests {
    /// Sets or removes the digest of a key; returns the previous one.
    fn set(&mut self, key: RecordKey, sum: Option<u64>) -> Option<u64> {
        fn put<K: Eq + std::hash::Hash>(
            sums: &mut FxHashMap<K, u64>,
            key: K,
            sum: Option<u64>,
        ) -> Option<u64> {
            match (sums.entry(key), sum) {
                (Slot::Occupied(mut slot), Some(sum)) => Some(slot.insert(sum)),
                (Slot::Occupied(slot), None) => Some(slot.remove()),
                (Slot::Vacant(slot), Some(sum)) => {
                    slot.insert(sum);
                    None
                }
                (Slot::Vacant(_), None) => None,
            }
        }
        match key {
            RecordKey::Session(seid) => put(&mut self.sessions, seid, sum),
            RecordKey::Association(node) => put(&mut self.associations, node, sum),
            RecordKey::Answer(slot) => put(&mut self.answers, slot, sum),
            RecordKey::Application(application) => put(&mut self.applications, application, sum),
            RecordKey::HeadRecord => None,
        }
    }

    fn get(&self, key: &RecordKey) -> Option<u64> {
        match key {
            RecordKey::Session(seid) => self.sessions.get(seid).copied(),
            RecordKey::Association(node) => self.associations.get(node).copied(),
            RecordKey::Answer(slot) => self.answers.get(slot).copied(),
            RecordKey::Application(application) => self.applications.get(application).copied(),
            RecordKey::HeadRecord => None,
        }
    }
}

/// The reason why a group was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Database(#[from] fjall::Error),
    #[error(transparent)]
    HeadRecord(#[from] io::Error),
    #[error("the database is closed")]
    Closed,
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct StoreWriter {
    folder: Folder,
    head_file: HeadFile,
    /// `None` while the database cannot be opened.
    database: Option<Database>,
    table: Arc<MemoryStore>,
    status: Arc<WriterStatus>,
    config: StoreConfig,
    sums: RecordDigests,
    commit: u64,
    head: HeadRecord,
    /// The next slot in the ring of responses, and the number of slots.
    slot: u32,
    slots: u32,
    /// Keys whose records may differ between disk and memory.
    stale_keys: FxHashSet<RecordKey>,
    /// The time of the next attempt to recover from a failure.
    retry: Instant,
    synced: Instant,
}

impl StoreWriter {
    pub(super) fn new(
        folder: Folder,
        head_file: HeadFile,
        database: Database,
        table: Arc<MemoryStore>,
        status: Arc<WriterStatus>,
        config: StoreConfig,
        answers: usize,
    ) -> Self {
        Self {
            folder,
            head_file,
            database: Some(database),
            table,
            status,
            config,
            sums: RecordDigests::default(),
            commit: 0,
            head: HeadRecord::default(),
            slot: 0,
            slots: u32::try_from(answers).unwrap_or(u32::MAX).max(1),
            stale_keys: FxHashSet::default(),
            retry: Instant::now(),
            synced: Instant::now(),
        }
    }

    /// Adopts the contents that were read.
    pub(super) fn adopt(&mut self, contents: &StoreContents, commit: u64, head: HeadRecord) {
        self.commit = commit;
        self.head = head;
        self.slot = self.head.slot % self.slots;
        for (key, read) in &contents.records {
            self.sums.set(key.clone(), Some(read.sum));
        }
    }

    /// Writes and syncs the identity of the node before it is sent to any peer.
    pub(super) fn settle_identity(&mut self) -> Result<(), StoreError> {
        let failed = |reason: String, path: &Path| StoreError::Database {
            path: path.to_owned(),
            reason,
        };
        let written = self.write(Vec::new()).and_then(|()| {
            let database = self.database.as_ref().ok_or(WriteError::Closed)?;
            database.sync()?;
            Ok(self.head_file.sync()?)
        });
        written.map_err(|error| failed(error.to_string(), self.folder.path()))
    }

    /// Writes groups until the queue is closed.
    pub(super) fn run(mut self, queue: &Receiver<WriteJob>) {
        self.update_size();
        loop {
            let job = match queue.recv_timeout(RETRY_DELAY) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.run_maintenance();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut group = vec![job];
            while group.len() < self.config.group {
                match queue.try_recv() {
                    Ok(job) => group.push(job),
                    Err(_) => break,
                }
            }
            self.commit_group(group);
            self.run_maintenance();
        }
        if let Some(database) = &self.database
            && let Err(error) = database.sync()
        {
            tracing::error!(%error, "store not synced at shutdown");
        }
        let _ = self.head_file.sync();
    }

    /// Work between groups: recovers from failures, and syncs the head file.
    fn run_maintenance(&mut self) {
        let now = Instant::now();
        if self.status.refusing.load(Ordering::Relaxed) && now >= self.retry {
            self.retry = now + RETRY_DELAY;
            self.try_resume();
        }
        if now.saturating_duration_since(self.synced) >= RETRY_DELAY {
            self.synced = now;
            self.update_size();
            if self.config.durability == Durability::Disk {
                let _ = self.head_file.sync();
            }
        }
    }

    /// Updates the size of the store on the disk.
    fn update_size(&self) {
        let bytes = size_of(self.folder.path());
        self.status.bytes.store(bytes, Ordering::Relaxed);
    }

    fn commit_group(&mut self, group: Vec<WriteJob>) {
        let began = Instant::now();
        let refusing = self.status.refusing.load(Ordering::Relaxed);
        let (large, small): (Vec<WriteJob>, Vec<WriteJob>) = group
            .into_iter()
            .partition(|job| refusing && job.changes.iter().any(StoreChange::needs_disk_space));
        self.refuse(large);
        if small.is_empty() {
            return;
        }
        let changes = || small.iter().flat_map(|job| job.changes.iter().cloned());
        match self.write(changes().collect()) {
            Ok(()) => {
                self.table.apply(changes());
                self.status.committed(small.len(), began.elapsed());
                for job in small {
                    // The receiver may have stopped waiting.
                    let _ = job.done.send(Ok(()));
                }
            }
            Err(error) => {
                self.enter_disk_full(&error);
                self.commit_without_room(small, began);
            }
        }
    }

    /// Applies the changes that do not need room, on disk if possible and otherwise only in memory.
    fn commit_without_room(&mut self, group: Vec<WriteJob>, began: Instant) {
        let (large, small): (Vec<WriteJob>, Vec<WriteJob>) = group
            .into_iter()
            .partition(|job| job.changes.iter().any(StoreChange::needs_disk_space));
        self.refuse(large);
        if small.is_empty() {
            return;
        }
        let changes = || small.iter().flat_map(|job| job.changes.iter().cloned());
        if let Err(error) = self.write(changes().collect()) {
            tracing::debug!(%error, "deletions are done in memory, and written later");
            self.database = None;
        }
        self.table.apply(changes());
        self.status.committed(small.len(), began.elapsed());
        for job in small {
            let _ = job.done.send(Ok(()));
        }
    }

    fn refuse(&self, jobs: Vec<WriteJob>) {
        for job in jobs {
            self.status.refused.fetch_add(1, Ordering::Relaxed);
            let _ = job.done.send(Err(WriteRefused::DiskFull));
        }
    }

    /// Writes a group to the database, then the head file. If this fails, the keys of the group are
    /// stale.
    fn write(&mut self, changes: Vec<StoreChange>) -> Result<(), WriteError> {
        let mut records: FxHashMap<RecordKey, Option<Record>> = FxHashMap::default();
        for change in changes {
            let (key, record) = match change {
                StoreChange::Put(record) => {
                    self.head.next_seid = self.head.next_seid.max(record.seid.0.saturating_add(1));
                    (
                        RecordKey::Session(record.seid),
                        Some(Record::Session(record)),
                    )
                }
                StoreChange::Remove(seid) => (RecordKey::Session(seid), None),
                StoreChange::Associate(owner) => (
                    RecordKey::Association(owner.node.clone()),
                    Some(Record::Association(owner)),
                ),
                StoreChange::Release(node) => (RecordKey::Association(node), None),
                StoreChange::PutPfds(one) => (
                    RecordKey::Application(one.application.clone()),
                    Some(Record::Application(one)),
                ),
                StoreChange::RemovePfds(application) => (RecordKey::Application(application), None),
                StoreChange::Answer(answer) => {
                    let slot = self.slot;
                    self.slot = (slot + 1) % self.slots;
                    (
                        RecordKey::Answer(slot),
                        Some(Record::Answer { slot, answer }),
                    )
                }
            };
            records.insert(key, record);
        }
        let written = self.write_records(&records);
        match &written {
            Ok(()) => {}
            Err(_) => self.stale_keys.extend(records.into_keys()),
        }
        written
    }

    fn write_records(
        &mut self,
        records: &FxHashMap<RecordKey, Option<Record>>,
    ) -> Result<(), WriteError> {
        let commit = self.commit + 1;
        let mut group: Vec<KeyValue> = Vec::with_capacity(records.len() + 1);
        let mut sums = Vec::with_capacity(records.len());
        let mut head = HeadRecord {
            slot: self.slot,
            removed: Vec::new(),
            ..self.head.clone()
        };
        for (key, record) in records {
            // The sum is updated incrementally: the previous digest of the key is subtracted, the
            // new one added.
            let before = self.sums.get(key);
            head.sum = head.sum.wrapping_sub(before.unwrap_or_default());
            let (bytes, sum) = record.as_ref().map(|record| record.encode(commit)).unzip();
            head.sum = head.sum.wrapping_add(sum.unwrap_or_default());
            if matches!(key, RecordKey::Session(_)) {
                head.sessions += u64::from(sum.is_some());
                head.sessions -= u64::from(before.is_some());
            }
            if sum.is_none() && !matches!(key, RecordKey::Answer(_)) {
                head.removed.push(key.clone());
            }
            group.push((key.encode(), bytes));
            sums.push((key.clone(), sum));
        }
        let (bytes, _) = Record::HeadRecord(head.clone()).encode(commit);
        group.push((RecordKey::HeadRecord.encode(), Some(bytes)));
        let database = self.database.as_ref().ok_or(WriteError::Closed)?;
        // The number is used up even if the write fails, because the failed group may still reach
        // the disk.
        self.commit = commit;
        database.write(group, self.config.durability)?;
        self.head_file.write(HeadMark {
            commit,
            recovery: head.recovery,
            seed: head.seed,
        })?;
        self.head = head;
        for (key, sum) in sums {
            self.sums.set(key, sum);
        }
        Ok(())
    }

    /// Handles the failure of a group: releases the reserve and opens the database again, since it
    /// refuses all writes until then.
    fn enter_disk_full(&mut self, error: &WriteError) {
        if !self.status.refusing.swap(true, Ordering::Relaxed) {
            let path = self.folder.path().display();
            tracing::error!(%path, %error, "the store cannot be written: new sessions and \
                modifications are refused, deletions go on");
        }
        self.retry = Instant::now() + RETRY_DELAY;
        self.database = None;
        let _ = fs::remove_file(self.folder.reserve());
        self.reopen();
    }

    /// Opens the database again, and writes the stale records from memory.
    fn reopen(&mut self) {
        if self.database.is_none() {
            match Database::open(&self.folder.database(), self.config.buffer) {
                Ok(database) => self.database = Some(database),
                Err(error) => {
                    tracing::debug!(?error, "the store cannot be opened again");
                    return;
                }
            }
        }
        if self.stale_keys.is_empty() {
            return;
        }
        let stale: Vec<RecordKey> = self.stale_keys.iter().cloned().collect();
        let records = stale.iter().map(|key| (key.clone(), self.in_memory(key)));
        let records = records.collect();
        match self.write_records(&records) {
            Ok(()) => self.stale_keys.clear(),
            Err(error) => {
                tracing::debug!(%error, "the store cannot be written yet");
                self.database = None;
            }
        }
    }

    /// Returns the record of a key in the tables in memory.
    fn in_memory(&self, key: &RecordKey) -> Option<Record> {
        match key {
            RecordKey::Session(seid) => self.table.session(*seid).map(Record::Session),
            RecordKey::Association(node) => self.table.association(node).map(Record::Association),
            RecordKey::Application(application) => {
                let one = self.table.description(application);
                one.map(Record::Application)
            }
            // A response that was not written is not kept across a restart.
            RecordKey::Answer(_) | RecordKey::HeadRecord => None,
        }
    }

    /// Tries to return to normal operation: all records are written and the reserve exists.
    fn try_resume(&mut self) {
        self.reopen();
        if self.database.is_none() || !self.stale_keys.is_empty() {
            return;
        }
        if self.make_reserve() {
            self.status.refusing.store(false, Ordering::Relaxed);
            tracing::warn!("the store can be written again");
        }
    }

    /// Creates the reserve. Returns `true` if it exists.
    pub(super) fn make_reserve(&self) -> bool {
        let path = self.folder.reserve();
        let wanted = self.config.reserve;
        if fs::metadata(&path).is_ok_and(|there| there.len() == wanted) {
            return true;
        }
        let make = || -> io::Result<()> {
            let mut file = File::create(&path)?;
            let zeros = vec![0; 1 << 16];
            let mut left = wanted;
            while left > 0 {
                let part = left.min(zeros.len() as u64);
                file.write_all(&zeros[..usize::try_from(part).unwrap_or(zeros.len())])?;
                left -= part;
            }
            file.sync_all()
        };
        match make() {
            Ok(()) => true,
            Err(error) => {
                let _ = fs::remove_file(&path);
                if !self.status.refusing.swap(true, Ordering::Relaxed) {
                    tracing::error!(%error, "there is no room for the reserve of the store: new \
                        sessions and modifications are refused, deletions go on");
                }
                false
            }
        }
    }
}

/// Returns the size of all files below a folder in bytes; files that cannot be read are not
/// counted.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |there| there.len()),
        Err(_) => 0,
    });
    sizes.sum()
}

/// The delay before a store that cannot be written tries again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
