//! A lane that most mailboxes never use.

use std::collections::VecDeque;

/// A queue that is made when first needed, and costs an address until then.
#[expect(clippy::box_collection, reason = "a queue in place takes four words")]
pub(super) struct Side<T>(Option<Box<VecDeque<T>>>);

impl<T> Default for Side<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Side<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|queue| queue.is_empty())
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.len())
    }

    pub(super) fn push(&mut self, value: T) {
        self.0.get_or_insert_default().push_back(value);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.0.as_mut()?.pop_front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|queue| queue.iter())
    }

    /// What it takes, in octets.
    pub(super) fn octets(&self) -> usize {
        let queue = self.0.as_ref();
        queue.map_or(0, |queue| {
            size_of_val(&**queue) + super::figures::octets(queue)
        })
    }
}

impl<T> IntoIterator for Side<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::option::IntoIter<VecDeque<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(|queue| *queue).into_iter().flatten()
    }
}
