//! The seam between durable actors and what stores them.
//!
//! An entity is a small set of rows and two numbers. Its *sequence* counts the batches that were
//! appended; its *fence* counts the activations that held it. [`Store::lease`] raises the fence and
//! returns it to the new holder, and [`Store::append`] refuses a batch whose fence is not the
//! current one or whose expected sequence is not the last. Of two activations that both believe to
//! hold an entity, at most one can therefore change it, even if a write of the earlier one is
//! delayed until the later one has started.
//!
//! A batch takes effect as a whole or not at all. Everything that has to change together is in it:
//! the state, answers that are kept for repeated requests and, as further tables, whatever else an
//! actor promises. The store gives rows no meaning.

mod disk;
mod memory;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::disk::{Durability, FjallOptions, FjallStore, OpenError, tools};
pub use self::memory::{MemoryStore, StoreEvent};
use crate::seeded_bug::{Bug, seeded};

/// A place where entities are kept.
///
/// Implementations never block the calling thread: a future of this trait may be polled on the
/// worker thread of an actor. A future that is dropped leaves open whether its operation takes
/// effect.
///
/// `strowger_durable::conformance` (feature `testing`) tests an implementation.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Takes the entity over from its current holder, if any: raises its fence and returns it.
    fn lease(&self, entity: &EntityId) -> StoreFuture<Fence>;

    /// Reads all rows of an entity. One that was never appended to has sequence 0 and no rows.
    fn read(&self, entity: &EntityId) -> StoreFuture<EntityRows> {
        self.read_selected(entity, RowSelection::All)
    }

    /// Reads some of the rows of an entity, and does not look at the others.
    fn read_selected(&self, entity: &EntityId, selection: RowSelection) -> StoreFuture<EntityRows>;

    /// Appends a batch and returns its sequence, `expected + 1`, once it is as durable as the store
    /// promises.
    ///
    /// # Errors
    /// [`StoreError::StaleFence`] and [`StoreError::WrongSequence`] change nothing. After any other
    /// error, the batch may be in effect the next time the entity is read.
    fn append(
        &self,
        entity: &EntityId,
        expected: Sequence,
        fence: Fence,
        batch: Batch,
    ) -> StoreFuture<Sequence>;

    /// Tells the store that a holder has ended, so that the store need not keep anything of the
    /// entity in memory. The fence stays as it is.
    fn release(&self, entity: &EntityId, fence: Fence) {
        let _ = (entity, fence);
    }

    /// Lists at most `limit` keys of the entities of a kind that were appended to, in an order of
    /// the store's own. A page begins behind the last key of the previous one.
    fn list(&self, kind: &str, after: Option<&str>, limit: usize) -> StoreFuture<Vec<Arc<str>>>;

    /// Lists at most `limit` of the entities of a kind that have a [wake-up time](Batch::set_wake),
    /// the earliest first. A page begins behind the last entity of the previous one.
    fn wakes(&self, kind: &str, after: Option<&Wake>, limit: usize) -> StoreFuture<Vec<Wake>>;

    /// Returns the wall-clock time since the Unix epoch, by which the age of rows is measured.
    fn wall_clock(&self) -> Duration {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }
}

/// An entity that asks to be awake at some time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// The time since the Unix epoch, in whole milliseconds.
    pub at: Duration,
    /// The key of the entity.
    pub key: Arc<str>,
}

/// A pending operation of a [`Store`].
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// The name of an entity: its kind, such as `account`, and its key among those of this kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId {
    kind: Arc<str>,
    key: Arc<str>,
}

impl EntityId {
    /// The maximum length of a kind or a key, in bytes.
    pub const MAX_LEN: usize = 1024;

    /// Creates the name of an entity.
    ///
    /// # Errors
    /// Fails if the kind or the key is longer than [`Self::MAX_LEN`].
    pub fn new(
        kind: impl Into<Arc<str>>,
        key: impl Into<Arc<str>>,
    ) -> Result<Self, TooLongForEntityId> {
        let (kind, key) = (kind.into(), key.into());
        match kind.len().max(key.len()) {
            length if length > Self::MAX_LEN => Err(TooLongForEntityId { length }),
            _ => Ok(Self { kind, key }),
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(crate) const fn shared_key(&self) -> &Arc<str> {
        &self.key
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error returned for a kind or a key that is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "kind or key of an entity is {length} bytes, limit is {}",
    EntityId::MAX_LEN
)]
pub struct TooLongForEntityId {
    /// The length of the longer of the two, in bytes.
    pub length: usize,
}

/// The number of batches that were appended to an entity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Returns the sequence of the next batch.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The number of an event of an entity, counted from 1. Its bytes, most significant first, are the
/// key of the event's row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventNumber(pub u64);

impl EventNumber {
    /// Returns the number of the next event.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the key of the event's row.
    #[must_use]
    pub const fn row_key(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for EventNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A part of the rows of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSelection {
    /// The rows of all tables.
    All,
    /// The rows of all tables but [`Table::Events`].
    AllButEvents,
    /// The rows of [`Table::Events`] from a number on.
    EventsFrom(EventNumber),
}

impl RowSelection {
    fn has(self, table: Table, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::AllButEvents => table != Table::Events,
            Self::EventsFrom(first) => table == Table::Events && *key >= first.row_key()[..],
        }
    }
}

/// The number of activations that have held an entity. Each holder writes with its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl Fence {
    /// Returns the fence of the next holder.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A table of the rows of an entity. Its number is part of the format of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Table {
    /// The state, in one row with an empty key.
    State = 1,
    /// Answers to requests with an idempotency key, by that key.
    Answers = 2,
    /// Reminders, by their name.
    Reminders = 3,
    /// Messages to other entities that are not delivered yet, by number; the row with an empty key
    /// has the number of the next one.
    Outbox = 4,
    /// The last message taken from each sender, by a number given to the sender.
    Inbox = 5,
    /// Events, by their [number](EventNumber::row_key).
    Events = 6,
    /// The state after some event, in one row with an empty key.
    Snapshot = 7,
}

impl Table {
    const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::State),
            2 => Some(Self::Answers),
            3 => Some(Self::Reminders),
            4 => Some(Self::Outbox),
            5 => Some(Self::Inbox),
            6 => Some(Self::Events),
            7 => Some(Self::Snapshot),
            _ => None,
        }
    }
}

/// Changes to the rows of one entity that take effect together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<RowChange>,
    /// The new wake-up time, if it changes.
    wake: Option<Option<Duration>>,
}

/// The new value of a row; `None` removes the row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowChange {
    table: Table,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Batch {
    /// The maximum length of the key of a row, in bytes.
    pub const MAX_KEY: usize = 1024;
    /// The maximum length of the value of a row, in bytes.
    pub const MAX_VALUE: usize = 16 << 20;

    /// Creates a batch without changes. To append it still counts the sequence.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            changes: Vec::new(),
            wake: None,
        }
    }

    /// Writes a row, replacing one with the same key.
    pub fn put(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.changes.push(RowChange {
            table,
            key: key.into(),
            value: Some(value.into()),
        });
    }

    /// Removes a row, if it exists.
    pub fn remove(&mut self, table: Table, key: impl Into<Vec<u8>>) {
        self.changes.push(RowChange {
            table,
            key: key.into(),
            value: None,
        });
    }

    /// Sets the time, since the Unix epoch, at which the entity is to be awake; `None` if it may
    /// sleep until a message comes. Fractions of a millisecond are cut off.
    pub fn set_wake(&mut self, at: Option<Duration>) {
        let whole =
            |at: Duration| at - Duration::from_nanos(u64::from(at.subsec_nanos() % 1_000_000));
        self.wake = Some(at.map(whole));
    }

    /// Returns `true` if the batch changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.wake.is_none()
    }

    /// Returns `true` if the batch leaves a new state behind.
    fn puts_state(&self) -> bool {
        let is_state = |change: &&RowChange| change.table == Table::State && change.key.is_empty();
        let last = self.changes.iter().rfind(is_state);
        last.is_some_and(|change| change.value.is_some())
    }

    /// Refuses rows that are longer than any store accepts.
    fn check_limits(&self, entity: &EntityId) -> Result<(), StoreError> {
        let too_large = |what, size, limit| StoreError::TooLarge {
            entity: entity.clone(),
            what,
            size,
            limit,
        };
        for change in &self.changes {
            if change.key.len() > Self::MAX_KEY {
                return Err(too_large("row key", change.key.len(), Self::MAX_KEY));
            }
            let size = change.value.as_ref().map_or(0, Vec::len);
            if size > Self::MAX_VALUE {
                return Err(too_large("row value", size, Self::MAX_VALUE));
            }
        }
        Ok(())
    }
}

/// The contents of an entity at one sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityRows {
    /// The sequence of the last batch.
    pub sequence: Sequence,
    /// The rows, in order of table and key.
    pub rows: Vec<Row>,
}

/// A row of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The table that the row is in.
    pub table: Table,
    /// The key within the table.
    pub key: Vec<u8>,
    /// The value that was written last.
    pub value: Vec<u8>,
}

/// The reason why a store did not do an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another activation has taken the entity over.
    #[error("{entity}: fence {fence} is stale, the current holder has fence {current}")]
    StaleFence {
        /// The entity that was taken over.
        entity: EntityId,
        /// The fence of the refused batch.
        fence: Fence,
        /// The fence of the current holder.
        current: Fence,
    },
    /// The batch does not follow the last one.
    #[error("{entity}: expected sequence {expected}, found {found}")]
    WrongSequence {
        /// The entity that the batch is for.
        entity: EntityId,
        /// The sequence that the writer believed to be the last.
        expected: Sequence,
        /// The sequence of the last batch.
        found: Sequence,
    },
    /// A row is over a limit.
    #[error("{entity}: {what} is {size} bytes, limit is {limit}")]
    TooLarge {
        /// The entity that the row is for.
        entity: EntityId,
        /// The part of the row.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The rows of an entity are not those that were written. Other entities are not affected.
    #[error(
        "{entity}: damaged at sequence {sequence}: {detail}; stop the process and run `strowger \
         store repair`, or restore the store from a backup"
    )]
    Damaged {
        /// The entity that is damaged.
        entity: EntityId,
        /// The last sequence that can be read.
        sequence: Sequence,
        /// A description of the damage.
        detail: Arc<str>,
    },
    /// The entity was damaged, and a repair has set its rows aside. Other entities are not
    /// affected.
    #[error(
        "{entity}: quarantined after damage at sequence {sequence}; import it from a backup, or \
         let it start empty with `strowger store repair --start-empty`"
    )]
    Quarantined {
        /// The entity that is quarantined.
        entity: EntityId,
        /// The last sequence that was found.
        sequence: Sequence,
    },
    /// A write has not ended within [`FjallOptions::write_deadline`], and may take effect later.
    #[error(
        "store does not respond: a write takes longer than {waited:?}; check the disk for errors \
         and for space, then start the process again"
    )]
    Stalled {
        /// The time for which the write had been under way.
        waited: Duration,
    },
    /// The disk is full. The store accepts writes again when there is room.
    #[error("disk is full: {detail}; free some space, then repeat the operation")]
    DiskFull {
        /// The error of the operating system.
        detail: Arc<str>,
    },
    /// A write or a sync failed, so it is unknown which writes are on the disk. The store refuses
    /// all further operations; what it contains is known when it is opened again.
    #[error("store has failed: {detail}; open it again to continue with the writes that survived")]
    Failed {
        /// The error that ended the service.
        detail: Arc<str>,
    },
    /// The store was closed.
    #[error("store is closed")]
    Closed,
}

/// A fault that a test injects into a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFault {
    /// The next append does not fit on the disk.
    DiskFull,
    /// The next append is written, and its sync fails.
    SyncFailed,
    /// The rows of the next append are damaged after they were written.
    Damage,
    /// The next append takes this long to be written, in a store on disk.
    Stall(Duration),
}

/// The numbers of an entity, and the checks that every store makes with them.
#[derive(Debug, Clone, Copy, Default)]
struct EntityHead {
    sequence: Sequence,
    fence: Fence,
    wake: Option<Duration>,
}

impl EntityHead {
    /// Checks that a batch comes from the current holder and follows the last one.
    fn check(self, entity: &EntityId, expected: Sequence, fence: Fence) -> Result<(), StoreError> {
        if fence != self.fence && !seeded(Bug::FenceIgnored) {
            return Err(StoreError::StaleFence {
                entity: entity.clone(),
                fence,
                current: self.fence,
            });
        }
        if expected != self.sequence && !seeded(Bug::SequenceIgnored) {
            return Err(StoreError::WrongSequence {
                entity: entity.clone(),
                expected,
                found: self.sequence,
            });
        }
        Ok(())
    }
}
