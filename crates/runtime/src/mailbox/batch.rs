//! The messages that a receiver took out together.

use std::mem;

use crate::schedule::strand::{Lane, Whole};

/// A lane that is made when first needed, and costs an address until then, where one in place takes
/// four: an actor that takes its messages one by one never needs it.
pub(super) struct Batch<M>(Option<Box<Lane<M>>>);

impl<M> Batch<M> {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |batch| batch.len())
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<Whole<M>> {
        self.0.as_mut()?.pop()
    }

    /// Takes all of a line, and leaves what is in the batch there.
    #[inline(always)]
    pub(super) fn swap(&mut self, line: &mut Lane<M>) {
        mem::swap(line, self.0.get_or_insert_default());
    }

    /// Puts all that is left into a line: first, unless a test wants it last.
    pub(super) fn give_back(&mut self, line: &mut Lane<M>, last: bool) {
        if let Some(batch) = &mut self.0 {
            if !last {
                mem::swap(line, &mut **batch);
            }
            line.append(batch);
        }
    }
}
