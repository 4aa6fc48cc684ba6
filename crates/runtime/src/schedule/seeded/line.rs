//! What is ready to run, of which any one can be taken out in one step.

use rustc_hash::FxHashMap;

use super::Entry;
use crate::schedule::strand::Address;

/// Entries whose order follows from what came and what was taken, and means nothing.
#[derive(Default)]
pub(super) struct Line {
    entries: Vec<Entry>,
    /// Where each actor stands.
    places: FxHashMap<Address, usize>,
}

impl Line {
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        if let Entry::Actor(ready, _) = &entry {
            self.places.insert(ready.address(), self.entries.len());
        }
        self.entries.push(entry);
    }

    /// Takes out whom a draw names.
    pub(super) fn take(&mut self, place: usize) -> Entry {
        // The last one takes the place: to move all that come after would cost a step for each.
        let taken = self.entries.swap_remove(place);
        if let Entry::Actor(ready, _) = &taken {
            self.places.remove(&ready.address());
        }
        if let Some(Entry::Actor(moved, _)) = self.entries.get(place) {
            self.places.insert(moved.address(), place);
        }
        taken
    }

    /// Takes out an actor, if it is there.
    pub(super) fn take_actor(&mut self, actor: Address) -> Option<Entry> {
        let place = *self.places.get(&actor)?;
        Some(self.take(place))
    }
}
