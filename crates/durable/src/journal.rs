//! The stored side of one activation: what was read, and how it is written.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

use crate::actor::DurableError;
use crate::answers::{AnswerWindow, IdempotencyKey, KeptAnswers};
use crate::entity::Hosted;
use crate::outbox::{Inbox, InboxWindow, Outbox};
use crate::reminder::{Reminder, ReminderError, StoredReminders};
use crate::seeded_bug::{Bug, seeded};
use crate::store::{
    Batch, EntityId, EventNumber, Fence, Row, RowSelection, Sequence, Store, StoreError, Table,
};

/// The encoding of states and events, as the first byte of their row: MessagePack with named
/// fields.
pub(crate) const ENCODING: u8 = 1;

/// The rows from which an actor has its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateForm {
    /// The state itself.
    Saved,
    /// Events, which are read after the other rows, and a snapshot.
    Events,
}

/// An entity, held by one activation.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) entity: EntityId,
    /// `None` in an actor that is no entity of a host.
    pub(crate) hosted: Option<Hosted>,
    fence: Fence,
    sequence: Sequence,
    /// The digest of the stored state, by which an unchanged state is recognized. 128 bits, because
    /// a collision would lose a change.
    saved: u128,
    /// The length of the last state that was encoded, which the next one likely has too.
    state_length: usize,
    answers: KeptAnswers,
    reminders: StoredReminders,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Inbox,
    /// Set if the message of another entity that is being handled stays with its sender.
    pub(crate) has_refused: bool,
    /// The wake-up time that is stored; an earlier one may be.
    wake: Option<Duration>,
    /// The row of the snapshot that was found, until it is taken.
    snapshot: Option<Vec<u8>>,
    /// Changes of the current message besides the state.
    pub(crate) batch: Batch,
    /// The first failure to encode an answer or an event of the current message.
    failure: Option<Box<DurableError>>,
}

impl Journal {
    /// Takes an entity over, and reads it.
    pub(crate) async fn open<S: Serialize + DeserializeOwned + Default>(
        store: Arc<dyn Store>,
        entity: EntityId,
        (window, senders): (AnswerWindow, InboxWindow),
        form: StateForm,
        hosted: Option<Hosted>,
    ) -> Result<(Self, S), DurableError> {
        let not_loaded = |source| DurableError::NotLoaded {
            entity: entity.clone(),
            source,
        };
        let fence = store.lease(&entity).await.map_err(not_loaded)?;
        let selection = match form {
            StateForm::Saved => RowSelection::All,
            StateForm::Events => RowSelection::AllButEvents,
        };
        let found = store.read_selected(&entity, selection).await;
        let found = found.map_err(not_loaded)?;
        let unreadable = |detail| DurableError::Unreadable {
            entity: entity.clone(),
            sequence: found.sequence,
            detail,
        };
        let mut answers = KeptAnswers::new(window);
        let mut reminders = StoredReminders::default();
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::new(senders));
        let now = store.wall_clock();
        let mut state = S::default();
        // An entity that still has its first state is not stored.
        let mut saved = xxh3_128(&encode(&entity, &state, 0)?);
        let mut snapshot = None;
        for row in &found.rows {
            match row.table {
                Table::State if form == StateForm::Events => {
                    let detail = "it has the state of a `DurableActor`, and no events";
                    return Err(unreadable(detail.to_owned()));
                }
                Table::Events | Table::Snapshot if form == StateForm::Saved => {
                    let detail = "it has the events of an `EventSourced` actor, and no state";
                    return Err(unreadable(detail.to_owned()));
                }
                Table::Events => {}
                Table::Snapshot => snapshot = Some(row.value.clone()),
                Table::State => {
                    let payload = row.value.strip_prefix(&[ENCODING]);
                    let payload = payload.ok_or_else(|| {
                        let encoding = row.value.first().copied().unwrap_or_default();
                        unreadable(format!("unknown encoding {encoding}"))
                    })?;
                    let decoded = rmp_serde::from_slice(payload);
                    state = decoded.map_err(|error| unreadable(error.to_string()))?;
                    saved = xxh3_128(&row.value);
                }
                Table::Answers => answers
                    .load(row)
                    .ok_or_else(|| unreadable("malformed kept answer".to_owned()))?,
                Table::Reminders => reminders
                    .load(row)
                    .ok_or_else(|| unreadable("malformed reminder".to_owned()))?,
                Table::Outbox => outbox
                    .load(row, now)
                    .ok_or_else(|| unreadable("malformed message of the outbox".to_owned()))?,
                Table::Inbox => inbox
                    .load(row)
                    .ok_or_else(|| unreadable("malformed row of the inbox".to_owned()))?,
            }
        }
        let mut journal = Self {
            fence,
            sequence: found.sequence,
            saved,
            state_length: 0,
            answers,
            wake: None,
            reminders,
            snapshot,
            outbox,
            inbox,
            has_refused: false,
            batch: Batch::new(),
            failure: None,
            store,
            entity,
            hosted,
        };
        // If there is an outbox, the stored time is not known; the outbox is due, and the attempt
        // leads to a write.
        journal.wake = journal.next_wake();
        journal.publish_wake();
        Ok((journal, state))
    }

    pub(crate) const fn entity(&self) -> &EntityId {
        &self.entity
    }

    pub(crate) const fn hosted(&self) -> Option<&Hosted> {
        self.hosted.as_ref()
    }

    pub(crate) const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Takes the row of the snapshot that was found when the entity was read.
    pub(crate) const fn take_snapshot(&mut self) -> Option<Vec<u8>> {
        self.snapshot.take()
    }

    /// Reads the rows of the stored events from a number on.
    pub(crate) async fn events(&self, from: EventNumber) -> Result<Vec<Row>, DurableError> {
        if self.sequence == Sequence(0) {
            return Ok(Vec::new());
        }
        let selection = RowSelection::EventsFrom(from);
        let read = self.store.read_selected(&self.entity, selection).await;
        // Another activation that has appended meanwhile has taken the entity over.
        let read = read.and_then(|found| match found.sequence {
            sequence if sequence == self.sequence => Ok(found.rows),
            sequence => Err(StoreError::WrongSequence {
                entity: self.entity.clone(),
                expected: self.sequence,
                found: sequence,
            }),
        });
        read.map_err(|source| DurableError::NotLoaded {
            entity: self.entity.clone(),
            source,
        })
    }

    /// Returns the changes of the current message besides the state.
    pub(crate) const fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Lets the write of the current message fail, because a part of it cannot be encoded.
    pub(crate) fn fail_to_encode(&mut self, error: &impl fmt::Display) {
        let error = not_encoded(&self.entity, error);
        self.failure.get_or_insert_with(|| Box::new(error));
    }

    /// Returns the answer that was given to an earlier request with this key.
    pub(crate) fn kept_answer<T: DeserializeOwned>(
        &self,
        key: &IdempotencyKey,
    ) -> Option<Result<T, rmp_serde::decode::Error>> {
        let answer = self.answers.get(key, self.store.wall_clock())?;
        Some(rmp_serde::from_slice(answer))
    }

    /// Adds an answer to the batch of the current message.
    pub(crate) fn keep_answer<T: Serialize>(&mut self, key: &IdempotencyKey, answer: &T) {
        match rmp_serde::to_vec_named(answer) {
            Ok(answer) => {
                let now = self.store.wall_clock();
                self.answers.keep(key.clone(), answer, now, &mut self.batch);
            }
            Err(error) => self.fail_to_encode(&error),
        }
    }

    /// Sets a reminder with the next write.
    pub(crate) fn set_reminder<T: Serialize>(
        &mut self,
        name: &str,
        after: Duration,
        payload: &T,
        limit: usize,
    ) -> Result<(), ReminderError> {
        let Some(payload) = self.encode_payload(payload) else {
            return Ok(());
        };
        let due = self.store.wall_clock().saturating_add(after);
        let owner = (&self.entity, limit);
        self.reminders
            .set(owner, name, due, payload, &mut self.batch)
    }

    /// Encodes a payload. A failure ends the incarnation.
    pub(crate) fn encode_payload<T: Serialize>(&mut self, payload: &T) -> Option<Vec<u8>> {
        let encoded = rmp_serde::to_vec_named(payload);
        let encoded = encoded.map_err(|error| {
            let error = not_encoded(&self.entity, &error);
            self.failure.get_or_insert_with(|| Box::new(error));
        });
        encoded.ok()
    }

    /// Cancels a reminder with the next write. Returns `false` if there is none.
    pub(crate) fn cancel_reminder(&mut self, name: &str) -> bool {
        self.reminders.cancel(name, &mut self.batch)
    }

    pub(crate) const fn reminders(&self) -> &StoredReminders {
        &self.reminders
    }

    /// Takes the earliest reminder, if it is due; the next write removes it.
    pub(crate) fn take_due_reminder(&mut self) -> Option<Reminder> {
        let now = self.store.wall_clock();
        self.reminders.take_due(now, &mut self.batch)
    }

    /// Returns `true` if a reminder is due.
    pub(crate) fn is_reminder_due(&self) -> bool {
        let next = self.reminders.next_due();
        next.is_some_and(|due| due <= self.store.wall_clock())
    }

    /// Returns the time at which a reminder or an attempt to deliver is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let (reminder, attempt) = (self.reminders.next_due(), self.outbox.next_attempt());
        reminder.into_iter().chain(attempt).min()
    }

    /// Returns the time until a reminder or an attempt to deliver is due.
    pub(crate) fn until_next_due(&self) -> Option<Duration> {
        let due = self.next_due()?;
        Some(due.saturating_sub(self.store.wall_clock()))
    }

    /// Returns the time from which the entity has to be awake.
    fn next_wake(&self) -> Option<Duration> {
        let (reminder, outbox) = (self.reminders.next_due(), self.outbox.wake());
        reminder.into_iter().chain(outbox).min()
    }

    /// Tells the host when the entity has to be awake.
    pub(crate) fn publish_wake(&self) {
        if let Some(hosted) = &self.hosted {
            hosted.set_wake(self.next_wake());
        }
    }

    /// Returns `true` if there are changes besides the state.
    pub(crate) fn has_changes(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Makes the state and everything else of the entity durable. Does nothing if it already is.
    pub(crate) async fn save<S: Serialize>(&mut self, state: &S) -> Result<(), DurableError> {
        if let Some(failure) = self.failure.take() {
            return Err(*failure);
        }
        let mut batch = std::mem::take(&mut self.batch);
        if seeded(Bug::AnswersNotStored) {
            batch = Batch::new();
        }
        let value = encode(&self.entity, state, self.state_length)?;
        let digest = xxh3_128(&value);
        self.state_length = value.len();
        if digest != self.saved {
            batch.put(Table::State, [], value);
        }
        self.append(batch).await?;
        self.saved = digest;
        Ok(())
    }

    /// Stores what is known of the outbox, before the activation ends in order. If that fails, the
    /// stored wake-up time is early, and what was acknowledged is delivered again.
    pub(crate) async fn save_outbox(&mut self, next_seed: impl FnMut() -> u64) {
        self.batch = Batch::new();
        self.settle_outbox(next_seed);
        let mut batch = std::mem::take(&mut self.batch);
        let wake = self.next_wake();
        if wake != self.wake && self.outbox.len() > 0 {
            batch.set_wake(wake);
        }
        if let Err(error) = self.append(batch).await {
            tracing::debug!(%error, "outbox not saved before the end of an activation");
        }
    }

    /// Appends a batch, with the wake-up time if it changes. A change to a later time is not worth
    /// a write of its own.
    async fn append(&mut self, mut batch: Batch) -> Result<(), DurableError> {
        let wake = self.next_wake();
        let is_earlier = wake.is_some_and(|wake| self.wake.is_none_or(|stored| wake < stored));
        let changes = wake != self.wake && (is_earlier || !batch.is_empty());
        if changes && !seeded(Bug::WakeNotStored) {
            batch.set_wake(wake);
        }
        if batch.is_empty() {
            return Ok(());
        }
        let appended = self
            .store
            .append(&self.entity, self.sequence, self.fence, batch);
        self.sequence = appended.await.map_err(|source| DurableError::NotSaved {
            entity: self.entity.clone(),
            sequence: self.sequence.next(),
            source,
        })?;
        self.wake = wake;
        self.publish_wake();
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.store.release(&self.entity, self.fence);
    }
}

/// Encodes a state for its row, which is expected to have this length.
fn encode<S: Serialize>(
    entity: &EntityId,
    state: &S,
    length: usize,
) -> Result<Vec<u8>, DurableError> {
    let mut value = Vec::with_capacity(length);
    value.push(ENCODING);
    let encoded = rmp_serde::encode::write_named(&mut value, state);
    encoded.map_err(|error| not_encoded(entity, &error))?;
    Ok(value)
}

fn not_encoded(entity: &EntityId, error: &impl fmt::Display) -> DurableError {
    DurableError::NotEncoded {
        entity: entity.clone(),
        detail: error.to_string(),
    }
}
