//! A paged map for keys that are mostly consecutive numbers: SEIDs that the node assigns, TEIDs and
//! addresses from a pool.
//!
//! A hash table with a million entries moves all of them when it grows, which holds the endpoint up
//! for tens of milliseconds, and is half empty then. Here sixteen neighbouring keys share one
//! allocation, and the hash table that finds it has a sixteenth of the entries. A key without
//! neighbours is stored in the hash table itself.

use std::marker::PhantomData;

use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;

/// A map with SEIDs as keys.
pub(crate) type SeidMap<T> = PagedMap<Seid, T>;

/// A map with keys that convert to and from numbers.
#[derive(Clone, Debug)]
pub(crate) struct PagedMap<K, T> {
    pages: FxHashMap<u64, Page<T>>,
    len: usize,
    kind: PhantomData<K>,
}

/// A key that converts to and from a number.
pub(crate) trait PagedKey: Copy {
    fn number(self) -> u64;
    fn of(number: u64) -> Self;
}

impl PagedKey for u64 {
    fn number(self) -> u64 {
        self
    }

    fn of(number: u64) -> Self {
        number
    }
}

impl PagedKey for Seid {
    fn number(self) -> u64 {
        self.0
    }

    fn of(number: u64) -> Self {
        Self(number)
    }
}

/// The entries of sixteen neighbouring keys: at least one.
#[derive(Clone, Debug)]
enum Page<T> {
    One(u8, T),
    Many(Box<Slots<T>>),
}

#[derive(Clone, Debug)]
struct Slots<T> {
    slots: [Option<T>; PAGE as usize],
    used: usize,
}

/// The number of keys of a page: a power of two, and at most 256.
const PAGE: u8 = 16;

impl<K, T> Default for PagedMap<K, T> {
    fn default() -> Self {
        Self {
            pages: FxHashMap::default(),
            len: 0,
            kind: PhantomData,
        }
    }
}

impl<K: PagedKey, T> PagedMap<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: K) -> Option<&T> {
        let (page, slot) = place(key);
        match self.pages.get(&page)? {
            Page::One(at, value) => (*at == slot).then_some(value),
            Page::Many(page) => page.slots[usize::from(slot)].as_ref(),
        }
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let (page, slot) = place(key);
        match self.pages.get_mut(&page)? {
            Page::One(at, value) => (*at == slot).then_some(value),
            Page::Many(page) => page.slots[usize::from(slot)].as_mut(),
        }
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    /// Inserts a value and returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: T) -> Option<T> {
        let (number, slot) = place(key);
        let Some(page) = self.pages.get_mut(&number) else {
            self.pages.insert(number, Page::One(slot, value));
            self.len += 1;
            return None;
        };
        let before = match page {
            Page::One(at, there) if *at == slot => Some(std::mem::replace(there, value)),
            Page::One(..) => {
                let new = Page::Many(Box::new(Slots {
                    slots: std::array::from_fn(|_| None),
                    used: 0,
                }));
                let old = std::mem::replace(page, new);
                if let (Page::One(at, there), Page::Many(page)) = (old, page) {
                    page.put(at, there);
                    page.put(slot, value);
                }
                None
            }
            Page::Many(page) => page.put(slot, value),
        };
        self.len += usize::from(before.is_none());
        before
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<T> {
        let (number, slot) = place(key);
        let removed = match self.pages.get_mut(&number)? {
            Page::One(at, _) if *at != slot => return None,
            Page::One(..) => match self.pages.remove(&number)? {
                Page::One(_, value) => value,
                Page::Many(_) => return None,
            },
            Page::Many(slots) => {
                let value = slots.take(slot)?;
                // The only remaining entry moves into the hash table, which frees the page.
                if let Some((at, last)) = slots.last() {
                    self.pages.insert(number, Page::One(at, last));
                }
                value
            }
        };
        self.len -= 1;
        Some(removed)
    }

    /// Returns an iterator over all entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.pages.iter().flat_map(|(number, page)| {
            let (one, many) = match page {
                Page::One(at, value) => (Some((*at, value)), None),
                Page::Many(page) => (None, Some((0..).zip(&page.slots))),
            };
            let many = many.into_iter().flatten();
            let many = many.filter_map(|(slot, value)| Some((slot, value.as_ref()?)));
            let entries = one.into_iter().chain(many);
            entries.map(|(slot, value)| (key(*number, slot), value))
        })
    }
}

impl<T> Slots<T> {
    fn put(&mut self, slot: u8, value: T) -> Option<T> {
        let before = self.slots[usize::from(slot)].replace(value);
        self.used += usize::from(before.is_none());
        before
    }

    fn take(&mut self, slot: u8) -> Option<T> {
        let before = self.slots[usize::from(slot)].take()?;
        self.used -= 1;
        Some(before)
    }

    /// Removes and returns the only remaining entry; returns `None` if there are more.
    fn last(&mut self) -> Option<(u8, T)> {
        if self.used > 1 {
            return None;
        }
        let mut slots = (0..).zip(&mut self.slots);
        slots.find_map(|(slot, value)| Some((slot, value.take()?)))
    }
}

fn place(key: impl PagedKey) -> (u64, u8) {
    let [.., last] = key.number().to_be_bytes();
    (key.number() / u64::from(PAGE), last % PAGE)
}

fn key<K: PagedKey>(page: u64, slot: u8) -> K {
    K::of(page * u64::from(PAGE) + u64::from(slot))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn paged_map_matches_btree_map() {
        let (mut map, mut tree) = (SeidMap::default(), BTreeMap::new());
        let mut dice = 7_u64;
        for step in 0..20_000_u64 {
            dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let seid = match dice >> 62 {
                0 => Seid(u64::MAX - (dice >> 40) % 40),
                1 => Seid((dice >> 40) % 100 * 1000),
                _ => Seid((dice >> 40) % 100),
            };
            if dice >> 61 & 1 == 0 {
                assert_eq!(map.insert(seid, step), tree.insert(seid, step));
            } else {
                assert_eq!(map.remove(seid), tree.remove(&seid));
            }
            assert_eq!(map.get(seid), tree.get(&seid));
            assert_eq!(map.get_mut(seid), tree.get_mut(&seid));
            assert_eq!(map.len(), tree.len());
        }
        let listed: BTreeMap<_, _> = map.iter().map(|(seid, step)| (seid, *step)).collect();
        assert_eq!(listed, tree);
        for seid in tree.into_keys() {
            map.remove(seid);
        }
        assert!(map.pages.is_empty());
    }

    #[test]
    fn isolated_key_allocates_no_page() {
        let mut map = SeidMap::default();
        for number in 1..=17 {
            map.insert(Seid(number), number);
        }
        let alone = |map: &SeidMap<u64>| {
            let pages = map.pages.values();
            pages.filter(|page| matches!(page, Page::One(..))).count()
        };
        assert_eq!((map.pages.len(), alone(&map)), (2, 0));
        for number in 1..=14 {
            map.remove(Seid(number));
        }
        assert_eq!((map.pages.len(), alone(&map)), (2, 1));
    }
}
