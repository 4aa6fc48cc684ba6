//! The thread that writes: what waits becomes one group.
//!
//! A write waits for the group that is being written and then for its own, and for as many groups
//! as the queue holds when it is full; never for a timer.
//!
//! ```text
//!             a group fails                    the reserve is there again
//!   writing ───────────────▶ short of room ◀──────────────▶ writing
//!                               │     ▲
//!                reopening fails▼     │reopened
//!                             closed ─┘       deletions are done in memory, and written later
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

use super::database::{Database, Entry};
use super::head::{HeadFile, Mark};
use super::load::Contents;
use super::place::Folder;
use crate::config::{Durability, StoreConfig};
use crate::store::format::{Head, Place, Record};
use crate::store::{Change, Memory, Refused, StoreError, StoreHealth, StoreLoss};

/// A write and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) changes: Vec<Change>,
    pub(super) done: oneshot::Sender<Result<(), Refused>>,
}

/// What the writer lets others see.
#[derive(Debug)]
pub(super) struct Status {
    path: PathBuf,
    loss: Option<StoreLoss>,
    refusing: AtomicBool,
    groups: AtomicU64,
    writes: AtomicU64,
    refused: AtomicU64,
    /// Nanoseconds of all groups, and of the longest.
    committing: AtomicU64,
    longest: AtomicU64,
    octets: AtomicU64,
}

impl Status {
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
            octets: AtomicU64::new(0),
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
            octets: self.octets.load(Ordering::Relaxed),
            loss: self.loss.clone(),
        }
    }
}

/// The digests of the records that are there, by place.
#[derive(Debug, Default)]
struct Sums {
    sessions: FxHashMap<Seid, u64>,
    associations: FxHashMap<NodeName, u64>,
    answers: FxHashMap<u32, u64>,
    applications: FxHashMap<Vec<u8>, u64>,
}

impl Sums {
    /// Sets the digest of a place; returns the old one.
    fn set(&mut self, place: Place, sum: Option<u64>) -> Option<u64> {
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
        match place {
            Place::Session(seid) => put(&mut self.sessions, seid, sum),
            Place::Association(node) => put(&mut self.associations, node, sum),
            Place::Answer(slot) => put(&mut self.answers, slot, sum),
            Place::Application(application) => put(&mut self.applications, application, sum),
            Place::Head => None,
        }
    }

    fn get(&self, place: &Place) -> Option<u64> {
        match place {
            Place::Session(seid) => self.sessions.get(seid).copied(),
            Place::Association(node) => self.associations.get(node).copied(),
            Place::Answer(slot) => self.answers.get(slot).copied(),
            Place::Application(application) => self.applications.get(application).copied(),
            Place::Head => None,
        }
    }
}

/// Why a group was not written.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Database(#[from] fjall::Error),
    #[error(transparent)]
    Head(#[from] io::Error),
    #[error("the database is closed")]
    Closed,
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    folder: Folder,
    head_file: HeadFile,
    /// `None` while it cannot be opened.
    database: Option<Database>,
    table: Arc<Memory>,
    status: Arc<Status>,
    config: StoreConfig,
    sums: Sums,
    commit: u64,
    head: Head,
    /// The next place in the ring of answers, and how many there are.
    slot: u32,
    slots: u32,
    /// Places that may be otherwise on disk than in memory.
    stale: FxHashSet<Place>,
    /// When to try again what failed.
    retry: Instant,
    synced: Instant,
}

impl Writer {
    pub(super) fn new(
        folder: Folder,
        head_file: HeadFile,
        database: Database,
        table: Arc<Memory>,
        status: Arc<Status>,
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
            sums: Sums::default(),
            commit: 0,
            head: Head::default(),
            slot: 0,
            slots: u32::try_from(answers).unwrap_or(u32::MAX).max(1),
            stale: FxHashSet::default(),
            retry: Instant::now(),
            synced: Instant::now(),
        }
    }

    /// Takes over what was read.
    pub(super) fn adopt(&mut self, contents: &Contents, commit: u64, head: Head) {
        self.commit = commit;
        self.head = head;
        self.slot = self.head.slot % self.slots;
        for (place, read) in &contents.records {
            self.sums.set(place.clone(), Some(read.sum));
        }
    }

    /// Writes what the node is, for good, before it says so to anybody.
    pub(super) fn settle_identity(&mut self) -> Result<(), StoreError> {
        let failed = |reason: String, path: &Path| StoreError::Database {
            path: path.to_owned(),
            reason,
        };
        let written = self.write(Vec::new()).and_then(|()| {
            let database = self.database.as_ref().ok_or(Failure::Closed)?;
            database.sync()?;
            Ok(self.head_file.sync()?)
        });
        written.map_err(|error| failed(error.to_string(), self.folder.path()))
    }

    /// Writes groups until nobody is left who gives work.
    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        self.measure();
        loop {
            let job = match queue.recv_timeout(PAUSE) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.idle();
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
            self.work(group);
            self.idle();
        }
        if let Some(database) = &self.database
            && let Err(error) = database.sync()
        {
            tracing::error!(%error, "the store was not synced at its end");
        }
        let _ = self.head_file.sync();
    }

    /// What is done between groups: tries again what failed, and syncs the head file.
    fn idle(&mut self) {
        let now = Instant::now();
        if self.status.refusing.load(Ordering::Relaxed) && now >= self.retry {
            self.retry = now + PAUSE;
            self.heal();
        }
        if now.saturating_duration_since(self.synced) >= PAUSE {
            self.synced = now;
            self.measure();
            if self.config.durability == Durability::Disk {
                let _ = self.head_file.sync();
            }
        }
    }

    /// Notes how much the store takes on the disk.
    fn measure(&self) {
        let octets = size_of(self.folder.path());
        self.status.octets.store(octets, Ordering::Relaxed);
    }

    fn work(&mut self, group: Vec<Job>) {
        let began = Instant::now();
        let refusing = self.status.refusing.load(Ordering::Relaxed);
        let (large, small): (Vec<Job>, Vec<Job>) = group
            .into_iter()
            .partition(|job| refusing && job.changes.iter().any(Change::needs_room));
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
                    // Who does not wait any more does not need to know.
                    let _ = job.done.send(Ok(()));
                }
            }
            Err(error) => {
                self.degrade(&error);
                self.work_without_room(small, began);
            }
        }
    }

    /// Does what does not need room, on disk if that is possible and else in memory alone.
    fn work_without_room(&mut self, group: Vec<Job>, began: Instant) {
        let (large, small): (Vec<Job>, Vec<Job>) = group
            .into_iter()
            .partition(|job| job.changes.iter().any(Change::needs_room));
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

    fn refuse(&self, jobs: Vec<Job>) {
        for job in jobs {
            self.status.refused.fetch_add(1, Ordering::Relaxed);
            let _ = job.done.send(Err(Refused::NoRoom));
        }
    }

    /// Writes a group: the database, then the head file. When it fails, its places are stale.
    fn write(&mut self, changes: Vec<Change>) -> Result<(), Failure> {
        let mut places: FxHashMap<Place, Option<Record>> = FxHashMap::default();
        for change in changes {
            let (place, record) = match change {
                Change::Put(record) => {
                    self.head.next_seid = self.head.next_seid.max(record.seid.0.saturating_add(1));
                    (Place::Session(record.seid), Some(Record::Session(record)))
                }
                Change::Remove(seid) => (Place::Session(seid), None),
                Change::Associate(owner) => (
                    Place::Association(owner.node.clone()),
                    Some(Record::Association(owner)),
                ),
                Change::Release(node) => (Place::Association(node), None),
                Change::Describe(one) => (
                    Place::Application(one.application.clone()),
                    Some(Record::Application(one)),
                ),
                Change::Undescribe(application) => (Place::Application(application), None),
                Change::Answer(answer) => {
                    let slot = self.slot;
                    self.slot = (slot + 1) % self.slots;
                    (Place::Answer(slot), Some(Record::Answer { slot, answer }))
                }
            };
            places.insert(place, record);
        }
        let written = self.write_places(&places);
        match &written {
            Ok(()) => {}
            Err(_) => self.stale.extend(places.into_keys()),
        }
        written
    }

    fn write_places(&mut self, places: &FxHashMap<Place, Option<Record>>) -> Result<(), Failure> {
        let commit = self.commit + 1;
        let mut group: Vec<Entry> = Vec::with_capacity(places.len() + 1);
        let mut sums = Vec::with_capacity(places.len());
        let mut head = Head {
            slot: self.slot,
            removed: Vec::new(),
            ..self.head.clone()
        };
        for (place, record) in places {
            let before = self.sums.get(place);
            head.sum = head.sum.wrapping_sub(before.unwrap_or_default());
            let (octets, sum) = record.as_ref().map(|record| record.encode(commit)).unzip();
            head.sum = head.sum.wrapping_add(sum.unwrap_or_default());
            if matches!(place, Place::Session(_)) {
                head.sessions += u64::from(sum.is_some());
                head.sessions -= u64::from(before.is_some());
            }
            if sum.is_none() && !matches!(place, Place::Answer(_)) {
                head.removed.push(place.clone());
            }
            group.push((place.key(), octets));
            sums.push((place.clone(), sum));
        }
        let (octets, _) = Record::Head(head.clone()).encode(commit);
        group.push((Place::Head.key(), Some(octets)));
        let database = self.database.as_ref().ok_or(Failure::Closed)?;
        // A commit counts once it was tried: what failed may still come to be on disk.
        self.commit = commit;
        database.write(group, self.config.durability)?;
        self.head_file.write(Mark {
            commit,
            recovery: head.recovery,
            seed: head.seed,
        })?;
        self.head = head;
        for (place, sum) in sums {
            self.sums.set(place, sum);
        }
        Ok(())
    }

    /// A group failed: gives the reserve free and opens the database again, which refuses all
    /// writes until then.
    fn degrade(&mut self, error: &Failure) {
        if !self.status.refusing.swap(true, Ordering::Relaxed) {
            let path = self.folder.path().display();
            tracing::error!(%path, %error, "the store cannot be written: new sessions and \
                modifications are refused, deletions go on");
        }
        self.retry = Instant::now() + PAUSE;
        self.database = None;
        let _ = fs::remove_file(self.folder.reserve());
        self.reopen();
    }

    /// Opens the database again, and makes it say what memory says.
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
        if self.stale.is_empty() {
            return;
        }
        let stale: Vec<Place> = self.stale.iter().cloned().collect();
        let places = stale
            .iter()
            .map(|place| (place.clone(), self.in_memory(place)));
        let places = places.collect();
        match self.write_places(&places) {
            Ok(()) => self.stale.clear(),
            Err(error) => {
                tracing::debug!(%error, "the store cannot be written yet");
                self.database = None;
            }
        }
    }

    /// What the tables in memory have at a place.
    fn in_memory(&self, place: &Place) -> Option<Record> {
        match place {
            Place::Session(seid) => self.table.session(*seid).map(Record::Session),
            Place::Association(node) => self.table.association(node).map(Record::Association),
            Place::Application(application) => {
                let one = self.table.description(application);
                one.map(Record::Application)
            }
            // An answer that was not written is not kept over a restart.
            Place::Answer(_) | Place::Head => None,
        }
    }

    /// Tries to be as before: all is written, and the reserve is there.
    fn heal(&mut self) {
        self.reopen();
        if self.database.is_none() || !self.stale.is_empty() {
            return;
        }
        if self.make_reserve() {
            self.status.refusing.store(false, Ordering::Relaxed);
            tracing::warn!("the store can be written again");
        }
    }

    /// Makes the reserve; says whether it is there.
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

/// The octets of all files below a folder; what cannot be read does not count.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |there| there.len()),
        Err(_) => 0,
    });
    sizes.sum()
}

/// How long a store that cannot be written waits before it tries again.
const PAUSE: Duration = Duration::from_secs(1);
