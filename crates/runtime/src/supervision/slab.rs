//! A slab of values for very many children, indexed by actor identifier.
//!
//! A hash table doubles its size when it grows and is then half empty, so large values are better
//! kept out of it. Here the values are stored in a vector of reusable slots, and the hash table
//! holds only the slot numbers.

use std::hash::BuildHasher as _;
use std::mem;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::cell::ActorId;

/// A value that belongs to an actor.
pub(crate) trait HasActorId {
    /// Returns the identifier of the actor that the value belongs to.
    fn id(&self) -> ActorId;
}

/// A slab of values, indexed by the identifiers of their actors.
pub(crate) struct Slab<T> {
    index: HashTable<u32>,
    slots: Vec<SlabSlot<T>>,
    /// The next free slot; out of range if all slots are taken.
    free: u32,
}

enum SlabSlot<T> {
    Taken(T),
    /// Holds the number of the next free slot.
    Free(u32),
}

impl<T> SlabSlot<T> {
    const fn value(&self) -> Option<&T> {
        match self {
            Self::Taken(value) => Some(value),
            Self::Free(_) => None,
        }
    }
}

/// The end of the list of free slots; no vector has an index this large.
const NONE: u32 = u32::MAX;

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            free: NONE,
        }
    }
}

impl<T: HasActorId> Slab<T> {
    /// Inserts a value. Its actor must not have one yet, which holds as identifiers are unique.
    pub(crate) fn insert(&mut self, value: T) {
        let code = code(value.id());
        let at = match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let at = self.free;
                if let SlabSlot::Free(next) = mem::replace(slot, SlabSlot::Taken(value)) {
                    self.free = next;
                }
                at
            }
            None => {
                let at = u32::try_from(self.slots.len()).expect("slots are of 32 bits");
                self.slots.push(SlabSlot::Taken(value));
                at
            }
        };
        let slots = &self.slots;
        let code_at = |at: &u32| value_at(slots, *at).map_or(0, code_of);
        self.index.insert_unique(code, at, code_at);
    }

    pub(crate) fn get_mut(&mut self, id: ActorId) -> Option<&mut T> {
        let slots = &self.slots;
        let is_it = |at: &u32| value_at(slots, *at).is_some_and(|value| value.id() == id);
        let at = *self.index.find(code(id), is_it)?;
        match self.slots.get_mut(at as usize) {
            Some(SlabSlot::Taken(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, id: ActorId) -> Option<T> {
        let slots = &self.slots;
        let is_it = |at: &u32| value_at(slots, *at).is_some_and(|value| value.id() == id);
        let (at, _) = self.index.find_entry(code(id), is_it).ok()?.remove();
        let free = SlabSlot::Free(mem::replace(&mut self.free, at));
        match mem::replace(self.slots.get_mut(at as usize)?, free) {
            SlabSlot::Taken(value) => Some(value),
            SlabSlot::Free(_) => None,
        }
    }

    /// Removes and returns all values for which `picked` returns `true`.
    pub(crate) fn extract(&mut self, picked: impl Fn(&T) -> bool) -> Vec<T> {
        let values = self.slots.iter().filter_map(SlabSlot::value);
        let ids: Vec<ActorId> = values.filter(|one| picked(one)).map(T::id).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }
}

fn value_at<T>(slots: &[SlabSlot<T>], at: u32) -> Option<&T> {
    slots.get(at as usize)?.value()
}

fn code(id: ActorId) -> u64 {
    FxBuildHasher.hash_one(id.to_bits())
}

fn code_of(value: &impl HasActorId) -> u64 {
    code(value.id())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct One(ActorId, Box<u64>);

    impl HasActorId for One {
        fn id(&self) -> ActorId {
            self.0
        }
    }

    #[test]
    fn it_says_what_a_tree_says() {
        let (mut slab, mut tree) = (Slab::default(), BTreeMap::new());
        let mut dice = 7_u64;
        for step in 0..20_000_u64 {
            dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let id = ActorId::from_bits(((dice >> 40) % 300) | ((dice >> 62) << 32));
            match (dice >> 60 & 1, tree.contains_key(&id)) {
                (0, false) => {
                    slab.insert(One(id, Box::new(step)));
                    tree.insert(id, step);
                }
                (0, true) => {
                    *slab.get_mut(id).expect("it is there").1 = step;
                    tree.insert(id, step);
                }
                _ => assert_eq!(slab.remove(id).map(|one| *one.1), tree.remove(&id)),
            }
            assert_eq!(slab.get_mut(id).map(|one| *one.1), tree.get(&id).copied());
            assert_eq!(slab.index.len(), tree.len());
        }
        let odd = slab.extract(|one| one.0.slot % 2 == 1);
        let (odd_ids, even): (Vec<_>, Vec<_>) = tree.keys().partition(|id| id.slot % 2 == 1);
        assert_eq!(odd.len(), odd_ids.len());
        assert!(odd.iter().all(|one| tree.get(&one.0) == Some(&*one.1)));
        assert!(odd_ids.iter().all(|id| slab.get_mut(*id).is_none()));
        assert!(even.iter().all(|id| slab.remove(*id).is_some()));
        // Slots are reused: there are never more of them than identifiers.
        assert!(slab.slots.len() <= 1200 && slab.index.is_empty());
    }

    #[test]
    fn the_mark_of_a_free_place_takes_no_room() {
        assert_eq!(size_of::<SlabSlot<One>>(), size_of::<One>());
    }
}
