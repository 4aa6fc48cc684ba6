//! The rows of all entities in one table of the database.
//!
//! ```text
//!  key     | length of kind 2 | kind | length of key 2 | key | table 1 | key of the row |
//!  value   | sequence 8 | payload | xxh3 of the key and all before 8 |
//! ```
//!
//! Table 0 of an entity has one row: its head, with its fence and its wake-up time, if it has one,
//! as the payload. The sequence of an entity is that of its head or of its state, whichever is
//! later: most batches that replace the state leave the head as it is. The first batch and every
//! 256th one write it, so that a damaged state leaves the sequence known within these bounds. The
//! key of two zeros has the number of the last committed group, and of the one before it. The
//! entities with a wake-up time are listed in its order:
//!
//! ```text
//!  key     | 0xff 0xff | length of kind 2 | kind | time in milliseconds 8 | key of the entity |
//! ```

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fjall::{
    AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode,
    Readable,
};
use lsm_tree::{SeqNo, SequenceNumberCounter};
use xxhash_rust::xxh3::Xxh3;

use super::{DatabaseError, Durability, catch_database_panic};
use crate::seeded_bug::{Bug, seeded};
use crate::store::{
    EntityHead, EntityId, EntityRows, EventNumber, Fence, Row, RowChange, RowSelection, Sequence,
    StoreError, Table, Wake,
};

/// The open database.
#[derive(Clone)]
pub(super) struct Rows {
    database: Database,
    table: Keyspace,
    /// Bytes of rows in memory above which a table is written.
    buffer: u64,
}

/// The reason why an entity could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The database failed.
    Database(DatabaseError),
    /// The entity is damaged, and no other.
    Entity(StoreError),
}

impl From<DatabaseError> for ReadError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl Rows {
    /// Opens the database in a folder, or creates an empty one. It begins to write a table when it
    /// has `buffer` bytes of rows in memory.
    pub(super) fn open(path: &Path, buffer: u64) -> Result<Self, DatabaseError> {
        catch_database_panic(|| {
            let database = Database::builder(path).worker_threads(1).open()?;
            // `commit` has the limit.
            let options = || KeyspaceCreateOptions::default().max_memtable_size(u64::MAX);
            let table = database.keyspace("rows", options)?;
            Ok(Self {
                database,
                table,
                buffer,
            })
        })
    }

    /// Opens a database that is only read: nothing is written to its tables or compacted.
    pub(super) fn open_idle(path: &Path) -> Result<Self, DatabaseError> {
        catch_database_panic(|| {
            let database = Database::builder(path).worker_threads_unchecked(0).open()?;
            let table = database.keyspace("rows", KeyspaceCreateOptions::default)?;
            Ok(Self {
                database,
                table,
                buffer: u64::MAX,
            })
        })
    }

    pub(super) const fn table(&self) -> &Keyspace {
        &self.table
    }

    pub(super) const fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the number of the last group that the database has.
    pub(super) fn committed_group(&self) -> Result<u64, DatabaseError> {
        let value = catch_database_panic(|| self.table.get(GROUP_KEY))?;
        let group = value.and_then(|value| GroupNumber::decode(&value));
        Ok(group.map(|group| group.number).unwrap_or_default())
    }

    /// Returns the first of the files without which the database takes its tables for unfinished
    /// ones, and deletes them when it is opened. `None` if it has all of them, as it always had
    /// since it was created.
    pub(super) fn missing_file(database: &Path) -> std::io::Result<Option<&'static str>> {
        for file in VERSION_FILES {
            if !database.join(file).try_exists()? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Returns the number of the last group in the tables of a database, whatever its journals
    /// have. Nothing else may have the database open, and no file may be missing: it would be
    /// created.
    pub(super) fn group_in_tables(database: &Path) -> Result<u64, DatabaseError> {
        let tables = database.join(TABLES);
        catch_database_panic(|| {
            let numbers = SequenceNumberCounter::default();
            let tree = lsm_tree::Config::new(tables, numbers.clone(), numbers).open()?;
            let value = tree.get(GROUP_KEY, SeqNo::MAX)?;
            let group = value.and_then(|value| GroupNumber::decode(&value));
            Ok(group.map(|group| group.number).unwrap_or_default())
        })
    }

    /// Starts a group.
    pub(super) fn begin(&self) -> Group<'_> {
        Group {
            rows: self,
            batch: self.database.batch().durability(Some(PersistMode::Buffer)),
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Commits a batch, and begins to write a table if more rows are in memory than the buffer has
    /// room for.
    ///
    /// A limit of the database would not do. Each commit above it sends a message to the worker of
    /// the database, which also sends to itself and then waits for room among 1000 messages: for
    /// ever, if 1000 commits arrive while it writes a table. Then the rows stay in memory, which
    /// grows without an error.
    pub(super) fn commit(&self, batch: OwnedWriteBatch) -> Result<(), DatabaseError> {
        catch_database_panic(|| {
            batch.commit()?;
            match self.table.tree.active_memtable().size() > self.buffer {
                true => self.table.rotate_memtable().map(drop),
                false => Ok(()),
            }
        })
    }

    /// Syncs all groups to the disk.
    pub(super) fn sync(&self) -> Result<(), DatabaseError> {
        catch_database_panic(|| self.database.persist(PersistMode::SyncData))
    }

    /// Begins to write all rows that are in memory to tables.
    pub(super) fn begin_tables(&self) -> Result<(), DatabaseError> {
        // Hidden in the documentation of the database, which offers nothing else for it.
        catch_database_panic(|| self.table.rotate_memtable().map(drop))
    }

    /// Returns `true` while there are rows in memory that are being written to a table.
    pub(super) fn has_unwritten_tables(&self) -> bool {
        self.table.sealed_memtable_count() > 0
    }

    /// Reads the numbers of an entity.
    pub(super) fn head(&self, entity: &EntityId) -> Result<EntityHead, ReadError> {
        let Some(mut head) = self.head_row(entity)? else {
            return Ok(EntityHead::default());
        };
        let key = row_key(entity, Table::State as u8, &[]);
        if let Some(state) = catch_database_panic(|| self.table.get(&key))? {
            let Some((written, _)) = decode(&key, &state) else {
                let sequence = last_of_damaged_state(head.sequence, &state);
                return Err(damaged(entity, sequence, "the digest of a row"));
            };
            head.sequence = head.sequence.max(written);
        }
        Ok(head)
    }

    /// Reads the row of the head of an entity. The state may have a later sequence.
    pub(super) fn head_row(&self, entity: &EntityId) -> Result<Option<EntityHead>, ReadError> {
        let key = row_key(entity, HEAD, &[]);
        let Some(value) = catch_database_panic(|| self.table.get(&key))? else {
            return Ok(None);
        };
        let damaged = || damaged(entity, Sequence(0), "the head of the entity");
        let (sequence, payload) = decode(&key, &value).ok_or_else(damaged)?;
        let (fence, rest) = payload.split_first_chunk().ok_or_else(damaged)?;
        if rest == QUARANTINED && !seeded(Bug::QuarantineForgotten) {
            let entity = entity.clone();
            let error = StoreError::Quarantined { entity, sequence };
            return Err(ReadError::Entity(error));
        }
        let wake = rest.first_chunk().map(|wake| u64::from_be_bytes(*wake));
        Ok(Some(EntityHead {
            sequence,
            fence: Fence(u64::from_be_bytes(*fence)),
            wake: wake.map(Duration::from_millis),
        }))
    }

    /// Reads rows of an entity, whose head may be known.
    pub(super) fn read(
        &self,
        entity: &EntityId,
        head: Option<EntityHead>,
        selection: RowSelection,
    ) -> Result<EntityRows, ReadError> {
        let EntityHead { sequence, .. } = match head {
            Some(head) => head,
            None => self.head(entity)?,
        };
        let prefix = entity_prefix(entity);
        let pairs = catch_database_panic(|| {
            let snapshot = self.database.snapshot();
            let mut pairs = Vec::new();
            for range in selected_keys(entity, selection) {
                let found = snapshot.range(&self.table, range);
                for pair in found.map(fjall::Guard::into_inner) {
                    pairs.push(pair?);
                }
            }
            Ok(pairs)
        })?;
        let mut rows = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let Some((&number, row)) = key[prefix.len()..].split_first() else {
                return Err(damaged(entity, sequence, "a key without a table"));
            };
            if number == HEAD {
                continue;
            }
            let Some(table) = Table::from_number(number) else {
                return Err(damaged(entity, sequence, "a row in an unknown table"));
            };
            let Some((written, payload)) = decode(&key, &value) else {
                return Err(damaged(entity, sequence, "the digest of a row"));
            };
            if written > sequence {
                return Err(damaged(entity, sequence, "a row newer than its entity"));
            }
            rows.push(Row {
                table,
                key: row.to_vec(),
                value: payload.to_vec(),
            });
        }
        Ok(EntityRows { sequence, rows })
    }

    /// Lists the keys of the entities of a kind that were appended to, the shortest first. It reads
    /// one row of each, and seeks over the others.
    pub(super) fn list(
        &self,
        kind: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, DatabaseError> {
        let mut kind_prefix = Vec::new();
        push_part(&mut kind_prefix, kind);
        let end = [&kind_prefix[..], &[0xff, 0xff]].concat();
        let mut start = match after {
            Some(after) => {
                let mut last = kind_prefix.clone();
                push_part(&mut last, after);
                last.push(BEYOND_TABLES);
                last
            }
            None => [&kind_prefix[..], &[0, 0]].concat(),
        };
        let mut keys = Vec::new();
        catch_database_panic(|| {
            let snapshot = self.database.snapshot();
            while keys.len() < limit {
                let mut found = snapshot.range(&self.table, start.clone()..end.clone());
                let Some(first) = found.next() else { break };
                let (row, value) = first.into_inner()?;
                let rest = &row[kind_prefix.len()..];
                let Some((length, rest)) = rest.split_first_chunk() else {
                    break;
                };
                let Some(key) = rest.get(..usize::from(u16::from_be_bytes(*length))) else {
                    break;
                };
                // A head that is damaged is listed too.
                let is_stored = decode(&row, &value).is_none_or(|(sequence, _)| sequence.0 > 0);
                if is_stored && let Ok(key) = std::str::from_utf8(key) {
                    keys.push(Arc::from(key));
                }
                start = row[..kind_prefix.len() + 2 + key.len()].to_vec();
                start.push(BEYOND_TABLES);
            }
            Ok(())
        })?;
        Ok(keys)
    }

    /// Lists entities of a kind that have a wake-up time, the earliest first.
    pub(super) fn wakes(
        &self,
        kind: &str,
        after: Option<&Wake>,
        limit: usize,
    ) -> Result<Vec<Wake>, DatabaseError> {
        let prefix = wake_prefix(kind);
        let mut start = prefix.clone();
        if let Some(after) = after {
            start.extend(millis(after.at));
            start.extend(after.key.as_bytes());
            // The next key.
            start.push(0);
        }
        let end = [&prefix[..], &[0xff; 9]].concat();
        let mut wakes = Vec::new();
        catch_database_panic(|| {
            let snapshot = self.database.snapshot();
            for row in snapshot.range(&self.table, start..end).take(limit) {
                let (row, _) = row.into_inner()?;
                let Some((at, key)) = row[prefix.len()..].split_first_chunk() else {
                    continue;
                };
                let at = Duration::from_millis(u64::from_be_bytes(*at));
                if let Ok(key) = std::str::from_utf8(key) {
                    let key = Arc::from(key);
                    wakes.push(Wake { at, key });
                }
            }
            Ok(())
        })?;
        Ok(wakes)
    }
}

/// Writes that are committed together.
pub(super) struct Group<'a> {
    rows: &'a Rows,
    batch: OwnedWriteBatch,
    /// Room for the key of a row.
    key: Vec<u8>,
    /// Room for its value.
    value: Vec<u8>,
}

impl Group<'_> {
    /// Adds the head of an entity.
    pub(super) fn put_head(&mut self, entity: &EntityId, head: EntityHead) {
        write_row_key(&mut self.key, entity, HEAD, &[]);
        let fence = head.fence.0.to_be_bytes();
        let wake = head.wake.map(millis);
        let wake = wake.as_ref().map_or(&[][..], |wake| wake);
        write_value(&mut self.value, &self.key, head.sequence, [&fence, wake]);
        self.insert();
    }

    /// Moves an entity in the list of wake-up times.
    pub(super) fn move_wake(
        &mut self,
        entity: &EntityId,
        sequence: Sequence,
        old: Option<Duration>,
        new: Option<Duration>,
    ) {
        if let Some(old) = old.filter(|_| old != new) {
            self.batch.remove(&self.rows.table, wake_key(entity, old));
        }
        if let Some(new) = new {
            self.key = wake_key(entity, new);
            write_value(&mut self.value, &self.key, sequence, []);
            self.insert();
        }
    }

    /// Adds a row, or its removal. With `is_damaged`, its digest is wrong.
    pub(super) fn change(
        &mut self,
        entity: &EntityId,
        sequence: Sequence,
        change: &RowChange,
        is_damaged: bool,
    ) {
        write_row_key(&mut self.key, entity, change.table as u8, &change.key);
        match &change.value {
            Some(value) => {
                write_value(&mut self.value, &self.key, sequence, [value]);
                if is_damaged && let Some(last) = self.value.last_mut() {
                    *last ^= 1;
                }
                self.insert();
            }
            None => self.batch.remove(&self.rows.table, &self.key[..]),
        }
    }

    /// Adds the row whose key and value were written last.
    fn insert(&mut self) {
        let (key, value) = (&self.key[..], &self.value[..]);
        self.batch.insert(&self.rows.table, key, value);
    }

    /// Commits the group under its number.
    pub(super) fn commit(
        mut self,
        number: GroupNumber,
        durability: Durability,
    ) -> Result<(), GroupError> {
        let numbers = number.encode();
        self.batch.insert(&self.rows.table, GROUP_KEY, numbers);
        self.rows.commit(self.batch).map_err(GroupError::Write)?;
        match durability {
            Durability::Process => Ok(()),
            Durability::Disk => self.rows.sync().map_err(GroupError::Sync),
        }
    }
}

/// The number of a group, and of the last one that was committed before it. A number is used up
/// even if its group fails, so the two need not be neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupNumber {
    pub(super) number: u64,
    /// `None` in stores of formats 1 and 2, and in a repaired one.
    pub(super) previous: Option<u64>,
}

impl GroupNumber {
    /// The length of both numbers, in bytes.
    pub(super) const LENGTH: u64 = 16;

    /// Returns both numbers; without a previous one, 8 bytes.
    pub(super) fn encode(self) -> Vec<u8> {
        let numbers = [Some(self.number), self.previous].into_iter().flatten();
        numbers.flat_map(u64::to_be_bytes).collect()
    }

    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let (number, rest) = value.split_first_chunk()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            previous: rest.first_chunk().copied().map(u64::from_be_bytes),
        })
    }
}

/// The reason why a group was not committed.
#[derive(Debug)]
pub(super) enum GroupError {
    /// Writing failed. The journals are preallocated as sparse files, so a full disk shows here.
    Write(DatabaseError),
    /// A sync failed, after which the contents of the disk are unknown.
    Sync(DatabaseError),
}

/// The folder of the only table in the folder of a database.
const TABLES: &str = "keyspaces/1";
/// The files that name the tables of the list of keyspaces, and of the rows.
const VERSION_FILES: [&str; 2] = ["keyspaces/0/current", "keyspaces/1/current"];
/// The key of the numbers of the last group.
pub(super) const GROUP_KEY: &[u8] = &[0, 0];
/// The number of the table with the head of an entity.
pub(super) const HEAD: u8 = 0;
/// A number that is beyond those of all tables.
pub(super) const BEYOND_TABLES: u8 = 0xff;
/// The bytes behind the fence in the head of an entity whose rows are in the quarantine. Without
/// such a head, the entity would start empty.
pub(super) const QUARANTINED: &[u8] = b"Q";

pub(super) fn entity_prefix(entity: &EntityId) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(5 + entity.kind().len() + entity.key().len());
    push_part(&mut prefix, entity.kind());
    push_part(&mut prefix, entity.key());
    prefix
}

fn push_part(prefix: &mut Vec<u8>, part: &str) {
    let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
    prefix.extend(length.to_be_bytes());
    prefix.extend(part.as_bytes());
}

/// The beginning of the list of wake-up times. No kind is long enough to begin so.
pub(super) const WAKES: [u8; 2] = [0xff, 0xff];

/// The beginning of the keys of the rows in the quarantine.
pub(super) const QUARANTINE: [u8; 2] = [0xff, 0xfe];

fn wake_prefix(kind: &str) -> Vec<u8> {
    let mut prefix = WAKES.to_vec();
    push_part(&mut prefix, kind);
    prefix
}

pub(super) fn wake_key(entity: &EntityId, at: Duration) -> Vec<u8> {
    let mut key = wake_prefix(entity.kind());
    key.extend(millis(at));
    key.extend(entity.key().as_bytes());
    key
}

pub(super) fn millis(time: Duration) -> [u8; 8] {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .to_be_bytes()
}

pub(super) fn row_key(entity: &EntityId, table: u8, row: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(5 + entity.kind().len() + entity.key().len() + row.len());
    write_row_key(&mut key, entity, table, row);
    key
}

/// Replaces the contents of `to` by the key of a row.
fn write_row_key(to: &mut Vec<u8>, entity: &EntityId, table: u8, row: &[u8]) {
    to.clear();
    push_part(to, entity.kind());
    push_part(to, entity.key());
    to.push(table);
    to.extend(row);
}

/// Returns the keys of selected rows, as ranges.
fn selected_keys(entity: &EntityId, selection: RowSelection) -> Vec<Range<Vec<u8>>> {
    let table = |number| row_key(entity, number, &[]);
    let event = |number: EventNumber| row_key(entity, Table::Events as u8, &number.row_key());
    let events = table(Table::Events as u8);
    let behind_events = table(Table::Events as u8 + 1);
    let end = table(BEYOND_TABLES);
    match selection {
        RowSelection::All => vec![table(HEAD)..end],
        RowSelection::AllButEvents => vec![table(HEAD)..events, behind_events..end],
        RowSelection::EventsFrom(first) => vec![event(first)..behind_events],
    }
}

/// Returns `true` if the batch with this sequence writes the head, whatever else it does.
pub(super) const fn always_writes_head(sequence: Sequence) -> bool {
    sequence.0 == 1 || sequence.0.is_multiple_of(HEAD_INTERVAL)
}

/// Returns the sequence of an entity whose state is damaged, or a later one, given that of its
/// head.
pub(super) fn last_of_damaged_state(head: Sequence, state: &[u8]) -> Sequence {
    // The next batch would have written the head.
    let latest = (head.0 / HEAD_INTERVAL + 1).saturating_mul(HEAD_INTERVAL) - 1;
    let written = state
        .first_chunk()
        .map_or(0, |chunk| u64::from_be_bytes(*chunk));
    let is_plausible = (head.0..=latest).contains(&written);
    Sequence(if is_plausible { written } else { latest })
}

/// The number of batches of an entity after which the head is written anew.
const HEAD_INTERVAL: u64 = 256;

fn digest(key: &[u8], front: &[u8]) -> u64 {
    let mut digest = Xxh3::new();
    digest.update(key);
    digest.update(front);
    digest.digest()
}

pub(super) fn encode(key: &[u8], sequence: Sequence, payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(16 + payload.len());
    write_value(&mut value, key, sequence, [payload]);
    value
}

/// Replaces the contents of `to` by a value, whose payload is given in parts.
fn write_value<const PARTS: usize>(
    to: &mut Vec<u8>,
    key: &[u8],
    sequence: Sequence,
    payload: [&[u8]; PARTS],
) {
    to.clear();
    to.extend(sequence.0.to_be_bytes());
    payload.into_iter().for_each(|part| to.extend(part));
    let digest = digest(key, to);
    to.extend(digest.to_be_bytes());
}

/// Returns the sequence and the payload of a value; `None` if it is damaged.
pub(super) fn decode<'a>(key: &[u8], value: &'a [u8]) -> Option<(Sequence, &'a [u8])> {
    let (front, found) = value.split_last_chunk::<8>()?;
    let (sequence, payload) = front.split_first_chunk::<8>()?;
    let is_intact = digest(key, front) == u64::from_be_bytes(*found);
    is_intact.then(|| (Sequence(u64::from_be_bytes(*sequence)), payload))
}

fn damaged(entity: &EntityId, sequence: Sequence, detail: &str) -> ReadError {
    ReadError::Entity(StoreError::Damaged {
        entity: entity.clone(),
        sequence,
        detail: detail.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_of_a_damaged_state_is_not_earlier_than_the_last_batch() {
        let damaged = |head, written: u64| {
            let state = [&written.to_be_bytes()[..], b"payload"].concat();
            last_of_damaged_state(Sequence(head), &state).0
        };
        // The number of the row is used if a batch may have written it.
        for written in [1, 2, 255] {
            assert_eq!(damaged(1, written), written);
        }
        assert_eq!(damaged(256, 511), 511);
        for implausible in [0, 256, 1 << 40, u64::MAX] {
            assert_eq!(damaged(1, implausible), 255);
        }
        assert_eq!(last_of_damaged_state(Sequence(300), b"short").0, 511);
        assert_eq!(damaged(u64::MAX, 0), u64::MAX - 1);
        // Between two heads, no batch goes further than the bound.
        let mut head = 0;
        for number in 1..2000 {
            if always_writes_head(Sequence(number)) {
                head = number;
            }
            assert!(damaged(head, 0) >= number && damaged(head, number) == number);
        }
    }
}
