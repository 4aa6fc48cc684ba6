//! Tools for the operators of a store on disk.
//!
//! They work on a store that no process has open, except for [`FjallStore::backup`], which copies
//! one that is being written. `strowger store` and `strowger entity` are these tools as commands.
//!
//! ```
//! use strowger_durable::store::tools::{RepairOptions, StoppedStore, repair};
//! use strowger_durable::store::{FjallOptions, FjallStore};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("store");
//! # let backup = folder.path().join("backup");
//! drop(FjallStore::open(&path, FjallOptions::default())?);
//! let store = StoppedStore::open(&path)?;
//! if !store.check(&mut |_| {})?.is_intact() {
//!     store.backup(&backup, &mut |_| {})?;
//!     drop(store);
//!     let repaired = repair(&path, RepairOptions::default(), &mut |_| {})?;
//!     println!("{} entities are quarantined", repaired.quarantined.len());
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! The memory that they take does not depend on the size of the store, except for one entity at a
//! time when it is imported into a store that has others, and for the list of damaged entities.
//!
//! [`FjallStore::backup`]: super::FjallStore::backup

mod backup;
mod check;
mod export;
mod import;
mod line;
mod repair;
mod scan;
mod stopped;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::backup::BackupReport;
pub(super) use self::backup::BackupSource;
pub use self::check::{CheckReport, DamagedEntity, KindCount, UnreadableRange};
pub use self::export::ExportReport;
pub use self::import::{ExistingEntities, ImportReport, import};
pub use self::repair::{DamagedEntities, RepairOptions, RepairReport, repair};
pub use self::stopped::StoppedStore;
pub(super) use self::stopped::lock_holder;
use super::{DatabaseError, OpenError};
use crate::outbox;
use crate::store::{EntityId, Fence, Sequence, Table};

/// The work that a tool has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolProgress {
    /// The number of rows.
    pub rows: u64,
    /// Their keys and values, in bytes.
    pub bytes: u64,
}

/// A function that is called as the work goes on, once for some thousand rows.
pub type OnProgress<'a> = dyn FnMut(ToolProgress) + 'a;

/// An entity, without its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntityInfo {
    /// The name of the entity.
    pub entity: EntityId,
    /// The sequence of the last batch. If the state is damaged, it may be up to 255 later.
    pub sequence: Sequence,
    /// The number of activations that have held the entity.
    pub fence: Fence,
    /// The time since the Unix epoch at which the entity is to be awake.
    pub wake: Option<Duration>,
    /// The number of rows.
    pub rows: u64,
    /// The keys and values of the rows, in bytes.
    pub bytes: u64,
    /// The result of the verification of its rows.
    pub condition: EntityCondition,
}

/// The result of the verification of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntityCondition {
    /// All rows are those that were written.
    Intact,
    /// The entity cannot be read. The text describes the damage.
    Damaged(String),
    /// A repair has set the rows aside.
    Quarantined,
}

impl fmt::Display for EntityCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intact => f.write_str("intact"),
            Self::Damaged(detail) => write!(f, "damaged: {detail}"),
            Self::Quarantined => f.write_str("quarantined"),
        }
    }
}

/// A row of an entity, as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RowInfo {
    /// The number of the table.
    pub table: u8,
    /// The name of the table, if this version knows it.
    pub table_name: Option<&'static str>,
    /// The key within the table.
    pub key: Vec<u8>,
    /// The sequence of the batch that wrote the row.
    pub sequence: Sequence,
    /// The value as it was written.
    pub value: Vec<u8>,
    /// The value as JSON, if it is encoded as a table of this version is.
    pub decoded: Option<serde_json::Value>,
}

impl RowInfo {
    fn new(table: u8, key: &[u8], sequence: Sequence, value: &[u8]) -> Self {
        let mut shown = SHOWN_TABLES.into_iter();
        let shown = shown.find(|(known, ..)| *known as u8 == table);
        let encoded = shown.and_then(|(.., encoded)| encoded(value));
        Self {
            table,
            table_name: shown.map(|(_, name, _)| name),
            key: key.to_vec(),
            sequence,
            value: value.to_vec(),
            decoded: encoded.and_then(|encoded| rmp_serde::from_slice(encoded).ok()),
        }
    }
}

/// A table, its name, and the encoded part of a value.
type ShownTable = (Table, &'static str, fn(&[u8]) -> Option<&[u8]>);

/// The tables that are shown by name. In front of the encoded part, the state has its encoding, an
/// answer its number and time, a reminder its time, an event its encoding and version, a snapshot
/// these and a number, and a message of the outbox its time and receiver. Other tables are shown by
/// their numbers.
const SHOWN_TABLES: [ShownTable; 7] = [
    (Table::State, "state", |value| value.get(1..)),
    (Table::Answers, "answers", |value| value.get(16..)),
    (Table::Reminders, "reminders", |value| value.get(8..)),
    (Table::Outbox, "outbox", outbox::payload),
    (Table::Inbox, "inbox", |_| None),
    (Table::Events, "events", |value| value.get(5..)),
    (Table::Snapshot, "snapshot", |value| value.get(13..)),
];

/// The reason why a tool has not done its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The folder has no store of durable actors.
    #[error(
        "{}: not a store of durable actors: it has no `db` folder; check the path",
        path.display()
    )]
    NotAStore {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The database cannot be opened, not even to be read.
    #[error("{}: database cannot be opened: {detail}; restore a backup", path.display())]
    Unopened {
        /// The path of the store.
        path: PathBuf,
        /// The error of the database.
        detail: String,
    },
    /// The target of a backup exists.
    #[error("{}: exists; choose another path, or remove it", path.display())]
    Exists {
        /// The path of the target.
        path: PathBuf,
    },
    /// The operating system refused an operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The database failed.
    #[error("{}: {detail}; run `strowger store check`", path.display())]
    Database {
        /// The path of the store.
        path: PathBuf,
        /// The error of the database.
        detail: String,
    },
    /// A part of the store cannot be read, so it cannot be copied.
    #[error("{}: {range}; run `strowger store repair`, or restore a backup", path.display())]
    Unreadable {
        /// The path of the store.
        path: PathBuf,
        /// The part that cannot be read.
        range: UnreadableRange,
    },
    /// The store that is backed up has failed or is closed.
    #[error("backup not made: {0}")]
    Store(#[from] crate::store::StoreError),
    /// The store ran out of space, and the backup was given up so that it can be opened again.
    #[error("backup given up: the disk of the store is full; free some space and repeat it")]
    Cancelled,
    /// The output cannot be written.
    #[error("output: {0}")]
    Output(io::Error),
    /// A line of an import is invalid. Nothing was imported.
    #[error("line {line}: {detail}; nothing was imported")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// A description of the error, its limit and the remedy.
        detail: String,
    },
    /// Entities of an import exist in the store. Nothing was imported.
    #[error(
        "{count} entities exist in the store, such as {first}; nothing was imported; choose to \
         skip or to replace them, or import into an empty folder"
    )]
    Conflict {
        /// The number of entities that exist.
        count: u64,
        /// One of them.
        first: EntityId,
    },
    /// The disk failed while entities were added to a store. Each of them is there as a whole or
    /// not at all.
    #[error(
        "{source}; {imported} entities were imported, the last of them {}; repeat the import and \
         skip or replace those that exist",
        last.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
    )]
    Interrupted {
        /// The number of entities that were imported.
        imported: u64,
        /// The last one.
        last: Option<EntityId>,
        /// The failure of the disk.
        source: Box<Self>,
    },
}

impl ToolError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    fn database(path: &Path) -> impl FnOnce(DatabaseError) -> Self + use<> {
        let path = path.to_owned();
        move |error| {
            let detail = error.to_string();
            Self::Database { path, detail }
        }
    }
}

/// Syncs all files and folders below a folder, and the folder.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            std::fs::File::open(entry.path())?.sync_all()?;
        }
    }
    std::fs::File::open(folder)?.sync_all()
}

/// A folder that is removed unless it is kept: what fails leaves nothing behind.
#[derive(Debug)]
struct PartialFolder(PathBuf);

impl PartialFolder {
    /// Creates a folder beside its final path.
    fn beside(path: &Path, purpose: &str) -> Result<Self, ToolError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{purpose}-{}", std::process::id()));
        let parent = parent(path);
        std::fs::create_dir_all(parent).map_err(ToolError::io(parent))?;
        Self::create(parent.join(name))
    }

    fn create(path: PathBuf) -> Result<Self, ToolError> {
        std::fs::create_dir(&path).map_err(ToolError::io(&path))?;
        Ok(Self(path))
    }

    /// Syncs the folder, and gives it its final path.
    fn rename(self, path: &Path) -> Result<(), ToolError> {
        sync_tree(&self.0).map_err(ToolError::io(&self.0))?;
        std::fs::rename(&self.0, path).map_err(ToolError::io(path))?;
        let parent = parent(path);
        let folder = std::fs::File::open(parent).and_then(|folder| folder.sync_all());
        folder.map_err(ToolError::io(parent))
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the folder that a path is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns `true` if there is nothing at a path, or an empty folder.
fn is_vacant(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        // Other errors of the path show when something is created there.
        Err(_) => path.symlink_metadata().is_err(),
    }
}
