//! The events of one activation: how they are read, applied and written.
//!
//! ```text
//!  event       | encoding 1 | version 4 | MessagePack |                   key: event number 8
//!  snapshot    | encoding 1 | version 4 | event number 8 | MessagePack |  key: empty
//! ```

use super::{EventRetention, EventSourced, StoredPart, StoredValue};
use crate::actor::DurableError;
use crate::journal::{ENCODING, Journal};
use crate::seeded_bug::{Bug, seeded};
use crate::store::{EventNumber, Row, Table};

/// Maximum number of events that one write removes. More wait only after a change of the retention.
const MAX_TRIM: u64 = 10_000;

/// The state, and the numbers of its events.
pub(super) struct EventLog<A: EventSourced> {
    state: A::State,
    /// The last event that was applied.
    last: EventNumber,
    /// The last event that the stored snapshot covers; 0 if there is none.
    covered: EventNumber,
    /// The first event that may be stored.
    first: EventNumber,
    /// The rows of the current message's events, which are the last ones.
    pending: Vec<Vec<u8>>,
}

/// A row of an event or a snapshot that was found.
struct FoundPart<'a> {
    part: StoredPart,
    version: u32,
    payload: &'a [u8],
}

impl<A: EventSourced> EventLog<A> {
    /// Makes the state from the stored snapshot and the events after it.
    pub(super) async fn load(journal: &mut Journal) -> Result<Self, DurableError> {
        let snapshot = journal.take_snapshot();
        let snapshot = match &snapshot {
            Some(row) => Some(
                found_snapshot(row)
                    .ok_or_else(|| unreadable(journal, "malformed snapshot".to_owned()))?,
            ),
            None => None,
        };
        let (state, covered) = match &snapshot {
            Some((number, found)) => match decode_snapshot::<A>(found, journal)? {
                Some(state) => (state, *number),
                None => Default::default(),
            },
            None => Default::default(),
        };
        let from = match A::RETENTION {
            EventRetention::All => covered.next(),
            // Of earlier events, there are some if all were kept before.
            EventRetention::SinceSnapshot => EventNumber(1),
        };
        let from = match seeded(Bug::EventReplayedTwice) {
            true => covered,
            false => from,
        };
        let rows = journal.events(from).await?;
        let mut log = Self {
            state,
            last: covered,
            covered,
            first: covered.next(),
            pending: Vec::new(),
        };
        let missing = |event: EventNumber| match &snapshot {
            // The snapshot was left out.
            Some((number, found)) if event <= *number => {
                let detail = format!("no conversion, and event {event} is not stored");
                not_decoded(found, journal, detail)
            }
            _ => unreadable(journal, format!("event {event} is missing")),
        };
        for (index, row) in rows.iter().enumerate() {
            let (number, found) = found_event(row)
                .ok_or_else(|| unreadable(journal, "malformed event".to_owned()))?;
            if index == 0 {
                log.first = number;
            }
            let is_covered = number <= covered;
            if is_covered && !(seeded(Bug::EventReplayedTwice) && number == covered) {
                continue;
            }
            if !is_covered && number != log.last.next() {
                return Err(missing(log.last.next()));
            }
            A::apply(&mut log.state, decode_event::<A>(&found, journal)?);
            log.last = number;
        }
        match &snapshot {
            Some((number, _)) if log.last < *number => Err(missing(log.last.next())),
            _ => Ok(log),
        }
    }

    pub(super) const fn state(&self) -> &A::State {
        &self.state
    }

    pub(super) const fn last(&self) -> EventNumber {
        self.last
    }

    /// Encodes an event, applies it and adds it to those of the current message.
    pub(super) fn emit(&mut self, event: &A::Event, journal: &mut Journal) {
        let mut row = header(A::VERSION);
        let front = row.len();
        if let Err(error) = rmp_serde::encode::write_named(&mut row, event) {
            return journal.fail_to_encode(&error);
        }
        // What is applied is what a replay will apply, whatever the implementation of serde does.
        match rmp_serde::from_slice(&row[front..]) {
            Ok(event) => {
                A::apply(&mut self.state, event);
                self.last = self.last.next();
                self.pending.push(row);
            }
            Err(error) => {
                journal.fail_to_encode(&format!("event cannot be decoded again: {error}"));
            }
        }
    }

    /// Adds the events of the current message to its write, and a snapshot if one is due.
    ///
    /// In one batch, the snapshot is never ahead of its events.
    pub(super) async fn add_to_write(&mut self, journal: &mut Journal) -> Result<(), DurableError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut number = EventNumber(self.last.0 - self.pending.len() as u64);
        if self.last.0 - self.covered.0 >= A::SNAPSHOT_EVERY {
            if seeded(Bug::SnapshotAheadOfJournal) {
                let batch = std::mem::take(journal.batch());
                self.put_snapshot(journal);
                journal.save(&()).await?;
                *journal.batch() = batch;
            }
            self.put_snapshot(journal);
            if A::RETENTION == EventRetention::SinceSnapshot {
                self.trim(number, journal);
                self.pending.clear();
            }
        }
        for row in self.pending.drain(..) {
            if number < self.last && !seeded(Bug::EventsShareNumber) {
                number = number.next();
            }
            journal.batch().put(Table::Events, number.row_key(), row);
        }
        Ok(())
    }

    fn put_snapshot(&mut self, journal: &mut Journal) {
        let mut row = header(A::SNAPSHOT_VERSION);
        row.extend(self.last.row_key());
        match rmp_serde::encode::write_named(&mut row, &self.state) {
            Ok(()) => journal.batch().put(Table::Snapshot, [], row),
            Err(error) => journal.fail_to_encode(&error),
        }
        self.covered = self.last;
    }

    /// Removes the stored events, which end with a number.
    fn trim(&mut self, up_to: EventNumber, journal: &mut Journal) {
        let end = up_to.0.min(self.first.0.saturating_add(MAX_TRIM - 1));
        for number in self.first.0..=end {
            let key = EventNumber(number).row_key();
            journal.batch().remove(Table::Events, key);
        }
        self.first = match end {
            // The events of the current message are not stored.
            end if end == up_to.0 => self.last.next(),
            end => EventNumber(end).next(),
        };
    }
}

/// Returns the beginning of a row.
fn header(version: u32) -> Vec<u8> {
    let mut row = vec![ENCODING];
    row.extend(version.to_be_bytes());
    row
}

fn split_header(row: &[u8]) -> Option<(u32, &[u8])> {
    let (version, rest) = row.strip_prefix(&[ENCODING])?.split_first_chunk()?;
    Some((u32::from_be_bytes(*version), rest))
}

fn found_event(row: &Row) -> Option<(EventNumber, FoundPart<'_>)> {
    let number = EventNumber(u64::from_be_bytes(row.key.as_slice().try_into().ok()?));
    let (version, payload) = split_header(&row.value)?;
    let part = StoredPart::Event(number);
    Some((
        number,
        FoundPart {
            part,
            version,
            payload,
        },
    ))
}

fn found_snapshot(row: &[u8]) -> Option<(EventNumber, FoundPart<'_>)> {
    let (version, rest) = split_header(row)?;
    let (number, payload) = rest.split_first_chunk()?;
    let number = EventNumber(u64::from_be_bytes(*number));
    let part = StoredPart::Snapshot(number);
    Some((
        number,
        FoundPart {
            part,
            version,
            payload,
        },
    ))
}

fn decode_event<A: EventSourced>(
    found: &FoundPart<'_>,
    journal: &Journal,
) -> Result<A::Event, DurableError> {
    check_version(found, A::VERSION, journal)?;
    let decoded = match found.version {
        // The copy that an upcaster takes is not needed.
        version if version == A::VERSION => {
            rmp_serde::from_slice(found.payload).map_err(|error| error.to_string())
        }
        version => upcast_event::<A>(version, found.payload),
    };
    decoded.map_err(|detail| not_decoded(found, journal, detail))
}

fn upcast_event<A: EventSourced>(version: u32, payload: &[u8]) -> Result<A::Event, String> {
    let mut value = StoredValue::from_bytes(payload);
    let end = match seeded(Bug::UpcasterLeftOut) {
        true => version + 1,
        false => A::VERSION,
    };
    for from in version..end {
        value = A::upcast_event(from, value)
            .map_err(|error| format!("conversion from version {from}: {error}"))?;
    }
    value.decode().map_err(|error| error.to_string())
}

/// Returns `None` if the actor has no use for a snapshot of this version.
fn decode_snapshot<A: EventSourced>(
    found: &FoundPart<'_>,
    journal: &Journal,
) -> Result<Option<A::State>, DurableError> {
    check_version(found, A::SNAPSHOT_VERSION, journal)?;
    let mut value = StoredValue::from_bytes(found.payload);
    for from in found.version..A::SNAPSHOT_VERSION {
        match A::upcast_snapshot(from, value) {
            Ok(Some(next)) => value = next,
            Ok(None) => return Ok(None),
            Err(error) => {
                let detail = format!("conversion from version {from}: {error}");
                return Err(not_decoded(found, journal, detail));
            }
        }
    }
    let decoded = value.decode().map(Some);
    decoded.map_err(|error| not_decoded(found, journal, error.to_string()))
}

/// Refuses a part that was written by a later version of the program.
fn check_version(found: &FoundPart<'_>, known: u32, journal: &Journal) -> Result<(), DurableError> {
    match found.version {
        version if version > known => Err(DurableError::UnknownVersion {
            entity: journal.entity().clone(),
            sequence: journal.sequence(),
            part: found.part,
            version,
            known,
        }),
        _ => Ok(()),
    }
}

fn not_decoded(found: &FoundPart<'_>, journal: &Journal, detail: String) -> DurableError {
    DurableError::NotDecoded {
        entity: journal.entity().clone(),
        sequence: journal.sequence(),
        part: found.part,
        version: found.version,
        detail,
    }
}

fn unreadable(journal: &Journal, detail: String) -> DurableError {
    DurableError::Unreadable {
        entity: journal.entity().clone(),
        sequence: journal.sequence(),
        detail,
    }
}
