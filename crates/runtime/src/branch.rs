//! The children of a node of the tree, by key and in the order of their start.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::cell::{AnyCell, Node};

/// The table of children of one node.
#[derive(Default)]
pub(crate) struct Branch(Mutex<Option<Box<Children>>>);

#[derive(Default)]
struct Children {
    by_key: FxHashMap<Arc<str>, u64>,
    in_order: BTreeMap<u64, Arc<dyn AnyCell>>,
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
    fn take_place(&mut self) -> u64 {
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

    /// Makes a child and puts it in, last or in a place that was reserved, if its key is free and
    /// the table is open.
    pub(crate) fn insert<C: AnyCell + 'static>(
        &self,
        key: &Arc<str>,
        limit: usize,
        place: Option<u64>,
        make: impl FnOnce() -> Arc<C>,
    ) -> Result<Arc<C>, Unfit> {
        let mut guard = self.0.lock();
        let children = guard.get_or_insert_default();
        if children.closed {
            return Err(Unfit::Closed);
        }
        if children.by_key.contains_key(key) {
            return Err(Unfit::Taken);
        }
        if children.in_order.len() >= limit {
            return Err(Unfit::TooMany);
        }
        let cell = make();
        let place = place.unwrap_or_else(|| children.take_place());
        children.by_key.insert(Arc::clone(key), place);
        let erased: Arc<dyn AnyCell> = Arc::<C>::clone(&cell);
        children.in_order.insert(place, erased);
        Ok(cell)
    }

    pub(crate) fn remove(&self, node: &Node) {
        let mut guard = self.0.lock();
        let Some(children) = &mut *guard else { return };
        let Some(&place) = children.by_key.get(&node.key) else {
            return;
        };
        if children
            .in_order
            .get(&place)
            .is_some_and(|cell| cell.node().id == node.id)
        {
            children.by_key.remove(&node.key);
            let removed = children.in_order.remove(&place);
            drop(guard);
            drop(removed);
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<dyn AnyCell>> {
        let guard = self.0.lock();
        let children = guard.as_ref()?;
        children.in_order.get(children.by_key.get(key)?).cloned()
    }

    /// The children in the order of their start.
    pub(crate) fn all(&self) -> Vec<Arc<dyn AnyCell>> {
        let guard = self.0.lock();
        guard.as_ref().map_or_else(Vec::new, |children| {
            children.in_order.values().cloned().collect()
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.0
            .lock()
            .as_ref()
            .map_or(0, |children| children.in_order.len())
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
