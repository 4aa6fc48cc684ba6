//! A hierarchical timer wheel: millions of timers, each set and cancelled in constant time.
//!
//! Time is counted in nanoseconds from the start of the wheel, and sorted into slots by
//! milliseconds. A slot of level 0 holds the timers of one millisecond, a slot of the next level
//! those of 64, and so on; seven levels reach 139 years. A timer is stored on the level given by
//! the highest digit, of six bits, in which its millisecond differs from the present, so it is
//! moved at most seven times before it is due. The timers of the present millisecond are in a queue
//! (`due`) ordered by time, and in the order in which they were set if their times are equal.
//!
//! ```text
//! level 1   [ 0][ 1][ 2] ... [63]    64 ms a slot: opened once, spread over level 0
//! level 0   [ 0][ 1][ 2] ... [63]     1 ms a slot: opened once, sorted into `due`
//! due       (at, number), (at, number), ...       taken from the front once due
//! ```

use std::collections::VecDeque;

/// Identifies a timer of one wheel; never reused for another timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlarmKey {
    index: u32,
    number: u64,
}

/// Nanoseconds in a tick, the unit by which the wheel sorts.
pub(super) const TICK: u64 = 1_000_000;

const BITS_PER_LEVEL: u32 = 6;
const SLOTS_PER_LEVEL: usize = 1 << BITS_PER_LEVEL;
const LEVELS: u32 = 7;
/// The last nanosecond that the levels can represent.
const MAX_NANOS: u64 = (1 << (BITS_PER_LEVEL * LEVELS)) * TICK - 1;
const NIL: u32 = u32::MAX;
/// Number of timers of a slot that are searched for the earliest; if there are more, the start of
/// the slot is used instead.
const MAX_SLOT_SCAN: usize = 8;
/// Number of nodes for which memory is kept when the wheel becomes empty.
const KEPT_NODES: usize = 1024;

pub(crate) struct Wheel<T> {
    nodes: Vec<TimerNode<T>>,
    free: u32,
    len: usize,
    next_number: u64,
    /// The tick up to which all slots have been opened.
    current_tick: u64,
    levels: Box<[Level; LEVELS as usize]>,
    due: VecDeque<DueEntry>,
}

struct Level {
    occupied: u64,
    slots: [SlotList; SLOTS_PER_LEVEL],
}

#[derive(Clone, Copy)]
struct SlotList {
    first: u32,
    last: u32,
}

const EMPTY: SlotList = SlotList {
    first: NIL,
    last: NIL,
};

struct TimerNode<T> {
    number: u64,
    at: u64,
    next: u32,
    prev: u32,
    home: NodePlace,
    value: Option<T>,
}

#[derive(Clone, Copy)]
enum NodePlace {
    Free,
    Slot { level: u8, slot: u8 },
    Due,
}

/// A timer in the queue. The entry is stale if its node has another number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DueEntry {
    at: u64,
    number: u64,
    index: u32,
}

impl<T> Wheel<T> {
    pub(crate) fn new() -> Self {
        let level = || Level {
            occupied: 0,
            slots: [EMPTY; SLOTS_PER_LEVEL],
        };
        Self {
            nodes: Vec::new(),
            free: NIL,
            len: 0,
            next_number: 0,
            current_tick: 0,
            levels: Box::new(std::array::from_fn(|_| level())),
            due: VecDeque::new(),
        }
    }

    /// Returns the number of timers that are set.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Sets a timer for `at` nanoseconds after the start.
    pub(crate) fn insert(&mut self, at: u64, value: T) -> AlarmKey {
        let number = self.next_number;
        self.next_number += 1;
        let node = TimerNode {
            number,
            at: at.min(MAX_NANOS),
            next: NIL,
            prev: NIL,
            home: NodePlace::Free,
            value: Some(value),
        };
        let index = if self.free == NIL {
            let index = u32::try_from(self.nodes.len()).expect("fewer than 2^32 timers");
            self.nodes.push(node);
            index
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.len += 1;
        self.place(index);
        AlarmKey { index, number }
    }

    /// Removes a timer. Returns `None` if it has fired or was removed before.
    pub(crate) fn remove(&mut self, key: AlarmKey) -> Option<T> {
        let node = self.nodes.get(key.index as usize)?;
        if node.number != key.number {
            return None;
        }
        match node.home {
            NodePlace::Free => return None,
            NodePlace::Slot { level, slot } => self.unlink(key.index, level.into(), slot.into()),
            // The entry in `due` is skipped when it reaches the front, within a tick.
            NodePlace::Due => {}
        }
        self.release(key.index)
    }

    /// Returns the value of a timer that is set.
    pub(crate) fn get_mut(&mut self, key: AlarmKey) -> Option<&mut T> {
        let node = self.nodes.get_mut(key.index as usize)?;
        if node.number == key.number {
            node.value.as_mut()
        } else {
            None
        }
    }

    /// Removes the earliest timer that is due at `now`, and returns its value.
    pub(crate) fn pop(&mut self, now: u64) -> Option<T> {
        self.advance(now / TICK);
        loop {
            let front = *self.due.front()?;
            let node = self.nodes.get(front.index as usize);
            let set = node.is_some_and(|node| node.number == front.number && node.value.is_some());
            if set && front.at > now {
                return None;
            }
            self.due.pop_front();
            if set {
                return self.release(front.index);
            }
        }
    }

    /// Returns the time to look again: never after the earliest timer, and rarely before it.
    pub(crate) fn next(&self) -> Option<u64> {
        if let Some(front) = self.due.front() {
            return Some(front.at);
        }
        let (level, slot) = self.first_slot()?;
        let mut index = self.levels[level].slots[slot].first;
        let mut earliest = u64::MAX;
        for _ in 0..MAX_SLOT_SCAN {
            let node = &self.nodes[index as usize];
            earliest = earliest.min(node.at);
            index = node.next;
            if index == NIL {
                return Some(earliest);
            }
        }
        Some(self.start_of(level, slot) * TICK)
    }

    /// Returns the slot that opens next. On each level only slots after the present are occupied,
    /// and all occupied slots of a lower level open before any of a higher level.
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        let slot = self.levels[level].occupied.trailing_zeros();
        Some((level, slot as usize))
    }

    fn start_of(&self, level: usize, slot: usize) -> u64 {
        let shift = BITS_PER_LEVEL * u32::try_from(level).expect("seven levels");
        let block = self.current_tick >> (shift + BITS_PER_LEVEL) << (shift + BITS_PER_LEVEL);
        block | ((slot as u64) << shift)
    }

    /// Opens all slots up to a tick.
    fn advance(&mut self, tick: u64) {
        while let Some((level, slot)) = self.first_slot() {
            let start = self.start_of(level, slot);
            if start > tick {
                break;
            }
            self.current_tick = start;
            let ends = std::mem::replace(&mut self.levels[level].slots[slot], EMPTY);
            self.levels[level].occupied &= !(1 << slot);
            let mut index = ends.first;
            let sorted = self.due.len();
            while index != NIL {
                let next = self.nodes[index as usize].next;
                if self.nodes[index as usize].at / TICK <= start {
                    let entry = self.push_due(index);
                    self.due.push_back(entry);
                } else {
                    self.place(index);
                }
                index = next;
            }
            // The entries that were in `due` before belong to earlier ticks and so come first.
            self.due.make_contiguous()[sorted..].sort();
        }
        self.current_tick = self.current_tick.max(tick);
    }

    fn push_due(&mut self, index: u32) -> DueEntry {
        let node = &mut self.nodes[index as usize];
        node.home = NodePlace::Due;
        DueEntry {
            at: node.at,
            number: node.number,
            index,
        }
    }

    /// Puts a timer into the queue or into its slot, relative to the present.
    fn place(&mut self, index: u32) {
        let tick = self.nodes[index as usize].at / TICK;
        if tick <= self.current_tick {
            let entry = self.push_due(index);
            let at = self.due.partition_point(|other| *other < entry);
            self.due.insert(at, entry);
            return;
        }
        // The highest bit in which the tick differs from the present selects the level.
        let differs = u64::BITS - 1 - (tick ^ self.current_tick).leading_zeros();
        let level = (differs / BITS_PER_LEVEL) as usize;
        let slot = (tick >> (differs / BITS_PER_LEVEL * BITS_PER_LEVEL)) as usize % SLOTS_PER_LEVEL;
        let ends = &mut self.levels[level].slots[slot];
        let last = std::mem::replace(&mut ends.last, index);
        if last == NIL {
            ends.first = index;
        }
        self.levels[level].occupied |= 1 << slot;
        if last != NIL {
            self.nodes[last as usize].next = index;
        }
        let node = &mut self.nodes[index as usize];
        node.prev = last;
        node.next = NIL;
        node.home = NodePlace::Slot {
            level: u8::try_from(level).expect("seven levels"),
            slot: u8::try_from(slot).expect("64 slots"),
        };
    }

    fn unlink(&mut self, index: u32, level: usize, slot: usize) {
        let TimerNode { next, prev, .. } = self.nodes[index as usize];
        let ends = &mut self.levels[level].slots[slot];
        if prev == NIL {
            ends.first = next;
        } else {
            self.nodes[prev as usize].next = next;
        }
        if next == NIL {
            ends.last = prev;
        } else {
            self.nodes[next as usize].prev = prev;
        }
        if ends.first == NIL {
            self.levels[level].occupied &= !(1 << slot);
        }
    }

    fn release(&mut self, index: u32) -> Option<T> {
        let node = &mut self.nodes[index as usize];
        node.home = NodePlace::Free;
        node.next = self.free;
        self.free = index;
        self.len -= 1;
        let value = node.value.take();
        // No slot refers to a node now. Old keys find no node, or one with another number.
        if self.len == 0 && self.nodes.len() > KEPT_NODES {
            self.nodes = Vec::new();
            self.due = VecDeque::new();
            self.free = NIL;
        }
        value
    }
}

#[cfg(test)]
mod tests;
