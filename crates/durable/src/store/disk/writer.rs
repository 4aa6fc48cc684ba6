//! The thread that owns the database.
//!
//! ```text
//!            a write finds no room             the database opens again
//!  serving ────────────────────────▶ disk full ────────────────────────▶ serving
//!     │                                  │
//!     │ any other write, or a sync, fails│
//!     └──────────────▶ failed ◀──────────┘        refuses everything until the store is reopened
//! ```
//!
//! After a failed sync it is unknown which pages are on the disk, and a second sync may succeed
//! without them; so it is never repeated. After a write that found no room the database refuses all
//! further ones until it is opened again, which also shows what became of the failed group.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::mark::MarkFile;
use super::rows::{Group, GroupError, GroupNumber, ReadError, Rows, always_writes_head};
use super::tools::BackupSource;
use super::watchdog::WriterProgress;
use super::{DatabaseError, Durability, FjallOptions, close};
use crate::hash_map::remove_and_shrink;
use crate::store::{
    Batch, EntityHead, EntityId, EntityRows, Fence, RowSelection, Sequence, StoreError, StoreFault,
    Wake,
};

/// The sender for the result of an operation. Its caller may have stopped waiting.
type Done<T> = oneshot::Sender<Result<T, StoreError>>;

/// An operation for the thread.
pub(super) enum Job {
    Lease {
        entity: EntityId,
        done: Done<Fence>,
    },
    Read {
        entity: EntityId,
        selection: RowSelection,
        done: Done<EntityRows>,
    },
    Append {
        entity: EntityId,
        expected: Sequence,
        fence: Fence,
        batch: Batch,
        done: Done<Sequence>,
    },
    /// The holder of an entity has ended.
    Release {
        entity: EntityId,
        fence: Fence,
    },
    List {
        kind: Arc<str>,
        after: Option<Arc<str>>,
        limit: usize,
        done: Done<Vec<Arc<str>>>,
    },
    Wakes {
        kind: Arc<str>,
        after: Option<Wake>,
        limit: usize,
        done: Done<Vec<Wake>>,
    },
    Snapshot {
        done: Done<BackupSource>,
    },
    Inject(StoreFault),
    /// Wakes the thread, which then sees that the store is closing.
    Close,
}

/// A write of a group that has passed its checks, with the result for its caller.
enum Accepted {
    Lease(Done<Fence>, Fence),
    Append(Done<Sequence>, Sequence),
}

impl Accepted {
    fn finish(self, result: Result<(), StoreError>) {
        match self {
            Self::Lease(done, fence) => _ = done.send(result.map(|()| fence)),
            Self::Append(done, sequence) => _ = done.send(result.map(|()| sequence)),
        }
    }
}

/// The state of the thread.
pub(super) struct Writer {
    path: PathBuf,
    /// `None` while the disk is full, until the database is opened again.
    rows: Option<Rows>,
    mark: MarkFile,
    /// The number of the last group that was attempted.
    group: u64,
    /// The number of the last group that was acknowledged.
    acknowledged: u64,
    options: FjallOptions,
    progress: Arc<WriterProgress>,
    /// Backups that read from the database, each with its flag to give up.
    backups: Vec<Weak<AtomicBool>>,
    /// Heads of entities as of the last committed group.
    heads: HashMap<EntityId, EntityHead>,
    faults: VecDeque<StoreFault>,
    /// The error of every operation, once the store has failed.
    failure: Option<StoreError>,
    reopen_at: Instant,
    synced: Instant,
}

impl Writer {
    /// Takes over a database, with the numbers of its last group and of the last one in the mark.
    pub(super) fn new(
        path: &Path,
        rows: Rows,
        mark: MarkFile,
        [committed, marked]: [u64; 2],
        (options, progress): (FjallOptions, Arc<WriterProgress>),
    ) -> Self {
        Self {
            path: path.to_owned(),
            rows: Some(rows),
            mark,
            group: committed.max(marked),
            acknowledged: committed,
            options,
            progress,
            backups: Vec::new(),
            heads: HashMap::new(),
            faults: VecDeque::new(),
            failure: None,
            reopen_at: Instant::now(),
            synced: Instant::now(),
        }
    }

    /// Serves operations until the store is dropped.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>, is_closing: &AtomicBool) {
        let mut jobs = Vec::new();
        while receive(&mut queue, &mut jobs, self.options.group.max(1)) {
            self.progress.begin();
            self.serve(std::mem::take(&mut jobs));
            if self.progress.end() {
                tracing::warn!(path = %self.path.display(), "store responds again");
            }
            if self.options.durability == Durability::Disk && self.synced.elapsed() >= MARK_INTERVAL
            {
                self.synced = Instant::now();
                let _ = self.mark.sync();
            }
            if is_closing.load(Ordering::Acquire) {
                break;
            }
        }
        self.progress.begin();
        // Nothing is queued any more; callers that still wait for room learn that it is closed.
        queue.close();
        while let Ok(job) = queue.try_recv() {
            self.serve(vec![job]);
        }
        if self.failure.is_none()
            && let Some(rows) = self.rows.take()
        {
            self.close(rows);
        }
        let _ = self.mark.sync();
        self.progress.end();
    }

    /// Closes the database so that it opens fast.
    fn close(&self, rows: Rows) {
        let path = self.path.display();
        if let Err(error) = rows.sync() {
            tracing::error!(%path, %error, "store not synced at its end");
            return;
        }
        let FjallOptions {
            buffer,
            write_deadline,
            ..
        } = self.options;
        if let Err(error) = close::close(&self.path, rows, buffer, write_deadline) {
            tracing::warn!(%path, %error, "store closed with journals, which the next start reads");
        }
    }

    /// Commits the writes among some operations as one group, then serves the reads.
    fn serve(&mut self, jobs: Vec<Job>) {
        let mut writes = Vec::with_capacity(jobs.len());
        let (mut reads, mut released) = (Vec::new(), Vec::new());
        for job in jobs {
            match job {
                read @ (Job::Read { .. }
                | Job::List { .. }
                | Job::Wakes { .. }
                | Job::Snapshot { .. }) => reads.push(read),
                Job::Inject(fault) => self.faults.push_back(fault),
                Job::Release { entity, fence } => released.push((entity, fence)),
                Job::Close => {}
                write => writes.push(write),
            }
        }
        if !writes.is_empty() {
            self.write(writes);
        }
        for (entity, fence) in released {
            // Another holder may have taken the entity over.
            if self
                .heads
                .get(&entity)
                .is_some_and(|head| head.fence == fence)
            {
                remove_and_shrink(&mut self.heads, &entity);
            }
        }
        for read in reads {
            match read {
                Job::Read {
                    entity,
                    selection,
                    done,
                } => _ = done.send(self.read(&entity, selection)),
                Job::List {
                    kind,
                    after,
                    limit,
                    done,
                } => _ = done.send(self.list(&kind, after.as_deref(), limit)),
                Job::Wakes {
                    kind,
                    after,
                    limit,
                    done,
                } => _ = done.send(self.wakes(&kind, after.as_ref(), limit)),
                Job::Snapshot { done } => _ = done.send(self.snapshot()),
                _ => {}
            }
        }
    }

    /// Returns the database, opened again if the disk was full.
    fn rows(&mut self) -> Result<&Rows, StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let now = Instant::now();
        if self.rows.is_none() && now >= self.reopen_at {
            self.reopen_at = now + REOPEN_INTERVAL;
            self.reopen()?;
        }
        self.rows.as_ref().ok_or_else(|| StoreError::DiskFull {
            detail: "the store could not be opened again yet".into(),
        })
    }

    /// Opens the database again, unless there is still no room. It must have all groups that were
    /// acknowledged.
    fn reopen(&mut self) -> Result<(), StoreError> {
        let opened = Rows::open(&self.path.join("db"), self.options.buffer).and_then(|rows| {
            let committed = rows.committed_group()?;
            Ok((rows, committed))
        });
        match opened {
            Ok((_, committed)) if committed < self.acknowledged => {
                let missing = self.acknowledged - committed;
                return Err(self.fail(&format!("the last {missing} groups are missing")));
            }
            Ok((rows, _)) => self.rows = Some(rows),
            Err(error) if error.is_disk_full() => {
                tracing::warn!(%error, "store cannot be opened again");
            }
            // A backup that has not noticed yet that it is cancelled keeps the database open.
            Err(DatabaseError::Fjall(fjall::Error::Locked))
                if self.backups.iter().any(|one| one.strong_count() > 0) => {}
            Err(error) => return Err(self.fail(&error)),
        }
        Ok(())
    }

    /// Takes a snapshot, which has all groups so far.
    fn snapshot(&mut self) -> Result<BackupSource, StoreError> {
        let rows = self.rows()?.clone();
        let cancelled = Arc::new(AtomicBool::new(false));
        self.backups.retain(|backup| backup.strong_count() > 0);
        self.backups.push(Arc::downgrade(&cancelled));
        Ok(BackupSource::new(rows, cancelled))
    }

    fn read(
        &mut self,
        entity: &EntityId,
        selection: RowSelection,
    ) -> Result<EntityRows, StoreError> {
        let head = self.heads.get(entity).copied();
        let read = self.rows()?.read(entity, head, selection);
        read.map_err(|error| unreadable(entity, error))
    }

    fn list(
        &mut self,
        kind: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let listed = self.rows()?.list(kind, after, limit);
        listed.map_err(|error| self.fail(&error))
    }

    fn wakes(
        &mut self,
        kind: &str,
        after: Option<&Wake>,
        limit: usize,
    ) -> Result<Vec<Wake>, StoreError> {
        let listed = self.rows()?.wakes(kind, after, limit);
        listed.map_err(|error| self.fail(&error))
    }

    fn write(&mut self, jobs: Vec<Job>) {
        if let Err(refusal) = self.rows() {
            jobs.into_iter().for_each(|job| job.refuse(&refusal));
            return;
        }
        let Some(rows) = &self.rows else { return };
        if self.heads.len() > MAX_HEADS {
            self.heads.clear();
        }
        let has_append = jobs.iter().any(|job| matches!(job, Job::Append { .. }));
        let fault = has_append.then(|| self.faults.pop_front()).flatten();
        if let Some(StoreFault::Stall(time)) = fault {
            std::thread::sleep(time);
        }
        let mut group = rows.begin();
        let mut accepted = Vec::with_capacity(jobs.len());
        let mut changed_heads: Vec<EntityId> = Vec::new();
        for job in jobs {
            let (Job::Lease { entity, .. } | Job::Append { entity, .. }) = &job else {
                continue;
            };
            let entity = entity.clone();
            let mut read = None;
            let head = match self.heads.get_mut(&entity) {
                Some(head) => head,
                None => match rows.head(&entity) {
                    Ok(head) => read.insert(head),
                    Err(error) => {
                        job.refuse(&unreadable(&entity, error));
                        continue;
                    }
                },
            };
            let is_head_changed = match job {
                Job::Lease { done, .. } => {
                    head.fence = head.fence.next();
                    accepted.push(Accepted::Lease(done, head.fence));
                    true
                }
                Job::Append {
                    expected,
                    fence,
                    batch,
                    done,
                    ..
                } => {
                    if let Err(refused) = head.check(&entity, expected, fence) {
                        let _ = done.send(Err(refused));
                        continue;
                    }
                    head.sequence = expected.next();
                    // The state has the sequence as well.
                    let is_head_changed = always_writes_head(head.sequence)
                        || !batch.puts_state()
                        || batch.wake.is_some_and(|wake| wake != head.wake);
                    if let Some(wake) = batch.wake {
                        group.move_wake(&entity, head.sequence, head.wake, wake);
                        head.wake = wake;
                    }
                    let is_damaged = fault == Some(StoreFault::Damage);
                    for change in &batch.changes {
                        group.change(&entity, head.sequence, change, is_damaged);
                    }
                    accepted.push(Accepted::Append(done, head.sequence));
                    is_head_changed
                }
                Job::Read { .. }
                | Job::List { .. }
                | Job::Wakes { .. }
                | Job::Snapshot { .. }
                | Job::Release { .. }
                | Job::Inject(_)
                | Job::Close => false,
            };
            if let Some(head) = read {
                self.heads.insert(entity.clone(), head);
            }
            // A lease and the first batch of its holder are often neighbours.
            if is_head_changed && changed_heads.last() != Some(&entity) {
                changed_heads.push(entity);
            }
        }
        for entity in changed_heads {
            if let Some(head) = self.heads.get(&entity) {
                group.put_head(&entity, *head);
            }
        }
        if accepted.is_empty() {
            return;
        }
        // The number is used up even if the group fails, because it may still reach the disk.
        self.group += 1;
        let number = GroupNumber {
            number: self.group,
            previous: Some(self.acknowledged),
        };
        let committed = commit(group, number, self.options.durability, fault);
        let result = self.acknowledge(committed);
        for write in accepted {
            write.finish(result.clone());
        }
    }

    /// Writes the mark of a group that was committed, and returns the result for its callers.
    fn acknowledge(&mut self, committed: Result<(), GroupError>) -> Result<(), StoreError> {
        committed.map_err(|error| self.group_failed(&error))?;
        // Without its mark, a loss of the group would go unnoticed.
        let marked = self.mark.write(self.group);
        marked.map_err(|error| self.fail(&error))?;
        self.acknowledged = self.group;
        Ok(())
    }

    /// Handles the failure of a group, and returns the error for its callers.
    fn group_failed(&mut self, error: &GroupError) -> StoreError {
        // The group may be in the database or not; heads are read again.
        self.heads.clear();
        match error {
            GroupError::Write(error) if error.is_disk_full() => {
                tracing::error!(path = %self.path.display(), %error, "disk is full");
                for backup in self.backups.iter().filter_map(Weak::upgrade) {
                    backup.store(true, Ordering::Release);
                }
                self.rows = None;
                let detail = error.to_string().into();
                StoreError::DiskFull { detail }
            }
            GroupError::Write(error) | GroupError::Sync(error) => self.fail(error),
        }
    }

    /// Ends the service: every operation returns this error from now on.
    fn fail(&mut self, error: &dyn std::fmt::Display) -> StoreError {
        tracing::error!(path = %self.path.display(), %error, "store has failed");
        let detail = error.to_string().into();
        let failure = StoreError::Failed { detail };
        self.failure = Some(failure.clone());
        failure
    }
}

/// Commits a group under its number, with the fault that a test has injected.
fn commit(
    group: Group<'_>,
    number: GroupNumber,
    durability: Durability,
    fault: Option<StoreFault>,
) -> Result<(), GroupError> {
    if fault == Some(StoreFault::DiskFull) {
        let error = DatabaseError::injected(ErrorKind::StorageFull);
        return Err(GroupError::Write(error));
    }
    group.commit(number, durability)?;
    match fault {
        Some(StoreFault::SyncFailed) => {
            let error = DatabaseError::injected(ErrorKind::Other);
            Err(GroupError::Sync(error))
        }
        _ => Ok(()),
    }
}

/// Waits for operations and takes those of a group: at most `limit` batches, and at most as many
/// others. So a batch and the lease before it take no more of a group than a batch alone. Returns
/// `false` if there will be no more.
fn receive(queue: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>, limit: usize) -> bool {
    let received = queue.blocking_recv_many(jobs, limit);
    if received == limit {
        let is_batch = |job: &Job| matches!(job, Job::Append { .. });
        let mut batches = jobs.iter().filter(|job| is_batch(job)).count();
        while batches < limit
            && jobs.len() - batches < limit
            && let Ok(job) = queue.try_recv()
        {
            batches += usize::from(is_batch(&job));
            jobs.push(job);
        }
    }
    received > 0
}

impl Job {
    fn refuse(self, error: &StoreError) {
        match self {
            Self::Lease { done, .. } => _ = done.send(Err(error.clone())),
            Self::Read { done, .. } => _ = done.send(Err(error.clone())),
            Self::Append { done, .. } => _ = done.send(Err(error.clone())),
            Self::List { done, .. } => _ = done.send(Err(error.clone())),
            Self::Wakes { done, .. } => _ = done.send(Err(error.clone())),
            Self::Snapshot { done } => _ = done.send(Err(error.clone())),
            Self::Release { .. } | Self::Inject(_) | Self::Close => {}
        }
    }
}

fn unreadable(entity: &EntityId, error: ReadError) -> StoreError {
    match error {
        ReadError::Entity(error) => error,
        ReadError::Database(error) => StoreError::Damaged {
            entity: entity.clone(),
            sequence: Sequence(0),
            detail: error.to_string().into(),
        },
    }
}

/// Minimum time between two attempts to open the database of a store whose disk was full.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two syncs of the mark. A mark that is older than the database is harmless.
const MARK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of heads that are kept in memory; beyond it, all are read again.
const MAX_HEADS: usize = 1 << 16;
