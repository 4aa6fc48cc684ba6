//! The children of a node of the tree, by key and in the order of their start.
//!
//! A child knows its key and its place, so the table holds nothing but its address.

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use parking_lot::Mutex;

use crate::cell::{AnyCell, Node};
use crate::path::Key;

/// The table of children of one node.
#[derive(Default)]
pub(crate) struct Branch(Mutex<Option<Box<Children>>>);

#[derive(Default)]
struct Children {
    by_key: HashTable<Arc<dyn AnyCell>>,
    next: u64,
    closed: bool,
    together: bool,
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
        self.0.lock().get_or_insert_default().take_place()
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
        let mut guard = self.0.lock();
        let children = guard.get_or_insert_default();
        if children.closed {
            return Err(Unfit::Closed);
        }
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
        let mut guard = self.0.lock();
        let Some(children) = &mut *guard else { return };
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
        let guard = self.0.lock();
        let by_key = &guard.as_ref()?.by_key;
        let found = by_key.find(key.hash_code(), |cell| cell.node().key == *key);
        found.cloned()
    }

    /// The children in the order of their start.
    pub(crate) fn all(&self) -> Vec<Arc<dyn AnyCell>> {
        let guard = self.0.lock();
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
        self.0
            .lock()
            .as_ref()
            .map_or(0, |children| children.by_key.len())
    }

    /// Whether it takes no more children.
    pub(crate) fn is_shut(&self) -> bool {
        let guard = self.0.lock();
        guard.as_ref().is_some_and(|children| children.closed)
    }

    /// Takes no more children; returns those there are, in the order of their start.
    pub(crate) fn shut(&self) -> Vec<Arc<dyn AnyCell>> {
        let mut guard = self.0.lock();
        guard.get_or_insert_default().closed = true;
        drop(guard);
        self.all()
    }

    /// Says that the children stop all at once, not one after the other.
    pub(crate) fn stop_together(&self) {
        self.0.lock().get_or_insert_default().together = true;
    }

    pub(crate) fn stops_together(&self) -> bool {
        self.0
            .lock()
            .as_ref()
            .is_some_and(|children| children.together)
    }

    pub(crate) fn open(&self) {
        if let Some(children) = &mut *self.0.lock() {
            children.closed = false;
        }
    }
}
