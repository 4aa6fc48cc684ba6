//! Reading an export into a store.

use std::collections::HashSet;
use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use fjall::{OwnedWriteBatch, PersistMode};

use super::backup::{write_error, write_mark};
use super::line::{
    Bytes, EndLine, EntityLine, ExportLine, FORMAT, LineReader, RawLine, RowLine, VERSION,
};
use super::scan::{Event, Pair, StoredHead, StoredKey, rows_of, walk};
use super::{EntityInfo, OnProgress, PartialFolder, ToolError, ToolProgress, is_vacant};
use crate::store::disk::mark::MarkFile;
use crate::store::disk::rows::{
    BEYOND_TABLES, GROUP_KEY, GroupNumber, HEAD, QUARANTINE, Rows, decode, encode, entity_prefix,
    row_key, wake_key,
};
use crate::store::disk::{
    DEFAULT_BUFFER, DatabaseError, FjallOptions, catch_database_panic, open_rows,
};
use crate::store::{Batch, EntityId, Fence, Sequence};

/// The choice for entities of an import that exist in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExistingEntities {
    /// The import is refused if there is one.
    #[default]
    Refuse,
    /// They stay as they are.
    Skip,
    /// They are replaced, with all their rows.
    Replace,
}

/// The result of [`import`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of entities that were imported.
    pub entities: u64,
    /// The number of their rows.
    pub rows: u64,
    /// The number of entities among them that have replaced others.
    pub replaced: u64,
    /// The number of entities that exist and were skipped.
    pub skipped: u64,
}

/// Imports an export into a store that no process has open, or into a new one if there is nothing
/// at the path.
///
/// The input is read to its end into a folder beside the store before anything is changed. A new
/// store appears as a whole. In an existing one each entity changes as a whole.
///
/// # Errors
/// Fails, without a change, if a line is invalid, is over a limit or is missing, or if an entity
/// exists that must not; see [`ToolError`].
pub fn import(
    path: impl AsRef<Path>,
    input: &mut dyn BufRead,
    existing: ExistingEntities,
    on_progress: &mut OnProgress<'_>,
) -> Result<ImportReport, ToolError> {
    let path = path.as_ref();
    let is_new = is_vacant(path);
    if !is_new && !path.join("db").is_dir() {
        let path = path.to_owned();
        return Err(ToolError::NotAStore { path });
    }
    // Held from the beginning, so that the time to read the input is not wasted.
    let target = match is_new {
        true => None,
        false => Some(Target::open(path)?),
    };
    let folder = PartialFolder::beside(path, "import")?;
    let database = folder.0.join("db");
    let failed = write_error(&folder.0);
    let staged = Rows::open(&database, DEFAULT_BUFFER).map_err(&failed)?;
    let counts = stage(&staged, &folder.0, input, on_progress)?;
    let Some(target) = target else {
        catch_database_panic(|| staged.table().insert(GROUP_KEY, 1_u64.to_be_bytes()))
            .and_then(|()| staged.sync())
            .map_err(&failed)?;
        drop(staged);
        write_mark(&folder.0, 1).map_err(ToolError::io(&folder.0))?;
        folder.rename(path)?;
        return Ok(ImportReport {
            entities: counts.entities,
            rows: counts.rows,
            ..ImportReport::default()
        });
    };
    let report = target.merge(&staged, existing);
    // The database closes before its folder is removed.
    drop(staged);
    report
}

/// Reads the input into a new database.
fn stage(
    rows: &Rows,
    path: &Path,
    input: &mut dyn BufRead,
    on_progress: &mut OnProgress<'_>,
) -> Result<EndLine, ToolError> {
    let mut lines = LineReader::new(input);
    lines.read()?;
    match lines.parse() {
        Ok(ExportLine::Store(first)) if first.format == FORMAT => {
            if first.version != VERSION {
                let found = first.version;
                return Err(lines.error(format!(
                    "export has version {found}, this program reads {VERSION}; use the version \
                     of strowger that wrote it"
                )));
            }
        }
        _ => {
            return Err(lines.error(format!(
                "not an export of a store: it does not begin with \
                 {{\"store\":{{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}}}"
            )));
        }
    }
    let mut staging = Staging {
        rows,
        batch: rows.database().batch(),
        size: 0,
        pending: HashSet::new(),
        current: None,
        counts: EndLine::default(),
        progress: ToolProgress::default(),
    };
    loop {
        let Some(line) = lines.next()? else {
            return Err(lines.error(
                "the file ends before its last line, {\"end\":..}; export the store again",
            ));
        };
        let added = match line {
            ExportLine::Entity(line) => staging.entity(line),
            ExportLine::Row(line) => staging.row(line),
            ExportLine::Index(line) => staging.raw(line, false),
            ExportLine::Quarantined(line) => staging.raw(line, true),
            ExportLine::Store(_) => Err(Refusal::Line("a second first line".to_owned())),
            ExportLine::End(end) if end != staging.counts => Err(Refusal::Line(format!(
                "the export has {} entities and {} rows, and {} and {} precede this line; lines \
                 are missing or doubled; export the store again",
                end.entities, end.rows, staging.counts.entities, staging.counts.rows
            ))),
            ExportLine::End(_) => {
                staging.flush().map_err(write_error(path))?;
                if lines.next()?.is_some() {
                    return Err(lines.error("a line behind the last one; export the store again"));
                }
                return Ok(staging.counts);
            }
        };
        match added {
            Ok(()) => {}
            Err(Refusal::Line(detail)) => return Err(lines.error(detail)),
            Err(Refusal::Database(error)) => return Err(write_error(path)(error)),
        }
        if lines.number.is_multiple_of(4096) {
            on_progress(staging.progress);
        }
    }
}

/// The reason why a line was not added.
enum Refusal {
    Line(String),
    Database(DatabaseError),
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

/// The database that an import is read into.
struct Staging<'a> {
    rows: &'a Rows,
    batch: OwnedWriteBatch,
    size: usize,
    /// The heads in the batch.
    pending: HashSet<Vec<u8>>,
    current: Option<StagedEntity>,
    counts: EndLine,
    progress: ToolProgress,
}

struct StagedEntity {
    entity: EntityId,
    sequence: u64,
    is_quarantined: bool,
    last: Option<(u8, Vec<u8>)>,
}

impl Staging<'_> {
    /// The size at which the rows so far are written, in bytes.
    const MAX_SIZE: usize = 1 << 20;

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), DatabaseError> {
        let size = key.len() + value.len();
        self.progress.rows += 1;
        self.progress.bytes += size as u64;
        self.size += size;
        self.batch.insert(self.rows.table(), key, value);
        match self.size > Self::MAX_SIZE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), DatabaseError> {
        self.size = 0;
        self.pending.clear();
        let batch = std::mem::replace(&mut self.batch, self.rows.database().batch());
        self.rows.commit(batch)
    }

    fn entity(&mut self, line: EntityLine) -> Result<(), Refusal> {
        let entity = EntityId::new(line.kind, line.key);
        let entity = entity.map_err(|error| Refusal::Line(error.to_string()))?;
        let wake = line.wake_ms.map(Duration::from_millis);
        if line.quarantined && (wake.is_some() || line.extra.is_some()) {
            let detail = format!("{entity}: is quarantined, and has a wake-up time or `extra`");
            return Err(Refusal::Line(detail));
        }
        let head = StoredHead {
            sequence: Sequence(line.sequence),
            fence: Fence(line.fence),
            wake,
            extra: line.extra.map(|Bytes(extra)| extra).unwrap_or_default(),
            is_quarantined: line.quarantined,
        };
        let (key, value) = head.encode(&entity);
        let is_double = self.pending.contains(&key)
            || catch_database_panic(|| self.rows.table().contains_key(&key))?;
        if is_double {
            let detail = format!("{entity}: a second time; remove one of the two");
            return Err(Refusal::Line(detail));
        }
        if StoredHead::decode(&key, &value).as_ref() != Some(&head) {
            let detail = format!("{entity}: `extra` needs a wake-up time in front of it");
            return Err(Refusal::Line(detail));
        }
        self.pending.insert(key.clone());
        self.put(key, value)?;
        if let Some(at) = wake {
            let key = wake_key(&entity, at);
            let value = encode(&key, head.sequence, &[]);
            self.put(key, value)?;
        }
        self.counts.entities += 1;
        self.current = Some(StagedEntity {
            entity,
            sequence: line.sequence,
            is_quarantined: line.quarantined,
            last: None,
        });
        Ok(())
    }

    fn row(&mut self, line: RowLine) -> Result<(), Refusal> {
        let Some(current) = &mut self.current else {
            let detail = "a row without an entity before it".to_owned();
            return Err(Refusal::Line(detail));
        };
        let entity = current.entity.clone();
        let refuse = |detail: String| Err(Refusal::Line(format!("{entity}: {detail}")));
        let (Bytes(key), Bytes(value)) = (line.key, line.value);
        for (what, size, limit) in [
            ("row key", key.len(), Batch::MAX_KEY),
            ("row value", value.len(), Batch::MAX_VALUE),
        ] {
            if size > limit {
                return refuse(format!(
                    "{what} is {size} bytes, limit is {limit}; shorten it, or leave the entity out"
                ));
            }
        }
        if line.table == HEAD || line.table == BEYOND_TABLES {
            let (table, last) = (line.table, BEYOND_TABLES - 1);
            return refuse(format!("table {table} is not from 1 to {last}"));
        }
        if current.is_quarantined {
            return refuse("a row of an entity that is quarantined".to_owned());
        }
        if line.sequence > current.sequence {
            let (row, entity) = (line.sequence, current.sequence);
            return refuse(format!(
                "row has sequence {row}, later than {entity} of its entity"
            ));
        }
        let place = (line.table, key);
        if current.last.as_ref().is_some_and(|last| *last >= place) {
            return refuse("rows are not in ascending order of table and key".to_owned());
        }
        let key = row_key(&entity, line.table, &place.1);
        current.last = Some(place);
        let value = encode(&key, Sequence(line.sequence), &value);
        self.counts.rows += 1;
        self.put(key, value)?;
        Ok(())
    }

    fn raw(&mut self, line: RawLine, is_quarantined: bool) -> Result<(), Refusal> {
        self.current = None;
        let (Bytes(mut key), Bytes(value)) = (line.key, line.value);
        if is_quarantined {
            key.splice(0..0, QUARANTINE);
        }
        let is_index = StoredKey::parse(&key) == StoredKey::Index && decode(&key, &value).is_some();
        if key.len() > usize::from(u16::MAX) || !is_quarantined && !is_index {
            let detail = "a row of a list that is damaged; remove the line".to_owned();
            return Err(Refusal::Line(detail));
        }
        self.put(key, value)?;
        Ok(())
    }
}

/// A store that entities are added to.
struct Target<'a> {
    path: &'a Path,
    rows: Rows,
    mark: MarkFile,
    /// The number of the last group that was attempted.
    group: u64,
    /// The number of the last group that the database has.
    committed: u64,
    report: ImportReport,
    last: Option<EntityId>,
}

/// Entities that are added to a store together.
struct Merged {
    batch: OwnedWriteBatch,
    size: usize,
    report: ImportReport,
    last: Option<EntityId>,
}

impl<'a> Target<'a> {
    fn open(path: &'a Path) -> Result<Self, ToolError> {
        let (rows, mark, [committed, marked]) = open_rows(path, FjallOptions::default())?;
        Ok(Self {
            path,
            rows,
            mark,
            group: committed.max(marked),
            committed,
            report: ImportReport::default(),
            last: None,
        })
    }

    fn merge(
        mut self,
        staged: &Rows,
        existing: ExistingEntities,
    ) -> Result<ImportReport, ToolError> {
        if existing == ExistingEntities::Refuse {
            self.refuse_existing(staged)?;
        }
        if let Err(error) = self.merge_all(staged, existing) {
            return Err(ToolError::Interrupted {
                imported: self.report.entities,
                last: self.last,
                source: Box::new(error),
            });
        }
        Ok(self.report)
    }

    fn refuse_existing(&self, staged: &Rows) -> Result<(), ToolError> {
        let (mut count, mut first) = (0, None);
        let snapshot = staged.database().snapshot();
        walk(staged, snapshot, &mut |_| {}, &mut |event| {
            if let Event::Entity(info, _) = event
                && self.find(&info.entity)?.is_some_and(|found| found.exists)
            {
                count += 1;
                first.get_or_insert_with(|| info.entity.clone());
            }
            Ok(())
        })?;
        first.map_or(Ok(()), |first| Err(ToolError::Conflict { count, first }))
    }

    /// Looks for an entity in the store.
    fn find(&self, entity: &EntityId) -> Result<Option<FoundEntity>, ToolError> {
        let mut found = None;
        let snapshot = self.rows.database().snapshot();
        let prefix = entity_prefix(entity);
        let source = (&self.rows, &snapshot);
        rows_of(self.path, source, &prefix, &mut |table, _, (key, value)| {
            let found = found.get_or_insert_with(FoundEntity::default);
            found.keys.push(key.to_vec());
            let head = (table == HEAD).then(|| StoredHead::decode(key, value));
            match head.flatten() {
                Some(head) => {
                    found.exists |= head.sequence.0 > 0 || head.is_quarantined;
                    found.head = head;
                }
                // A damaged head, or a row.
                None => found.exists = true,
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn merge_all(&mut self, staged: &Rows, existing: ExistingEntities) -> Result<(), ToolError> {
        let snapshot = staged.database().snapshot();
        let mut merged = self.begin();
        walk(staged, snapshot.clone(), &mut |_| {}, &mut |event| {
            match event {
                Event::Entity(info, Some(head)) => {
                    self.merge_entity((staged, &snapshot), (info, head), existing, &mut merged)?;
                }
                // Lists are made from entities; those of entities that are skipped are the store's.
                Event::Other(key, raw, value)
                    if matches!(key, StoredKey::Quarantined(_))
                        || key == StoredKey::Index && existing != ExistingEntities::Skip =>
                {
                    merged.size += raw.len() + value.len();
                    merged.batch.insert(self.rows.table(), raw, value);
                }
                _ => {}
            }
            match merged.size > Staging::MAX_SIZE {
                true => self.commit(&mut merged),
                false => Ok(()),
            }
        })?;
        self.commit(&mut merged)?;
        self.rows.sync().map_err(write_error(self.path))?;
        self.mark.sync().map_err(ToolError::io(self.path))
    }

    fn begin(&self) -> Merged {
        let batch = self.rows.database().batch();
        Merged {
            batch: batch.durability(Some(PersistMode::Buffer)),
            size: 0,
            report: self.report.clone(),
            last: self.last.clone(),
        }
    }

    fn merge_entity(
        &self,
        (staged, snapshot): (&Rows, &fjall::Snapshot),
        (info, head): (&EntityInfo, &StoredHead),
        existing: ExistingEntities,
        merged: &mut Merged,
    ) -> Result<(), ToolError> {
        let entity = &info.entity;
        let found = self.find(entity)?.unwrap_or_default();
        if found.exists && existing == ExistingEntities::Skip {
            merged.report.skipped += 1;
            return Ok(());
        }
        let table = self.rows.table();
        for key in found.keys {
            merged.size += key.len();
            merged.batch.remove(table, key);
        }
        if let Some(at) = found.head.wake {
            merged.batch.remove(table, wake_key(entity, at));
        }
        // Fences never fall, so that no earlier activation is taken for the current one.
        let mut head = head.clone();
        head.fence = head.fence.max(found.head.fence);
        let (key, value) = head.encode(entity);
        merged.batch.insert(table, key, value);
        if let Some(at) = head.wake {
            let key = wake_key(entity, at);
            let value = encode(&key, head.sequence, &[]);
            merged.batch.insert(table, key, value);
        }
        let prefix = entity_prefix(entity);
        let source = (staged, snapshot);
        rows_of(self.path, source, &prefix, &mut |number, _, pair: &Pair| {
            if number != HEAD {
                merged.size += pair.0.len() + pair.1.len();
                merged.batch.insert(table, pair.0.clone(), pair.1.clone());
                merged.report.rows += 1;
            }
            Ok(())
        })?;
        merged.report.entities += 1;
        merged.report.replaced += u64::from(found.exists);
        merged.last = Some(entity.clone());
        Ok(())
    }

    /// Commits the entities so far as a group of the store.
    fn commit(&mut self, merged: &mut Merged) -> Result<(), ToolError> {
        let next = self.begin();
        let Merged {
            mut batch,
            report,
            last,
            ..
        } = std::mem::replace(merged, next);
        self.group += 1;
        let number = GroupNumber {
            number: self.group,
            previous: Some(self.committed),
        };
        batch.insert(self.rows.table(), GROUP_KEY, number.encode());
        self.rows.commit(batch).map_err(write_error(self.path))?;
        self.committed = self.group;
        self.mark
            .write(self.group)
            .map_err(ToolError::io(self.path))?;
        (merged.report, merged.last) = (report.clone(), last.clone());
        (self.report, self.last) = (report, last);
        Ok(())
    }
}

/// An entity that was found in a store.
#[derive(Default)]
struct FoundEntity {
    /// `true` if it was appended to, or is damaged.
    exists: bool,
    head: StoredHead,
    /// The keys of all its rows.
    keys: Vec<Vec<u8>>,
}
