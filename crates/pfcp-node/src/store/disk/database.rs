//! The database: a table of records, written in groups.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::config::{BlockSizePolicy, FilterPolicy};
use fjall::{
    AbstractTree as _, Database as Fjall, Keyspace, KeyspaceCreateOptions, PersistMode, Slice,
};

use crate::config::Durability;
use crate::store::StoreError;

/// An open database.
pub(super) struct Database {
    fjall: Fjall,
    records: Keyspace,
    /// Bytes of records in memory above which a table is written.
    buffer: u64,
}

/// The reason why a database could not be opened.
#[derive(Debug)]
pub(super) enum OpenFailure {
    /// The environment prevents it, such as missing permissions or another process. The data is not
    /// damaged.
    Environment(StoreError),
    /// The data is damaged.
    Damaged(String),
}

/// The key of a record, and its new value; `None` removes the record.
pub(super) type KeyValue = (Vec<u8>, Option<Vec<u8>>);

impl Database {
    /// Opens the database in a folder, or creates an empty one. `buffer` is the number of bytes of
    /// records that it may keep in memory before it writes a table.
    pub(super) fn open(path: &Path, buffer: u64) -> Result<Self, OpenFailure> {
        // Damaged data may cause a panic.
        let opened = catch_unwind(AssertUnwindSafe(|| -> fjall::Result<Self> {
            let fjall = Fjall::builder(path)
                .worker_threads(1)
                .cache_size(CACHE)
                .max_journaling_size(JOURNALS)
                .open()?;
            // Records are written one by one and read all at once, so filters are of no use and
            // blocks are large.
            // `write` has the limit for the memory.
            let options = KeyspaceCreateOptions::default()
                .max_memtable_size(u64::MAX)
                .filter_policy(FilterPolicy::disabled())
                .data_block_size_policy(BlockSizePolicy::all(32 * 1024));
            let records = fjall.keyspace("records", || options)?;
            Ok(Self {
                fjall,
                records,
                buffer,
            })
        }));
        match opened {
            Ok(Ok(database)) => Ok(database),
            Ok(Err(error)) => Err(failure(path, error)),
            Err(_) => Err(OpenFailure::Damaged("opening it panicked".to_owned())),
        }
    }

    /// Writes a group as a whole or not at all, and begins to write a table if more records are in
    /// memory than the buffer has room for.
    ///
    /// A limit of the database would not do. Each write above it sends a message to the worker of
    /// the database, which also sends to itself and then waits for room among 1000 messages: for
    /// ever, if 1000 groups arrive while it writes a table. Then no table is written any more.
    pub(super) fn write(&self, group: Vec<KeyValue>, durability: Durability) -> fjall::Result<()> {
        let mode = match durability {
            Durability::Process => PersistMode::Buffer,
            Durability::Disk => PersistMode::SyncData,
        };
        let mut batch = self.fjall.batch().durability(Some(mode));
        for (key, value) in group {
            match value {
                Some(value) => batch.insert(&self.records, key, value),
                None => batch.remove(&self.records, key),
            }
        }
        batch.commit()?;
        match self.records.tree.active_memtable().size() > self.buffer {
            true => self.records.rotate_memtable().map(drop),
            false => Ok(()),
        }
    }

    /// Syncs all writes to the disk, so that they survive the end of the operating system.
    pub(super) fn sync(&self) -> fjall::Result<()> {
        self.fjall.persist(PersistMode::SyncAll)
    }

    /// Reads all records. Returns the number of reads that failed.
    pub(super) fn read(&self, mut visit: impl FnMut(Slice, Slice)) -> u64 {
        let mut failed = 0;
        let walked = catch_unwind(AssertUnwindSafe(|| {
            for record in self.records.iter() {
                match record.into_inner() {
                    Ok((key, value)) => visit(key, value),
                    Err(error) => {
                        failed += 1;
                        tracing::warn!(%error, "a part of the store cannot be read");
                        // An iteration that fails repeatedly makes no progress.
                        if failed > 1000 {
                            break;
                        }
                    }
                }
            }
        }));
        failed + u64::from(walked.is_err())
    }
}

fn failure(path: &Path, error: fjall::Error) -> OpenFailure {
    let source = match error {
        fjall::Error::Locked => {
            let path = path.to_owned();
            return OpenFailure::Environment(StoreError::Locked { path });
        }
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => source,
        error => return OpenFailure::Damaged(error.to_string()),
    };
    match source.kind() {
        ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::StorageFull
        | ErrorKind::QuotaExceeded
        | ErrorKind::FileTooLarge
        | ErrorKind::ResourceBusy
        | ErrorKind::OutOfMemory => {
            let path = path.to_owned();
            OpenFailure::Environment(StoreError::Io { path, source })
        }
        _ => OpenFailure::Damaged(source.to_string()),
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

/// All records are read once at the start; afterwards the tables in memory serve all reads.
const CACHE: u64 = 1 << 20;
/// The minimum that the database allows.
const JOURNALS: u64 = 64 << 20;
