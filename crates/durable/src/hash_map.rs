//! Hash maps that give back the memory of entries that were removed.

use std::collections::HashMap;
use std::hash::Hash;

/// A map with fewer entries is not worth the move.
const MIN_CAPACITY: usize = 64;

/// Removes an entry. A map of which at most a quarter is in use is halved.
pub(crate) fn remove_and_shrink<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: &K) -> Option<V> {
    let removed = map.remove(key);
    if map.capacity() > MIN_CAPACITY && map.len() <= map.capacity() / 4 {
        map.shrink_to(map.capacity() / 2);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_shrinks_with_its_entries_and_keeps_the_others() {
        let mut map: HashMap<u32, u32> = (0..10_000).map(|key| (key, key + 1)).collect();
        assert_eq!(remove_and_shrink(&mut map, &10_000), None);
        for key in 0..9_990 {
            assert_eq!(remove_and_shrink(&mut map, &key), Some(key + 1));
        }
        assert!(map.capacity() <= 2 * MIN_CAPACITY, "{}", map.capacity());
        assert!((9_990..10_000).all(|key| map[&key] == key + 1));
    }
}
