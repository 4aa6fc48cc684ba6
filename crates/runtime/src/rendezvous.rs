//! Choosing one of many candidates: in turn, or by key.

use std::hash::{Hash, Hasher};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rustc_hash::FxHasher;

/// Hashes a key; the result is the same in every process.
pub(crate) fn hash_key(key: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Returns the weight of a candidate for a key. The candidate with the highest weight gets the key,
/// so a candidate that leaves affects only its own keys, and a candidate that joins takes only
/// those for which its weight is the highest.
pub(crate) fn rendezvous_weight(key: u64, candidate: u64) -> u64 {
    mix(key ^ mix(candidate))
}

/// Mixes the bits of a number.
fn mix(number: u64) -> u64 {
    SplitMix64::seed_from_u64(number).next_u64()
}

/// Returns the candidates in the order of a round: first those after `last`, then those up to it.
/// `candidates` are sorted by a number that does not change.
pub(crate) fn round_robin<T>(
    candidates: &[T],
    last: u64,
    number: impl Fn(&T) -> u64,
) -> impl Iterator<Item = &T> {
    let next = candidates.partition_point(|one| number(one) <= last);
    candidates[next..].iter().chain(&candidates[..next])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(key: u64, candidates: &[u64]) -> Option<u64> {
        let wanted = candidates
            .iter()
            .max_by_key(|one| rendezvous_weight(key, **one));
        wanted.copied()
    }

    #[test]
    fn leaving_candidate_moves_only_its_keys() {
        let all: Vec<u64> = (0..10).collect();
        let fewer: Vec<u64> = all.iter().copied().filter(|one| *one != 3).collect();
        for key in (0..1000).map(hash_key) {
            let before = owner(key, &all);
            if before != Some(3) {
                assert_eq!(owner(key, &fewer), before);
            }
        }
    }

    #[test]
    fn keys_are_distributed_evenly() {
        let all: Vec<u64> = (0..10).collect();
        let mut counts = [0_u32; 10];
        for key in 0..10_000_u64 {
            let owner = owner(hash_key(key), &all).expect("there are candidates");
            counts[usize::try_from(owner).expect("below ten")] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn round_robin_starts_after_the_last() {
        let seen = |last| {
            round_robin(&[1_u64, 4, 9], last, |one| *one)
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(seen(0), [1, 4, 9]);
        assert_eq!(seen(1), [4, 9, 1]);
        assert_eq!(seen(5), [9, 1, 4]);
        assert_eq!(seen(9), [1, 4, 9]);
    }
}
