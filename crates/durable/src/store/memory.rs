//! A store in memory, for tests: deterministic, with delays and faults.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use tokio::time::Instant;

use super::{
    Batch, EntityHead, EntityId, EntityRows, Fence, Row, RowSelection, Sequence, Store, StoreError,
    StoreFault, StoreFuture, Table, Wake,
};

/// A store in memory.
///
/// Clones share their contents. Nothing survives the process; [`MemoryStore::reopen`] stands for
/// its restart. It is for tests: its memory grows with each operation, because
/// [`MemoryStore::history`] has them all.
///
/// With [`MemoryStore::seeded`], each operation reaches the store after a delay of its own and is
/// acknowledged after another, on tokio's clock. Operations of different callers overtake each
/// other, and an operation whose caller was killed still takes effect: the behavior of a store
/// behind a network, which is harder than that of a disk.
#[derive(Debug, Clone)]
pub struct MemoryStore(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    entities: BTreeMap<EntityId, Entity>,
    /// Operations that were sent and have not reached the store, by number.
    in_flight: BTreeMap<u64, InFlight>,
    /// Results of operations that have reached the store, until their callers take them.
    results: BTreeMap<u64, Result<u64, StoreError>>,
    next_operation: u64,
    delays: Option<Delays>,
    faults: VecDeque<StoreFault>,
    refusal: Option<StoreError>,
    history: Vec<StoreEvent>,
    /// The wall clock, and the time at which it was first read after it was set. It runs from then
    /// on; so a test that sets it outside of its virtual time is still deterministic.
    wall_clock: (Duration, Option<Instant>),
}

#[derive(Debug, Clone, Default)]
struct Entity {
    head: EntityHead,
    rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    is_damaged: bool,
}

#[derive(Debug)]
struct InFlight {
    due: Instant,
    entity: EntityId,
    operation: Operation,
}

#[derive(Debug, Clone)]
enum Operation {
    Lease,
    Append(Sequence, Fence, Batch),
}

#[derive(Debug)]
struct Delays {
    random: SplitMix64,
    maximum: Duration,
}

impl Delays {
    fn draw(&mut self) -> Duration {
        let nanos = u64::try_from(self.maximum.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.next_u64() % nanos.max(1))
    }
}

/// An operation that took effect, for a checker of histories.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// An entity got a new holder.
    Leased {
        /// The entity that was leased.
        entity: EntityId,
        /// The fence of the new holder.
        fence: Fence,
    },
    /// A batch was appended.
    Appended {
        /// The entity that the batch is for.
        entity: EntityId,
        /// The sequence of the batch.
        sequence: Sequence,
        /// The fence of its writer.
        fence: Fence,
    },
}

impl MemoryStore {
    /// Creates an empty store without delays.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Creates an empty store whose operations take up to `maximum` to arrive, and as long to be
    /// acknowledged, as a seed determines.
    #[must_use]
    pub fn seeded(seed: u64, maximum: Duration) -> Self {
        let delays = Delays {
            random: SplitMix64::seed_from_u64(seed),
            maximum,
        };
        Self(Arc::new(Mutex::new(Contents {
            delays: Some(delays),
            ..Contents::default()
        })))
    }

    /// Injects a fault into the next append that reaches the store and has no fault yet.
    pub fn inject(&self, fault: StoreFault) {
        self.0.lock().faults.push_back(fault);
    }

    /// Closes this store, and opens one with the same contents, as a restart of the process does.
    /// Operations that have not reached the store are lost.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let mut old = self.0.lock();
        old.refusal = Some(StoreError::Closed);
        old.in_flight.clear();
        Self(Arc::new(Mutex::new(Contents {
            entities: std::mem::take(&mut old.entities),
            delays: old.delays.take(),
            history: std::mem::take(&mut old.history),
            wall_clock: old.wall_clock,
            ..Contents::default()
        })))
    }

    /// Sets the wall clock, which begins at the Unix epoch otherwise. It runs with tokio's clock
    /// from the moment at which it is first read.
    pub fn set_wall_clock(&self, since_epoch: Duration) {
        self.0.lock().wall_clock = (since_epoch, None);
    }

    /// Returns the operations that took effect, in order.
    #[must_use]
    pub fn history(&self) -> Vec<StoreEvent> {
        self.0.lock().history.clone()
    }

    /// Sends an operation to the store, and waits until it is acknowledged.
    fn submit(&self, entity: &EntityId, operation: Operation) -> StoreFuture<u64> {
        let store = self.clone();
        let mut contents = self.0.lock();
        if contents.delays.is_none() {
            let result = contents.execute(entity, operation);
            return Box::pin(std::future::ready(result));
        }
        let now = Instant::now();
        let (arrives, acknowledged) = contents.draw_delays(now);
        let number = contents.next_operation;
        contents.next_operation += 1;
        let entity = entity.clone();
        contents.in_flight.insert(
            number,
            InFlight {
                due: arrives,
                entity,
                operation,
            },
        );
        drop(contents);
        Box::pin(async move {
            for at in [arrives, acknowledged] {
                tokio::time::sleep_until(at).await;
                store.0.lock().deliver(Instant::now());
            }
            let result = store.0.lock().results.remove(&number);
            result.unwrap_or(Err(StoreError::Closed))
        })
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Contents {
    /// Draws the time at which an operation that is sent now arrives, and the time of its
    /// acknowledgement.
    fn draw_delays(&mut self, now: Instant) -> (Instant, Instant) {
        let mut draw = || self.delays.as_mut().map_or(Duration::ZERO, Delays::draw);
        let arrives = now + draw();
        (arrives, arrives + draw())
    }

    /// Lets the operations arrive that are due.
    fn deliver(&mut self, now: Instant) {
        loop {
            let due = self.in_flight.iter().filter(|(_, one)| one.due <= now);
            let Some((&number, _)) = due.min_by_key(|(_, one)| one.due) else {
                return;
            };
            if let Some(arrived) = self.in_flight.remove(&number) {
                let result = self.execute(&arrived.entity, arrived.operation);
                self.results.insert(number, result);
            }
        }
    }

    fn execute(&mut self, entity: &EntityId, operation: Operation) -> Result<u64, StoreError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        match operation {
            Operation::Lease => {
                let head = &mut self.entities.entry(entity.clone()).or_default().head;
                head.fence = head.fence.next();
                let (entity, fence) = (entity.clone(), head.fence);
                self.history.push(StoreEvent::Leased { entity, fence });
                Ok(fence.0)
            }
            Operation::Append(expected, fence, batch) => {
                self.append(entity, expected, fence, batch)
            }
        }
    }

    fn append(
        &mut self,
        entity: &EntityId,
        expected: Sequence,
        fence: Fence,
        batch: Batch,
    ) -> Result<u64, StoreError> {
        batch.check_limits(entity)?;
        let there = self.entities.entry(entity.clone()).or_default();
        there.head.check(entity, expected, fence)?;
        let fault = self.faults.pop_front();
        if fault == Some(StoreFault::DiskFull) {
            let detail = "injected".into();
            return Err(StoreError::DiskFull { detail });
        }
        for change in batch.changes {
            let key = (change.table, change.key);
            match change.value {
                Some(value) => _ = there.rows.insert(key, value),
                None => _ = there.rows.remove(&key),
            }
        }
        there.head.sequence = expected.next();
        if let Some(wake) = batch.wake {
            there.head.wake = wake;
        }
        there.is_damaged |= fault == Some(StoreFault::Damage);
        self.history.push(StoreEvent::Appended {
            entity: entity.clone(),
            sequence: expected.next(),
            fence,
        });
        if fault == Some(StoreFault::SyncFailed) {
            let detail = "injected".into();
            let refusal = StoreError::Failed { detail };
            self.refusal = Some(refusal.clone());
            return Err(refusal);
        }
        Ok(expected.next().0)
    }

    fn read(&self, entity: &EntityId, selection: RowSelection) -> Result<EntityRows, StoreError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let Some(there) = self.entities.get(entity) else {
            return Ok(EntityRows::default());
        };
        let sequence = there.head.sequence;
        if there.is_damaged {
            return Err(StoreError::Damaged {
                entity: entity.clone(),
                sequence,
                detail: "injected".into(),
            });
        }
        let rows = there.rows.iter();
        let rows = rows.filter(|((table, key), _)| selection.has(*table, key));
        let rows = rows.map(|((table, key), value)| Row {
            table: *table,
            key: key.clone(),
            value: value.clone(),
        });
        Ok(EntityRows {
            sequence,
            rows: rows.collect(),
        })
    }
}

impl Store for MemoryStore {
    fn lease(&self, entity: &EntityId) -> StoreFuture<Fence> {
        let leased = self.submit(entity, Operation::Lease);
        Box::pin(async move { leased.await.map(Fence) })
    }

    fn read_selected(&self, entity: &EntityId, selection: RowSelection) -> StoreFuture<EntityRows> {
        let (store, entity) = (self.clone(), entity.clone());
        let mut contents = self.0.lock();
        let wait = contents.delays.is_some().then(|| {
            let (arrives, acknowledged) = contents.draw_delays(Instant::now());
            [arrives, acknowledged]
        });
        drop(contents);
        Box::pin(async move {
            let Some([arrives, acknowledged]) = wait else {
                return store.0.lock().read(&entity, selection);
            };
            tokio::time::sleep_until(arrives).await;
            let read = {
                let mut contents = store.0.lock();
                contents.deliver(Instant::now());
                contents.read(&entity, selection)
            };
            tokio::time::sleep_until(acknowledged).await;
            read
        })
    }

    fn append(
        &self,
        entity: &EntityId,
        expected: Sequence,
        fence: Fence,
        batch: Batch,
    ) -> StoreFuture<Sequence> {
        let appended = self.submit(entity, Operation::Append(expected, fence, batch));
        Box::pin(async move { appended.await.map(Sequence) })
    }

    fn list(&self, kind: &str, after: Option<&str>, limit: usize) -> StoreFuture<Vec<Arc<str>>> {
        let contents = self.0.lock();
        let found = match &contents.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(contents
                .entities
                .iter()
                .filter(|(entity, there)| {
                    entity.kind() == kind
                        && after.is_none_or(|after| entity.key() > after)
                        && there.head.sequence > Sequence(0)
                })
                .take(limit)
                .map(|(entity, _)| Arc::clone(&entity.key))
                .collect()),
        };
        Box::pin(std::future::ready(found))
    }

    fn wakes(&self, kind: &str, after: Option<&Wake>, limit: usize) -> StoreFuture<Vec<Wake>> {
        let contents = self.0.lock();
        let found = match &contents.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => {
                let all = contents.entities.iter();
                let all = all.filter(|(entity, _)| entity.kind() == kind);
                let mut wakes: Vec<Wake> = all
                    .filter_map(|(entity, there)| {
                        let (at, key) = (there.head.wake?, Arc::clone(&entity.key));
                        Some(Wake { at, key })
                    })
                    .filter(|wake| after.is_none_or(|after| wake > after))
                    .collect();
                wakes.sort();
                wakes.truncate(limit);
                Ok(wakes)
            }
        };
        Box::pin(std::future::ready(found))
    }

    fn wall_clock(&self) -> Duration {
        let mut contents = self.0.lock();
        let (set, since) = &mut contents.wall_clock;
        *set + since.get_or_insert_with(Instant::now).elapsed()
    }
}
