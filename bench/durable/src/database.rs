//! Databases by hand.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::thread::JoinHandle;

use fjall::{Keyspace, KeyspaceCreateOptions, PersistMode};
use rusqlite::Connection;
use strowger_durable::store::Durability;
use tokio::sync::{mpsc, oneshot};

use crate::{GROUP, value};

/// A key and its value.
pub(crate) type Pair = (String, String);

/// A database of values by key. Calls block.
pub(crate) trait Database: Sized + Send + 'static {
    /// Opens the database in a folder, or creates it.
    fn open(path: &Path, durability: Durability) -> Self;

    /// Writes all values or none. They survive what the durability says once this returns.
    fn write(&mut self, pairs: &[Pair]);

    /// Returns the last value of a key.
    fn read(&mut self, key: &str) -> String;
}

/// The database below the store of durable actors.
pub(crate) struct Fjall {
    database: fjall::Database,
    table: Keyspace,
    mode: PersistMode,
}

impl Fjall {
    /// Writes all values or none.
    pub(crate) fn commit(&self, pairs: &[Pair]) {
        let mut batch = self.database.batch().durability(Some(self.mode));
        for (key, value) in pairs {
            batch.insert(&self.table, key.as_str(), value.as_str());
        }
        batch.commit().expect("the disk has room");
    }

    /// Returns the number of keys, each of which is read.
    pub(crate) fn len(&self) -> usize {
        self.table.len().expect("the table is readable")
    }
}

impl Database for Fjall {
    fn open(path: &Path, durability: Durability) -> Self {
        // One thread for tables, as in the store of durable actors; the other options are those
        // of the database.
        let database = fjall::Database::builder(path).worker_threads(1).open();
        let database = database.expect("the database opens");
        let table = database.keyspace("values", KeyspaceCreateOptions::default);
        Self {
            table: table.expect("the table opens"),
            database,
            mode: match durability {
                Durability::Process => PersistMode::Buffer,
                Durability::Disk => PersistMode::SyncData,
            },
        }
    }

    fn write(&mut self, pairs: &[Pair]) {
        self.commit(pairs);
    }

    fn read(&mut self, key: &str) -> String {
        let value = self.table.get(key).expect("the table is readable");
        let value = value.expect("the key was written");
        String::from_utf8(value.to_vec()).expect("the value is text")
    }
}

/// SQLite with a write-ahead log.
pub(crate) struct Sqlite(Connection);

impl Database for Sqlite {
    fn open(path: &Path, durability: Durability) -> Self {
        std::fs::create_dir_all(path).expect("the folder is writable");
        let connection = Connection::open(path.join("values.db")).expect("the database opens");
        // OFF writes a transaction to the log before it returns, and syncs nothing; NORMAL would
        // also sync at checkpoints, which a process that is killed does not need. FULL syncs the
        // log in each transaction.
        let synchronous = match durability {
            Durability::Process => "OFF",
            Durability::Disk => "FULL",
        };
        let schema = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
             CREATE TABLE IF NOT EXISTS register (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
        );
        connection
            .execute_batch(&schema)
            .expect("the schema is valid");
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
        let mode: String = mode.expect("the database has a mode");
        assert_eq!(mode, "wal", "the file system supports a write-ahead log");
        Self(connection)
    }

    fn write(&mut self, pairs: &[Pair]) {
        let transaction = self.0.transaction().expect("no other transaction runs");
        {
            let insert = "INSERT OR REPLACE INTO register VALUES (?1, ?2)";
            let insert = transaction.prepare_cached(insert);
            let mut insert = insert.expect("the statement is valid");
            for (key, value) in pairs {
                insert.execute((key, value)).expect("the disk has room");
            }
        }
        transaction.commit().expect("the disk has room");
    }

    fn read(&mut self, key: &str) -> String {
        let select = "SELECT value FROM register WHERE key = ?1";
        let select = self.0.prepare_cached(select);
        let mut select = select.expect("the statement is valid");
        let value = select.query_row([key], |row| row.get(0));
        value.expect("the key was written")
    }
}

/// A file to which values are appended: what the operating system takes for a write. It cannot
/// tell one key from another.
pub(crate) struct LogFile {
    file: File,
    durability: Durability,
}

impl Database for LogFile {
    fn open(path: &Path, durability: Durability) -> Self {
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).open(path);
        let file = file.expect("the file is writable");
        Self { file, durability }
    }

    fn write(&mut self, pairs: &[Pair]) {
        let values: String = pairs.iter().map(|(_, value)| value.as_str()).collect();
        self.file
            .write_all(values.as_bytes())
            .expect("the disk has room");
        if self.durability == Durability::Disk {
            self.file.sync_data().expect("the disk has room");
        }
    }

    fn read(&mut self, _: &str) -> String {
        let mut last = vec![0; value(0).len()];
        let start = SeekFrom::End(-(last.len() as i64));
        self.file.seek(start).expect("the file has a value");
        self.file
            .read_exact(&mut last)
            .expect("the file is readable");
        String::from_utf8(last).expect("the value is text")
    }
}

/// A write that waits for the thread.
struct PendingWrite {
    pair: Pair,
    done: oneshot::Sender<()>,
}

/// A thread that writes a database, so that its callers do not block: it collects the writes that
/// wait into one, and acknowledges them after it. The writes that arrive meanwhile are the next
/// one.
pub(crate) struct WriterThread {
    writes: mpsc::Sender<PendingWrite>,
    thread: JoinHandle<()>,
}

impl WriterThread {
    pub(crate) fn open<D: Database>(path: &Path, durability: Durability) -> Self {
        let mut database = D::open(path, durability);
        // As long as the queue of the store of durable actors.
        let (writes, mut queue) = mpsc::channel::<PendingWrite>(4096);
        let thread = std::thread::spawn(move || {
            let (mut waiting, mut pairs, mut callers) = (Vec::new(), Vec::new(), Vec::new());
            while queue.blocking_recv_many(&mut waiting, GROUP) > 0 {
                for PendingWrite { pair, done } in waiting.drain(..) {
                    pairs.push(pair);
                    callers.push(done);
                }
                database.write(&pairs);
                pairs.clear();
                for done in callers.drain(..) {
                    done.send(()).expect("the caller waits");
                }
            }
        });
        Self { writes, thread }
    }

    /// Writes a value, and waits until it is as durable as the database promises.
    pub(crate) async fn save(&self, pair: Pair) {
        let (done, saved) = oneshot::channel();
        let queued = self.writes.send(PendingWrite { pair, done }).await;
        assert!(queued.is_ok(), "the thread runs");
        saved.await.expect("the thread does not panic");
    }

    /// Ends the thread and closes the database.
    pub(crate) fn close(self) {
        drop(self.writes);
        self.thread.join().expect("the thread does not panic");
    }
}
