//! Strands: the value behind an address, its incarnation, and the right to run it.
//!
//! A strand is data behind a lock that can also be run. Its state changes only while the lock is
//! held:
//!
//! ```text
//!          start             run              nothing more to do
//!   Off ----------> Queued -------> Running ----------------------> Parked
//!    ^                ^ ^             | ^                              |
//!    |                | |      wake   v |                              |
//!    |                | +---------- Woken                              |
//!    |                +------------------------------------------------+ wake
//!    +--- the body is done, or dropped (from Running or Woken)
//! ```
//!
//! All `unsafe` code of the crate is in this module, and relies on these rules:
//!
//! 1. The thread that moves the state to `Running` owns the body until it moves the state away from
//!    `Running` or `Woken`; the thread that moves the state from `Off` to `Queued` owns the body
//!    until it queues the strand. No other thread touches the body. The body does not move. A
//!    `Behavior` is put into it when the state leaves `Off`, and is gone when the state is `Off`
//!    again. A `Behavior` that is over may begin again in its place, as another incarnation: the
//!    state does not change.
//! 2. The thread that moves the state to `Queued` makes the one [`Runnable`], which is consumed
//!    where the state is moved to `Running`. A `Runnable` that is dropped ends the incarnation.
//! 3. From `start` until the state is `Off` again, the strand holds a reference to its own host.
//!    Neither a `Runnable`, nor the body, nor the reference of a `Behavior` to its host
//!    ([`HostRef`]) therefore needs a count of its own to be valid.
//! 4. Data is touched only while the lock is held.
//! 5. The work of a turn borrows the `Behavior` and the host. It is in a buffer of its own
//!    ([`arena`]), and is dropped before either of them: before the `Behavior` is asked for the
//!    next thing to do. While the work exists, the body refers to it, and nothing but the work
//!    touches the `Behavior`.
//! 6. Values that pass between threads without a lock follow rules of their own
//!    ([`oneshot`], [`lifo_slot`], [`recent_asks`]).
//! 7. A message in transit is initialized until it is taken out ([`OpaqueMessage`],
//!    [`MessageQueue`]).
//! 8. A value that only its owner may touch is shared with others in a form that gives them no
//!    access to it ([`Exclusive`]).

#![allow(
    unsafe_code,
    reason = "the one module where ownership is handed over by state"
)]

mod arena;
mod body;
mod lifo_slot;
mod lock;
#[cfg(all(test, strowger_loom))]
pub(crate) mod loom;
mod message_queue;
mod oneshot;
mod pointers;
mod recent_asks;

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

use crate::exit::Exit;
use crate::path::ActorPath;
use crate::schedule::wake;
use crate::sync::{UnsafeCell, Weakening, weakened};
use body::BehaviorSlot;
use body::TurnOutcome;
pub(crate) use body::{Behavior, NextStep, heap_bytes};
pub(crate) use lifo_slot::{LifoSlot, LifoWriter};
pub(crate) use lock::{SpinLock, SpinLockGuard};
pub(crate) use message_queue::{MessageQueue, OpaqueMessage};
pub(crate) use oneshot::{SlotReceiver, SlotSender, channel};
pub(crate) use pointers::{CurrentRef, Exclusive, HostRef, UniqueArc};
pub(crate) use recent_asks::RecentAsks;

/// The data of a strand.
pub(crate) trait TurnData {
    /// Called when a turn begins.
    fn begin_turn(&mut self) {}

    /// Called after a turn that found nothing more to do. Returns `true` if there is indeed
    /// nothing; from then on, the code that adds work wakes the strand.
    fn try_park(&mut self) -> bool;
}

/// The owner of a strand.
pub(crate) trait StrandHost: Send + Sync + Sized + 'static {
    type Data: TurnData + Send;

    /// Returns the strand inside this very value.
    fn strand(&self) -> &Strand<Self::Data>;

    /// Queues the right to run where it will be used.
    fn queue(&self, ready: Runnable, place: u32);

    /// Returns `true` if nothing runs strands any more.
    fn is_down(&self) -> bool;

    /// Returns `true` if the current work is to end, however long it would take.
    fn is_killed(&self) -> bool;

    /// Runs a turn, within whatever the code that it calls needs to recognize the host.
    fn enter_turn<R>(&self, turn: impl FnOnce() -> R) -> R {
        turn()
    }

    /// Returns the path of the actor, for traces.
    fn path(&self) -> ActorPath;

    /// Returns the identity of the actor, for the monitor.
    fn identity(&self) -> ActorIdentity;

    /// Takes what remains of the incarnation out of the data, under the lock that turns the strand
    /// `Off`. Returns the number of messages that are lost with it, if no more are taken in.
    fn take_remains(&self, data: StrandGuard<'_, Self::Data>) -> Option<u64> {
        drop(data);
        None
    }

    /// Called when the incarnation at this place is gone, with the result of `take_remains`.
    /// Without an exit, it was dropped before its end.
    fn on_incarnation_end(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32);
}

/// The identity of an actor without its types: the address of what its system shares, and the
/// actor's identifier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct ActorIdentity {
    pub(crate) system: usize,
    pub(crate) actor: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunState {
    Off,
    Parked,
    Queued,
    Running,
    Woken,
}

/// Data behind a lock, and an incarnation that runs.
pub(crate) struct Strand<T> {
    inner: SpinLock<StrandState<T>>,
    body: UnsafeCell<BehaviorSlot>,
}

// SAFETY: the body is touched by its owner only (rule 1), and every `Behavior` is `Send`.
unsafe impl<T: Send> Sync for Strand<T> {}

// The fields that senders touch come first, beside the lock.
#[repr(C)]
struct StrandState<T> {
    state: RunState,
    /// The place that the scheduler assigned to the incarnation.
    home: u32,
    data: T,
    /// The host, while the strand holds a reference to it.
    host: Option<NonNull<dyn ErasedHost>>,
}

// SAFETY: the pointer stands for a reference to a host, and hosts are `Send` and `Sync`.
unsafe impl<T: Send> Send for StrandState<T> {}

impl<T> Strand<T> {
    // Inlined; otherwise the room for a `Behavior` is copied.
    #[inline(always)]
    pub(crate) fn new(data: T) -> Self {
        let run = StrandState {
            state: RunState::Off,
            home: 0,
            data,
            host: None,
        };
        Self {
            inner: SpinLock::new(run),
            body: UnsafeCell::new(BehaviorSlot::empty()),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> StrandGuard<'_, T> {
        StrandGuard(self.inner.lock())
    }

    /// Returns the place that the scheduler assigned to the incarnation.
    pub(crate) fn home(&self) -> u32 {
        self.inner.lock().home
    }

    /// Wakes the strand, wherever it waits.
    pub(crate) fn wake(&self) {
        self.lock().wake();
    }
}

/// Starts an incarnation, and returns the right to run it. The strand keeps its host alive until
/// the incarnation is over.
///
/// Returns `None` if the last incarnation is not over, which the host has to rule out. `begin`
/// prepares the data for the new incarnation and must not panic; `behavior` makes the `Behavior`
/// from the result of `begin`.
pub(crate) fn start<C: StrandHost, B, L: Behavior<C>>(
    host: &Arc<C>,
    place: u32,
    begin: impl FnOnce(&mut C::Data) -> B,
    behavior: impl FnOnce(B, HostRef<C>) -> L,
) -> Option<Runnable> {
    let strand = host.strand();
    let mut run = strand.inner.lock();
    if run.state != RunState::Off {
        return None;
    }
    let turn: *const dyn ErasedHost = Arc::into_raw(Arc::<C>::clone(host));
    run.host = NonNull::new(turn.cast_mut());
    run.home = place;
    run.state = RunState::Queued;
    let ready = Runnable(run.host.expect("made from a reference"));
    let begun = begin(&mut run.data);
    drop(run);
    // If `behavior` panics, the `Runnable` is dropped, which ends an incarnation without a
    // `Behavior`. SAFETY: we moved the state from `Off` to `Queued`, and the `Runnable` is queued
    // after this.
    let put =
        |body| unsafe { BehaviorSlot::put::<C, L>(body, || behavior(begun, HostRef::new(host))) };
    strand.body.get_mut().with(put);
    Some(ready)
}

/// Ends an incarnation that is parked, because nothing will run it any more. A queued incarnation
/// ends with its queue, a running one at the end of its turn.
pub(crate) fn end_if_parked<C: StrandHost>(host: &C) {
    let strand = host.strand();
    let mut run = strand.inner.lock();
    if run.state == RunState::Parked {
        run.state = RunState::Running;
        let host = run.host.expect("it was started");
        drop(run);
        // SAFETY: we moved the state to `Running`, and the strand keeps its host (rule 3).
        let end = unsafe { host.as_ref() }.finish(ModuleToken(()));
        end.report(None);
    }
}

/// Access to the data of a strand; the lock is held until this is dropped.
pub(crate) struct StrandGuard<'a, T>(SpinLockGuard<'a, StrandState<T>>);

impl<T> Deref for StrandGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T> DerefMut for StrandGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.data
    }
}

impl<T> StrandGuard<'_, T> {
    /// Wakes the strand, and releases the lock.
    #[inline]
    pub(crate) fn wake(self) {
        if let Some((ready, place)) = self.into_runnable() {
            ready.schedule(place);
        }
    }

    /// Wakes the strand, and releases the lock. If the strand was parked, returns the right to run
    /// it and its place.
    #[inline]
    pub(crate) fn into_runnable(mut self) -> Option<(Runnable, u32)> {
        match self.0.state {
            RunState::Parked => {
                self.0.state = RunState::Queued;
                let host = self.0.host.expect("what is parked was started");
                Some((Runnable(host), self.0.home))
            }
            RunState::Running => {
                if !weakened(Weakening::WakeDuringTurnRecorded) {
                    self.0.state = RunState::Woken;
                }
                None
            }
            RunState::Off | RunState::Queued | RunState::Woken => None,
        }
    }
}

/// The right to run a strand. Dropping it ends the incarnation.
pub(crate) struct Runnable(NonNull<dyn ErasedHost>);

// SAFETY: it stands for a reference to a host, and hosts are `Send` and `Sync`.
unsafe impl Send for Runnable {}

impl Runnable {
    fn host(&self) -> &dyn ErasedHost {
        // SAFETY: while it is queued, the strand keeps its host (rule 3).
        unsafe { self.0.as_ref() }
    }

    /// Runs the strand until it waits; returns it if it was woken meanwhile.
    pub(crate) fn run(self) -> Option<Self> {
        let host = ManuallyDrop::new(self).0;
        let mut exit = None;
        // SAFETY: as in `turn`.
        match unsafe { host.as_ref() }.turn(ModuleToken(()), &mut exit) {
            TurnResult::Parked => None,
            TurnResult::Woken => Some(Self(host)),
            TurnResult::Over(end) => {
                end.report(exit.as_ref());
                None
            }
        }
    }

    fn schedule(self, place: u32) {
        let host = self.0;
        // SAFETY: as in `turn`; and the code that wakes a strand has a reference of its own.
        unsafe { host.as_ref() }.schedule(self, place);
    }

    #[cfg(feature = "testing")]
    pub(crate) fn path(&self) -> ActorPath {
        self.host().path()
    }

    pub(crate) fn identity(&self) -> ActorIdentity {
        self.host().identity()
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        let end = self.host().end_queued(ModuleToken(()));
        end.report(None);
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runnable({})", self.host().path())
    }
}

/// Proof that the caller is in this module, and that its author has read the rules.
struct ModuleToken(());

/// The result of a turn.
enum TurnResult {
    Parked,
    /// The state is `Queued` again, and the caller makes the `Runnable` for it.
    Woken,
    Over(IncarnationEnd),
}

/// The reference that the strand had to its host, through which the host is told of the end.
///
/// The host may be gone after that, so no reference to it may be in use any more: not even the
/// `&self` of a method that has not returned.
#[must_use]
struct IncarnationEnd {
    host: Arc<dyn ErasedHost>,
    lost: Option<u64>,
    place: u32,
}

impl IncarnationEnd {
    fn report(self, exit: Option<&Exit>) {
        self.host.report_end(exit, self.lost, self.place);
    }
}

/// A host without its types.
trait ErasedHost: Send + Sync {
    /// The state is `Queued`, and the caller had the `Runnable`. If the incarnation is over, the
    /// exit is written to the caller's place instead of being returned through every frame.
    fn turn(&self, token: ModuleToken, exit: &mut Option<Exit>) -> TurnResult;
    /// The state is `Running` or `Woken`, and the caller moved it there.
    fn finish(&self, token: ModuleToken) -> IncarnationEnd;
    /// The state is `Queued`, and the caller had the `Runnable`.
    fn end_queued(&self, token: ModuleToken) -> IncarnationEnd;
    fn report_end(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32);
    fn schedule(&self, ready: Runnable, place: u32);
    fn path(&self) -> ActorPath;
    fn identity(&self) -> ActorIdentity;
}

impl<C: StrandHost> ErasedHost for C {
    fn turn(&self, token: ModuleToken, exit: &mut Option<Exit>) -> TurnResult {
        let strand = self.strand();
        let mut run = strand.inner.lock();
        run.state = RunState::Running;
        run.data.begin_turn();
        let host = run.host.expect("what is queued was started");
        let waker = BorrowedWaker::<C>::of(host);
        let mut cx = Context::from_waker(&waker);
        // The lock that begins the turn is also the one under which it looks for something to do.
        let mut held = Some(StrandGuard(run));
        // At most one renewal in a turn: other actors wait for theirs.
        let mut heir = true;
        let came = self.enter_turn(|| {
            loop {
                let outcome = strand.body.get_mut().with(|body| {
                    // SAFETY: we moved the state to `Running`, and are the host of the `Behavior`.
                    unsafe { BehaviorSlot::turn(body, self, &mut held, exit, &mut cx) }
                });
                if matches!(outcome, TurnOutcome::Over) {
                    exit.get_or_insert(Exit::Killed);
                    let may = mem::take(&mut heir);
                    // SAFETY: as above.
                    let renew = |body| unsafe { BehaviorSlot::renew(body, self, exit, may) };
                    if strand.body.get_mut().with(renew) {
                        continue;
                    }
                    return None;
                }
                let mut run = strand.inner.lock();
                if self.is_down() {
                    return None;
                }
                if run.state == RunState::Woken && !weakened(Weakening::WakeDuringTurnRequeues) {
                    run.state = RunState::Queued;
                    return Some(TurnResult::Woken);
                }
                if matches!(outcome, TurnOutcome::Waiting) || run.data.try_park() {
                    run.state = RunState::Parked;
                    return Some(TurnResult::Parked);
                }
                held = Some(StrandGuard(run));
            }
        });
        came.unwrap_or_else(|| TurnResult::Over(self.finish(token)))
    }

    fn finish(&self, _: ModuleToken) -> IncarnationEnd {
        let strand = self.strand();
        // SAFETY: the caller moved the state to `Running` or `Woken`, or found it there as the
        // owner.
        let clear = |body| unsafe { BehaviorSlot::clear(body) };
        strand.body.get_mut().with(clear);
        let mut run = strand.inner.lock();
        run.state = RunState::Off;
        let host = run.host.take().expect("what ran was started");
        let place = run.home;
        let lost = self.take_remains(StrandGuard(run));
        // SAFETY: `start` made the pointer from an `Arc<C>`, to be taken back here.
        let host = unsafe { Arc::from_raw(host.as_ptr().cast_const()) };
        IncarnationEnd { host, lost, place }
    }

    #[cold]
    fn end_queued(&self, token: ModuleToken) -> IncarnationEnd {
        self.strand().inner.lock().state = RunState::Running;
        self.finish(token)
    }

    fn report_end(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32) {
        self.on_incarnation_end(exit, lost, place);
    }

    fn schedule(&self, ready: Runnable, place: u32) {
        self.queue(ready, place);
    }

    fn path(&self) -> ActorPath {
        StrandHost::path(self)
    }

    fn identity(&self) -> ActorIdentity {
        StrandHost::identity(self)
    }
}

/// A waker without a reference of its own, for the duration of a turn; its clones have one.
struct BorrowedWaker<C>(ManuallyDrop<Waker>, std::marker::PhantomData<C>);

impl<C: StrandHost> BorrowedWaker<C> {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |host| {
            // SAFETY: the data of these wakers is a pointer from an `Arc<C>` that is alive.
            unsafe { Arc::increment_strong_count(host.cast::<C>()) };
            RawWaker::new(host, &Self::VTABLE)
        },
        |host| {
            // SAFETY: a waker that is woken by value gives up its reference.
            let host = unsafe { Arc::from_raw(host.cast::<C>()) };
            wake::count_actor_wake();
            host.strand().wake();
        },
        |host| {
            wake::count_actor_wake();
            // SAFETY: a waker that is woken by reference has a reference to the host, or is
            // borrowed from a turn.
            unsafe { &*host.cast::<C>() }.strand().wake();
        },
        |host| {
            // SAFETY: a waker that is dropped gives up its reference.
            drop(unsafe { Arc::from_raw(host.cast::<C>()) });
        },
    );

    fn of(host: NonNull<dyn ErasedHost>) -> Self {
        let data = host.cast::<()>().as_ptr().cast_const();
        // SAFETY: the table is made for pointers from an `Arc<C>`, and the strand keeps one while
        // it runs; the waker is not dropped, so it gives up no reference that it does not have.
        let waker = unsafe { Waker::from_raw(RawWaker::new(data, &Self::VTABLE)) };
        Self(ManuallyDrop::new(waker), std::marker::PhantomData)
    }
}

impl<C> Deref for BorrowedWaker<C> {
    type Target = Waker;

    fn deref(&self) -> &Waker {
        &self.0
    }
}
