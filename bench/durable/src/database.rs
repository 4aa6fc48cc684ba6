//! Databases by hand: a thread that writes what waits as one transaction, and answers after it.

use std::path::Path;
use std::thread::JoinHandle;

use fjall::{Keyspace, KeyspaceCreateOptions, PersistMode};
use rusqlite::Connection;
use strowger_durable::store::Durability;
use tokio::sync::{mpsc, oneshot};

use crate::GROUP;

/// A database that a thread writes.
pub trait Database: Sized + Send + 'static {
    /// Opens the database in a folder, or creates it.
    fn open(path: &Path, durability: Durability) -> Self;

    /// Writes all values or none. Acknowledged values survive what the durability says.
    fn write(&mut self, values: &[(String, String)]);

    /// Returns a value.
    fn read(&mut self, key: &str) -> Option<String>;
}

/// The database below the store of durable actors.
pub struct Fjall {
    database: fjall::Database,
    table: Keyspace,
    mode: Option<PersistMode>,
}

impl Database for Fjall {
    fn open(path: &Path, durability: Durability) -> Self {
        let database = fjall::Database::builder(path).worker_threads(1).open();
        let database = database.expect("the database opens");
        let table = database.keyspace("values", KeyspaceCreateOptions::default);
        let mode = match durability {
            Durability::Process => PersistMode::Buffer,
            Durability::Disk => PersistMode::SyncData,
        };
        Self {
            table: table.expect("the table opens"),
            database,
            mode: Some(mode),
        }
    }

    fn write(&mut self, values: &[(String, String)]) {
        let mut batch = self.database.batch().durability(self.mode);
        for (key, value) in values {
            batch.insert(&self.table, key.as_str(), value.as_str());
        }
        batch.commit().expect("it is written");
    }

    fn read(&mut self, key: &str) -> Option<String> {
        let value = self.table.get(key).expect("it is read")?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }
}

/// SQLite with a write-ahead log.
pub struct Sqlite(Connection);

impl Database for Sqlite {
    fn open(path: &Path, durability: Durability) -> Self {
        std::fs::create_dir_all(path).expect("the folder is writable");
        let connection = Connection::open(path.join("values.db")).expect("the database opens");
        // OFF hands each transaction to the operating system, as the mode `process` does. FULL
        // syncs the log in each.
        let synchronous = match durability {
            Durability::Process => "OFF",
            Durability::Disk => "FULL",
        };
        let schema = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
             CREATE TABLE IF NOT EXISTS register (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
        );
        connection.execute_batch(&schema).expect("it is valid");
        Self(connection)
    }

    fn write(&mut self, values: &[(String, String)]) {
        let transaction = self.0.transaction().expect("it begins");
        {
            let insert = "INSERT OR REPLACE INTO register VALUES (?1, ?2)";
            let mut insert = transaction.prepare_cached(insert).expect("it is valid");
            for value in values {
                insert.execute((&value.0, &value.1)).expect("it is written");
            }
        }
        transaction.commit().expect("it is committed");
    }

    fn read(&mut self, key: &str) -> Option<String> {
        let select = "SELECT value FROM register WHERE key = ?1";
        let mut select = self.0.prepare_cached(select).expect("it is valid");
        let mut rows = select.query([key]).expect("it is read");
        let row = rows.next().expect("it is read")?;
        Some(row.get(0).expect("it is text"))
    }
}

struct Write {
    key: String,
    value: String,
    done: oneshot::Sender<()>,
}

/// The thread that writes a database.
pub struct Writer {
    writes: mpsc::Sender<Write>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the thread.
    #[must_use]
    pub fn open<D: Database>(path: &Path, durability: Durability) -> Self {
        let mut database = D::open(path, durability);
        // As many may wait as in the store of durable actors.
        let (writes, mut waiting) = mpsc::channel::<Write>(4096);
        let thread = std::thread::spawn(move || {
            let (mut values, mut done) = (Vec::new(), Vec::new());
            while let Some(first) = waiting.blocking_recv() {
                let mut next = Some(first);
                while let Some(write) = next.take() {
                    values.push((write.key, write.value));
                    done.push(write.done);
                    if values.len() < GROUP {
                        next = waiting.try_recv().ok();
                    }
                }
                database.write(&values);
                values.clear();
                for done in done.drain(..) {
                    done.send(()).expect("the caller waits");
                }
            }
        });
        Self { writes, thread }
    }

    /// Writes a value, and returns when it is durable.
    pub async fn save(&self, key: String, value: String) {
        let (done, saved) = oneshot::channel();
        let write = Write { key, value, done };
        assert!(self.writes.send(write).await.is_ok(), "the thread runs");
        saved.await.expect("it is written");
    }

    /// Ends the thread and closes the database.
    pub fn close(self) {
        drop(self.writes);
        self.thread.join().expect("it does not panic");
    }
}
