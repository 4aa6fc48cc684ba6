//! The table of what a component holds.

use strowger::Topic;

use crate::contract::Refusal;
use crate::directory::Door;
use crate::message::Event;

/// What a handle stands for.
#[derive(Clone)]
pub(super) enum Held {
    Actor {
        door: Door,
        /// Whether it may be sent to and asked.
        send: bool,
        /// Whether it may be requested from.
        request: bool,
        /// Whether its streams may be read.
        stream: bool,
    },
    Topic(Topic<Event>),
}

/// What a component holds. A handle has the number of its place in its low half and that of its
/// use in the high half, so a handle that was released is nobody's.
pub(super) struct Handles {
    places: Vec<(u32, Option<Held>)>,
    free: Vec<u32>,
    limit: usize,
}

impl Handles {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            limit,
        }
    }

    pub(super) fn insert(&mut self, held: Held) -> Result<u64, Refusal> {
        if let Some(place) = self.free.pop() {
            let entry = &mut self.places[place as usize];
            entry.1 = Some(held);
            return Ok(number(place, entry.0));
        }
        if self.places.len() >= self.limit {
            return Err(Refusal::Limit);
        }
        let place = u32::try_from(self.places.len()).map_err(|_| Refusal::Limit)?;
        self.places.push((1, Some(held)));
        Ok(number(place, 1))
    }

    pub(super) fn get(&self, handle: u64) -> Result<&Held, Refusal> {
        let (place, used) = parts(handle);
        match self.places.get(place as usize) {
            Some((now, Some(held))) if *now == used => Ok(held),
            _ => Err(Refusal::Unknown),
        }
    }

    pub(super) fn release(&mut self, handle: u64) -> Result<(), Refusal> {
        self.get(handle)?;
        let (place, _) = parts(handle);
        let entry = &mut self.places[place as usize];
        entry.1 = None;
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(place);
        Ok(())
    }
}

const fn number(place: u32, used: u32) -> u64 {
    ((used as u64) << 32) | place as u64
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
    fn a_handle_that_was_released_is_nobodys() {
        let system = strowger::testing::TestSystem::new(1);
        let topic = || Held::Topic(system.system().topic("news").expect("a plain name"));
        let mut handles = Handles::new(2);
        let first = handles.insert(topic()).expect("there is room");
        let second = handles.insert(topic()).expect("there is room");
        assert!(matches!(handles.insert(topic()), Err(Refusal::Limit)));
        assert!(matches!(handles.release(first), Ok(())));
        assert!(matches!(handles.get(first), Err(Refusal::Unknown)));
        // Its place is another's now.
        let third = handles.insert(topic()).expect("there is room");
        assert_ne!(third, first);
        assert!(matches!(handles.get(first), Err(Refusal::Unknown)));
        assert!(matches!(handles.release(first), Err(Refusal::Unknown)));
        assert!(handles.get(second).is_ok() && handles.get(third).is_ok());
    }
}
