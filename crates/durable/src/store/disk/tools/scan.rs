//! Reading a store from its first row to its last.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use fjall::{Readable, Slice, Snapshot};

use super::{EntityCondition, EntityInfo, OnProgress, ToolError, ToolProgress, UnreadableRange};
use crate::store::disk::catch_database_panic;
use crate::store::disk::rows::{
    BEYOND_TABLES, GROUP_KEY, HEAD, QUARANTINE, QUARANTINED, Rows, WAKES, decode, encode,
    last_of_damaged_state, row_key,
};
use crate::store::{Batch, EntityId, Fence, Sequence, Table};

/// A row of the database: its key and its value.
pub(super) type Pair = (Slice, Slice);

/// A key of the database.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredKey<'a> {
    /// The number of the last group.
    Group,
    /// A row of an entity.
    Row {
        kind: &'a str,
        key: &'a str,
        /// The part of the key that names the entity.
        prefix: &'a [u8],
        table: u8,
        row: &'a [u8],
    },
    /// An entity in the list of wake-up times.
    Wake {
        kind: &'a str,
        key: &'a str,
        at: Duration,
    },
    /// A row in the quarantine, with its original key.
    Quarantined(&'a [u8]),
    /// A row of a list beside the entities, of a kind that this version does not know.
    Index,
    /// A key of no known form.
    Stray,
}

impl<'a> StoredKey<'a> {
    pub(super) fn parse(key: &'a [u8]) -> Self {
        if key == GROUP_KEY {
            return Self::Group;
        }
        if let Some(original) = key.strip_prefix(&QUARANTINE) {
            return Self::Quarantined(original);
        }
        if let Some(rest) = key.strip_prefix(&WAKES) {
            let parsed = split_part(rest).and_then(|(kind, rest)| {
                let (at, key) = rest.split_first_chunk()?;
                let at = Duration::from_millis(u64::from_be_bytes(*at));
                let key = std::str::from_utf8(key).ok()?;
                Some(Self::Wake { kind, key, at })
            });
            return parsed.unwrap_or(Self::Stray);
        }
        if key.first() == Some(&0xff) {
            return Self::Index;
        }
        Self::parse_row(key).unwrap_or(Self::Stray)
    }

    fn parse_row(all: &'a [u8]) -> Option<Self> {
        let (kind, rest) = split_part(all)?;
        let (key, rest) = split_part(rest)?;
        let (&table, row) = rest.split_first()?;
        let prefix = &all[..all.len() - rest.len()];
        (table != BEYOND_TABLES).then_some(Self::Row {
            kind,
            key,
            prefix,
            table,
            row,
        })
    }
}

/// Splits a text with its length in front of it off.
fn split_part(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let part = std::str::from_utf8(part).ok()?;
    (part.len() <= EntityId::MAX_LEN).then_some((part, rest))
}

/// The head of an entity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoredHead {
    pub(super) sequence: Sequence,
    pub(super) fence: Fence,
    pub(super) wake: Option<Duration>,
    /// The rest of a head that a later version has written.
    pub(super) extra: Vec<u8>,
    pub(super) is_quarantined: bool,
}

impl StoredHead {
    /// Decodes a head; `None` if it is damaged.
    pub(super) fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let (sequence, payload) = decode(key, value)?;
        let (fence, rest) = payload.split_first_chunk()?;
        let mut head = Self {
            sequence,
            fence: Fence(u64::from_be_bytes(*fence)),
            is_quarantined: rest == QUARANTINED,
            ..Self::default()
        };
        if !head.is_quarantined {
            let (wake, extra) = match rest.split_first_chunk() {
                Some((wake, extra)) => (Some(u64::from_be_bytes(*wake)), extra),
                None => (None, rest),
            };
            head.wake = wake.map(Duration::from_millis);
            head.extra = extra.to_vec();
        }
        Some(head)
    }

    /// Encodes the head as the row of an entity.
    pub(super) fn encode(&self, entity: &EntityId) -> (Vec<u8>, Vec<u8>) {
        let key = row_key(entity, HEAD, &[]);
        let mut payload = self.fence.0.to_be_bytes().to_vec();
        if self.is_quarantined {
            payload.extend(QUARANTINED);
        } else {
            let wake = self.wake.map(crate::store::disk::rows::millis);
            payload.extend(wake.into_iter().flatten());
            payload.extend(&self.extra);
        }
        let value = encode(&key, self.sequence, &payload);
        (key, value)
    }
}

/// The entity whose rows are being read.
#[derive(Debug)]
pub(super) struct EntityScan {
    pub(super) prefix: Vec<u8>,
    entity: EntityId,
    head: Option<StoredHead>,
    rows: u64,
    bytes: u64,
    damage: Option<String>,
    /// The sequence of the entity, as its head and its state have it.
    sequence: Sequence,
    /// The last sequence of a row that is intact, or that a damaged state may have.
    last: Sequence,
}

impl EntityScan {
    pub(super) fn new(prefix: &[u8], entity: EntityId) -> Self {
        Self {
            prefix: prefix.to_vec(),
            entity,
            head: None,
            rows: 0,
            bytes: 0,
            damage: None,
            sequence: Sequence(0),
            last: Sequence(0),
        }
    }

    pub(super) fn damage(&mut self, detail: impl Into<String>) {
        self.damage.get_or_insert_with(|| detail.into());
    }

    /// Verifies a row. The head comes first.
    pub(super) fn add(&mut self, (table, row): (u8, &[u8]), key: &[u8], value: &[u8]) {
        if table == HEAD {
            if row.is_empty() {
                self.head = StoredHead::decode(key, value);
            }
            match &self.head {
                Some(head) if row.is_empty() => {
                    self.sequence = head.sequence;
                    self.last = self.last.max(head.sequence);
                }
                Some(_) => self.damage("a second head"),
                None => self.damage("the head of the entity"),
            }
            return;
        }
        self.rows += 1;
        self.bytes += (row.len() + value.len().saturating_sub(16)) as u64;
        let describe = |what: &str| format!("{what}, in table {table}");
        let is_state = table == Table::State as u8 && row.is_empty();
        let Some((sequence, payload)) = decode(key, value) else {
            if is_state {
                self.last = self.last.max(last_of_damaged_state(self.sequence, value));
            }
            return self.damage(describe("the digest of a row"));
        };
        self.last = self.last.max(sequence);
        if row.len() > Batch::MAX_KEY || payload.len() > Batch::MAX_VALUE {
            self.damage(describe("a row over the limit"));
        }
        match &self.head {
            None => self.damage("rows without the head of the entity"),
            Some(head) if head.is_quarantined => self.damage("rows of a quarantined entity"),
            // The state, which comes first, has the sequence of batches that do not write the head.
            Some(_) if is_state => {
                self.sequence = self.sequence.max(sequence);
            }
            Some(_) if sequence > self.sequence => {
                self.damage(describe("a row newer than its entity"));
            }
            Some(_) => {}
        }
    }

    pub(super) const fn head(&self) -> Option<&StoredHead> {
        self.head.as_ref()
    }

    pub(super) fn info(&self) -> EntityInfo {
        let head = self.head.clone().unwrap_or_default();
        let condition = match &self.damage {
            Some(detail) => EntityCondition::Damaged(detail.clone()),
            None if head.is_quarantined => EntityCondition::Quarantined,
            None => EntityCondition::Intact,
        };
        EntityInfo {
            entity: self.entity.clone(),
            sequence: self.last,
            fence: head.fence,
            wake: head.wake,
            rows: self.rows,
            bytes: self.bytes,
            condition,
        }
    }
}

/// Reads all rows of a snapshot in order. A part that cannot be read is skipped.
pub(super) struct PairReader<'a> {
    rows: &'a Rows,
    snapshot: Snapshot,
    /// `None` at the end.
    iter: Option<fjall::Iter>,
    /// The last key that was read.
    last: Option<Slice>,
    /// The key behind the last part that could not be read.
    resumed: Option<Slice>,
    progress: ToolProgress,
    on_progress: &'a mut OnProgress<'a>,
}

/// A result of [`PairReader::next`].
pub(super) enum Found {
    Pair(Pair),
    Gap(UnreadableRange),
}

impl<'a> PairReader<'a> {
    pub(super) fn new(
        rows: &'a Rows,
        snapshot: Snapshot,
        on_progress: &'a mut OnProgress<'a>,
    ) -> Self {
        Self {
            iter: Some(snapshot.iter(rows.table())),
            rows,
            snapshot,
            last: None,
            resumed: None,
            progress: ToolProgress::default(),
            on_progress,
        }
    }

    /// Returns the next row, or a part that cannot be read; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Found> {
        let iter = self.iter.as_mut()?;
        let next = catch_database_panic(|| iter.next().map(fjall::Guard::into_inner).transpose());
        let error = match next {
            Ok(Some((key, value))) => {
                self.progress.rows += 1;
                self.progress.bytes += (key.len() + value.len()) as u64;
                if self.progress.rows.is_multiple_of(4096) {
                    (self.on_progress)(self.progress);
                }
                self.last = Some(key.clone());
                return Some(Found::Pair((key, value)));
            }
            Ok(None) => {
                (self.on_progress)(self.progress);
                self.iter = None;
                return None;
            }
            Err(error) => error.to_string(),
        };
        // After an error, the iterator has left its source out and would show rows that were
        // replaced long ago. So it begins anew behind the damage.
        let before = self.first_readable_from_the_end();
        // Read backwards it was intact, so this does not happen; it would never end.
        let before = before.filter(|before| self.resumed.as_ref() != Some(before));
        self.resumed.clone_from(&before);
        self.iter = before
            .as_ref()
            .map(|before| self.snapshot.range(self.rows.table(), before.clone()..));
        Some(Found::Gap(UnreadableRange {
            after: self.last.as_deref().and_then(describe_key),
            before: before.as_deref().and_then(describe_key),
            detail: error,
        }))
    }

    /// Goes on with the rows as they are now; for a seeded bug.
    pub(super) fn renew_snapshot(&mut self) {
        if let Some(last) = &self.last {
            self.snapshot = self.rows.database().snapshot();
            let behind = (Bound::Excluded(last.clone()), Bound::Unbounded);
            self.iter = Some(self.snapshot.range(self.rows.table(), behind));
        }
    }

    /// Returns the first key of the part at the end of the store that can be read, if it is behind
    /// the last one that was read.
    fn first_readable_from_the_end(&self) -> Option<Slice> {
        let mut iter = self.snapshot.iter(self.rows.table());
        let mut first = None;
        while let Ok(Some(key)) =
            catch_database_panic(|| iter.next_back().map(fjall::Guard::key).transpose())
        {
            if self.last.as_ref().is_some_and(|last| key <= *last) {
                break;
            }
            first = Some(key);
        }
        first
    }
}

/// Describes the entity that a key belongs to.
fn describe_key(key: &[u8]) -> Option<String> {
    match StoredKey::parse(key) {
        StoredKey::Row { kind, key, .. } => Some(format!("{kind}/{key}")),
        StoredKey::Wake { kind, .. } => Some(format!("the wake-up times of {kind}")),
        StoredKey::Quarantined(key) => describe_key(key),
        StoredKey::Group => None,
        StoredKey::Index | StoredKey::Stray => Some("a list of no known kind".to_owned()),
    }
}

/// A finding of [`walk`], in the order of the store.
pub(super) enum Event<'a> {
    /// An entity, with its head unless that is damaged or missing.
    Entity(&'a EntityInfo, Option<&'a StoredHead>),
    /// A row that is not of an entity.
    Other(StoredKey<'a>, &'a [u8], &'a [u8]),
    /// A part that cannot be read.
    Gap(UnreadableRange),
}

/// Reads a snapshot, and verifies its entities.
pub(super) fn walk<'a>(
    rows: &'a Rows,
    snapshot: Snapshot,
    on_progress: &'a mut OnProgress<'a>,
    visit: &mut dyn FnMut(Event<'_>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let mut reader = PairReader::new(rows, snapshot, on_progress);
    let mut current: Option<EntityScan> = None;
    let finish = |current: &mut Option<EntityScan>,
                  visit: &mut dyn FnMut(Event<'_>) -> Result<(), ToolError>| {
        let Some(scan) = current.take() else {
            return Ok(());
        };
        visit(Event::Entity(&scan.info(), scan.head()))
    };
    while let Some(found) = reader.next() {
        let (key, value) = match found {
            Found::Pair(pair) => pair,
            Found::Gap(gap) => {
                if let Some(scan) = &mut current {
                    scan.damage(format!("rows that cannot be read: {}", gap.detail));
                }
                finish(&mut current, visit)?;
                visit(Event::Gap(gap))?;
                continue;
            }
        };
        let parsed = StoredKey::parse(&key);
        let StoredKey::Row {
            kind,
            key: name,
            prefix,
            table,
            row,
        } = parsed
        else {
            finish(&mut current, visit)?;
            visit(Event::Other(parsed, &key, &value))?;
            continue;
        };
        if current.as_ref().is_none_or(|scan| scan.prefix != prefix) {
            finish(&mut current, visit)?;
            // The lengths were checked.
            let Ok(entity) = EntityId::new(kind, name) else {
                continue;
            };
            current = Some(EntityScan::new(prefix, entity));
        }
        if let Some(scan) = &mut current {
            scan.add((table, row), &key, &value);
        }
    }
    finish(&mut current, visit)
}

/// A function that is called with the table, the key and the whole of a row.
pub(super) type RowVisitor<'a> = dyn FnMut(u8, &[u8], &Pair) -> Result<(), ToolError> + 'a;

/// Reads the rows of one entity of a snapshot.
pub(super) fn rows_of(
    path: &Path,
    (rows, snapshot): (&Rows, &Snapshot),
    prefix: &[u8],
    visit: &mut RowVisitor<'_>,
) -> Result<(), ToolError> {
    let mut iter = snapshot.prefix(rows.table(), prefix);
    loop {
        let next = catch_database_panic(|| iter.next().map(fjall::Guard::into_inner).transpose());
        let Some(pair) = next.map_err(ToolError::database(path))? else {
            return Ok(());
        };
        if let Some((&table, row)) = pair.0[prefix.len()..].split_first() {
            visit(table, row, &pair)?;
        }
    }
}
