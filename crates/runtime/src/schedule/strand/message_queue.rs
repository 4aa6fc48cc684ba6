//! A queue of messages that are copied without being read.

use std::collections::VecDeque;
use std::iter;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};

/// A message that is opaque in transit.
///
/// An `Option` of an enum uses the tag of the enum to represent `None`. Taking one out of a queue
/// therefore reads the tag, and copies the rest separately; the processor then stalls a later read
/// of both at once until the two writes are done. That takes a third of the time of a message. This
/// type has no tag that could serve as a niche.
pub(crate) struct OpaqueMessage<T>(MaybeUninit<T>);

impl<T> OpaqueMessage<T> {
    #[inline(always)]
    pub(crate) const fn new(value: T) -> Self {
        Self(MaybeUninit::new(value))
    }

    #[inline(always)]
    pub(crate) const fn into_inner(self) -> T {
        let message = ManuallyDrop::new(self);
        // SAFETY: there is a value in it, and nothing uses it again.
        unsafe { (&raw const message).cast::<T>().read() }
    }
}

impl<T> Drop for OpaqueMessage<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: there is a value in it, which is dropped once, here.
        unsafe { self.0.assume_init_drop() };
    }
}

/// A queue of messages. Every element is initialized.
///
/// The elements have no destructor. Otherwise `push` would build a message in a temporary place, in
/// case the queue has to grow and cannot, and copy it from there.
pub(crate) struct MessageQueue<T>(VecDeque<MaybeUninit<T>>);

impl<T> MessageQueue<T> {
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

    /// Pushes a message to the back.
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

    /// Takes the first message.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<OpaqueMessage<T>> {
        self.0.pop_front().map(OpaqueMessage)
    }

    /// Takes the first message, as a queue of its own.
    pub(crate) fn take_first(&mut self) -> Self {
        Self(self.0.pop_front().into_iter().collect())
    }

    /// Returns the bytes that the queue takes, by capacity. The capacity for zero-sized values is
    /// no real count.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<T>())
    }

    /// Moves all messages of another queue to the back of this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Takes one message after another; drops the rest.
    pub(crate) fn into_values(mut self) -> impl Iterator<Item = T> {
        iter::from_fn(move || self.pop().map(OpaqueMessage::into_inner))
    }
}

impl<T> Default for MessageQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for MessageQueue<T> {
    #[inline]
    fn drop(&mut self) {
        if needs_drop::<T>() && !self.is_empty() {
            drop(DropRest(self));
        }
    }
}

/// The rest of a queue that is being dropped. If one destructor panics, the others still run.
struct DropRest<'a, T>(&'a mut MessageQueue<T>);

impl<T> Drop for DropRest<'_, T> {
    #[cold]
    fn drop(&mut self) {
        while let Some(one) = self.0.pop() {
            let rest = DropRest(self.0);
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
    fn remaining_messages_are_dropped_once() {
        let value = Arc::new(());
        let mut queue = MessageQueue::new();
        for _ in 0..5 {
            queue.push(Arc::clone(&value));
        }
        let first = queue.pop().map(OpaqueMessage::into_inner);
        drop(queue.pop());
        assert_eq!(Arc::strong_count(&value), 5);
        drop(queue);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(first);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn order_holds_across_wraparound() {
        let mut queue = MessageQueue::default();
        let (mut next, mut seen) = (0, Vec::new());
        for round in 0..40 {
            for _ in 0..round % 7 {
                queue.push(Box::new(next));
                next += 1;
            }
            for _ in 0..round % 5 {
                seen.extend(queue.pop().map(OpaqueMessage::into_inner));
            }
        }
        let mut after = MessageQueue::default();
        after.push(Box::new(next));
        queue.append(&mut after);
        assert!(after.is_empty());
        seen.extend(queue.into_values());
        let all: Vec<_> = (0..=next).map(Box::new).collect();
        assert_eq!(seen, all);
    }

    #[test]
    fn panicking_destructor_does_not_skip_others() {
        struct Fails<'a>(bool, &'a Cell<u32>);
        impl Drop for Fails<'_> {
            fn drop(&mut self) {
                self.1.update(|dropped| dropped + 1);
                assert!(!self.0, "planted");
            }
        }
        let dropped = Cell::new(0);
        let mut queue = MessageQueue::new();
        for number in 0..4 {
            queue.push(Fails(number == 1, &dropped));
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(queue)));
        assert!(panicked.is_err());
        assert_eq!(dropped.get(), 4);
    }
}
