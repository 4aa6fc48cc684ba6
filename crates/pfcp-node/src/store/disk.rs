//! The store on disk: an embedded database, written in groups by a dedicated thread.
//!
//! ```text
//!  PATH/format    the version of the format
//!  PATH/lock      held while a process uses the store
//!  PATH/head      the last committed group and the identity of the node
//!  PATH/reserve   room for deletions when the disk is full
//!  PATH/db/       the database
//!  PATH/damaged/  the damaged database that the last salvage replaced
//! ```

mod database;
mod folder;
mod head;
mod load;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use strowger_pfcp::association::Recovery;
use tokio::sync::oneshot;

use self::database::{Database, OpenFailure};
use self::folder::Folder;
use self::head::{HeadFile, HeadMark};
pub(super) use self::load::StoreContents;
pub(crate) use self::load::threads;
use self::load::{bytes_of, is_journal};
use self::writer::{StoreWriter, WriteJob, WriterStatus};
use super::format::{HeadRecord, Record};
use super::{
    MemoryStore, PendingWrite, Store, StoreChange, StoreError, StoreHealth, StoreLoss,
    StoredResponse, WriteRefused, first_seid,
};
use crate::config::StoreConfig;

/// A store on disk. Dropping it waits until all writes are complete.
#[derive(Debug)]
pub(crate) struct DiskStore {
    table: Arc<MemoryStore>,
    status: Arc<WriterStatus>,
    /// `None` only while the store is being dropped.
    jobs: Option<SyncSender<WriteJob>>,
    writer: Option<JoinHandle<()>>,
}

/// A folder that is locked for this process, before its database is opened.
#[derive(Debug)]
pub(crate) struct LockedStore {
    folder: Folder,
    head: HeadFile,
    mark: Option<HeadMark>,
    damaged: u64,
}

/// A store that was opened.
#[derive(Debug)]
pub(crate) struct OpenedStore {
    pub(crate) store: DiskStore,
    /// The Recovery Time Stamp of the node.
    pub(crate) recovery: Recovery,
    /// The seed of the digests of requests.
    pub(crate) seed: u64,
    /// A SEID that no session has had.
    pub(crate) next_seid: u64,
}

/// The parameters for opening a store besides its configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenParams {
    /// The maximum number of responses to keep.
    pub(crate) answers: usize,
    /// The current time, as the Recovery Time Stamp of a node whose store is new or has lost data.
    pub(crate) now: Recovery,
    /// An unpredictable seed, for a store that has none yet.
    pub(crate) seed: u64,
    /// Returns the digest of a constant request for a seed.
    pub(crate) probe: fn(u64) -> u64,
}

impl LockedStore {
    /// Prepares the folder: creates it if necessary, locks it, and reads the head file.
    pub(crate) fn lock(path: &Path) -> Result<Self, StoreError> {
        let folder = Folder::lock(path)?;
        let (head, found) = HeadFile::open(&folder.head()).map_err(folder.failed())?;
        Ok(Self {
            damaged: found.damaged + u64::from(folder.format_damaged()),
            mark: found.mark,
            folder,
            head,
        })
    }

    /// Returns the previous Recovery Time Stamp of the node, which stays valid unless data is lost.
    pub(crate) fn recovery(&self) -> Option<Recovery> {
        self.mark.map(|mark| Recovery(mark.recovery))
    }

    /// Reads all contents without modifying them. Also returns the Recovery Time Stamp in the head
    /// file.
    pub(in crate::store) fn read_contents(
        self,
    ) -> Result<(StoreContents, u32, Option<StoreLoss>), StoreError> {
        let (_, contents, loss) = self.find(&StoreConfig::default())?;
        let recovery = self.mark.map_or(0, |mark| mark.recovery);
        Ok((contents, recovery, loss))
    }

    /// Reads all contents, and starts the writer.
    pub(crate) fn open(
        self,
        config: &StoreConfig,
        given: OpenParams,
    ) -> Result<OpenedStore, StoreError> {
        self.folder.finish_salvage().map_err(self.folder.failed())?;
        let (database, mut contents, loss) = self.find(config)?;
        let is_new = contents.head.is_none() && self.mark.is_none();
        let known = contents.head.clone().unwrap_or_default().1;
        let (recovery, seed) = self.identity(&known, loss.as_ref(), given);
        let database = match database {
            Some(database) => database,
            None => {
                let head = HeadRecord {
                    recovery: recovery.0,
                    seed,
                    ..known.clone()
                };
                self.rebuild(config, &mut contents, head)?
            }
        };
        let commit = contents.head.as_ref().map_or(0, |(commit, _)| *commit);
        let probe = (given.probe)(seed);
        let known_probe = known.probe;
        let head = HeadRecord {
            recovery: recovery.0,
            next_seid: next_seid(&contents, &known, recovery),
            seed,
            probe,
            sessions: contents.sessions(),
            sum: contents.sum(),
            slot: known.slot,
            removed: Vec::new(),
        };
        let table = Arc::new(MemoryStore::new(given.answers));
        let answers_hold = known_probe == probe;
        if !answers_hold && !is_new {
            tracing::warn!("stored responses dropped: request digest differs in this build");
        }
        fill(&table, &mut contents, answers_hold);
        let status = Arc::new(WriterStatus::new(self.folder.path(), loss.clone()));
        let commit = commit.max(self.mark.map_or(0, |mark| mark.commit));
        let next_seid = head.next_seid;
        let mut writer = StoreWriter::new(
            self.folder,
            self.head,
            database,
            Arc::clone(&table),
            Arc::clone(&status),
            config.clone(),
            given.answers,
        );
        writer.adopt(&contents, commit, head);
        // A new store, or one whose Recovery Time Stamp moves, has to store its identity before any
        // peer is told.
        if is_new || loss.is_some() {
            writer.settle_identity()?;
        }
        writer.make_reserve();
        let (jobs, queue) = sync_channel(config.queue);
        let thread = std::thread::Builder::new().name("strowger-store".to_owned());
        let path = status.path().to_owned();
        let thread = thread
            .spawn(move || writer.run(&queue))
            .map_err(|source| StoreError::Io { path, source })?;
        let store = DiskStore {
            table,
            status,
            jobs: Some(jobs),
            writer: Some(thread),
        };
        Ok(OpenedStore {
            store,
            recovery,
            seed,
            next_seid,
        })
    }

    /// Returns the Recovery Time Stamp of the node, and the seed of the digests of requests.
    fn identity(
        &self,
        known: &HeadRecord,
        loss: Option<&StoreLoss>,
        given: OpenParams,
    ) -> (Recovery, u64) {
        let mark = self.mark.unwrap_or_default();
        let mut recovery = match (known.recovery, mark.recovery) {
            (0, 0) => given.now,
            (0, marked) => Recovery(marked),
            (known, _) => Recovery(known),
        };
        if let Some(loss) = loss {
            recovery = later_recovery(recovery, given.now);
            tracing::error!(path = %self.folder.path().display(), %loss, recovery = recovery.0,
                "the store has lost something; the Recovery Time Stamp moves");
        }
        let seeds = [known.seed, mark.seed, given.seed];
        let seed = seeds.into_iter().find(|&seed| seed != 0);
        (recovery, seed.unwrap_or_default())
    }

    /// Reads all contents from the database or, where that is damaged, from its files. A damaged
    /// database is not returned.
    fn find(
        &self,
        config: &StoreConfig,
    ) -> Result<(Option<Database>, StoreContents, Option<StoreLoss>), StoreError> {
        // The journals are read first, because opening the database truncates them where it cannot
        // read on.
        let journals = bytes_of(&self.folder.database(), is_journal);
        let (mut contents, database) = match Database::open(&self.folder.database(), config.buffer)
        {
            Ok(database) => (StoreContents::of(&database), Some(database)),
            Err(OpenFailure::Environment(error)) => return Err(error),
            Err(OpenFailure::Damaged(reason)) => {
                let mut contents = StoreContents::default();
                contents
                    .notes
                    .push(format!("the database cannot be opened: {reason}"));
                (contents, None)
            }
        };
        contents.damaged += self.damaged;
        let whole = contents.loss(self.mark).is_none() && contents.damaged == self.damaged;
        if whole && database.is_some() {
            if self.damaged > 0 {
                tracing::warn!(
                    damaged = self.damaged,
                    "files beside the store's database were damaged; nothing is lost"
                );
            }
            return Ok((database, contents, None));
        }
        if contents.notes.is_empty() {
            contents.search(&journals);
        } else {
            // The database could not be opened, so all its other files have to be searched as well.
            contents.search(&journals);
            contents.search(&bytes_of(&self.folder.database(), |_| true));
        }
        drop(database);
        let loss = contents.loss(self.mark);
        if loss.is_none() {
            let damaged = contents.damaged;
            tracing::warn!(
                damaged,
                "the store was damaged; all of it was found elsewhere"
            );
        }
        Ok((None, contents, loss))
    }

    /// Writes the contents into a new database, which replaces the damaged one. Its head contains
    /// the new Recovery Time Stamp: once it is in place, no further loss is reported.
    fn rebuild(
        &self,
        config: &StoreConfig,
        contents: &mut StoreContents,
        mut head: HeadRecord,
    ) -> Result<Database, StoreError> {
        let refused = |failure| match failure {
            OpenFailure::Environment(error) => error,
            OpenFailure::Damaged(reason) => StoreError::Database {
                path: self.folder.path().to_owned(),
                reason,
            },
        };
        let failed = |error: fjall::Error| refused(OpenFailure::Damaged(error.to_string()));
        let fresh =
            Database::open(&self.folder.new_database_path(), config.buffer).map_err(refused)?;
        let commit = contents.head.as_ref().map_or(0, |(commit, _)| *commit);
        let commit = commit.max(self.mark.map_or(0, |mark| mark.commit)) + 1;
        let mut group = Vec::new();
        for read in contents.records.values_mut() {
            let (bytes, sum) = read.record.encode(commit);
            (read.commit, read.sum) = (commit, sum);
            group.push((read.record.key().encode(), Some(bytes)));
            if group.len() == 1024 {
                let part = std::mem::take(&mut group);
                fresh
                    .write(part, crate::config::Durability::Process)
                    .map_err(failed)?;
            }
        }
        (head.sum, head.sessions) = (contents.sum(), contents.sessions());
        head.removed.clear();
        let (bytes, _) = Record::HeadRecord(head.clone()).encode(commit);
        group.push((super::format::RecordKey::HeadRecord.encode(), Some(bytes)));
        fresh
            .write(group, crate::config::Durability::Process)
            .map_err(failed)?;
        fresh.sync().map_err(failed)?;
        contents.head = Some((commit, head));
        drop(fresh);
        self.folder.replace().map_err(self.folder.failed())?;
        Database::open(&self.folder.database(), config.buffer).map_err(refused)
    }
}

/// Returns a time stamp that is later than `before`, and `now` if possible.
fn later_recovery(before: Recovery, now: Recovery) -> Recovery {
    match now.is_after(before) {
        true => now,
        false => Recovery(before.0.wrapping_add(1)),
    }
}

/// Returns a SEID that no stored session has had. A store that lost sessions has a new Recovery
/// Time Stamp, which leads to other SEIDs than those that it lost; see [`first_seid`] for how long.
fn next_seid(contents: &StoreContents, head: &HeadRecord, recovery: Recovery) -> u64 {
    let held = contents.records.keys().filter_map(|key| match key {
        super::format::RecordKey::Session(seid) => Some(seid.0.saturating_add(1)),
        _ => None,
    });
    held.fold(head.next_seid.max(first_seid(recovery)), u64::max)
}

/// Fills the tables in memory.
fn fill(table: &MemoryStore, contents: &mut StoreContents, answers_hold: bool) {
    table.apply(
        contents
            .records
            .values()
            .filter_map(|read| match &read.record {
                Record::Association(owner) => Some(StoreChange::Associate(Arc::clone(owner))),
                Record::Application(one) => Some(StoreChange::PutPfds(Arc::clone(one))),
                Record::Session(_) | Record::Answer { .. } | Record::HeadRecord(_) => None,
            }),
    );
    for read in contents.records.values_mut() {
        let Record::Session(record) = &mut read.record else {
            continue;
        };
        // All sessions of an association share one owner. A session whose association is missing
        // restores the association.
        match table.association(&record.owner.node) {
            Some(owner) => Arc::make_mut(record).owner = owner,
            None => table.apply([StoreChange::Associate(Arc::clone(&record.owner))]),
        }
        table.apply([StoreChange::Put(Arc::clone(record))]);
    }
    if answers_hold {
        let records = contents.records.values();
        let mut answers: Vec<(u64, StoredResponse)> = records
            .filter_map(|read| match &read.record {
                Record::Answer { answer, .. } => Some((read.commit, answer.clone())),
                _ => None,
            })
            .collect();
        answers.sort_by_key(|(commit, answer)| (*commit, answer.at));
        table.apply(
            answers
                .into_iter()
                .map(|(_, answer)| StoreChange::Answer(answer)),
        );
    }
}

impl Store for DiskStore {
    fn table(&self) -> &MemoryStore {
        &self.table
    }

    fn write(&self, changes: Vec<StoreChange>) -> PendingWrite {
        let Some(jobs) = &self.jobs else {
            return PendingWrite::Done(Err(WriteRefused::DiskFull));
        };
        let (done, outcome) = oneshot::channel();
        match jobs.try_send(WriteJob { changes, done }) {
            Ok(()) => PendingWrite::Waiting(outcome),
            Err(TrySendError::Full(_)) => PendingWrite::Done(Err(WriteRefused::Busy)),
            Err(TrySendError::Disconnected(_)) => PendingWrite::Done(Err(WriteRefused::DiskFull)),
        }
    }

    fn health(&self) -> StoreHealth {
        self.status.health()
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        // The writer ends when the queue is closed.
        self.jobs = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}
