//! The form on disk: an embedded database, written in groups by a thread of its own.
//!
//! ```text
//!  PATH/format    the version of the format
//!  PATH/lock      held while a process uses the store
//!  PATH/head      how far the database has come
//!  PATH/reserve   room for deletions when the disk is full
//!  PATH/db/       the database
//!  PATH/damaged/  what the database was before the last salvage
//! ```

mod database;
mod head;
mod load;
mod place;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use strowger_pfcp::association::Recovery;
use tokio::sync::oneshot;

use self::database::{Database, OpenFailure};
use self::head::{HeadFile, Mark};
pub(super) use self::load::Contents;
pub(crate) use self::load::threads;
use self::load::{is_journal, octets_of};
use self::place::Folder;
use self::writer::{Job, Status, Writer};
use super::format::{Head, Record};
use super::{Answer, Change, Memory, Refused, Store, StoreError, StoreHealth, StoreLoss, Ticket};
use crate::config::StoreConfig;

/// A store on disk; its end waits until all is written.
#[derive(Debug)]
pub(crate) struct Disk {
    table: Arc<Memory>,
    status: Arc<Status>,
    /// `None` only while it ends.
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// A folder that this process has for itself, before its database is opened.
#[derive(Debug)]
pub(crate) struct Prepared {
    folder: Folder,
    head: HeadFile,
    mark: Option<Mark>,
    damaged: u64,
}

/// A store that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Disk,
    /// What the node tells its peers.
    pub(crate) recovery: Recovery,
    /// Where digests of requests start.
    pub(crate) seed: u64,
    /// An identifier that no session has had.
    pub(crate) next_seid: u64,
}

/// What a store is opened with besides its configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// The most answers that are kept.
    pub(crate) answers: usize,
    /// The present, as the time stamp that the node gets if its store is new or has lost something.
    pub(crate) now: Recovery,
    /// A seed that nobody knows, if the store has none yet.
    pub(crate) seed: u64,
    /// The digest of a known request, for a seed.
    pub(crate) probe: fn(u64) -> u64,
}

impl Prepared {
    /// Takes the folder: makes it if it is not there, locks it, and reads what can be told at once.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let folder = Folder::take(path)?;
        let (head, found) = HeadFile::open(&folder.head()).map_err(folder.failed())?;
        Ok(Self {
            damaged: found.damaged + u64::from(folder.format_damaged()),
            mark: found.mark,
            folder,
            head,
        })
    }

    /// What the node told its peers before, and tells them now unless something is lost.
    pub(crate) fn recovery(&self) -> Option<Recovery> {
        self.mark.map(|mark| Recovery(mark.recovery))
    }

    /// Reads all without writing any of it anew; also what the file `head` tells peers.
    pub(in crate::store) fn look(self) -> Result<(Contents, u32, Option<StoreLoss>), StoreError> {
        let (_, contents, loss) = self.find(&StoreConfig::default())?;
        let told = self.mark.map_or(0, |mark| mark.recovery);
        Ok((contents, told, loss))
    }

    /// Reads all, and starts the writer.
    pub(crate) fn open(
        self,
        config: &StoreConfig,
        given: Circumstances,
    ) -> Result<Opened, StoreError> {
        self.folder.settle().map_err(self.folder.failed())?;
        let (database, mut contents, loss) = self.find(config)?;
        let is_new = contents.head.is_none() && self.mark.is_none();
        let known = contents.head.clone().unwrap_or_default().1;
        let (recovery, seed) = self.identity(&known, loss.as_ref(), given);
        let database = match database {
            Some(database) => database,
            None => {
                let head = Head {
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
        let head = Head {
            recovery: recovery.0,
            next_seid: next_seid(&contents, &known),
            seed,
            probe,
            sessions: contents.sessions(),
            sum: contents.sum(),
            slot: known.slot,
            removed: Vec::new(),
        };
        let table = Arc::new(Memory::new(given.answers));
        let answers_hold = known_probe == probe;
        if !answers_hold && !is_new {
            tracing::warn!("kept answers are dropped: this build makes other digests of requests");
        }
        fill(&table, &mut contents, answers_hold);
        let status = Arc::new(Status::new(self.folder.path(), loss.clone()));
        let commit = commit.max(self.mark.map_or(0, |mark| mark.commit));
        let next_seid = head.next_seid;
        let mut writer = Writer::new(
            self.folder,
            self.head,
            database,
            Arc::clone(&table),
            Arc::clone(&status),
            config.clone(),
            given.answers,
        );
        writer.adopt(&contents, commit, head);
        // A new store, and one whose time stamp moves, says so before anybody is told.
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
        let store = Disk {
            table,
            status,
            jobs: Some(jobs),
            writer: Some(thread),
        };
        Ok(Opened {
            store,
            recovery,
            seed,
            next_seid,
        })
    }

    /// What the node tells its peers from now on, and where digests of requests start.
    fn identity(
        &self,
        known: &Head,
        loss: Option<&StoreLoss>,
        given: Circumstances,
    ) -> (Recovery, u64) {
        let mark = self.mark.unwrap_or_default();
        let mut recovery = match (known.recovery, mark.recovery) {
            (0, 0) => given.now,
            (0, marked) => Recovery(marked),
            (known, _) => Recovery(known),
        };
        if let Some(loss) = loss {
            recovery = moved(recovery, given.now);
            tracing::error!(path = %self.folder.path().display(), %loss, recovery = recovery.0,
                "the store has lost something; the Recovery Time Stamp moves");
        }
        let seeds = [known.seed, mark.seed, given.seed];
        let seed = seeds.into_iter().find(|&seed| seed != 0);
        (recovery, seed.unwrap_or_default())
    }

    /// Finds all that can be read: in the database, and where that is damaged in its files. A
    /// database that is damaged is not returned.
    fn find(
        &self,
        config: &StoreConfig,
    ) -> Result<(Option<Database>, Contents, Option<StoreLoss>), StoreError> {
        // The database cuts its journal where it cannot read on.
        let journals = octets_of(&self.folder.database(), is_journal);
        let (mut contents, database) = match Database::open(&self.folder.database(), config.buffer)
        {
            Ok(database) => (Contents::of(&database), Some(database)),
            Err(OpenFailure::Environment(error)) => return Err(error),
            Err(OpenFailure::Damaged(reason)) => {
                let mut contents = Contents::default();
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
            contents.search(&journals);
            contents.search(&octets_of(&self.folder.database(), |_| true));
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

    /// Writes what was found into a new database, in place of the damaged one. Its head says what
    /// peers are told from now on: once it is there, nothing looks lost any more.
    fn rebuild(
        &self,
        config: &StoreConfig,
        contents: &mut Contents,
        mut head: Head,
    ) -> Result<Database, StoreError> {
        let refused = |failure| match failure {
            OpenFailure::Environment(error) => error,
            OpenFailure::Damaged(reason) => StoreError::Database {
                path: self.folder.path().to_owned(),
                reason,
            },
        };
        let failed = |error: fjall::Error| refused(OpenFailure::Damaged(error.to_string()));
        let fresh = Database::open(&self.folder.fresh(), config.buffer).map_err(refused)?;
        let commit = contents.head.as_ref().map_or(0, |(commit, _)| *commit);
        let commit = commit.max(self.mark.map_or(0, |mark| mark.commit)) + 1;
        let mut group = Vec::new();
        for read in contents.records.values_mut() {
            let (octets, sum) = read.record.encode(commit);
            (read.commit, read.sum) = (commit, sum);
            group.push((read.record.place().key(), Some(octets)));
            if group.len() == 1024 {
                let part = std::mem::take(&mut group);
                fresh
                    .write(part, crate::config::Durability::Process)
                    .map_err(failed)?;
            }
        }
        (head.sum, head.sessions) = (contents.sum(), contents.sessions());
        head.removed.clear();
        let (octets, _) = Record::Head(head.clone()).encode(commit);
        group.push((super::format::Place::Head.key(), Some(octets)));
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

/// A time stamp after both.
fn moved(before: Recovery, now: Recovery) -> Recovery {
    match now.is_after(before) {
        true => now,
        false => Recovery(before.0.wrapping_add(1)),
    }
}

fn next_seid(contents: &Contents, head: &Head) -> u64 {
    let held = contents.records.keys().filter_map(|place| match place {
        super::format::Place::Session(seid) => Some(seid.0.saturating_add(1)),
        _ => None,
    });
    held.fold(head.next_seid.max(1), u64::max)
}

/// Puts what was read where it is looked up.
fn fill(table: &Memory, contents: &mut Contents, answers_hold: bool) {
    table.apply(
        contents
            .records
            .values()
            .filter_map(|read| match &read.record {
                Record::Association(owner) => Some(Change::Associate(Arc::clone(owner))),
                Record::Application(one) => Some(Change::Describe(Arc::clone(one))),
                Record::Session(_) | Record::Answer { .. } | Record::Head(_) => None,
            }),
    );
    for read in contents.records.values_mut() {
        let Record::Session(record) = &mut read.record else {
            continue;
        };
        // One owner for all sessions of an association; a session whose association is gone
        // brings it back.
        match table.association(&record.owner.node) {
            Some(owner) => Arc::make_mut(record).owner = owner,
            None => table.apply([Change::Associate(Arc::clone(&record.owner))]),
        }
        table.apply([Change::Put(Arc::clone(record))]);
    }
    if answers_hold {
        let records = contents.records.values();
        let mut answers: Vec<(u64, Answer)> = records
            .filter_map(|read| match &read.record {
                Record::Answer { answer, .. } => Some((read.commit, answer.clone())),
                _ => None,
            })
            .collect();
        answers.sort_by_key(|(commit, answer)| (*commit, answer.at));
        table.apply(
            answers
                .into_iter()
                .map(|(_, answer)| Change::Answer(answer)),
        );
    }
}

impl Store for Disk {
    fn table(&self) -> &Memory {
        &self.table
    }

    fn write(&self, changes: Vec<Change>) -> Ticket {
        let Some(jobs) = &self.jobs else {
            return Ticket::Settled(Err(Refused::NoRoom));
        };
        let (done, outcome) = oneshot::channel();
        match jobs.try_send(Job { changes, done }) {
            Ok(()) => Ticket::Waiting(outcome),
            Err(TrySendError::Full(_)) => Ticket::Settled(Err(Refused::Busy)),
            Err(TrySendError::Disconnected(_)) => Ticket::Settled(Err(Refused::NoRoom)),
        }
    }

    fn health(&self) -> StoreHealth {
        self.status.health()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The writer ends when nobody can give it work any more.
        self.jobs = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}
