//! The child table of a node of the tree, by key and in start order.
//!
//! A child's key and place are stored in its own cell, and the cell is owned by the table of the
//! system. This table holds only identifiers, together with enough of each key's hash to avoid most
//! look-ups of cells.

mod closable_mutex;
#[cfg(all(test, strowger_loom))]
mod loom;

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::cell::{ActorCore, ActorId, ErasedCell};
use crate::path::Key;
use crate::system::ActorSlab;
use closable_mutex::ClosableMutex;

/// The child table of one node; allocated when the first child is added.
#[derive(Default)]
pub(crate) struct Children(ClosableMutex<Option<Box<ChildIndex>>>);

/// The node has or had a child, or one is being added.
const NON_EMPTY_ONCE: u8 = 1;
/// The table accepts no more children.
const CLOSED: u8 = 2;
/// The children stop all at once, not one after the other.
const STOP_TOGETHER: u8 = 4;
/// Children are also started by others than the task that runs the actor.
const SHARED: u8 = 8;

#[derive(Default)]
struct ChildIndex {
    by_key: HashTable<IndexedChild>,
    next: u64,
}

/// The entry of one child.
struct IndexedChild {
    id: ActorId,
    half_hash: u32,
}

/// Returns half of the hash of a key.
fn half_hash(key: &Key) -> u32 {
    (key.hash_code() >> 32) as u32
}

/// Spreads this half over all bits that the hash table uses.
fn spread(code: u32) -> u64 {
    u64::from(code).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The reason why a child was not added to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildInsertError {
    Taken,
    Closed,
    TooMany,
}

impl ChildIndex {
    const fn next_start_index(&mut self) -> u64 {
        let place = self.next;
        self.next += 1;
        place
    }
}

impl Children {
    /// Reserves a place in the start order, for a child that may leave it and come back.
    pub(crate) fn reserve(&self) -> u64 {
        let mut children = self.0.lock();
        children.get_or_insert_default().next_start_index()
    }

    /// Creates a child and adds it to the table, if its key is free and the table is open. `place`
    /// is a reserved place, or `None` for the last.
    pub(crate) fn insert<C: ErasedCell + 'static>(
        &self,
        cells: &ActorSlab,
        key: &Key,
        limit: usize,
        place: Option<u64>,
        make: impl FnOnce(u64) -> Arc<C>,
    ) -> Result<Arc<C>, ChildInsertError> {
        let Some(mut guard) = self.0.lock_if_open() else {
            return Err(ChildInsertError::Closed);
        };
        let children = guard.get_or_insert_default();
        let full = children.by_key.len() >= limit;
        // If the child is rejected, the place taken here remains a gap, which does no harm: only
        // the order of places matters.
        let place = place.unwrap_or_else(|| children.next_start_index());
        let code = half_hash(key);
        let entry = children.by_key.entry(
            spread(code),
            |child| child.half_hash == code && cells.has_key(child.id, key),
            |child| spread(child.half_hash),
        );
        let Entry::Vacant(vacant) = entry else {
            return Err(ChildInsertError::Taken);
        };
        if full {
            return Err(ChildInsertError::TooMany);
        }
        let cell = make(place);
        let id = cell.core().id;
        vacant.insert(IndexedChild {
            id,
            half_hash: code,
        });
        Ok(cell)
    }

    pub(crate) fn remove(&self, node: &ActorCore) {
        let mut guard = self.0.lock();
        let Some(children) = &mut *guard else {
            return;
        };
        let hash = spread(half_hash(&node.key));
        let found = children
            .by_key
            .find_entry(hash, |child| child.id == node.id);
        if let Ok(found) = found {
            found.remove();
        }
    }

    pub(crate) fn get(&self, cells: &ActorSlab, key: &Key) -> Option<Arc<dyn ErasedCell>> {
        let guard = self.0.lock();
        let by_key = &guard.as_ref()?.by_key;
        let code = half_hash(key);
        let found = by_key.find(spread(code), |child| {
            child.half_hash == code && cells.has_key(child.id, key)
        });
        cells.get(found?.id)
    }

    /// Returns the children in start order.
    pub(crate) fn collect(&self, cells: &ActorSlab) -> Vec<Arc<dyn ErasedCell>> {
        if !self.0.has(NON_EMPTY_ONCE) {
            return Vec::new();
        }
        let guard = self.0.lock();
        let Some(children) = &*guard else {
            return Vec::new();
        };
        let ids: Vec<_> = children.by_key.iter().map(|child| child.id).collect();
        drop(guard);
        let mut all = cells.get_all(&ids);
        all.sort_by_cached_key(|cell| cell.core().start_index);
        all
    }

    pub(crate) fn len(&self) -> usize {
        let children = self.0.lock();
        children
            .as_ref()
            .map_or(0, |children| children.by_key.len())
    }

    /// Returns `true` if the table accepts no more children.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.has(CLOSED)
    }

    /// Closes the table if there are no children, and returns `true` if it did. Only called by the
    /// task that runs the actor.
    pub(crate) fn close_if_empty(&self) -> bool {
        self.0.close_if(|children| {
            let children = children.as_ref();
            children.is_none_or(|children| children.by_key.is_empty())
        })
    }

    /// Closes the table and returns the children in start order.
    pub(crate) fn close(&self, cells: &ActorSlab) -> Vec<Arc<dyn ErasedCell>> {
        self.0.close();
        self.collect(cells)
    }

    /// Makes the children stop all at once instead of one after the other.
    pub(crate) fn stop_together(&self) {
        self.0.set_stop_together();
    }

    pub(crate) fn stops_together(&self) -> bool {
        self.0.has(STOP_TOGETHER)
    }

    /// Opens the table again. Called when the next incarnation is prepared.
    pub(crate) fn open(&self) {
        self.0.open();
    }

    /// Records that children will also be started by others than the task that runs the actor. Must
    /// be called before that is possible.
    pub(crate) fn allow_concurrent_starts(&self) {
        self.0.set_shared();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rustc_hash::FxHashMap;

    use super::*;
    use crate::actor::Actor;
    use crate::context::Context;
    use crate::system::{ActorSystem, StartError};

    struct IdleActor;

    impl Actor for IdleActor {
        type Msg = ();
        type Args = ();
        type Error = Infallible;

        async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
            Ok(Self)
        }

        async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
            Ok(())
        }
    }

    /// Returns two keys with the same stored half of the hash.
    fn alike() -> (String, String) {
        let mut seen = FxHashMap::default();
        let mut keys = (0..).map(|number| format!("key {number}"));
        let alike = keys.find_map(|key| {
            let before = seen.insert(half_hash(&Key::from(key.as_str())), key.clone());
            before.map(|before| (before, key))
        });
        alike.expect("there are more keys than halves")
    }

    #[tokio::test]
    async fn keys_with_equal_hashes_are_distinguished() {
        let (one, other) = alike();
        let system = ActorSystem::new("alike").expect("tests run in tokio");
        let start = |key: &str| system.spawn::<IdleActor>(key, ());
        let first = start(&one).expect("the key is free");
        let second = start(&other).expect("the key is free");
        for (key, actor) in [(&one, &first), (&other, &second)] {
            assert!(matches!(start(key), Err(StartError::KeyTaken { .. })));
            let found = system
                .find(format!("/{key}").as_str())
                .map(|found| found.id());
            assert_eq!(found, Some(actor.id()));
        }
        first.stop();
        first.stopped().await;
        assert!(system.find(format!("/{one}").as_str()).is_none());
        assert!(system.find(format!("/{other}").as_str()).is_some());
        start(&one).expect("the key is free again");
    }
}
