//! What a supervisor keeps for each of very many children, found by identifier.
//!
//! A hash table doubles, and is between half empty and nearly full; what is large is better not in
//! it. Here the values lie side by side in places that are used again, and the table has the number
//! of the place alone.

use std::hash::BuildHasher as _;
use std::mem;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::cell::ActorId;

/// Something that is kept for an actor.
pub(crate) trait Kept {
    /// Whose it is.
    fn id(&self) -> ActorId;
}

/// Values by the identifiers of their actors.
pub(crate) struct Ward<T> {
    index: HashTable<u32>,
    places: Vec<Place<T>>,
    /// The place that is taken next; one that there is not if all are taken.
    free: u32,
}

enum Place<T> {
    Taken(T),
    /// The place that is free after this one.
    Free(u32),
}

impl<T> Place<T> {
    const fn value(&self) -> Option<&T> {
        match self {
            Self::Taken(value) => Some(value),
            Self::Free(_) => None,
        }
    }
}

/// No vector has so many.
const NONE: u32 = u32::MAX;

impl<T> Default for Ward<T> {
    fn default() -> Self {
        Self {
            index: HashTable::new(),
            places: Vec::new(),
            free: NONE,
        }
    }
}

impl<T: Kept> Ward<T> {
    /// Keeps a value. Its actor has none yet: no identifier is given twice.
    pub(crate) fn insert(&mut self, value: T) {
        let code = code(value.id());
        let at = match self.places.get_mut(self.free as usize) {
            Some(place) => {
                let at = self.free;
                if let Place::Free(next) = mem::replace(place, Place::Taken(value)) {
                    self.free = next;
                }
                at
            }
            None => {
                let at = u32::try_from(self.places.len()).expect("slots are of 32 bits");
                self.places.push(Place::Taken(value));
                at
            }
        };
        let places = &self.places;
        let code_at = |at: &u32| value_at(places, *at).map_or(0, code_of);
        self.index.insert_unique(code, at, code_at);
    }

    pub(crate) fn get_mut(&mut self, id: ActorId) -> Option<&mut T> {
        let places = &self.places;
        let is_it = |at: &u32| value_at(places, *at).is_some_and(|value| value.id() == id);
        let at = *self.index.find(code(id), is_it)?;
        match self.places.get_mut(at as usize) {
            Some(Place::Taken(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, id: ActorId) -> Option<T> {
        let places = &self.places;
        let is_it = |at: &u32| value_at(places, *at).is_some_and(|value| value.id() == id);
        let (at, _) = self.index.find_entry(code(id), is_it).ok()?.remove();
        let free = Place::Free(mem::replace(&mut self.free, at));
        match mem::replace(self.places.get_mut(at as usize)?, free) {
            Place::Taken(value) => Some(value),
            Place::Free(_) => None,
        }
    }

    /// Takes out those that are picked.
    pub(crate) fn extract(&mut self, picked: impl Fn(&T) -> bool) -> Vec<T> {
        let values = self.places.iter().filter_map(Place::value);
        let ids: Vec<ActorId> = values.filter(|one| picked(one)).map(T::id).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }
}

fn value_at<T>(places: &[Place<T>], at: u32) -> Option<&T> {
    places.get(at as usize)?.value()
}

fn code(id: ActorId) -> u64 {
    FxBuildHasher.hash_one(id.to_bits())
}

fn code_of(value: &impl Kept) -> u64 {
    code(value.id())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct One(ActorId, Box<u64>);

    impl Kept for One {
        fn id(&self) -> ActorId {
            self.0
        }
    }

    #[test]
    fn it_says_what_a_tree_says() {
        let (mut ward, mut tree) = (Ward::default(), BTreeMap::new());
        let mut dice = 7_u64;
        for step in 0..20_000_u64 {
            dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let id = ActorId::from_bits(((dice >> 40) % 300) | ((dice >> 62) << 32));
            match (dice >> 60 & 1, tree.contains_key(&id)) {
                (0, false) => {
                    ward.insert(One(id, Box::new(step)));
                    tree.insert(id, step);
                }
                (0, true) => {
                    *ward.get_mut(id).expect("it is there").1 = step;
                    tree.insert(id, step);
                }
                _ => assert_eq!(ward.remove(id).map(|one| *one.1), tree.remove(&id)),
            }
            assert_eq!(ward.get_mut(id).map(|one| *one.1), tree.get(&id).copied());
            assert_eq!(ward.index.len(), tree.len());
        }
        let odd = ward.extract(|one| one.0.slot % 2 == 1);
        let (odd_ids, even): (Vec<_>, Vec<_>) = tree.keys().partition(|id| id.slot % 2 == 1);
        assert_eq!(odd.len(), odd_ids.len());
        assert!(odd.iter().all(|one| tree.get(&one.0) == Some(&*one.1)));
        assert!(odd_ids.iter().all(|id| ward.get_mut(*id).is_none()));
        assert!(even.iter().all(|id| ward.remove(*id).is_some()));
        // Places are used again: there never were more than identifiers.
        assert!(ward.places.len() <= 1200 && ward.index.is_empty());
    }

    #[test]
    fn the_mark_of_a_free_place_takes_no_room() {
        assert_eq!(size_of::<Place<One>>(), size_of::<One>());
    }
}
