//! The children of a node of the tree, by key and in the order of their start.
//!
//! A child knows its key and its place, and the table of the system holds it: this one keeps
//! identifiers, with as much of the hash of a key as saves a look at the child.

mod latch;
#[cfg(all(test, strowger_loom))]
mod loom;

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::cell::{ActorId, AnyCell, Node};
use crate::path::Key;
use crate::system::Cells;
use latch::Latch;

/// The table of children of one node; absent until the first child.
#[derive(Default)]
pub(crate) struct Branch(Latch<Option<Box<Children>>>);

/// There was a child, or is about to be one.
const USED: u8 = 1;
/// It takes no more children.
const SHUT: u8 = 2;
/// The children stop all at once.
const TOGETHER: u8 = 4;
/// Not only who runs the actor starts children here.
const OTHERS: u8 = 8;

#[derive(Default)]
struct Children {
    by_key: HashTable<Child>,
    next: u64,
}

/// What is kept of a child.
struct Child {
    id: ActorId,
    code: u32,
}

/// Half of the hash of a key.
fn code(key: &Key) -> u32 {
    (key.hash_code() >> 32) as u32
}

/// That half, spread over all the bits that a table looks at.
fn spread(code: u32) -> u64 {
    u64::from(code).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
        let mut children = self.0.lock();
        children.get_or_insert_default().take_place()
    }

    /// Makes a child for a place, last or one that was reserved, and puts it in if its key is
    /// free and the table is open.
    pub(crate) fn insert<C: AnyCell + 'static>(
        &self,
        cells: &Cells,
        key: &Key,
        limit: usize,
        place: Option<u64>,
        make: impl FnOnce(u64) -> Arc<C>,
    ) -> Result<Arc<C>, Unfit> {
        let Some(mut guard) = self.0.enter() else {
            return Err(Unfit::Closed);
        };
        let children = guard.get_or_insert_default();
        let full = children.by_key.len() >= limit;
        // A place that a refused child does not need leaves a gap, which no order minds.
        let place = place.unwrap_or_else(|| children.take_place());
        let code = code(key);
        let entry = children.by_key.entry(
            spread(code),
            |child| child.code == code && cells.has_key(child.id, key),
            |child| spread(child.code),
        );
        let Entry::Vacant(vacant) = entry else {
            return Err(Unfit::Taken);
        };
        if full {
            return Err(Unfit::TooMany);
        }
        let cell = make(place);
        let id = cell.node().id;
        vacant.insert(Child { id, code });
        Ok(cell)
    }

    pub(crate) fn remove(&self, node: &Node) {
        let mut guard = self.0.lock();
        let Some(children) = &mut *guard else {
            return;
        };
        let hash = spread(code(&node.key));
        let found = children
            .by_key
            .find_entry(hash, |child| child.id == node.id);
        if let Ok(found) = found {
            found.remove();
        }
    }

    pub(crate) fn get(&self, cells: &Cells, key: &Key) -> Option<Arc<dyn AnyCell>> {
        let guard = self.0.lock();
        let by_key = &guard.as_ref()?.by_key;
        let code = code(key);
        let found = by_key.find(spread(code), |child| {
            child.code == code && cells.has_key(child.id, key)
        });
        cells.get(found?.id)
    }

    /// The children in the order of their start.
    pub(crate) fn all(&self, cells: &Cells) -> Vec<Arc<dyn AnyCell>> {
        if !self.0.has(USED) {
            return Vec::new();
        }
        let guard = self.0.lock();
        let Some(children) = &*guard else {
            return Vec::new();
        };
        let ids: Vec<_> = children.by_key.iter().map(|child| child.id).collect();
        drop(guard);
        let mut all = cells.each(&ids);
        all.sort_by_cached_key(|cell| cell.node().place);
        all
    }

    pub(crate) fn len(&self) -> usize {
        let children = self.0.lock();
        children
            .as_ref()
            .map_or(0, |children| children.by_key.len())
    }

    /// Whether it takes no more children.
    pub(crate) fn is_shut(&self) -> bool {
        self.0.has(SHUT)
    }

    /// Takes no more children if there is none; whether that is so. Who runs the actor asks.
    pub(crate) fn shut_if_none(&self) -> bool {
        self.0.shut_if(|children| {
            let children = children.as_ref();
            children.is_none_or(|children| children.by_key.is_empty())
        })
    }

    /// Takes no more children; returns those there are, in the order of their start.
    pub(crate) fn shut(&self, cells: &Cells) -> Vec<Arc<dyn AnyCell>> {
        self.0.shut();
        self.all(cells)
    }

    /// Says that the children stop all at once, not one after the other.
    pub(crate) fn stop_together(&self) {
        self.0.mark_together();
    }

    pub(crate) fn stops_together(&self) -> bool {
        self.0.has(TOGETHER)
    }

    /// Takes children again. Who makes the next incarnation ready says so.
    pub(crate) fn open(&self) {
        self.0.open();
    }

    /// Says that others than who runs the actor start children too, before they can.
    pub(crate) fn open_to_others(&self) {
        self.0.mark_others();
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

    struct Idle;

    impl Actor for Idle {
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

    /// Two keys of which the half of the hash that is kept is the same.
    fn alike() -> (String, String) {
        let mut seen = FxHashMap::default();
        let mut keys = (0..).map(|number| format!("key {number}"));
        let alike = keys.find_map(|key| {
            let before = seen.insert(code(&Key::from(key.as_str())), key.clone());
            before.map(|before| (before, key))
        });
        alike.expect("there are more keys than halves")
    }

    #[tokio::test]
    async fn keys_of_the_same_hash_are_told_apart() {
        let (one, other) = alike();
        let system = ActorSystem::new("alike").expect("tests run in tokio");
        let start = |key: &str| system.spawn::<Idle>(key, ());
        let first = start(&one).expect("the key is free");
        let second = start(&other).expect("the key is free");
        for (key, actor) in [(&one, &first), (&other, &second)] {
            assert!(matches!(start(key), Err(StartError::Taken { .. })));
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
