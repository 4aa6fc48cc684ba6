//! The backend on disk: an embedded database.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions};

use super::{Backend, BackendError, KvError};

pub(super) struct DiskBackend {
    path: PathBuf,
    /// Kept open as long as the table is used; closing it writes all remaining data.
    _database: Database,
    table: Keyspace,
    /// `true` once a failure was logged; components may try again and again.
    failed: AtomicBool,
}

impl fmt::Debug for DiskBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// The table; its name contains the version of the format.
const KEYSPACE: &str = "components-1";
/// Size of the cache. It is small because components keep little data.
const CACHE_SIZE: u64 = 8 << 20;
/// Size of the data kept in memory before a table is written.
const MEMTABLE_SIZE: u64 = 8 << 20;
/// The minimum that the database allows.
const JOURNAL_SIZE: u64 = 64 << 20;

impl DiskBackend {
    pub(super) fn open(path: &Path) -> Result<Self, KvError> {
        let unusable = |why: String| KvError::Unusable {
            path: path.to_owned(),
            why,
        };
        // The files are not trusted: reading corrupt ones may panic.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let database = Database::builder(path)
                .worker_threads(1)
                .cache_size(CACHE_SIZE)
                .max_journaling_size(JOURNAL_SIZE)
                .open()?;
            // `begin_table` has the limit.
            let options = || KeyspaceCreateOptions::default().max_memtable_size(u64::MAX);
            let table = database.keyspace(KEYSPACE, options)?;
            Ok((database, table))
        }));
        match opened {
            Ok(Ok((database, table))) => Ok(Self {
                path: path.to_owned(),
                _database: database,
                table,
                failed: AtomicBool::new(false),
            }),
            Ok(Err(fjall::Error::Locked)) => Err(KvError::Locked {
                path: path.to_owned(),
            }),
            Ok(Err(error)) => Err(unusable(error.to_string())),
            Err(_) => Err(unusable("opening the store panicked".to_owned())),
        }
    }

    /// Begins to write a table if enough data is in memory.
    ///
    /// A limit of the database would not do. Each write above it sends a message to the worker of
    /// the database, which also sends to itself and then waits for room among 1000 messages: for
    /// ever, if 1000 writes arrive while it writes a table. Then no table is written any more.
    fn begin_table(&self) -> fjall::Result<()> {
        match self.table.tree.active_memtable().size() > MEMTABLE_SIZE {
            true => self.table.rotate_memtable().map(drop),
            false => Ok(()),
        }
    }

    fn log_error<T>(&self, result: fjall::Result<T>) -> Result<T, BackendError> {
        result.map_err(|error| {
            if !self.failed.swap(true, Ordering::Relaxed) {
                let store = self.path.display();
                tracing::error!(%store, %error, "component store failed");
            }
            BackendError
        })
    }
}

impl Backend for DiskBackend {
    fn may_block(&self) -> bool {
        true
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        let value = self.log_error(self.table.get(key))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn size(&self, key: &[u8]) -> Result<Option<usize>, BackendError> {
        let size = self.log_error(self.table.size_of(key))?;
        Ok(size.map(|size| size as usize))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), BackendError> {
        let written = self.table.insert(key, value);
        self.log_error(written.and_then(|()| self.begin_table()))
    }

    fn remove(&self, key: &[u8]) -> Result<(), BackendError> {
        let removed = self.table.remove(key);
        self.log_error(removed.and_then(|()| self.begin_table()))
    }

    fn scan(
        &self,
        prefix: &[u8],
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], usize) -> bool,
    ) -> Result<(), BackendError> {
        for entry in self.table.range(from..) {
            let (key, value) = self.log_error(entry.into_inner())?;
            if !key.starts_with(prefix) || !visit(&key, value.len()) {
                break;
            }
        }
        Ok(())
    }
}
