//! Repair of a store: what is intact is copied into a new database, which replaces the old one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fjall::OwnedWriteBatch;

use super::backup::{write_error, write_mark};
use super::check::has_wake;
use super::scan::{Found, PairReader, StoredHead, StoredKey};
use super::{
    CheckReport, EntityInfo, OnProgress, PartialFolder, StoppedStore, ToolError, sync_tree,
};
use crate::store::EntityId;
use crate::store::disk::rows::{
    GROUP_KEY, GroupNumber, HEAD, QUARANTINE, Rows, decode, encode, entity_prefix, wake_key,
};
use crate::store::disk::{DEFAULT_BUFFER, DatabaseError, catch_database_panic};

/// The choice for a damaged entity, whose rows are set aside in either case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DamagedEntities {
    /// It is refused with [`StoreError::Quarantined`](crate::store::StoreError::Quarantined) until
    /// it is imported from a backup.
    ///
    /// This is the default because an entity that starts empty forgets, without an error, what it
    /// has acknowledged: an account has no money, and a repeated request takes effect again.
    #[default]
    Refuse,
    /// It starts empty. So do the entities that earlier repairs have quarantined.
    ///
    /// Its sequence goes on, and skips up to 255 if damage hides the last one.
    StartEmpty,
}

/// Options for [`repair`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// `true` to change nothing, and only report what would be done.
    pub dry_run: bool,
    /// The choice for damaged entities.
    pub damaged: DamagedEntities,
}

/// The result of [`repair`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The state of the store before the repair.
    pub before: CheckReport,
    /// The entities whose rows were set aside, and that are refused from now on.
    pub quarantined: Vec<EntityId>,
    /// The entities that start empty.
    pub emptied: Vec<EntityId>,
    /// `true` if the store needed a repair.
    pub is_needed: bool,
    /// The folder with the database as it was, if the repair has replaced it. It can be removed
    /// when nothing of it is missed.
    pub old_database: Option<PathBuf>,
}

/// Repairs a store that no process has open.
///
/// Damaged entities are quarantined, each alone: their rows are set aside, where
/// [`StoppedStore::export`] finds them. What is missing at the end of the journals is accepted as
/// lost, and the list of wake-up times is made anew. Nothing is destroyed: the database before the
/// repair stays in the folder `damaged-1` of the store, or with the next number that is free.
///
/// The new database needs as much room as the old one.
///
/// # Errors
/// Fails, without a change, if the store cannot be opened or the new database cannot be written.
pub fn repair(
    path: impl AsRef<Path>,
    options: RepairOptions,
    on_progress: &mut OnProgress<'_>,
) -> Result<RepairReport, ToolError> {
    let store = StoppedStore::open(path)?;
    let before = store.check(on_progress)?;
    let is_emptying = options.damaged == DamagedEntities::StartEmpty;
    let damaged = before.damaged.iter().map(|damaged| &damaged.info);
    let released = before.quarantined.iter().filter(|_| is_emptying);
    let affected: Vec<EntityInfo> = damaged.chain(released).cloned().collect();
    let names = || affected.iter().map(|info| info.entity.clone()).collect();
    let mut report = RepairReport {
        is_needed: !before.is_intact() || !affected.is_empty(),
        ..RepairReport::default()
    };
    if is_emptying {
        report.emptied = names();
    } else {
        report.quarantined = names();
    }
    report.before = before;
    if report.is_needed && !options.dry_run {
        let old = replace_database(&store, &affected, is_emptying, on_progress)?;
        report.old_database = Some(old);
    }
    Ok(report)
}

/// Rows that are written beside those that are copied in order.
struct Additions<'a> {
    rows: &'a Rows,
    /// The last group of the store.
    group: GroupNumber,
    batch: OwnedWriteBatch,
    size: usize,
}

impl<'a> Additions<'a> {
    /// The size at which the rows so far are written, in bytes.
    const MAX_SIZE: usize = 1 << 20;

    fn new(rows: &'a Rows, group: u64) -> Self {
        let group = GroupNumber {
            number: group,
            previous: None,
        };
        Self {
            rows,
            group,
            batch: rows.database().batch(),
            size: 0,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DatabaseError> {
        self.batch.insert(self.rows.table(), key, value);
        self.size += key.len() + value.len();
        if self.size > Self::MAX_SIZE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DatabaseError> {
        self.size = 0;
        let mut batch = std::mem::replace(&mut self.batch, self.rows.database().batch());
        // A journal that another one follows must have a group.
        batch.insert(self.rows.table(), GROUP_KEY, self.group.encode());
        self.rows.commit(batch)
    }
}

/// Makes the new database, and exchanges it for the old one. Returns the folder with the old one.
fn replace_database(
    store: &StoppedStore,
    affected: &[EntityInfo],
    is_emptying: bool,
    on_progress: &mut OnProgress<'_>,
) -> Result<PathBuf, ToolError> {
    let path = &store.path;
    let folder = path.join(format!("db.repair-{}", std::process::id()));
    let folder = PartialFolder::create(folder)?;
    let group = store.committed.max(store.marked);
    write_repaired(store, affected, is_emptying, group, &folder.0, on_progress)
        .map_err(|error| write_error(path)(error))?;
    sync_tree(&folder.0).map_err(ToolError::io(&folder.0))?;
    let mut folders = (1..).map(|number| path.join(format!("damaged-{number}")));
    let Some(old) = folders.find(|old| !old.exists()) else {
        return Err(ToolError::Exists { path: path.clone() });
    };
    // The mark is not later than before, so that a crash from here on is noticed.
    write_mark(path, group).map_err(ToolError::io(path))?;
    std::fs::create_dir(&old).map_err(ToolError::io(&old))?;
    std::fs::rename(path.join("db"), old.join("db")).map_err(ToolError::io(&old))?;
    folder.rename(&path.join("db"))?;
    let synced = std::fs::File::open(&old).and_then(|folder| folder.sync_all());
    synced.map_err(ToolError::io(&old))?;
    Ok(old)
}

fn write_repaired(
    store: &StoppedStore,
    affected: &[EntityInfo],
    is_emptying: bool,
    group: u64,
    folder: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<(), DatabaseError> {
    let source = &store.view.rows;
    let prefixes: HashSet<Vec<u8>> = affected
        .iter()
        .map(|it| entity_prefix(&it.entity))
        .collect();
    let target = Rows::open(folder, DEFAULT_BUFFER)?;
    let mut output = catch_database_panic(|| target.table().start_ingestion())?;
    let mut additions = Additions::new(&target, group);
    let mut reader = PairReader::new(source, store.view.snapshot(), on_progress);
    while let Some(found) = reader.next() {
        let Found::Pair((key, value)) = found else {
            continue;
        };
        let is_kept = match StoredKey::parse(&key) {
            // Both are written anew.
            StoredKey::Group => continue,
            StoredKey::Wake {
                kind,
                key: name,
                at,
            } => {
                let entity = EntityId::new(kind, name).ok();
                let is_affected = |entity: &EntityId| prefixes.contains(&entity_prefix(entity));
                let head = entity.filter(|entity| !is_affected(entity));
                let head = head.and_then(|entity| source.head_row(&entity).ok()?);
                let is_listed = head.is_some_and(|head| head.wake == Some(at));
                if !is_listed || decode(&key, &value).is_none() {
                    continue;
                }
                true
            }
            StoredKey::Row { prefix, .. } if prefixes.contains(prefix) => false,
            StoredKey::Row {
                kind,
                key: name,
                table: HEAD,
                ..
            } => {
                if let Some(wake) = missing_wake(source, (kind, name), &key, &value) {
                    additions.put(&wake.0, &wake.1)?;
                }
                true
            }
            StoredKey::Row { .. } | StoredKey::Quarantined(_) => true,
            StoredKey::Index => decode(&key, &value).is_some(),
            StoredKey::Stray => false,
        };
        if is_kept {
            catch_database_panic(|| output.write(key, value))?;
        } else {
            additions.put(&[&QUARANTINE, &*key].concat(), &value)?;
        }
    }
    catch_database_panic(|| output.finish())?;
    for info in affected {
        let head = StoredHead {
            sequence: info.sequence,
            fence: info.fence,
            is_quarantined: !is_emptying,
            ..StoredHead::default()
        };
        let (key, value) = head.encode(&info.entity);
        additions.put(&key, &value)?;
    }
    additions.flush()?;
    target.sync()
}

/// Returns the row of an entity that is missing in the list of wake-up times.
fn missing_wake(
    source: &Rows,
    (kind, name): (&str, &str),
    key: &[u8],
    value: &[u8],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let head = StoredHead::decode(key, value)?;
    let wake = wake_key(&EntityId::new(kind, name).ok()?, head.wake?);
    if has_wake(source, &wake) {
        return None;
    }
    let value = encode(&wake, head.sequence, &[]);
    Some((wake, value))
}
