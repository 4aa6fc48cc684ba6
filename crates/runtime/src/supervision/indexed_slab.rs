//! Values for very many children, indexed by actor identifier.
//!
//! A hash table doubles its size when it grows and is then half empty, so large values are better
//! kept out of it. Here the values are in a slab, and the hash table holds only their keys.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use slab::Slab;

use crate::cell::ActorId;

/// A value that belongs to an actor.
pub(crate) trait HasActorId {
    /// Returns the identifier of the actor that the value belongs to.
    fn id(&self) -> ActorId;
}

/// A slab of values, indexed by the identifiers of their actors.
pub(crate) struct IndexedSlab<T> {
    /// The keys of the values: 32 bits are enough, as identifiers of actors have no more.
    index: HashTable<u32>,
    values: Slab<T>,
}

impl<T> Default for IndexedSlab<T> {
    fn default() -> Self {
        Self {
            index: HashTable::new(),
            values: Slab::new(),
        }
    }
}

impl<T: HasActorId> IndexedSlab<T> {
    /// Inserts a value. Its actor must not have one yet, which holds as identifiers are unique.
    pub(crate) fn insert(&mut self, value: T) {
        let hash = hash(value.id());
        let key = u32::try_from(self.values.insert(value)).expect("fewer than 2^32 actors");
        let rehash = |key: &u32| hash_of(&self.values, *key);
        self.index.insert_unique(hash, key, rehash);
    }

    pub(crate) fn get_mut(&mut self, id: ActorId) -> Option<&mut T> {
        let is_it = |key: &u32| self.values[*key as usize].id() == id;
        let key = *self.index.find(hash(id), is_it)?;
        self.values.get_mut(key as usize)
    }

    pub(crate) fn remove(&mut self, id: ActorId) -> Option<T> {
        let is_it = |key: &u32| self.values[*key as usize].id() == id;
        let (key, _) = self.index.find_entry(hash(id), is_it).ok()?.remove();
        self.values.try_remove(key as usize)
    }

    /// Removes and returns all values for which `picked` returns `true`.
    pub(crate) fn extract(&mut self, picked: impl Fn(&T) -> bool) -> Vec<T> {
        let values = self.values.iter().map(|(_, value)| value);
        let ids: Vec<ActorId> = values.filter(|one| picked(one)).map(T::id).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }
}

fn hash(id: ActorId) -> u64 {
    FxBuildHasher.hash_one(id.to_bits())
}

fn hash_of<T: HasActorId>(values: &Slab<T>, key: u32) -> u64 {
    hash(values[key as usize].id())
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
    fn behaves_like_a_btree_map() {
        let (mut slab, mut tree) = (IndexedSlab::default(), BTreeMap::new());
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
        assert!(slab.values.capacity() <= 2048 && slab.index.is_empty());
    }
}
