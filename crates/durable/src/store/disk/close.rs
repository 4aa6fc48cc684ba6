//! A clean stop, after which the next start has nothing to replay.
//!
//! The database reads its journals when it opens, also what it has written to tables long before:
//! up to 64 MiB, twice, because [`journal`](super::journal) looks for damage first. So at a clean
//! stop, everything that is in memory is written to tables, and the journal is emptied once the
//! database is closed. The database leaves the same when it replaces a full journal.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::DatabaseError;
use super::rows::Rows;
use crate::seeded_bug::{Bug, seeded};

/// Bytes of journals that are left for the next start, which takes some milliseconds for them.
const MAX_LEFT: u64 = 1 << 20;
/// Time between two looks whether the tables are written.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Closes the database of a store, whose writes are all synced. Waits for its tables for as long as
/// a write may take; if they are not written by then, the next start replays the journals.
///
/// `buffer` is the number of bytes that the database keeps in memory.
pub(super) fn close(
    path: &Path,
    rows: Rows,
    buffer: u64,
    deadline: Duration,
) -> Result<(), DatabaseError> {
    let database = path.join("db");
    if written(&database).map_err(io_error)? <= MAX_LEFT.min(buffer) {
        return Ok(());
    }
    empty(path, rows, deadline)
}

/// Closes the database of a store with empty journals. Waits for its tables up to a deadline, after
/// which the journals are left as they are.
pub(super) fn empty(path: &Path, rows: Rows, deadline: Duration) -> Result<(), DatabaseError> {
    let database = path.join("db");
    if !seeded(Bug::JournalEmptiedEarly) {
        rows.begin_tables()?;
    }
    let start = Instant::now();
    while rows.has_unwritten_tables() {
        if start.elapsed() >= deadline {
            let path = path.display();
            tracing::warn!(%path, ?deadline, "tables not written in time");
            return Ok(());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    drop(rows);
    empty_journal(&database).map_err(io_error)
}

/// Returns the number of bytes of the journals that take space: their length is preallocated.
fn written(database: &Path) -> io::Result<u64> {
    let journals = journals(database)?;
    let sizes = journals
        .iter()
        .map(|path| Ok(path.metadata()?.blocks() * 512));
    sizes.sum()
}

const fn io_error(source: io::Error) -> DatabaseError {
    DatabaseError::Fjall(fjall::Error::Io(source))
}

/// Empties the journal of a database that is closed and has everything in tables.
fn empty_journal(database: &Path) -> io::Result<()> {
    // A backup may still have the database open, or another process has opened it since.
    let lock = File::open(database.join("lock"))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    // The database removes the others once their rows are in tables.
    if let [journal] = &journals(database)?[..] {
        let journal = OpenOptions::new().write(true).open(journal)?;
        journal.set_len(0)?;
        journal.sync_all()?;
    }
    Ok(())
}

fn journals(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "jnl") {
            journals.push(path);
        }
    }
    Ok(journals)
}
