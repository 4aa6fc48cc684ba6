//! The free numbers of a pool.

use std::collections::BTreeMap;

/// The free numbers of a pool, as ranges: allocation takes logarithmic time at any fill level, and
/// a full pool is known at once.
///
/// Numbers are given out in order, so that a released one stays unused for as long as possible.
#[derive(Debug)]
pub(super) struct FreeRanges {
    /// The last number of each range, by the first. Ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
    /// The number at which the next search starts.
    cursor: u64,
}

impl FreeRanges {
    /// Creates a pool of the numbers from `first` to `last`; of none if `last` is less.
    pub(super) fn new(first: u64, last: u64) -> Self {
        Self {
            ranges: (first <= last)
                .then_some((first, last))
                .into_iter()
                .collect(),
            cursor: first,
        }
    }

    /// Takes the next free number.
    pub(super) fn allocate(&mut self) -> Option<u64> {
        let number = self.free_from(self.cursor);
        let number = number.or_else(|| self.free_from(0))?;
        self.take(number, number);
        self.cursor = number.saturating_add(1);
        Some(number)
    }

    fn free_from(&self, number: u64) -> Option<u64> {
        match self.ranges.range(..=number).next_back() {
            Some((_, &last)) if last >= number => Some(number),
            _ => self.ranges.range(number..).next().map(|(&first, _)| first),
        }
    }

    /// Takes `count` numbers in a row, of which the first is a multiple of `count`, and returns the
    /// first. They come from the end of the pool, away from single numbers.
    pub(super) fn allocate_block(&mut self, count: u64) -> Option<u64> {
        let fits = |(&first, &last): (&u64, &u64)| {
            let end = last.checked_add(1)? / count * count;
            let start = end.checked_sub(count)?;
            (start >= first).then_some(start)
        };
        let start = self.ranges.iter().rev().find_map(fits)?;
        self.take(start, start + (count - 1));
        Some(start)
    }

    /// Takes the numbers from `first` to `last`, as far as they are free.
    pub(super) fn take(&mut self, first: u64, last: u64) {
        let before = self.ranges.range(..first).next_back();
        if let Some((&start, &end)) = before
            && end >= first
        {
            self.ranges.insert(start, first - 1);
            if end > last {
                self.ranges.insert(last + 1, end);
                return;
            }
        }
        while let Some((&start, &end)) = self.ranges.range(first..=last).next() {
            self.ranges.remove(&start);
            if end > last {
                self.ranges.insert(last + 1, end);
            }
        }
    }

    /// Returns the numbers from `first` to `last`, which must belong to the pool.
    pub(super) fn put(&mut self, first: u64, last: u64) {
        // Some of them may be free already.
        self.take(first, last);
        let (mut start, mut end) = (first, last);
        if let Some((&before, &until)) = self.ranges.range(..first).next_back()
            && until + 1 == first
        {
            start = before;
        }
        if let Some(after) = last.checked_add(1)
            && let Some(until) = self.ranges.remove(&after)
        {
            end = until;
        }
        self.ranges.insert(start, end);
    }
}
