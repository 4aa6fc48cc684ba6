//! Which programs have a realm: so many at a time, those that were used last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use strowger::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::watch::ProgramsWatch;
use super::{ProgramMessage, Sleep};

/// Room for realms of programs.
#[derive(Debug)]
pub(super) struct Residence {
    room: Arc<Semaphore>,
    /// Those that are idle, the one that was used longest ago first.
    idle: Mutex<Idle>,
    /// How many wait for room.
    waiting: AtomicUsize,
    pub(super) watch: ProgramsWatch,
}

#[derive(Debug, Default)]
struct Idle {
    next: u64,
    programs: BTreeMap<u64, ActorRef<ProgramMessage>>,
}

/// Room for one realm. It is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    residence: Arc<Residence>,
    /// The place among those that are idle.
    place: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Residence {
    pub(super) fn new(residents: usize, watch: ProgramsWatch) -> Arc<Self> {
        Arc::new(Self {
            room: Arc::new(Semaphore::new(residents.max(1))),
            idle: Mutex::default(),
            waiting: AtomicUsize::new(0),
            watch,
        })
    }

    /// Takes room for one more; who was idle for longest makes it.
    pub(super) async fn admit(self: &Arc<Self>) -> Option<Room> {
        let room = Arc::clone(&self.room);
        let permit = match room.try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _waits = Waits::new(&self.waiting);
                self.evict();
                Arc::clone(&self.room).acquire_owned().await.ok()?
            }
        };
        self.watch.moved_in();
        Some(Room {
            residence: Arc::clone(self),
            place: None,
            _permit: permit,
        })
    }

    fn evict(&self) {
        let mut idle = self.idle.lock();
        while let Some((_, program)) = idle.programs.pop_first() {
            // One whose mailbox is full is not idle, and one that has ended has no realm.
            if program.try_tell(Sleep).is_ok() {
                return;
            }
        }
    }
}

/// One who waits, until it does not.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Room {
    /// The program works.
    pub(super) fn busy(&mut self) {
        if let Some(place) = self.place.take() {
            self.residence.idle.lock().programs.remove(&place);
        }
    }

    /// The program is idle; whether others want its room now.
    pub(super) fn idle(&mut self, program: &ActorRef<ProgramMessage>) -> bool {
        self.busy();
        let mut idle = self.residence.idle.lock();
        let place = idle.next;
        idle.next += 1;
        idle.programs.insert(place, program.clone());
        self.place = Some(place);
        drop(idle);
        self.residence.waiting.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.busy();
        self.residence.watch.moved_out();
    }
}
