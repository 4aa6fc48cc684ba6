//! Slots for the realms of programs: a fixed number at a time, for the programs used most recently.
//!
//! For each program that waits for a slot, exactly one other is evicted: the one that has been idle
//! for longest, or the next to become idle if all are busy. An evicted program that gets a message
//! before it drops its realm keeps it, and another one is evicted instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger::ActorRef;
use tokio::sync::oneshot;

use super::stats::ProgramsWatch;
use super::{ProgramMessage, YieldRealm};

/// The limited slots for realms of programs.
#[derive(Debug)]
pub(super) struct RealmPool {
    state: Mutex<PoolState>,
    pub(super) watch: ProgramsWatch,
}

#[derive(Debug)]
struct PoolState {
    free: usize,
    /// Idle programs that were not evicted, least recently used first.
    idle: BTreeMap<u64, ActorRef<ProgramMessage>>,
    /// Number of evicted programs that have not dropped their realm yet.
    leaving: usize,
    /// Programs that wait for a slot, longest waiting first.
    waiting: BTreeMap<u64, oneshot::Sender<RealmSlot>>,
    /// The last number given out; it orders the idle and the waiting programs.
    last_number: u64,
}

/// A slot for one realm. On drop it passes to the longest waiting program, or becomes free.
#[derive(Debug)]
pub(super) struct RealmSlot {
    pool: Arc<RealmPool>,
    /// The key in the map of idle programs, unless the program is busy. A program whose key is not
    /// in the map was evicted.
    number: Option<u64>,
}

impl RealmPool {
    pub(super) fn new(residents: usize, watch: ProgramsWatch) -> Arc<Self> {
        let state = Mutex::new(PoolState {
            free: residents.max(1),
            idle: BTreeMap::new(),
            leaving: 0,
            waiting: BTreeMap::new(),
            last_number: 0,
        });
        Arc::new(Self { state, watch })
    }

    /// Takes a slot for one realm, waiting until one is free.
    pub(super) async fn acquire(self: &Arc<Self>) -> Option<RealmSlot> {
        let (waiting, slot) = oneshot::channel();
        let number = {
            let mut state = self.state.lock();
            if let Some(left) = state.free.checked_sub(1) {
                state.free = left;
                return Some(RealmSlot::new(self));
            }
            let number = state.next_number();
            state.waiting.insert(number, waiting);
            state.evict_one();
            number
        };
        let _waits = PoolWaiter(self, number);
        slot.await.ok()
    }
}

/// A waiting program, removed from the queue on drop.
struct PoolWaiter<'a>(&'a RealmPool, u64);

impl Drop for PoolWaiter<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting.remove(&self.1);
    }
}

impl PoolState {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns `true` if another program must be evicted.
    fn needs_eviction(&self) -> bool {
        self.waiting.len() > self.leaving
    }

    /// Evicts an idle program, if one must go. If none is idle, the next program to become idle
    /// evicts itself.
    fn evict_one(&mut self) {
        if !self.needs_eviction() {
            return;
        }
        // A program with a full mailbox is not idle, and one that has ended frees its slot anyway.
        let mut idle = self.idle.iter();
        let evicted = idle.find(|(_, program)| program.try_tell(YieldRealm).is_ok());
        if let Some(number) = evicted.map(|(number, _)| *number) {
            self.idle.remove(&number);
            self.leaving += 1;
        }
    }

    /// Removes a program from the idle ones, or from the count of evicted ones.
    fn forget(&mut self, number: u64) {
        if self.idle.remove(&number).is_none() {
            self.leaving -= 1;
        }
    }
}

impl RealmSlot {
    fn new(pool: &Arc<RealmPool>) -> Self {
        pool.watch.slot_taken();
        Self {
            pool: Arc::clone(pool),
            number: None,
        }
    }

    /// Marks the program as busy.
    pub(super) fn mark_busy(&mut self) {
        if let Some(number) = self.number.take() {
            let mut state = self.pool.state.lock();
            state.forget(number);
            state.evict_one();
        }
    }

    /// Marks the program as idle. Returns `true` if it must drop its realm.
    pub(super) fn mark_idle(&mut self, program: &ActorRef<ProgramMessage>) -> bool {
        let mut state = self.pool.state.lock();
        let number = match self.number {
            Some(number) => {
                state.forget(number);
                number
            }
            None => state.next_number(),
        };
        self.number = Some(number);
        let leaves = state.needs_eviction();
        if leaves {
            state.leaving += 1;
        } else {
            state.idle.insert(number, program.clone());
        }
        leaves
    }
}

impl Drop for RealmSlot {
    fn drop(&mut self) {
        self.pool.watch.slot_freed();
        let mut state = self.pool.state.lock();
        if let Some(number) = self.number {
            state.forget(number);
        }
        let Some((_, waiting)) = state.waiting.pop_first() else {
            state.free += 1;
            return;
        };
        drop(state);
        // If the receiver has just given up, its slot is dropped here and passes to the next one.
        drop(waiting.send(Self::new(&self.pool)));
    }
}
