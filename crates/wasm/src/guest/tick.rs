//! What a tick finds of the call under way: it goes on, makes way, or ends.

use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use wasmtime::UpdateDeadline;

use super::Guest;
use super::watch::{Bounds, Left, Moment};
use crate::guests::TURN;
use crate::planted::{Bug, planted};
use crate::usage::SLICE;

/// Where a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the worker of its actor.
    Worker,
    /// On a guest thread; with a stack of its own it can make way for others.
    Thread { fiber: bool },
}

/// What is known of the call under way besides its time.
#[derive(Debug)]
pub(super) struct Course {
    place: Place,
    /// Calls of this life.
    calls: u64,
    /// The processor time of the call that was counted by samples.
    sampled: Duration,
    /// How often the worker's other work was handed to another thread.
    handed: u32,
    /// It was ended by the clock, not for its processor time.
    late: bool,
}

/// How long a call waits for another thread to take over the worker's other work. It is asleep
/// meanwhile, so that the other thread finds a processor.
const HAND_OVER: Duration = Duration::from_micros(500);
/// Where the machine is busy the other thread may not come in time; it is tried so often.
const TRIES: u32 = 4;

impl Course {
    pub(super) const fn new() -> Self {
        Self {
            place: Place::Worker,
            calls: 0,
            sampled: Duration::ZERO,
            handed: 0,
            late: false,
        }
    }
}

impl Guest {
    /// Says that a call begins, where it runs, and how long it may compute.
    pub(crate) fn begin(&mut self, bounds: Bounds, place: Place) {
        self.now = None;
        let waits = place == Place::Worker && self.image.waits();
        self.watch.begin(bounds, waits);
        let course = &mut self.course;
        course.place = place;
        course.calls += 1;
        course.sampled = Duration::ZERO;
        course.late = false;
        if place != Place::Worker || waits {
            self.clock.begin();
        }
    }

    /// Says that a call on a worker is over.
    pub(crate) fn end_call(&mut self) {
        if self.course.handed > 0 {
            self.course.handed = 0;
            self.host.leave_crowd();
        }
    }

    /// The bound on the clock, if that ended the call under way.
    pub(crate) fn late(&self) -> Option<Duration> {
        self.course.late.then_some(self.watch.bounds().wall)
    }

    /// The call waits for somebody else, until [`Guest::resume`]. On a guest thread only its turns
    /// count anyway.
    pub(crate) fn pause(&mut self) {
        if self.course.place == Place::Worker {
            let tick = self.host.ticks().period();
            self.watch.pause(Moment::now, tick);
        }
    }

    pub(crate) fn resume(&mut self) {
        if self.course.place == Place::Worker {
            self.watch.resume();
        }
    }

    /// Looks at the call under way when a tick came.
    pub(crate) fn tick(&mut self) -> UpdateDeadline {
        match self.course.place {
            Place::Worker => self.tick_on_worker(),
            Place::Thread { fiber } => self.tick_on_thread(fiber),
        }
    }

    fn tick_on_worker(&mut self) -> UpdateDeadline {
        let now = Moment::now();
        let spent = self.watch.look(now);
        // The first tick of a call stands for the calls before that saw none.
        let sampled = spent.cpu + self.host.ticks().period();
        let more = sampled.saturating_sub(self.course.sampled);
        self.course.sampled = sampled;
        self.usage.sampled(more, self.course.calls);
        let Some(left) = self.left(spent.left_of(self.watch.bounds())) else {
            return UpdateDeadline::Interrupt;
        };
        if sampled >= SLICE && !planted(Bug::HogStaysOnWorker) && is_worker() {
            self.usage.passed_slice();
            if self.image.waits() {
                // It has a stack of its own: it goes on elsewhere from here.
                self.watch.pause(|| now, Duration::ZERO);
                self.course.place = Place::Thread { fiber: true };
                self.clock.want_move();
                return UpdateDeadline::Yield(1);
            }
            self.hand_over();
        }
        let ticks = self.host.ticks();
        UpdateDeadline::Continue(ticks.of(left.min(SLICE)))
    }

    fn tick_on_thread(&mut self, fiber: bool) -> UpdateDeadline {
        self.clock.tick();
        if self.clock.is_abandoned() {
            return UpdateDeadline::Interrupt;
        }
        let (turn, call) = self.clock.read();
        let spent = self.watch.before().plus(call);
        let Some(left) = self.left(spent.left_of(self.watch.bounds())) else {
            return UpdateDeadline::Interrupt;
        };
        if spent.cpu >= SLICE {
            // It began here because there was no worker for it.
            self.usage.passed_slice();
        }
        if fiber && turn.cpu >= TURN && self.host.guests().is_wanted() {
            return UpdateDeadline::Yield(1);
        }
        let ticks = self.host.ticks();
        UpdateDeadline::Continue(ticks.of(left.min(TURN)))
    }

    /// How long the call may go on, if it may.
    fn left(&mut self, left: Left) -> Option<Duration> {
        match left {
            Left::Cpu(left) => Some(left),
            Left::Spent | Left::Late if planted(Bug::CpuLimitIgnored) => Some(SLICE),
            Left::Spent => None,
            Left::Late => {
                self.course.late = true;
                None
            }
        }
    }

    /// Hands all other work of this worker to another thread, and goes on with the call here: a
    /// call that began on the worker's own stack cannot be put aside.
    #[cold]
    fn hand_over(&mut self) {
        if self.course.handed >= TRIES {
            return;
        }
        if self.course.handed == 0 {
            self.host.join_crowd();
        }
        self.course.handed += 1;
        tokio::task::block_in_place(|| std::thread::sleep(HAND_OVER));
    }
}

/// Returns `true` on a thread of a runtime that can give its work to other threads.
pub(crate) fn is_worker() -> bool {
    let runtime = Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}
