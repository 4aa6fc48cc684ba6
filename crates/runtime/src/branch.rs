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
pub(crate) struct Branch(Mutex<Places>);

#[derive(Default)]
struct Places {
    /// Absent until the first child.
    children: Option<Box<Children>>,
    closed: bool,
    together: bool,
}

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
        let mut places = self.0.lock();
        places.children.get_or_insert_default().take_place()
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
        if guard.closed {
            return Err(Unfit::Closed);
        }
        let children = guard.children.get_or_insert_default();
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
        let Some(children) = &mut guard.children else {
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
        let guard = self.0.lock();
        let by_key = &guard.children.as_ref()?.by_key;
        let found = by_key.find(key.hash_code(), |cell| cell.node().key == *key);
        found.cloned()
    }

    /// The children in the order of their start.
    pub(crate) fn all(&self) -> Vec<Arc<dyn AnyCell>> {
        let guard = self.0.lock();
        let Some(children) = &guard.children else {
            return Vec::new();
        };
        let numbered = |cell: &Arc<dyn AnyCell>| (cell.node().place, Arc::clone(cell));
        let mut all: Vec<_> = children.by_key.iter().map(numbered).collect();
        drop(guard);
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, cell)| cell).collect()
    }

    pub(crate) fn len(&self) -> usize {
        let places = self.0.lock();
        places
            .children
            .as_ref()
            .map_or(0, |children| children.by_key.len())
    }

    /// Whether it takes no more children.
    pub(crate) fn is_shut(&self) -> bool {
        self.0.lock().closed
    }

    /// Takes no more children if there is none; whether that is so.
    pub(crate) fn shut_if_none(&self) -> bool {
        let mut places = self.0.lock();
        let children = places.children.as_ref();
        let none = children.is_none_or(|children| children.by_key.is_empty());
        places.closed |= none;
        none
    }

    /// Takes no more children; returns those there are, in the order of their start.
    pub(crate) fn shut(&self) -> Vec<Arc<dyn AnyCell>> {
        self.0.lock().closed = true;
        self.all()
    }

    /// Says that the children stop all at once, not one after the other.
    pub(crate) fn stop_together(&self) {
        self.0.lock().together = true;
    }

    pub(crate) fn stops_together(&self) -> bool {
        self.0.lock().together
    }

    pub(crate) fn open(&self) {
        self.0.lock().closed = false;
    }
}
