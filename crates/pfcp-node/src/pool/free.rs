//! The free numbers of a pool.

use std::collections::{BTreeMap, BTreeSet};

/// The free numbers of a pool, as ranges: allocation takes logarithmic time at any fill level, and
/// a full pool is known at once.
///
/// Numbers are given out in order, so that a released one stays unused for as long as possible.
#[derive(Debug)]
pub(super) struct FreeRanges {
    /// The last number of each range, by the first. Ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
    /// The ranges by the order of the largest block in them, so that a search for a block does not
    /// visit the many ranges of a fragmented pool.
    by_order: BTreeSet<(u32, u64)>,
    /// The number at which the next search starts.
    cursor: u64,
}

impl FreeRanges {
    /// Creates a pool of the numbers from `first` to `last`; of none if `last` is less.
    pub(super) fn new(first: u64, last: u64) -> Self {
        let mut free = Self {
            ranges: BTreeMap::new(),
            by_order: BTreeSet::new(),
            cursor: first,
        };
        if first <= last {
            free.insert(first, last);
        }
        free
    }

    /// Takes the next free number.
    pub(super) fn allocate(&mut self) -> Option<u64> {
        let number = self.free_from(self.cursor);
        let number = number.or_else(|| self.free_from(0))?;
        self.take(number, number);
        self.cursor = number.saturating_add(1);
        Some(number)
    }

    /// Returns `true` if a number is free.
    pub(super) fn contains(&self, number: u64) -> bool {
        self.free_from(number) == Some(number)
    }

    fn free_from(&self, number: u64) -> Option<u64> {
        match self.ranges.range(..=number).next_back() {
            Some((_, &last)) if last >= number => Some(number),
            _ => self.ranges.range(number..).next().map(|(&first, _)| first),
        }
    }

    /// Takes `1 << order` numbers in a row, of which the first is a multiple of their count, and
    /// returns the first. They come from the end of a range, away from single numbers.
    pub(super) fn allocate_block(&mut self, order: u32) -> Option<u64> {
        let &(_, first) = self.by_order.range((order, 0)..).next_back()?;
        let start = last_block(first, *self.ranges.get(&first)?, order)?;
        self.take(start, start + ((1 << order) - 1));
        Some(start)
    }

    fn insert(&mut self, first: u64, last: u64) {
        self.ranges.insert(first, last);
        self.by_order.insert((largest_order(first, last), first));
    }

    fn remove(&mut self, first: u64) -> Option<u64> {
        let last = self.ranges.remove(&first)?;
        self.by_order.remove(&(largest_order(first, last), first));
        Some(last)
    }

    /// Takes the numbers from `first` to `last`, as far as they are free.
    pub(super) fn take(&mut self, first: u64, last: u64) {
        let before = self.ranges.range(..first).next_back();
        if let Some((&start, &end)) = before
            && end >= first
        {
            self.remove(start);
            self.insert(start, first - 1);
            if end > last {
                self.insert(last + 1, end);
                return;
            }
        }
        while let Some((&start, &end)) = self.ranges.range(first..=last).next() {
            self.remove(start);
            if end > last {
                self.insert(last + 1, end);
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
            self.remove(before);
            start = before;
        }
        if let Some(after) = last.checked_add(1)
            && let Some(until) = self.remove(after)
        {
            end = until;
        }
        self.insert(start, end);
    }
}

/// Returns the first number of the last aligned block of `1 << order` numbers in a range.
fn last_block(first: u64, last: u64, order: u32) -> Option<u64> {
    let end = (u128::from(last) + 1) >> order << order;
    let start = u64::try_from(end.checked_sub(1 << order)?).ok()?;
    (start >= first).then_some(start)
}

/// Returns the order of the largest aligned block in a range.
fn largest_order(first: u64, last: u64) -> u32 {
    let order = (u128::from(last - first) + 1).ilog2();
    // Half of it fits at any alignment.
    match last_block(first, last, order) {
        Some(_) => order,
        None => order.saturating_sub(1),
    }
}
