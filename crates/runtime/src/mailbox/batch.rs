//! The messages that a receiver took out together.

use std::mem;

use crate::schedule::strand::{MessageQueue, OpaqueMessage};

/// A queue that is allocated on first use. Until then it costs one word, where a queue in place
/// takes four: an actor that takes its messages one at a time never needs it.
pub(super) struct Batch<M>(Option<Box<MessageQueue<M>>>);

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
    pub(super) fn pop_front(&mut self) -> Option<OpaqueMessage<M>> {
        self.0.as_mut()?.pop()
    }

    /// Takes all messages of a queue, and leaves those of the batch in it.
    #[inline(always)]
    pub(super) fn swap(&mut self, queue: &mut MessageQueue<M>) {
        mem::swap(queue, self.0.get_or_insert_default());
    }

    /// Puts the remaining messages back into a queue: at the front, unless a seeded bug wants them
    /// at the back.
    pub(super) fn give_back(&mut self, queue: &mut MessageQueue<M>, last: bool) {
        if let Some(batch) = &mut self.0 {
            if !last {
                mem::swap(queue, &mut **batch);
            }
            queue.append(batch);
        }
    }
}
