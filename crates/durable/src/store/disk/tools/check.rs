//! Verification of a store.

use std::collections::BTreeMap;
use std::fmt;

use super::scan::{Event, StoredKey, walk};
use super::{EntityCondition, EntityInfo, OnProgress, StoppedStore, ToolError};
use crate::store::EntityId;
use crate::store::disk::catch_database_panic;
use crate::store::disk::rows::{Rows, decode, wake_key};

/// The result of [`StoppedStore::check`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The entities by their kinds, without those that are quarantined.
    pub kinds: BTreeMap<String, KindCount>,
    /// The entities that are damaged.
    pub damaged: Vec<DamagedEntity>,
    /// The entities whose rows an earlier repair has set aside.
    pub quarantined: Vec<EntityInfo>,
    /// The number of rows in the quarantine.
    pub quarantined_rows: u64,
    /// The parts of the database that cannot be read.
    pub unreadable: Vec<UnreadableRange>,
    /// The number of rows that are of no entity and no list, or are damaged in a list.
    pub stray_rows: u64,
    /// The number of differences between the entities and the list of wake-up times. A repair makes
    /// the list anew.
    pub wake_errors: u64,
    /// The journals with damage before their end.
    pub damaged_journals: Vec<String>,
    /// The number of committed groups that are missing at the end.
    pub lost_groups: u64,
}

impl CheckReport {
    /// Returns `true` if the store is as it was written. Entities in quarantine are no damage.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        self.damaged.is_empty()
            && self.unreadable.is_empty()
            && self.damaged_journals.is_empty()
            && self.stray_rows == 0
            && self.wake_errors == 0
            && self.lost_groups == 0
    }
}

/// The contents of the entities of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindCount {
    /// The number of entities that were appended to.
    pub entities: u64,
    /// The number of their rows.
    pub rows: u64,
    /// The keys and values of the rows, in bytes.
    pub bytes: u64,
}

/// An entity that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedEntity {
    /// The part that can be read.
    pub info: EntityInfo,
    /// A description of the damage.
    pub detail: String,
}

/// A part of the database that cannot be read. Which entities it had is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableRange {
    /// The last entity before it.
    pub after: Option<String>,
    /// The first entity behind it.
    pub before: Option<String>,
    /// The error of the database.
    pub detail: String,
}

impl fmt::Display for UnreadableRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = self.after.as_deref().unwrap_or("the beginning");
        let before = self.before.as_deref().unwrap_or("the end");
        let detail = &self.detail;
        write!(
            f,
            "rows between {after} and {before} cannot be read: {detail}"
        )
    }
}

impl StoppedStore {
    /// Reads everything, and verifies the structure and the digest of each row.
    ///
    /// # Errors
    /// Fails if the database fails in another way than by damage.
    pub fn check(&self, on_progress: &mut OnProgress<'_>) -> Result<CheckReport, ToolError> {
        let rows = &self.view.rows;
        let mut report = CheckReport {
            damaged_journals: self.damaged_journals.clone(),
            lost_groups: self.marked.saturating_sub(self.committed),
            ..CheckReport::default()
        };
        walk(rows, self.view.snapshot(), on_progress, &mut |event| {
            match event {
                Event::Entity(info, _) => report.add(info, rows),
                Event::Other(StoredKey::Group, ..) => {}
                Event::Other(StoredKey::Quarantined(_), ..) => report.quarantined_rows += 1,
                Event::Other(
                    StoredKey::Wake {
                        kind,
                        key: name,
                        at,
                    },
                    key,
                    value,
                ) => {
                    let entity = EntityId::new(kind, name).ok();
                    let head = entity.and_then(|entity| rows.head_row(&entity).ok()?);
                    let is_listed = head.is_some_and(|head| head.wake == Some(at));
                    if !is_listed || decode(key, value).is_none() {
                        report.wake_errors += 1;
                    }
                }
                Event::Other(StoredKey::Index, key, value) if decode(key, value).is_some() => {}
                Event::Other(..) => report.stray_rows += 1,
                Event::Gap(range) => report.unreadable.push(range),
            }
            Ok(())
        })?;
        Ok(report)
    }
}

impl CheckReport {
    fn add(&mut self, info: &EntityInfo, rows: &Rows) {
        match &info.condition {
            EntityCondition::Damaged(detail) => {
                let (info, detail) = (info.clone(), detail.clone());
                self.damaged.push(DamagedEntity { info, detail });
                return;
            }
            EntityCondition::Quarantined => {
                self.quarantined.push(info.clone());
                return;
            }
            EntityCondition::Intact => {}
        }
        if let Some(at) = info.wake
            && !has_wake(rows, &wake_key(&info.entity, at))
        {
            self.wake_errors += 1;
        }
        // An entity that was only leased is not stored.
        if info.sequence.0 > 0 {
            let kind = self.kinds.entry(info.entity.kind().to_owned()).or_default();
            kind.entities += 1;
            kind.rows += info.rows;
            kind.bytes += info.bytes;
        }
    }
}

/// Returns `true` if the list of wake-up times has an intact row with this key.
pub(super) fn has_wake(rows: &Rows, key: &[u8]) -> bool {
    let found = catch_database_panic(|| rows.table().get(key));
    found.is_ok_and(|value| value.is_some_and(|value| decode(key, &value).is_some()))
}
