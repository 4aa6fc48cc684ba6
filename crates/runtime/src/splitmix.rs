//! A small pseudorandom number generator with a seed.

/// Sebastiano Vigna's `SplitMix64`: one word of state, and every seed is a good one.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which must not be zero.
    #[cfg(feature = "testing")]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is below a usize"
    )]
    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        // The modulo bias is negligible for the small bounds used here.
        (self.next() % bound as u64) as usize
    }

    /// Returns a number from zero up to, but not including, one.
    pub(crate) fn fraction(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        (self.next() >> 11) as f64 / STEPS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut numbers = SplitMix64::new(1_234_567);
        assert_eq!(numbers.next(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next(), 3_203_168_211_198_807_973);
        assert_eq!(numbers.next(), 9_817_491_932_198_370_423);
    }

    #[cfg(feature = "testing")]
    #[test]
    fn numbers_below_a_bound_reach_all_and_only_those() {
        let mut numbers = SplitMix64::new(0);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[numbers.below(7)] = true;
        }
        assert_eq!(seen, [true; 7]);
    }

    #[test]
    fn fractions_stay_below_one() {
        let mut numbers = SplitMix64::new(9);
        assert!(
            (0..1000)
                .map(|_| numbers.fraction())
                .all(|f| (0.0..1.0).contains(&f))
        );
    }
}
