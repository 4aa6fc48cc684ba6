//! A map from the SEIDs that the node gives out, which follow one another.
//!
//! A hash table of a million entries is half empty, and each look-up misses the cache more than
//! once. Here sixteen neighbours are in one piece of memory, and the table that finds it is small.
//! Where only one of sixteen is left, it costs a page for itself.

use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;

/// A map from SEIDs.
#[derive(Clone, Debug)]
pub(crate) struct SeidMap<T> {
    pages: FxHashMap<u64, Box<Page<T>>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Page<T> {
    slots: [Option<T>; PAGE],
    used: usize,
}

/// A power of two, and at most 256.
const PAGE: usize = 16;

impl<T> Default for SeidMap<T> {
    fn default() -> Self {
        Self {
            pages: FxHashMap::default(),
            len: 0,
        }
    }
}

impl<T> SeidMap<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, seid: Seid) -> Option<&T> {
        let (page, slot) = place(seid);
        self.pages.get(&page)?.slots[slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, seid: Seid) -> Option<&mut T> {
        let (page, slot) = place(seid);
        self.pages.get_mut(&page)?.slots[slot].as_mut()
    }

    pub(crate) fn contains(&self, seid: Seid) -> bool {
        self.get(seid).is_some()
    }

    /// Puts a value in; returns the one that was there.
    pub(crate) fn insert(&mut self, seid: Seid, value: T) -> Option<T> {
        let (page, slot) = place(seid);
        let new = || {
            Box::new(Page {
                slots: std::array::from_fn(|_| None),
                used: 0,
            })
        };
        let page = self.pages.entry(page).or_insert_with(new);
        let before = page.slots[slot].replace(value);
        if before.is_none() {
            page.used += 1;
            self.len += 1;
        }
        before
    }

    pub(crate) fn remove(&mut self, seid: Seid) -> Option<T> {
        let (number, slot) = place(seid);
        let page = self.pages.get_mut(&number)?;
        let before = page.slots[slot].take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.pages.remove(&number);
        }
        Some(before)
    }

    /// Walks all entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Seid, &T)> {
        self.pages.iter().flat_map(|(number, page)| {
            let slots = (0..).zip(&page.slots);
            slots.filter_map(move |(slot, value)| Some((seid(*number, slot), value.as_ref()?)))
        })
    }
}

fn place(seid: Seid) -> (u64, usize) {
    let [.., last] = seid.0.to_be_bytes();
    (seid.0 / PAGE as u64, usize::from(last) % PAGE)
}

fn seid(page: u64, slot: u64) -> Seid {
    Seid(page * PAGE as u64 + slot)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_says_what_a_tree_says() {
        let (mut map, mut tree) = (SeidMap::default(), BTreeMap::new());
        let mut dice = 7_u64;
        for step in 0..20_000_u64 {
            dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let seid = match dice >> 62 {
                0 => Seid(u64::MAX - (dice >> 40) % 40),
                _ => Seid((dice >> 40) % 100),
            };
            if dice >> 61 & 1 == 0 {
                assert_eq!(map.insert(seid, step), tree.insert(seid, step));
            } else {
                assert_eq!(map.remove(seid), tree.remove(&seid));
            }
            assert_eq!(map.get(seid), tree.get(&seid));
            assert_eq!(map.len(), tree.len());
        }
        let listed: BTreeMap<_, _> = map.iter().map(|(seid, step)| (seid, *step)).collect();
        assert_eq!(listed, tree);
        for seid in tree.into_keys() {
            map.remove(seid);
        }
        assert!(map.pages.is_empty());
    }
}
