//! Which programs have a realm: so many at a time, those that were used last.
//!
//! For each that waits for room one leaves, and no more: the one that was idle for longest, or the
//! next to be idle when all work. Who was to leave and gets a message instead stays, and another
//! one leaves in its stead.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger::ActorRef;
use tokio::sync::oneshot;

use super::watch::ProgramsWatch;
use super::{ProgramMessage, Rest};

/// Room for realms of programs.
#[derive(Debug)]
pub(super) struct Residence {
    rooms: Mutex<Rooms>,
    pub(super) watch: ProgramsWatch,
}

#[derive(Debug)]
struct Rooms {
    free: usize,
    /// Those that are idle and stay, the one that was used longest ago first.
    idle: BTreeMap<u64, ActorRef<ProgramMessage>>,
    /// How many are to leave, and have not yet left.
    leaving: usize,
    /// Those that wait, the one that waits longest first.
    waiting: BTreeMap<u64, oneshot::Sender<Room>>,
    /// The places that were given, among the idle and among those that wait.
    places: u64,
}

/// Room for one realm. When it is dropped it goes to whoever waits, or is free.
#[derive(Debug)]
pub(super) struct Room {
    residence: Arc<Residence>,
    /// The place among the idle, while the program is not at work. It is to leave if it is not
    /// found there.
    place: Option<u64>,
}

impl Residence {
    pub(super) fn new(residents: usize, watch: ProgramsWatch) -> Arc<Self> {
        let rooms = Mutex::new(Rooms {
            free: residents.max(1),
            idle: BTreeMap::new(),
            leaving: 0,
            waiting: BTreeMap::new(),
            places: 0,
        });
        Arc::new(Self { rooms, watch })
    }

    /// Takes room for one more, as soon as there is any.
    pub(super) async fn admit(self: &Arc<Self>) -> Option<Room> {
        let (waiting, room) = oneshot::channel();
        let place = {
            let mut rooms = self.rooms.lock();
            if let Some(left) = rooms.free.checked_sub(1) {
                rooms.free = left;
                return Some(Room::new(self));
            }
            let place = rooms.place();
            rooms.waiting.insert(place, waiting);
            rooms.evict();
            place
        };
        let _waits = Waits(self, place);
        room.await.ok()
    }
}

/// One who waits, until it does not.
struct Waits<'a>(&'a Residence, u64);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.rooms.lock().waiting.remove(&self.1);
    }
}

impl Rooms {
    fn place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    /// Whether one more has to leave.
    fn is_short(&self) -> bool {
        self.waiting.len() > self.leaving
    }

    /// Tells one that is idle to leave, if one has to. If none is, the next one finds out.
    fn evict(&mut self) {
        if !self.is_short() {
            return;
        }
        // One whose mailbox is full is not idle, and one that has ended leaves anyway.
        let mut idle = self.idle.iter();
        let told = idle.find(|(_, program)| program.try_tell(Rest).is_ok());
        if let Some(place) = told.map(|(place, _)| *place) {
            self.idle.remove(&place);
            self.leaving += 1;
        }
    }

    /// Takes one out of those that are idle, or to leave.
    fn take_out(&mut self, place: u64) {
        if self.idle.remove(&place).is_none() {
            self.leaving -= 1;
        }
    }
}

impl Room {
    fn new(residence: &Arc<Residence>) -> Self {
        residence.watch.moved_in();
        Self {
            residence: Arc::clone(residence),
            place: None,
        }
    }

    /// The program works.
    pub(super) fn busy(&mut self) {
        if let Some(place) = self.place.take() {
            let mut rooms = self.residence.rooms.lock();
            rooms.take_out(place);
            rooms.evict();
        }
    }

    /// The program is idle; whether it has to leave.
    pub(super) fn idle(&mut self, program: &ActorRef<ProgramMessage>) -> bool {
        let mut rooms = self.residence.rooms.lock();
        let place = match self.place {
            Some(place) => {
                rooms.take_out(place);
                place
            }
            None => rooms.place(),
        };
        self.place = Some(place);
        let leaves = rooms.is_short();
        if leaves {
            rooms.leaving += 1;
        } else {
            rooms.idle.insert(place, program.clone());
        }
        leaves
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.residence.watch.moved_out();
        let mut rooms = self.residence.rooms.lock();
        if let Some(place) = self.place {
            rooms.take_out(place);
        }
        let Some((_, waiting)) = rooms.waiting.pop_first() else {
            rooms.free += 1;
            return;
        };
        drop(rooms);
        // If that one has just given up, its room is dropped here, and goes to the next.
        drop(waiting.send(Self::new(&self.residence)));
    }
}
