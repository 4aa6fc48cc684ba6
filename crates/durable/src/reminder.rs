//! Timers that are stored with the state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::seeded_bug::{Bug, seeded};
use crate::store::{Batch, EntityId, Row, Table};

/// A durable timer that has fired; see
/// [`DurableContext::set_reminder`](crate::DurableContext::set_reminder).
#[derive(Debug, Clone)]
pub struct Reminder {
    name: Arc<str>,
    due: Duration,
    late: Duration,
    payload: Vec<u8>,
}

impl Reminder {
    /// The maximum length of a name, in bytes.
    pub const MAX_NAME: usize = 255;
    /// The delay from which a reminder is late.
    pub const LATE: Duration = Duration::from_secs(1);

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the time at which it was due, since the Unix epoch.
    #[must_use]
    pub const fn due(&self) -> Duration {
        self.due
    }

    /// Returns the time that has passed since it was due.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.late
    }

    /// Returns `true` if it fires at least [`Self::LATE`] after its time, for example because no
    /// process ran at that time.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late >= Self::LATE
    }

    /// Decodes the payload.
    ///
    /// # Errors
    /// Fails if the payload is not of this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        PayloadError::decode(&self.payload)
    }
}

/// The error returned for a stored payload of another type.
#[derive(Debug, Clone, thiserror::Error)]
#[error("stored payload not decoded: {detail}")]
pub struct PayloadError {
    /// The error of the decoder.
    pub detail: String,
}

impl PayloadError {
    pub(crate) fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Self> {
        rmp_serde::from_slice(payload).map_err(|error| Self {
            detail: error.to_string(),
        })
    }
}

/// The reason why a reminder was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReminderError {
    /// The entity has as many reminders as it may have.
    #[error(
        "{entity}: reminder {name:?} not set: the limit of {limit} (`MAX_REMINDERS`) is reached"
    )]
    TooMany {
        /// The entity whose reminder was refused.
        entity: EntityId,
        /// The name of the refused reminder.
        name: Arc<str>,
        /// Maximum number of reminders of the entity.
        limit: usize,
    },
    /// The name is too long.
    #[error(
        "{entity}: name of a reminder is {length} bytes, limit is {}",
        Reminder::MAX_NAME
    )]
    NameTooLong {
        /// The entity whose reminder was refused.
        entity: EntityId,
        /// The length of the name, in bytes.
        length: usize,
    },
}

/// The reminders of an entity, in memory.
#[derive(Default)]
pub(crate) struct StoredReminders {
    by_name: BTreeMap<Arc<str>, (Duration, Vec<u8>)>,
    by_time: BTreeSet<(Duration, Arc<str>)>,
}

impl StoredReminders {
    /// Adds a reminder that was stored. Returns `None` if the row is malformed.
    pub(crate) fn load(&mut self, row: &Row) -> Option<()> {
        let name: Arc<str> = std::str::from_utf8(&row.key).ok()?.into();
        let (due, payload) = row.value.split_first_chunk()?;
        let due = Duration::from_millis(u64::from_be_bytes(*due));
        self.insert(name, due, payload.to_vec());
        Some(())
    }

    fn insert(&mut self, name: Arc<str>, due: Duration, payload: Vec<u8>) {
        if let Some((replaced, _)) = self.by_name.insert(Arc::clone(&name), (due, payload)) {
            self.by_time.remove(&(replaced, Arc::clone(&name)));
        }
        self.by_time.insert((due, name));
    }

    /// Sets a reminder, replacing one with the same name.
    pub(crate) fn set(
        &mut self,
        (entity, limit): (&EntityId, usize),
        name: &str,
        due: Duration,
        payload: Vec<u8>,
        batch: &mut Batch,
    ) -> Result<(), ReminderError> {
        let entity = || entity.clone();
        if name.len() > Reminder::MAX_NAME {
            let (entity, length) = (entity(), name.len());
            return Err(ReminderError::NameTooLong { entity, length });
        }
        if self.by_name.len() >= limit && !self.by_name.contains_key(name) {
            let (entity, name) = (entity(), name.into());
            return Err(ReminderError::TooMany {
                entity,
                name,
                limit,
            });
        }
        // Rows have milliseconds; a reminder never fires before its time.
        let millis = u64::try_from(due.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let mut value = millis.to_be_bytes().to_vec();
        value.extend(&payload);
        batch.put(Table::Reminders, name.as_bytes(), value);
        self.insert(name.into(), Duration::from_millis(millis), payload);
        Ok(())
    }

    /// Removes a reminder. Returns `false` if there is none with this name.
    pub(crate) fn cancel(&mut self, name: &str, batch: &mut Batch) -> bool {
        let Some((name, (due, _))) = self.by_name.remove_entry(name) else {
            return false;
        };
        batch.remove(Table::Reminders, name.as_bytes());
        self.by_time.remove(&(due, name))
    }

    /// Returns the time of the earliest reminder.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Removes the earliest reminder, if it is due.
    pub(crate) fn take_due(&mut self, now: Duration, batch: &mut Batch) -> Option<Reminder> {
        self.next_due().filter(|due| *due <= now)?;
        let (due, name) = self.by_time.pop_first()?;
        let (_, payload) = self.by_name.remove(&name)?;
        if !seeded(Bug::ReminderFiresTwice) {
            batch.remove(Table::Reminders, name.as_bytes());
        }
        Some(Reminder {
            late: now.saturating_sub(due),
            name,
            due,
            payload,
        })
    }

    /// Returns the names, sorted.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.by_name.keys().cloned().collect()
    }
}

impl fmt::Debug for StoredReminders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
