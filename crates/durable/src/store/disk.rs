//! The store on disk: an embedded database, written in groups by a dedicated thread.
//!
//! ```text
//!  PATH/mark     the number of the last committed group, outside of the database
//!  PATH/db/      the database (fjall), with one table
//!  PATH/db.new/  a database that is being created
//! ```
//!
//! The database does not create itself atomically: it refuses to open what a killed process left,
//! and does not sync all of its folders. So it is created under another name, synced as a whole,
//! and renamed.
//!
//! Callers queue operations and await their results; only the thread touches the disk. The writes
//! that wait when a group is finished are the next group, so there is no timer.

mod close;
mod journal;
mod mark;
mod rows;
pub mod tools;
mod watchdog;
mod writer;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use self::journal::JournalScan;
use self::mark::MarkFile;
use self::rows::{GroupError, GroupNumber, Rows};
use self::watchdog::Watchdog;
use self::writer::{Job, Writer};
use super::{
    Batch, EntityId, EntityRows, Fence, RowSelection, Sequence, Store, StoreError, StoreFault,
    StoreFuture, Wake,
};
use crate::seeded_bug::{Bug, seeded};

/// The failures that an acknowledged write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, including `kill -9`: a write is acknowledged once the operating
    /// system has it.
    #[default]
    Process,
    /// The end of the operating system too, such as a loss of power: a write is acknowledged after
    /// an `fdatasync`, of which there is one for each group.
    Disk,
}

/// Options for opening a [`FjallStore`].
#[derive(Debug, Clone, Copy)]
pub struct FjallOptions {
    /// The failures that an acknowledged write survives.
    pub durability: Durability,
    /// Maximum number of operations that wait; further callers wait for room.
    pub queue: usize,
    /// Maximum number of batches in a group, and of other operations.
    pub group: usize,
    /// Bytes of rows that are kept in memory until they are written to a table. While the last
    /// tables are being written, up to five times as much is in memory; further writes wait.
    pub buffer: u64,
    /// `true` to open a store that has lost acknowledged writes, without them. It keeps what is
    /// intact on both sides of a damaged or missing journal, so that an entity may have later rows
    /// without earlier ones; [`repair`](tools::repair) keeps only what is before it.
    pub accept_loss: bool,
    /// The time after which a write that has not ended is reported: in the log, and to all callers
    /// as [`StoreError::Stalled`].
    pub write_deadline: Duration,
}

/// The default of [`FjallOptions::buffer`].
const DEFAULT_BUFFER: u64 = 64 << 20;

impl Default for FjallOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            queue: 4096,
            group: 64,
            buffer: DEFAULT_BUFFER,
            accept_loss: false,
            write_deadline: Duration::from_secs(30),
        }
    }
}

/// The reason why a store on disk could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another part of this one, has the store open.
    #[error(
        "{}: store is open in {}; stop that process", path.display(), describe_holder(*holder)
    )]
    Locked {
        /// The path of the store.
        path: PathBuf,
        /// The process that has it open, if the operating system says so.
        holder: Option<u32>,
    },
    /// The operating system refused an operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the store.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The store was written in a format that this version does not know.
    #[error(
        "{}: store has format {found}, this version reads those up to {known}; use the version \
         that wrote it",
        path.display()
    )]
    UnknownFormat {
        /// The path of the store.
        path: PathBuf,
        /// The format of the store.
        found: u8,
        /// The last format that this version reads.
        known: u8,
    },
    /// Acknowledged writes are missing.
    #[error(
        "{}: the last {groups} committed groups are missing; restore a backup, or continue without \
         them by `strowger store repair` or by setting `accept_loss`",
        path.display()
    )]
    Lost {
        /// The path of the store.
        path: PathBuf,
        /// The number of groups that are missing.
        groups: u64,
    },
    /// The database cannot be read.
    #[error(
        "{}: database is damaged: {detail}; run `strowger store repair`, or restore a backup",
        path.display()
    )]
    Damaged {
        /// The path of the store.
        path: PathBuf,
        /// The error of the database.
        detail: String,
    },
}

/// A store on the local disk.
///
/// Clones share the store. Dropping the last one blocks until the queued operations are done, and
/// until what is in memory is written to tables; so the next start is fast.
#[derive(Clone)]
pub struct FjallStore(Arc<StoreThread>);

struct StoreThread {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
    watchdog: Watchdog,
    /// Set when the store is dropped. The end of all senders would not do: an operation that waits
    /// for room in the queue has one, and may belong to a task that is not polled meanwhile.
    is_closing: Arc<AtomicBool>,
    /// `None` only while the store is being dropped.
    thread: Option<JoinHandle<()>>,
}

impl FjallStore {
    /// Opens the store in a folder, or creates an empty one. Blocks while journals are replayed.
    ///
    /// # Errors
    /// Fails if the folder cannot be used, or if acknowledged writes are missing; see
    /// [`OpenError`].
    pub fn open(path: impl AsRef<Path>, options: FjallOptions) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        create_folder(path).map_err(io)?;
        let (rows, mark_file, groups) = open_rows(path, options)?;
        let watchdog = Watchdog::start(path.to_owned(), options.write_deadline).map_err(io)?;
        let progress = Arc::clone(watchdog.progress());
        let writer = Writer::new(path, rows, mark_file, groups, (options, progress));
        let (jobs, queue) = mpsc::channel(options.queue.max(1));
        let is_closing = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("strowger-durable".to_owned())
            .spawn({
                let is_closing = Arc::clone(&is_closing);
                move || writer.run(queue, &is_closing)
            })
            .map_err(io)?;
        Ok(Self(Arc::new(StoreThread {
            path: path.to_owned(),
            jobs,
            watchdog,
            is_closing,
            thread: Some(thread),
        })))
    }

    /// Returns the path of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Injects a fault into the next group of writes that has no fault yet, for tests.
    pub async fn inject(&self, fault: StoreFault) {
        let _ = self.0.jobs.send(Job::Inject(fault)).await;
    }

    /// Queues an operation, and waits for its result.
    fn submit<T: Send + 'static>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job + Send + 'static,
    ) -> StoreFuture<T> {
        let jobs = self.0.jobs.clone();
        let mut stalls = self.0.watchdog.progress().stalls();
        Box::pin(async move {
            let mut operation = pin!(async move {
                let (done, result) = oneshot::channel();
                let queued = jobs.send(make(done)).await;
                queued.map_err(|_| StoreError::Closed)?;
                result.await.unwrap_or(Err(StoreError::Closed))
            });
            let mut stall = pin!(async move {
                let stalled = stalls.wait_for(Option::is_some).await;
                let waited = stalled.ok().and_then(|waited| *waited);
                match waited {
                    Some(waited) => waited,
                    // The store is being dropped, which the operation notices.
                    None => std::future::pending().await,
                }
            });
            std::future::poll_fn(|cx| match operation.as_mut().poll(cx) {
                Poll::Pending => {
                    let stalled = stall.as_mut().poll(cx);
                    stalled.map(|waited| Err(StoreError::Stalled { waited }))
                }
                ready @ Poll::Ready(_) => ready,
            })
            .await
        })
    }
}

impl Store for FjallStore {
    fn lease(&self, entity: &EntityId) -> StoreFuture<Fence> {
        let entity = entity.clone();
        self.submit(|done| Job::Lease { entity, done })
    }

    fn read_selected(&self, entity: &EntityId, selection: RowSelection) -> StoreFuture<EntityRows> {
        let entity = entity.clone();
        self.submit(move |done| Job::Read {
            entity,
            selection,
            done,
        })
    }

    fn list(&self, kind: &str, after: Option<&str>, limit: usize) -> StoreFuture<Vec<Arc<str>>> {
        let (kind, after) = (Arc::from(kind), after.map(Arc::from));
        self.submit(move |done| Job::List {
            kind,
            after,
            limit,
            done,
        })
    }

    fn wakes(&self, kind: &str, after: Option<&Wake>, limit: usize) -> StoreFuture<Vec<Wake>> {
        let (kind, after) = (Arc::from(kind), after.cloned());
        self.submit(move |done| Job::Wakes {
            kind,
            after,
            limit,
            done,
        })
    }

    fn append(
        &self,
        entity: &EntityId,
        expected: Sequence,
        fence: Fence,
        batch: Batch,
    ) -> StoreFuture<Sequence> {
        if let Err(error) = batch.check_limits(entity) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let entity = entity.clone();
        self.submit(move |done| Job::Append {
            entity,
            expected,
            fence,
            batch,
            done,
        })
    }

    fn release(&self, entity: &EntityId, fence: Fence) {
        let entity = entity.clone();
        // Without room in the queue, its head is forgotten with all others, at their limit.
        let _ = self.0.jobs.try_send(Job::Release { entity, fence });
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::Release);
        // If the queue is full, the thread is awake and looks at the flag by itself.
        let _ = self.jobs.try_send(Job::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for FjallStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FjallStore({})", self.0.path.display())
    }
}

/// Opens the database and the mark of a store, which are created if they do not exist. Returns them
/// with the numbers of the last group of each.
fn open_rows(path: &Path, options: FjallOptions) -> Result<(Rows, MarkFile, [u64; 2]), OpenError> {
    let io = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    let (mark_file, mark) = MarkFile::open(&path.join("mark")).map_err(io)?;
    if let Some(found) = mark.unknown_format {
        let known = MarkFile::FORMAT;
        let path = path.to_owned();
        return Err(OpenError::UnknownFormat { path, found, known });
    }
    let database = path.join("db");
    if !database.try_exists().map_err(io)? {
        // A new one would say that nothing was ever written.
        if mark.group > 0 && !options.accept_loss {
            let (path, groups) = (path.to_owned(), mark.group);
            return Err(OpenError::Lost { path, groups });
        }
        if !mark_file.try_lock().map_err(io)? {
            let (path, holder) = (path.to_owned(), tools::lock_holder(path));
            return Err(OpenError::Locked { path, holder });
        }
        create_database(path, &database, options.buffer)?;
        mark_file.unlock().map_err(io)?;
    }
    // Not even if a loss is accepted: the tables may be intact.
    if let Some(file) = Rows::missing_file(&database).map_err(io)? {
        let (path, detail) = (path.to_owned(), format!("{file} is missing"));
        return Err(OpenError::Damaged { path, detail });
    }
    // The database silently drops everything behind a damaged byte of a journal, and removes it
    // from the file; so it must not open such a store by itself.
    let scans = scan_database(&database).map_err(io)?;
    if !options.accept_loss
        && !seeded(Bug::DamagedJournalOpened)
        && let Some(scan) = journal::lossy(&scans, mark.group).next()
    {
        let (path, detail) = (path.to_owned(), scan.to_string());
        return Err(OpenError::Damaged { path, detail });
    }
    let rows = match Rows::open(&database, options.buffer) {
        Err(error)
            if error.is_about_journal()
                && journal::cut_torn_batch(&scans, mark.group).map_err(io)? =>
        {
            Rows::open(&database, options.buffer)
        }
        opened => opened,
    };
    let mut rows = rows.map_err(|error| error.of_store(path))?;
    let mut committed = rows
        .committed_group()
        .map_err(|error| error.of_store(path))?;
    let groups = mark.group.saturating_sub(committed);
    if groups > 0 {
        tracing::error!(path = %path.display(), groups, "committed groups are missing");
        if !options.accept_loss {
            let path = path.to_owned();
            return Err(OpenError::Lost { path, groups });
        }
        // So that the next start does not miss them again.
        let accepted = GroupNumber {
            number: mark.group,
            previous: Some(committed),
        };
        let written = rows.begin().commit(accepted, options.durability);
        written
            .map_err(|(GroupError::Write(error) | GroupError::Sync(error))| error.of_store(path))?;
        committed = mark.group;
    }
    if journal::has_gap(&scans) {
        // So that the next start does not find it again.
        rows = close::empty(path, rows, options.write_deadline)
            .and_then(|()| Rows::open(&database, options.buffer))
            .map_err(|error| error.of_store(path))?;
    }
    Ok((rows, mark_file, [committed, mark.group]))
}

/// Reads the journals of a database that exists, and gives it one if it has none.
fn scan_database(database: &Path) -> std::io::Result<Vec<JournalScan>> {
    let mut scans = journal::scan_journals(database)?;
    // If another process has the database open, it says so when it is opened here.
    let lock = std::fs::File::open(database.join("lock"))?;
    if lock.try_lock().is_ok() {
        if scans.is_empty() {
            journal::create_empty(database)?;
        }
        journal::compare_with_tables(&mut scans, database);
    }
    Ok(scans)
}

/// Creates a folder, unless it exists, so that it survives a loss of power.
fn create_folder(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().map(|parent| match parent.as_os_str() {
        name if name.is_empty() => Path::new("."),
        _ => parent,
    });
    if let Some(parent) = parent
        && !path.try_exists()?
    {
        create_folder(parent)?;
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => {}
        created => created?,
    }
    // Also if it exists: the process that created it may have been killed before it synced this.
    match parent.map(sync) {
        // A folder that was given to this user need not be in one that the user can read.
        Some(Err(error)) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced.unwrap_or(Ok(())),
    }
}

/// Syncs a file or a folder.
fn sync(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

/// Creates an empty database, as a whole or not at all.
fn create_database(path: &Path, database: &Path, buffer: u64) -> Result<(), OpenError> {
    let io = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    // Another process may have created it before this one had the lock.
    if database.try_exists().map_err(io)? {
        return Ok(());
    }
    let new = path.join("db.new");
    if new.try_exists().map_err(io)? {
        std::fs::remove_dir_all(&new).map_err(io)?;
    }
    drop(Rows::open(&new, buffer).map_err(|error| error.of_store(path))?);
    sync_tree(&new).map_err(io)?;
    std::fs::rename(&new, database).map_err(io)?;
    sync(path).map_err(io)
}

/// Syncs a folder with all that is in it.
fn sync_tree(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_tree(&entry.path())?,
            false => sync(&entry.path())?,
        }
    }
    sync(folder)
}

/// Runs a call into the database. Damaged data may cause a panic there.
fn catch_database_panic<T>(call: impl FnOnce() -> fjall::Result<T>) -> Result<T, DatabaseError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(DatabaseError::Fjall),
        Err(_) => Err(DatabaseError::Panicked),
    }
}

/// A failure of the database.
#[derive(Debug, thiserror::Error)]
enum DatabaseError {
    #[error("{}", describe(.0))]
    Fjall(fjall::Error),
    #[error("the database panicked")]
    Panicked,
}

impl DatabaseError {
    /// Creates an error of the operating system, for tests.
    fn injected(kind: std::io::ErrorKind) -> Self {
        let source = std::io::Error::new(kind, "injected");
        Self::Fjall(fjall::Error::Io(source))
    }

    /// Returns `true` if the cause is a lack of space, which may end.
    fn is_disk_full(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let Self::Fjall(error) = self else {
            return false;
        };
        io_error(error).is_some_and(|source| {
            matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
        })
    }

    /// Returns `true` if the database could not read its journal.
    const fn is_about_journal(&self) -> bool {
        matches!(
            self,
            Self::Panicked | Self::Fjall(fjall::Error::JournalRecovery(_))
        )
    }

    fn of_store(self, path: &Path) -> OpenError {
        use std::io::ErrorKind::{
            FileTooLarge, OutOfMemory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem,
            ResourceBusy, StorageFull,
        };
        let path = path.to_owned();
        match self {
            Self::Fjall(fjall::Error::Locked) => OpenError::Locked {
                holder: tools::lock_holder(&path),
                path,
            },
            Self::Fjall(
                fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)),
            ) if matches!(
                source.kind(),
                PermissionDenied
                    | ReadOnlyFilesystem
                    | StorageFull
                    | QuotaExceeded
                    | FileTooLarge
                    | ResourceBusy
                    | OutOfMemory
            ) =>
            {
                OpenError::Io { path, source }
            }
            error => OpenError::Damaged {
                path,
                detail: error.to_string(),
            },
        }
    }
}

fn describe_holder(holder: Option<u32>) -> String {
    holder.map_or_else(
        || "another process".to_owned(),
        |holder| format!("process {holder}"),
    )
}

/// Returns the error of the operating system that caused an error of the database.
const fn io_error(error: &fjall::Error) -> Option<&std::io::Error> {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            Some(source)
        }
        _ => None,
    }
}

/// Describes an error of the database, by its cause if the operating system is the cause.
fn describe(error: &fjall::Error) -> String {
    io_error(error).map_or_else(|| error.to_string(), ToString::to_string)
}
