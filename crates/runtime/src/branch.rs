//! The children of a node of the tree, by key and in the order of their start.
//!
//! A child knows its key and its place, so the table holds nothing but its address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use parking_lot::Mutex;

use crate::cell::{AnyCell, Node};
use crate::path::Key;

/// The table of children of one node.
#[derive(Default)]
pub(crate) struct Branch {
    /// `USED`, `SHUT`, `TOGETHER`. Changes under the lock, but where there never was a child.
    state: AtomicU8,
    /// Absent until the first child.
    children: Mutex<Option<Box<Children>>>,
}

/// There was a child, or is about to be one.
const USED: u8 = 1;
/// It takes no more children.
const SHUT: u8 = 2;
/// The children stop all at once.
const TOGETHER: u8 = 4;

#[derive(Default)]
struct Children {
    by_key: HashTable<Arc<dyn AnyCell>>,
    next: u64,
}

/// Why a child was not put in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    Taken,
    Closed,
    TooMany,
}

impl Children {
    const fn take_place(&mut self) -> u64 {
        let place = self.next;
        self.next += 1;
        place
    }
}

impl Branch {
    /// A place in the order for a child that may come back to it.
    pub(crate) fn reserve(&self) -> u64 {
        let mut children = self.children.lock();
        children.get_or_insert_default().take_place()
    }

    /// Makes a child for a place, last or one that was reserved, and puts it in if its key is
    /// free and the table is open.
    pub(crate) fn insert<C: AnyCell + 'static>(
        &self,
        key: &Key,
        limit: usize,
        place: Option<u64>,
        make: impl FnOnce(u64) -> Arc<C>,
    ) -> Result<Arc<C>, Unfit> {
        let mut guard = self.children.lock();
        if self.enter() & SHUT != 0 {
            return Err(Unfit::Closed);
        }
        let children = guard.get_or_insert_default();
        let full = children.by_key.len() >= limit;
        // A place that a refused child does not need leaves a gap, which no order minds.
        let place = place.unwrap_or_else(|| children.take_place());
        let entry = children.by_key.entry(
            key.hash_code(),
            |cell| cell.node().key == *key,
            |cell| cell.node().key.hash_code(),
        );
        let Entry::Vacant(vacant) = entry else {
            return Err(Unfit::Taken);
        };
        if full {
            return Err(Unfit::TooMany);
        }
        let cell = make(place);
        let erased: Arc<dyn AnyCell> = Arc::<C>::clone(&cell);
        vacant.insert(erased);
        Ok(cell)
    }

    pub(crate) fn remove(&self, node: &Node) {
        let mut guard = self.children.lock();
        let Some(children) = &mut *guard else {
            return;
        };
        let found = children
            .by_key
            .find_entry(node.key.hash_code(), |cell| cell.node().id == node.id);
        if let Ok(found) = found {
            let (removed, _) = found.remove();
            drop(guard);
            drop(removed);
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<dyn AnyCell>> {
        let guard = self.children.lock();
        let by_key = &guard.as_ref()?.by_key;
        let found = by_key.find(key.hash_code(), |cell| cell.node().key == *key);
        found.cloned()
    }

    /// The children in the order of their start.
    pub(crate) fn all(&self) -> Vec<Arc<dyn AnyCell>> {
        if !self.has(USED) {
            return Vec::new();
        }
        let guard = self.children.lock();
        let Some(children) = &*guard else {
            return Vec::new();
        };
        let numbered = |cell: &Arc<dyn AnyCell>| (cell.node().place, Arc::clone(cell));
        let mut all: Vec<_> = children.by_key.iter().map(numbered).collect();
        drop(guard);
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, cell)| cell).collect()
    }

    pub(crate) fn len(&self) -> usize {
        let children = self.children.lock();
        children
            .as_ref()
            .map_or(0, |children| children.by_key.len())
    }

    fn has(&self, mark: u8) -> bool {
        self.state.load(Ordering::Acquire) & mark != 0
    }

    /// Notes, under the lock, that there is about to be a child; the marks that there are.
    fn enter(&self) -> u8 {
        match self.state.load(Ordering::Acquire) {
            marks if marks & USED == 0 => self.state.fetch_or(USED, Ordering::AcqRel),
            marks => marks,
        }
    }

    /// Whether it takes no more children.
    pub(crate) fn is_shut(&self) -> bool {
        self.has(SHUT)
    }

    /// Takes no more children if there is none; whether that is so.
    pub(crate) fn shut_if_none(&self) -> bool {
        let marks = self.state.load(Ordering::Relaxed);
        let shut = || {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            self.state.compare_exchange(marks, marks | SHUT, ok, failed)
        };
        if marks & USED == 0 && shut().is_ok() {
            return true;
        }
        let children = self.children.lock();
        let none = children
            .as_ref()
            .is_none_or(|children| children.by_key.is_empty());
        if none {
            self.state.fetch_or(SHUT, Ordering::AcqRel);
        }
        none
    }

    /// Takes no more children; returns those there are, in the order of their start.
    pub(crate) fn shut(&self) -> Vec<Arc<dyn AnyCell>> {
        let guard = self.children.lock();
        self.state.fetch_or(SHUT, Ordering::AcqRel);
        drop(guard);
        self.all()
    }

    /// Says that the children stop all at once, not one after the other.
    pub(crate) fn stop_together(&self) {
        self.state.fetch_or(TOGETHER, Ordering::AcqRel);
    }

    pub(crate) fn stops_together(&self) -> bool {
        self.has(TOGETHER)
    }

    pub(crate) fn open(&self) {
        if self.is_shut() {
            self.state.fetch_and(!SHUT, Ordering::AcqRel);
        }
    }
}
