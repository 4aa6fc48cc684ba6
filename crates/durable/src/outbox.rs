//! Messages between entities that survive the process: the outbox of the sender, and the numbers
//! that the receiver has taken.
//!
//! # The protocol
//!
//! ```text
//!  sender                                              receiver
//!  handle: state', message n ─▶ one batch
//!  deliver n ───────────────────────────────────────▶ n ≤ last number of the sender? ──▶ ack n
//!                                                      receive: state'', last = n ─▶ one batch
//!  remove n ◀───────────────────────── ack n ◀──────── after that batch
//! ```
//!
//! 1. The numbers of an entity rise by one for each message that it sends, to whomever, and are
//!    never used again: the next one is stored.
//! 2. The messages to one receiver are a *lane*. Only its first message is under way, so the
//!    receiver takes the messages of a lane in the order of their numbers.
//! 3. A message leaves the outbox only after an acknowledgement, and the receiver acknowledges only
//!    what its store has. So a message may arrive again, and is not lost.
//! 4. The receiver stores the number of the last message of each sender together with its effect,
//!    and acknowledges a message that is not newer without an effect.
//!
//! # The end of an attempt
//!
//! Each attempt to deliver reports to the sender, also when its task is aborted. Without an
//! acknowledgement, the lane waits for its next attempt. While the sender is awake, a timer starts
//! it; while it sleeps, the wake-up time that its host knows, and after a restart of the process,
//! the wake-up time in the store. The stored time may be too early, and is not later than the next
//! attempt, so a write that moves it to a later time can be left out.

mod delivery;
mod inbox;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use strowger::Context;

use crate::actor::{Durable, DurableActor};
use crate::journal::Journal;
use crate::reminder::PayloadError;
use crate::seeded_bug::{Bug, seeded};
use crate::store::{Batch, EntityId, Row, Table};
pub(crate) use delivery::{DeliveryFailure, DeliveryFuture, ENTER_LIMIT};
use delivery::{LaneAttempt, LaneReport};
pub use inbox::InboxWindow;
pub(crate) use inbox::{InboundMessage, InboundQueue, Inbox};

/// A message of another entity, which was sent with
/// [`DurableContext::send_durable`](crate::DurableContext::send_durable).
#[derive(Clone)]
pub struct Delivery {
    sender: EntityId,
    number: u64,
    payload: Arc<[u8]>,
}

impl Delivery {
    /// Returns the entity that sent the message.
    #[must_use]
    pub const fn sender(&self) -> &EntityId {
        &self.sender
    }

    /// Returns the number of the message, which no other message of its sender has. Later messages
    /// have higher numbers.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Decodes the message.
    ///
    /// # Errors
    /// Fails if the message is not of this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        PayloadError::decode(&self.payload)
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Delivery({} of {})", self.number, self.sender)
    }
}

/// The limits of the messages that an entity has sent and that are not delivered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxLimits {
    /// Maximum number of messages.
    pub messages: usize,
    /// Maximum size of all messages together, encoded, in bytes.
    pub bytes: usize,
    /// Maximum size of one message, encoded, in bytes. A store accepts rows of up to
    /// [`Batch::MAX_VALUE`].
    pub message_bytes: usize,
}

impl OutboxLimits {
    /// 1000 messages of at most 1 MiB each and 8 MiB together.
    pub const DEFAULT: Self = Self {
        messages: 1000,
        bytes: 8 << 20,
        message_bytes: 1 << 20,
    };
}

/// The reason why a message was not put into the outbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// As many messages of the sender wait as may.
    #[error(
        "{entity}: message to {receiver} not sent: {limit} messages are not delivered yet, the \
         limit (`OUTBOX.messages`); send again when receivers have taken some, or raise the limit"
    )]
    TooManyMessages {
        /// The entity that sends.
        entity: EntityId,
        /// The entity that the message is for.
        receiver: EntityId,
        /// Maximum number of messages.
        limit: usize,
    },
    /// The messages of the sender that wait are too large together.
    #[error(
        "{entity}: message of {size} bytes to {receiver} not sent: {used} bytes are not delivered \
         yet, limit is {limit} (`OUTBOX.bytes`); send again when receivers have taken some, or \
         raise the limit"
    )]
    TooManyBytes {
        /// The entity that sends.
        entity: EntityId,
        /// The entity that the message is for.
        receiver: EntityId,
        /// The size of the message, in bytes.
        size: usize,
        /// The size of the messages that wait, in bytes.
        used: usize,
        /// Maximum size of all messages, in bytes.
        limit: usize,
    },
    /// The message is too large.
    #[error(
        "{entity}: message to {receiver} is {size} bytes, limit is {limit} \
         (`OUTBOX.message_bytes`); send less, or raise the limit"
    )]
    MessageTooLarge {
        /// The entity that sends.
        entity: EntityId,
        /// The entity that the message is for.
        receiver: EntityId,
        /// The size of the message, in bytes.
        size: usize,
        /// Maximum size of a message, in bytes.
        limit: usize,
    },
    /// The sender is not an entity of a host, which would deliver the message.
    #[error(
        "{entity}: message to {receiver} not sent: the sender has no host; start its kind with \
         `Entities`"
    )]
    NoHost {
        /// The entity that sends.
        entity: EntityId,
        /// The entity that the message is for.
        receiver: EntityId,
    },
}

/// Minimum and maximum time between two attempts to deliver a message.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
/// The age from which a message that is not delivered is logged.
const LOGGED_AGE: Duration = Duration::from_secs(1);
/// Minimum time between two log events about the messages to one receiver.
const LOG_PERIOD: Duration = Duration::from_secs(60);
/// Maximum number of messages that one attempt delivers to a receiver, one after the other.
const ATTEMPT_MESSAGES: usize = 32;

/// The messages of an entity that are not delivered yet, in memory.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The number of the next message.
    next: u64,
    lanes: BTreeMap<EntityId, Lane>,
    messages: usize,
    bytes: usize,
    /// The reports of attempts that have ended, once there was an attempt.
    reports: Option<Arc<Mutex<Vec<LaneReport>>>>,
}

/// The messages to one receiver, which is not empty.
struct Lane {
    messages: VecDeque<OutboxMessage>,
    state: LaneState,
    /// The time of the last log event.
    logged: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
enum LaneState {
    /// The next attempt starts at this time.
    Waiting(Duration),
    /// An attempt that started at this time has not ended.
    UnderWay(Duration),
}

struct OutboxMessage {
    number: u64,
    /// The time at which it was sent.
    at: Duration,
    payload: Arc<[u8]>,
}

impl Outbox {
    /// The name of the tasks that deliver.
    pub(crate) const TASK: &str = "outbox";

    /// Adds a row that was stored, at this time. Returns `None` if it is malformed.
    pub(crate) fn load(&mut self, row: &Row, now: Duration) -> Option<()> {
        if row.key.is_empty() {
            self.next = u64::from_be_bytes(row.value.as_slice().try_into().ok()?);
            return Some(());
        }
        let number = u64::from_be_bytes(row.key.as_slice().try_into().ok()?);
        let (at, rest) = row.value.split_first_chunk()?;
        let (receiver, payload) = split_entity(rest)?;
        let message = OutboxMessage {
            number,
            at: Duration::from_millis(u64::from_be_bytes(*at)),
            payload: payload.into(),
        };
        self.insert(receiver, message, whole_millis(now));
        Some(())
    }

    fn insert(&mut self, receiver: EntityId, message: OutboxMessage, now: Duration) {
        self.messages += 1;
        self.bytes += message.payload.len();
        let lane = self.lanes.entry(receiver).or_insert_with(|| Lane {
            messages: VecDeque::new(),
            state: LaneState::Waiting(now),
            logged: None,
        });
        lane.messages.push_back(message);
    }

    /// Adds a message, unless it exceeds a limit.
    fn send(
        &mut self,
        (entity, limits): (&EntityId, OutboxLimits),
        receiver: &EntityId,
        payload: Vec<u8>,
        now: Duration,
        batch: &mut Batch,
    ) -> Result<(), OutboxError> {
        let (entity, size) = (|| entity.clone(), payload.len());
        if size > limits.message_bytes {
            return Err(OutboxError::MessageTooLarge {
                entity: entity(),
                receiver: receiver.clone(),
                size,
                limit: limits.message_bytes,
            });
        }
        if self.messages >= limits.messages {
            return Err(OutboxError::TooManyMessages {
                entity: entity(),
                receiver: receiver.clone(),
                limit: limits.messages,
            });
        }
        if self.bytes + size > limits.bytes {
            return Err(OutboxError::TooManyBytes {
                entity: entity(),
                receiver: receiver.clone(),
                size,
                used: self.bytes,
                limit: limits.bytes,
            });
        }
        let (number, now) = (self.next, whole_millis(now));
        self.next += 1;
        let mut value = millis(now).to_vec();
        push_entity(&mut value, receiver);
        value.extend(&payload);
        batch.put(Table::Outbox, [], self.next.to_be_bytes());
        if !seeded(Bug::OutboxMessageNotStored) {
            batch.put(Table::Outbox, number.to_be_bytes(), value);
        }
        let message = OutboxMessage {
            number,
            at: now,
            payload: payload.into(),
        };
        self.insert(receiver.clone(), message, now);
        Ok(())
    }

    /// Returns the number of messages.
    pub(crate) const fn len(&self) -> usize {
        self.messages
    }

    /// Returns the time of the next attempt, if there is one that has not started.
    pub(crate) fn next_attempt(&self) -> Option<Duration> {
        let due = |lane: &Lane| match lane.state {
            LaneState::Waiting(due) => Some(due),
            LaneState::UnderWay(_) => None,
        };
        self.lanes.values().filter_map(due).min()
    }

    /// Returns the time from which the entity has to be awake to deliver its messages.
    pub(crate) fn wake(&self) -> Option<Duration> {
        let time = |lane: &Lane| match lane.state {
            LaneState::Waiting(time) | LaneState::UnderWay(time) => time,
        };
        self.lanes.values().map(time).min()
    }

    /// Starts the attempts that are due. All messages are stored.
    fn start_due(&mut self, sender: &EntityId, now: Duration) -> Vec<LaneAttempt> {
        let mut attempts = Vec::new();
        for (receiver, lane) in &mut self.lanes {
            let LaneState::Waiting(due) = lane.state else {
                continue;
            };
            // The wall clock may have been set back.
            if due > now && due <= now + BACKOFF[1] {
                continue;
            }
            lane.state = LaneState::UnderWay(due.min(now));
            let messages = lane.messages.iter().take(ATTEMPT_MESSAGES);
            let messages = messages.map(|message| Delivery {
                sender: sender.clone(),
                number: message.number,
                payload: Arc::clone(&message.payload),
            });
            let reports = self.reports.get_or_insert_default();
            attempts.push(LaneAttempt::new(
                receiver.clone(),
                messages.collect(),
                Arc::clone(reports),
            ));
        }
        attempts
    }

    /// Removes the messages that were acknowledged, and schedules further attempts. Attempts since
    /// `began` count for the backoff.
    fn settle(
        &mut self,
        entity: &EntityId,
        (now, began): (Duration, Duration),
        mut next_seed: impl FnMut() -> u64,
        batch: &mut Batch,
    ) {
        let reports = self.reports.as_ref();
        let reports = reports.map(|reports| std::mem::take(&mut *reports.lock()));
        for report in reports.into_iter().flatten() {
            let Some(lane) = self.lanes.get_mut(&report.receiver) else {
                continue;
            };
            while let Some(first) = lane.messages.front()
                && report.acknowledged.is_some_and(|last| first.number <= last)
            {
                batch.remove(Table::Outbox, first.number.to_be_bytes());
                self.messages -= 1;
                self.bytes -= first.payload.len();
                lane.messages.pop_front();
            }
            let Some(first) = lane.messages.front() else {
                self.lanes.remove(&report.receiver);
                continue;
            };
            let Some(failure) = report.failure else {
                lane.state = LaneState::Waiting(whole_millis(now));
                continue;
            };
            if seeded(Bug::FailedDeliveryNotRepeated) {
                continue;
            }
            let age = now.saturating_sub(first.at.max(began));
            lane.state = LaneState::Waiting(whole_millis(now + backoff(age, next_seed())));
            let is_quiet = lane
                .logged
                .is_some_and(|logged| now.saturating_sub(logged) < LOG_PERIOD);
            if age >= LOGGED_AGE && !is_quiet {
                lane.logged = Some(now);
                let (receiver, number) = (&report.receiver, first.number);
                let waiting = lane.messages.len();
                tracing::warn!(%entity, %receiver, number, waiting, ?age, error = %failure,
                    "message to an entity not delivered yet");
            }
        }
    }
}

/// Returns the time to the next attempt for a message of this age: with each failed attempt, the
/// age grows by a half to the whole of itself.
fn backoff(age: Duration, seed: u64) -> Duration {
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
    let whole = age.clamp(BACKOFF[0], BACKOFF[1]);
    let drawn = u32::try_from(SplitMix64::seed_from_u64(seed).next_u64() >> 32);
    let part = f64::from(drawn.unwrap_or_default()) / 2_f64.powi(32);
    whole.mul_f64(0.5 + part / 2.0)
}

impl Journal {
    /// Puts a message into the outbox with the next write.
    pub(crate) fn send_durable<T: Serialize>(
        &mut self,
        receiver: &EntityId,
        message: &T,
        limits: OutboxLimits,
    ) -> Result<(), OutboxError> {
        if self.hosted().is_none() {
            let (entity, receiver) = (self.entity().clone(), receiver.clone());
            return Err(OutboxError::NoHost { entity, receiver });
        }
        let Some(payload) = self.encode_payload(message) else {
            return Ok(());
        };
        let now = self.store.wall_clock();
        let sender = (&self.entity, limits);
        self.outbox
            .send(sender, receiver, payload, now, &mut self.batch)
    }

    /// Adds what the ended attempts have led to, to the next write.
    pub(crate) fn settle_outbox(&mut self, next_seed: impl FnMut() -> u64) {
        let began = self.hosted().map(crate::entity::Hosted::began);
        let times = (self.store.wall_clock(), began.unwrap_or_default());
        self.outbox
            .settle(&self.entity, times, next_seed, &mut self.batch);
    }

    /// Starts the attempts to deliver that are due. All messages have been stored.
    pub(crate) fn deliver_outbox<A: DurableActor>(&mut self, cx: &mut Context<Durable<A>>) {
        let Some(hosted) = self.hosted.clone() else {
            return;
        };
        if self.outbox.len() == 0 {
            return;
        }
        let now = self.store.wall_clock();
        for attempt in self.outbox.start_due(&self.entity, now) {
            cx.task(Outbox::TASK, attempt.run(hosted.clone()));
        }
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lanes.keys()).finish()
    }
}

/// Cuts off fractions of a millisecond, which rows and wake-up times do not have.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Encodes a time for a row.
fn millis(time: Duration) -> [u8; 8] {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .to_be_bytes()
}

/// Appends the name of an entity to a row.
fn push_entity(row: &mut Vec<u8>, entity: &EntityId) {
    for part in [entity.kind(), entity.key()] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        row.extend(length.to_be_bytes());
        row.extend(part.as_bytes());
    }
}

/// Splits the name of an entity off a row. Returns `None` if the row is malformed.
fn split_entity(row: &[u8]) -> Option<(EntityId, &[u8])> {
    let part = |row: &'_ [u8]| -> Option<(Arc<str>, usize)> {
        let (length, rest) = row.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let text = std::str::from_utf8(rest.get(..length)?).ok()?;
        Some((text.into(), 2 + length))
    };
    let (kind, length) = part(row)?;
    let row = &row[length..];
    let (key, length) = part(row)?;
    Some((EntityId::new(kind, key).ok()?, &row[length..]))
}

/// Returns the encoded message in a row of the outbox.
pub(crate) fn payload(value: &[u8]) -> Option<&[u8]> {
    Some(split_entity(value.get(8..)?)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_with_the_age_and_is_bounded() {
        let seconds = Duration::from_secs_f64;
        for (age, low, high) in [(0.0, 0.05, 0.1), (4.0, 2.0, 4.0), (9e9, 15.0, 30.0)] {
            let all: Vec<_> = (0..100).map(|seed| backoff(seconds(age), seed)).collect();
            let bounds = seconds(low)..=seconds(high);
            assert!(all.iter().all(|one| bounds.contains(one)), "{all:?}");
            let spread = *all.iter().max().expect("some") - *all.iter().min().expect("some");
            assert!(spread > seconds((high - low) / 2.0), "{spread:?}");
        }
    }

    #[test]
    fn payload_is_behind_the_time_and_the_receiver() {
        let mut row = millis(Duration::from_secs(7)).to_vec();
        let receiver = EntityId::new("order", "7").expect("a short name");
        push_entity(&mut row, &receiver);
        let front = row.len();
        row.extend(b"message");
        assert_eq!(payload(&row), Some(&b"message"[..]));
        assert_eq!(payload(&row[..front]), Some(&[][..]));
        for cut in 0..front {
            assert_eq!(payload(&row[..cut]), None, "{cut}");
        }
    }
}
