//! Messages in a lane, copied as a whole.

use std::collections::VecDeque;
use std::iter;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};

/// A message that nobody looks into on its way.
///
/// An `Option` of an enum is told from `None` by the tag of the enum. So whoever takes one out of
/// a queue reads the tag, and copies the rest beside it; and the processor lets the one who reads
/// both at once wait until they are written. That took a third of the time of a message. This has
/// no tag that could serve for it.
pub(crate) struct Whole<T>(MaybeUninit<T>);

impl<T> Whole<T> {
    #[inline(always)]
    pub(crate) const fn new(value: T) -> Self {
        Self(MaybeUninit::new(value))
    }

    #[inline(always)]
    pub(crate) const fn into_inner(self) -> T {
        let whole = ManuallyDrop::new(self);
        // SAFETY: there is a value in it, and nobody uses it again.
        unsafe { (&raw const whole).cast::<T>().read() }
    }
}

impl<T> Drop for Whole<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: there is a value in it, which is dropped once, here.
        unsafe { self.0.assume_init_drop() };
    }
}

/// A lane of messages. There is a value in all that it holds.
///
/// What is put in has no destructor there: else it would be made in a place of its own, in case
/// that the lane grows and cannot, and copied from there.
pub(crate) struct Lane<T>(VecDeque<MaybeUninit<T>>);

impl<T> Lane<T> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts one in, last.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        let value = MaybeUninit::new(value);
        if self.0.len() == self.0.capacity() {
            self.make_room();
        }
        self.0.push_back(value);
    }

    #[cold]
    fn make_room(&mut self) {
        // An actor that is asked now and then never needs more than one.
        match self.0.capacity() {
            0 => self.0.reserve_exact(1),
            _ => self.0.reserve(1),
        }
    }

    /// Takes the first.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Whole<T>> {
        self.0.pop_front().map(Whole)
    }

    /// As a lane of its own.
    pub(crate) fn take_first(&mut self) -> Self {
        Self(self.0.pop_front().into_iter().collect())
    }

    /// What it takes, by capacity. That of values without size is no number to count with.
    pub(crate) fn octets(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<T>())
    }

    /// Takes all of another lane, to come last.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Takes one after another, and drops what is left.
    pub(crate) fn into_values(mut self) -> impl Iterator<Item = T> {
        iter::from_fn(move || self.pop().map(Whole::into_inner))
    }
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Lane<T> {
    #[inline]
    fn drop(&mut self) {
        if needs_drop::<T>() && !self.is_empty() {
            drop(Rest(self));
        }
    }
}

/// What is left of a lane that is dropped. If one panics, the others are dropped all the same.
struct Rest<'a, T>(&'a mut Lane<T>);

impl<T> Drop for Rest<'_, T> {
    #[cold]
    fn drop(&mut self) {
        while let Some(one) = self.0.pop() {
            let rest = Rest(self.0);
            drop(one);
            std::mem::forget(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_left_of_a_lane_is_dropped_once() {
        let value = Arc::new(());
        let mut lane = Lane::new();
        for _ in 0..5 {
            lane.push(Arc::clone(&value));
        }
        let first = lane.pop().map(Whole::into_inner);
        drop(lane.pop());
        assert_eq!(Arc::strong_count(&value), 5);
        drop(lane);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(first);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn values_come_in_order_round_the_end_of_the_room() {
        let mut lane = Lane::default();
        let (mut next, mut seen) = (0, Vec::new());
        for round in 0..40 {
            for _ in 0..round % 7 {
                lane.push(Box::new(next));
                next += 1;
            }
            for _ in 0..round % 5 {
                seen.extend(lane.pop().map(Whole::into_inner));
            }
        }
        let mut after = Lane::default();
        after.push(Box::new(next));
        lane.append(&mut after);
        assert!(after.is_empty());
        seen.extend(lane.into_values());
        let all: Vec<_> = (0..=next).map(Box::new).collect();
        assert_eq!(seen, all);
    }

    #[test]
    fn a_destructor_that_panics_takes_no_other_along() {
        struct Fails<'a>(bool, &'a Cell<u32>);
        impl Drop for Fails<'_> {
            fn drop(&mut self) {
                self.1.update(|dropped| dropped + 1);
                assert!(!self.0, "planted");
            }
        }
        let dropped = Cell::new(0);
        let mut lane = Lane::new();
        for number in 0..4 {
            lane.push(Fails(number == 1, &dropped));
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(lane)));
        assert!(panicked.is_err());
        assert_eq!(dropped.get(), 4);
    }
}
