//! The table of handles that a component holds.

use strowger::Topic;

use crate::contract::Refusal;
use crate::directory::DirectoryEntry;
use crate::message::Event;

/// The target of a handle.
#[derive(Clone)]
pub(super) enum HandleTarget {
    Actor {
        entry: DirectoryEntry,
        /// `true` if `send` and `ask` are allowed.
        send: bool,
        /// `true` if `request` is allowed.
        request: bool,
        /// `true` if reading streams is allowed.
        stream: bool,
    },
    Topic(Topic<Event>),
}

/// The handle table of a component. The low half of a handle is an index and the high half a
/// generation, so a released handle never refers to a later entry.
pub(super) struct HandleTable {
    slots: Vec<(u32, Option<HandleTarget>)>,
    free: Vec<u32>,
    limit: usize,
}

impl HandleTable {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit,
        }
    }

    pub(super) fn insert(&mut self, target: HandleTarget) -> Result<u64, Refusal> {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.slots[slot as usize];
            entry.1 = Some(target);
            return Ok(number(slot, entry.0));
        }
        if self.slots.len() >= self.limit {
            return Err(Refusal::Limit);
        }
        let slot = u32::try_from(self.slots.len()).map_err(|_| Refusal::Limit)?;
        self.slots.push((1, Some(target)));
        Ok(number(slot, 1))
    }

    pub(super) fn get(&self, handle: u64) -> Result<&HandleTarget, Refusal> {
        let (slot, generation) = parts(handle);
        match self.slots.get(slot as usize) {
            Some((now, Some(target))) if *now == generation => Ok(target),
            _ => Err(Refusal::Unknown),
        }
    }

    pub(super) fn release(&mut self, handle: u64) -> Result<(), Refusal> {
        self.get(handle)?;
        let (slot, _) = parts(handle);
        let entry = &mut self.slots[slot as usize];
        entry.1 = None;
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(slot);
        Ok(())
    }
}

const fn number(slot: u32, generation: u32) -> u64 {
    ((generation as u64) << 32) | slot as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a handle is two numbers side by side"
)]
const fn parts(handle: u64) -> (u32, u32) {
    (handle as u32, (handle >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_handle_is_unknown() {
        let system = strowger::testing::TestSystem::new(1);
        let topic = || HandleTarget::Topic(system.system().topic("news").expect("a plain name"));
        let mut handles = HandleTable::new(2);
        let first = handles.insert(topic()).expect("there is room");
        let second = handles.insert(topic()).expect("there is room");
        assert!(matches!(handles.insert(topic()), Err(Refusal::Limit)));
        assert!(matches!(handles.release(first), Ok(())));
        assert!(matches!(handles.get(first), Err(Refusal::Unknown)));
        // The slot is in use again, with another generation.
        let third = handles.insert(topic()).expect("there is room");
        assert_ne!(third, first);
        assert!(matches!(handles.get(first), Err(Refusal::Unknown)));
        assert!(matches!(handles.release(first), Err(Refusal::Unknown)));
        assert!(handles.get(second).is_ok() && handles.get(third).is_ok());
    }
}
