//! The check of the current call at a tick: it continues, yields, or ends.

use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use wasmtime::UpdateDeadline;

use super::StoreData;
use super::cpu_meter::{CpuLimits, Elapsed, ThreadInstant, TimeLeft};
use crate::guest_threads::GUEST_TURN;
use crate::seeded_bug::{Bug, seeded};
use crate::usage::{WORKER_SLICE, WorkerTime};

/// The place where a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPlace {
    /// On the worker of its actor.
    Worker,
    /// On a guest thread. With a stack of its own (a fiber) the call can yield to others.
    Thread { fiber: bool },
}

/// The state of the current call besides its time.
#[derive(Debug)]
pub(super) struct CallState {
    place: CallPlace,
    /// Number of calls of this incarnation.
    calls: u64,
    /// Processor time of the call counted by samples.
    sampled: Duration,
    /// Number of times that the worker's other work was handed to another thread.
    hand_overs: u32,
    /// `true` if the clock ended it, not its processor time.
    late: bool,
    /// `true` if it ended because its actor was killed.
    killed: bool,
    /// Start of the current host operation, or of the last one.
    host_work: Option<Instant>,
    /// `true` if a host operation found that the call must end.
    over: bool,
}

/// Time that a call waits for another thread to take over the worker's other work. It sleeps
/// meanwhile, so that the other thread gets a processor.
const HAND_OVER_WAIT: Duration = Duration::from_micros(500);
/// Number of attempts: on a busy system the other thread may not run in time.
const HAND_OVER_ATTEMPTS: u32 = 4;

impl CallState {
    pub(super) const fn new() -> Self {
        Self {
            place: CallPlace::Worker,
            calls: 0,
            sampled: Duration::ZERO,
            hand_overs: 0,
            late: false,
            killed: false,
            host_work: None,
            over: false,
        }
    }

    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }
}

impl StoreData {
    /// Records that a call begins, where it runs, and its bounds.
    pub(crate) fn begin(&mut self, limits: CpuLimits, place: CallPlace) {
        self.now = None;
        self.last_line = None;
        let waits = place == CallPlace::Worker && self.image.waits();
        self.cpu_meter.begin(limits, waits);
        let call = &mut self.call;
        call.place = place;
        call.calls += 1;
        call.sampled = Duration::ZERO;
        call.late = false;
        call.killed = false;
        call.over = false;
        if place != CallPlace::Worker || waits {
            self.clock.begin();
        }
    }

    /// Records that a call on a worker has ended.
    pub(crate) fn end_call(&mut self) {
        // Calls that end between two ticks would count only until the first one: components whose
        // calls are a little shorter than a slice would stay on the workers for long.
        let is_ticked = self.call.place == CallPlace::Worker && !self.call.sampled.is_zero();
        if is_ticked && !seeded(Bug::CallEndNotCounted) {
            // On average the call began half of an interval before its first tick.
            self.charge_on_worker(self.host.ticks().period() / 2);
            if self.call.sampled >= WORKER_SLICE && is_worker() {
                self.usage.record_slice_exceeded();
            }
        }
        if self.call.hand_overs > 0 {
            self.call.hand_overs = 0;
            self.host.end_overrun();
        }
    }

    /// Returns the bound on the clock, if it ended the current call.
    pub(crate) fn exceeded_wall_limit(&self) -> Option<Duration> {
        self.call.late.then_some(self.cpu_meter.limits().wall)
    }

    /// Returns `true` if a kill ended the current call.
    pub(crate) const fn was_killed(&self) -> bool {
        self.call.killed
    }

    /// Records that the call waits for another actor, until [`StoreData::resume`]. On a guest
    /// thread only the turns count, so nothing is recorded there.
    pub(crate) fn pause(&mut self) {
        if self.call.place == CallPlace::Worker {
            let tick = self.host.ticks().period();
            self.cpu_meter.pause(ThreadInstant::now, tick);
        }
    }

    pub(crate) fn resume(&mut self) {
        if self.call.place == CallPlace::Worker {
            self.cpu_meter.resume();
        }
    }

    /// Checks the current call at a tick.
    pub(crate) fn tick(&mut self) -> UpdateDeadline {
        match self.call.place {
            CallPlace::Worker => self.tick_on_worker(),
            CallPlace::Thread { fiber } => self.tick_on_thread(fiber),
        }
    }

    pub(super) const fn call_place(&self) -> CallPlace {
        self.call.place
    }

    /// Records that a host operation begins.
    pub(super) fn begin_host_work(&mut self) {
        self.call.host_work = Some(Instant::now());
        if self.call.place == CallPlace::Worker && !seeded(Bug::HostWorkNotCounted) {
            self.arm_meter();
        }
    }

    /// Starts to count the time of a call on a worker, if no tick did.
    fn arm_meter(&mut self) {
        self.cpu_meter.elapsed_at(ThreadInstant::now());
    }

    /// Returns `true` if the outcome of the call is no longer wanted.
    pub(super) fn is_unwanted(&self) -> bool {
        match self.call.place {
            CallPlace::Worker => self.env.me.is_killed(),
            CallPlace::Thread { .. } => self.clock.is_abandoned(),
        }
    }

    /// Records that the call waits for work of the host that is not its own, until
    /// [`StoreData::resume_after_host`].
    pub(super) fn pause_for_host(&mut self) {
        if self.call.place == CallPlace::Worker {
            self.cpu_meter.pause(ThreadInstant::now, Duration::ZERO);
        }
    }

    pub(super) fn resume_after_host(&mut self, waited: Duration) {
        match self.call.place {
            CallPlace::Worker => {
                self.cpu_meter.resume();
                self.arm_meter();
            }
            CallPlace::Thread { .. } => self.clock.skip(waited),
        }
    }

    /// Checks the current call in a host operation; returns `false` if it must end. Operations that
    /// are shorter than a tick are sampled as the rest of the call is.
    pub(super) fn check_time(&mut self) -> bool {
        let period = self.host.ticks().period();
        let begun = self.call.host_work;
        let short = begun.is_none_or(|begun| begun.elapsed() < period);
        if short || seeded(Bug::HostWorkNotCounted) {
            return !self.call.over;
        }
        let within = match self.call.place {
            CallPlace::Worker => {
                let left = self.measure_on_worker(Duration::ZERO);
                if self.call.sampled >= WORKER_SLICE && is_worker() {
                    self.usage.record_slice_exceeded();
                }
                left.is_some()
            }
            CallPlace::Thread { .. } => self.measure_on_thread().is_some(),
        };
        self.call.over |= !within;
        within
    }

    /// Charges the processor time of a call on a worker, and `more`; returns the remaining time, or
    /// `None` if the call must end.
    fn measure_on_worker(&mut self, more: Duration) -> Option<Duration> {
        // On a guest thread the call is abandoned instead: its actor waits there, and ends at once.
        if self.env.me.is_killed() && !seeded(Bug::KilledCallContinues) {
            self.call.killed = true;
            return None;
        }
        let spent = self.charge_on_worker(more);
        self.remaining(spent.remaining_of(self.cpu_meter.limits()))
    }

    /// Charges the processor time of a call on a worker, and `more`; returns it without `more`.
    fn charge_on_worker(&mut self, more: Duration) -> Elapsed {
        let spent = self.cpu_meter.elapsed_at(ThreadInstant::now());
        let sampled = (spent.cpu + more).max(self.call.sampled);
        let more = sampled - self.call.sampled;
        self.call.sampled = sampled;
        let all = WorkerTime {
            total: self.host.add_worker_time(more),
            workers: worker_count(),
        };
        self.usage.charge_sampled(more, self.call.calls, all);
        spent
    }

    fn tick_on_worker(&mut self) -> UpdateDeadline {
        // The first tick of a call stands for the earlier calls that saw none.
        let Some(left) = self.measure_on_worker(self.host.ticks().period()) else {
            return UpdateDeadline::Interrupt;
        };
        let sampled = self.call.sampled;
        if sampled >= WORKER_SLICE && !seeded(Bug::HeavyStaysOnWorker) && is_worker() {
            self.usage.record_slice_exceeded();
            if self.image.waits() {
                // The call has a stack of its own, so it can continue on another thread from here.
                self.cpu_meter.pause(ThreadInstant::now, Duration::ZERO);
                self.call.place = CallPlace::Thread { fiber: true };
                self.clock.want_move();
                return UpdateDeadline::Yield(1);
            }
            self.hand_over_worker();
        }
        let ticks = self.host.ticks();
        UpdateDeadline::Continue(ticks.of(left.min(WORKER_SLICE)))
    }

    /// Charges the processor time of a call on a guest thread; returns that of its turn and the
    /// remaining time, or `None` if the call must end.
    fn measure_on_thread(&mut self) -> Option<(Duration, Duration)> {
        self.clock.tick();
        if self.clock.is_abandoned() {
            return None;
        }
        let (turn, call) = self.clock.read();
        self.usage.charge_measured(self.clock.charge(turn.cpu));
        let spent = self.cpu_meter.elapsed_before().plus(call);
        if spent.cpu >= WORKER_SLICE {
            // The call began here because too many calls held the workers.
            self.usage.record_slice_exceeded();
        }
        let left = self.remaining(spent.remaining_of(self.cpu_meter.limits()))?;
        Some((turn.cpu, left))
    }

    fn tick_on_thread(&mut self, fiber: bool) -> UpdateDeadline {
        let Some((turn, left)) = self.measure_on_thread() else {
            return UpdateDeadline::Interrupt;
        };
        let makes_way = fiber && turn >= GUEST_TURN && !seeded(Bug::GuestCallNeverYields);
        if makes_way && self.host.guest_threads().has_waiting() {
            return UpdateDeadline::Yield(1);
        }
        let ticks = self.host.ticks();
        UpdateDeadline::Continue(ticks.of(left.min(GUEST_TURN)))
    }

    /// Returns the remaining processor time of the call, or `None` if it must end.
    fn remaining(&mut self, left: TimeLeft) -> Option<Duration> {
        match left {
            TimeLeft::Cpu(left) => Some(left),
            TimeLeft::CpuExhausted | TimeLeft::Overdue if seeded(Bug::CpuLimitIgnored) => {
                Some(WORKER_SLICE)
            }
            TimeLeft::CpuExhausted => None,
            TimeLeft::Overdue => {
                self.call.late = true;
                None
            }
        }
    }

    /// Hands all other work of this worker to another thread, and continues the call here: a call
    /// that began on the worker's own stack cannot be suspended.
    #[cold]
    fn hand_over_worker(&mut self) {
        if self.call.hand_overs >= HAND_OVER_ATTEMPTS || seeded(Bug::WorkerNotHandedOver) {
            return;
        }
        if self.call.hand_overs == 0 {
            self.host.begin_overrun();
        }
        self.call.hand_overs += 1;
        tokio::task::block_in_place(|| std::thread::sleep(HAND_OVER_WAIT));
    }
}

/// Returns `true` on a thread of a runtime that can move its work to other threads.
pub(crate) fn is_worker() -> bool {
    let runtime = Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Returns the number of workers of the runtime of this thread.
fn worker_count() -> u32 {
    let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
    u32::try_from(workers).unwrap_or(u32::MAX)
}
