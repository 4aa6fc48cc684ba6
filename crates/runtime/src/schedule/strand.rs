//! What runs: the value behind an address, its incarnation, and the right to run it.
//!
//! A strand is data behind a lock that is also something to run. Its state changes only while the
//! lock is held:
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
//! All `unsafe` of the crate is in this module, and rests on these rules:
//!
//! 1. Who moves the state to `Running` owns the body until it moves it away from `Running` or
//!    `Woken`; who moves it from `Off` to `Queued` owns it until it queues. Nobody else touches it.
//!    The body stays where it is; the life in it is put there from `Off`, and is gone at `Off`. A
//!    life that is over may begin anew in its place, as another incarnation: the state stays.
//! 2. Who moves the state to `Queued` makes the one [`Ready`]; it ends where the state is moved to
//!    `Running`. A `Ready` that is dropped ends the incarnation.
//! 3. From `start` until the state is `Off` again the strand holds a reference to its own owner. So
//!    neither a `Ready` nor the body needs one to be valid, nor what a life has ([`Kept`]).
//! 4. Data is touched only while the lock is held.
//! 5. What a turn works on borrows the life and the owner. It is in a buffer of its own
//!    ([`scratch`]), and dropped before either: before the life is asked for the next thing to do.
//!    While it is there, it is also in the body, and nothing but it touches the life.
//! 6. What passes from one to another without a lock has rules of its own ([`slot`](mod@slot),
//!    [`next`], [`fresh`]).
//! 7. A message on its way is there until it is taken out ([`Whole`], [`Lane`]).
//! 8. What only its owner may touch is shared with others as a thing they can do nothing with
//!    ([`Sole`]).

#![allow(
    unsafe_code,
    reason = "the one module where ownership is handed over by state"
)]

mod berth;
mod body;
mod current;
mod fresh;
mod kept;
mod lane;
mod lock;
#[cfg(all(test, strowger_loom))]
pub(super) mod loom;
mod next;
mod scratch;
mod slot;
mod sole;

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

use crate::exit::Exit;
use crate::path::Path;
use crate::schedule::wake;
use crate::sync::UnsafeCell;
pub(crate) use berth::Berth;
use body::Body;
use body::Stand;
pub(crate) use body::{Life, Step, apart};
pub(crate) use current::Current;
pub(crate) use fresh::Fresh;
pub(crate) use kept::Kept;
pub(crate) use lane::{Lane, Whole};
pub(crate) use lock::{Guard, Lock};
pub(crate) use next::{Filler, Next};
pub(crate) use slot::{Giver, Taker, slot};
pub(crate) use sole::Sole;

/// What a strand is about.
pub(crate) trait Rest {
    /// Takes note that a turn begins.
    fn begin_turn(&mut self) {}

    /// After a turn that found nothing more to do: whether that is so. If it is, whoever brings
    /// something wakes the strand.
    fn rest(&mut self) -> bool;
}

/// The owner of a strand.
pub(crate) trait Host: Send + Sync + Sized + 'static {
    type Data: Rest + Send;

    /// The strand inside this very value.
    fn strand(&self) -> &Strand<Self::Data>;

    /// Puts the right to run where somebody will use it.
    fn queue(&self, ready: Ready, place: u32);

    /// Whether nobody will run anything any more.
    fn is_down(&self) -> bool;

    /// Whether what it is at is to end, however long it would take.
    fn is_killed(&self) -> bool;

    /// Has a turn, in a way that those notice who are called in it.
    fn during<R>(&self, turn: impl FnOnce() -> R) -> R {
        turn()
    }

    /// Where the actor lives, for traces.
    fn path(&self) -> Path;

    /// Who it is, for those who watch it run.
    fn mark(&self) -> Mark;

    /// Takes what is left of the incarnation out of the data, under the lock that makes the strand
    /// `Off`; says how many things are lost with it, if nothing more is taken in.
    fn ended(&self, data: Held<'_, Self::Data>) -> Option<u64> {
        drop(data);
        None
    }

    /// Takes note that the incarnation at this place is gone, and what `ended` said; without an
    /// exit, it was dropped on its way.
    fn over(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32);
}

/// An actor without its types: the address of what its system shares, and its identifier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) system: usize,
    pub(crate) actor: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Off,
    Parked,
    Queued,
    Running,
    Woken,
}

/// Data behind a lock, and an incarnation that runs.
pub(crate) struct Strand<T> {
    run: Lock<Run<T>>,
    body: UnsafeCell<Body>,
}

// SAFETY: the body is touched by its owner only (rule 1), and lives are `Send`.
unsafe impl<T: Send> Sync for Strand<T> {}

// What senders touch comes first, beside the lock.
#[repr(C)]
struct Run<T> {
    state: State,
    /// The place that the scheduler gave to the incarnation.
    place: u32,
    data: T,
    /// The owner, while the strand holds a reference to it.
    host: Option<NonNull<dyn Turn>>,
}

// SAFETY: the pointer stands for a reference to a host, and hosts are `Send` and `Sync`.
unsafe impl<T: Send> Send for Run<T> {}

impl<T> Strand<T> {
    // Inlined, or the room for a life is copied.
    #[inline(always)]
    pub(crate) fn new(data: T) -> Self {
        let run = Run {
            state: State::Off,
            place: 0,
            data,
            host: None,
        };
        Self {
            run: Lock::new(run),
            body: UnsafeCell::new(Body::none()),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Held<'_, T> {
        Held(self.run.lock())
    }

    /// The place that the scheduler gave to the incarnation.
    pub(crate) fn place(&self) -> u32 {
        self.run.lock().place
    }

    /// Gives the strand a turn, wherever it waits.
    pub(crate) fn wake(&self) {
        self.lock().wake();
    }
}

/// Starts an incarnation: returns the right to run it. The strand keeps its owner alive until the
/// incarnation is over.
///
/// There is none while the last one is not over, which its owner sees to. `begin` changes the data
/// for it, and must not panic; the life is made of what that returns.
pub(crate) fn start<C: Host, B, L: Life<C>>(
    host: &Arc<C>,
    place: u32,
    begin: impl FnOnce(&mut C::Data) -> B,
    life: impl FnOnce(B, Kept<C>) -> L,
) -> Option<Ready> {
    let strand = host.strand();
    let mut run = strand.run.lock();
    if run.state != State::Off {
        return None;
    }
    let turn: *const dyn Turn = Arc::into_raw(Arc::<C>::clone(host));
    run.host = NonNull::new(turn.cast_mut());
    run.place = place;
    run.state = State::Queued;
    let ready = Ready(run.host.expect("made from a reference"));
    let begun = begin(&mut run.data);
    drop(run);
    // A panic on the way to the life drops the `Ready`, which ends what was not there.
    // SAFETY: we moved the state from `Off` to `Queued`, and queue it after this.
    let put = |body| unsafe { Body::put::<C, L>(body, || life(begun, Kept::new(host))) };
    strand.body.get_mut().with(put);
    Some(ready)
}

/// Ends an incarnation that waits, because nobody will run it any more. One that is queued ends
/// with its queue, one that runs at the end of its turn.
pub(crate) fn abandon<C: Host>(host: &C) {
    let strand = host.strand();
    let mut run = strand.run.lock();
    if run.state == State::Parked {
        run.state = State::Running;
        let host = run.host.expect("it was started");
        drop(run);
        // SAFETY: we moved the state to `Running`, and the strand keeps its owner (rule 3).
        let last = unsafe { host.as_ref() }.finish(Right(()));
        last.tell(None);
    }
}

/// The data of a strand, as long as this is held.
pub(crate) struct Held<'a, T>(Guard<'a, Run<T>>);

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.data
    }
}

impl<T> Held<'_, T> {
    /// Gives the strand a turn, and the lock back.
    #[inline]
    pub(crate) fn wake(self) {
        if let Some((ready, place)) = self.claim() {
            ready.queue(place);
        }
    }

    /// Gives the strand a turn, and the lock back: returns the right to run it, and where it
    /// belongs, if it was parked.
    #[inline]
    pub(crate) fn claim(mut self) -> Option<(Ready, u32)> {
        match self.0.state {
            State::Parked => {
                self.0.state = State::Queued;
                let host = self.0.host.expect("what is parked was started");
                Some((Ready(host), self.0.place))
            }
            State::Running => {
                self.0.state = State::Woken;
                None
            }
            State::Off | State::Queued | State::Woken => None,
        }
    }
}

/// The right to run a strand. Dropping it ends the incarnation.
pub(crate) struct Ready(NonNull<dyn Turn>);

// SAFETY: it stands for a reference to a host, and hosts are `Send` and `Sync`.
unsafe impl Send for Ready {}

impl Ready {
    fn turn(&self) -> &dyn Turn {
        // SAFETY: while it is queued, the strand keeps its owner (rule 3).
        unsafe { self.0.as_ref() }
    }

    /// Runs the strand until it waits; returns it if it was woken meanwhile.
    pub(crate) fn run(self) -> Option<Self> {
        let host = ManuallyDrop::new(self).0;
        let mut exit = None;
        // SAFETY: as in `turn`.
        match unsafe { host.as_ref() }.turn(Right(()), &mut exit) {
            Turned::Parked => None,
            Turned::Woken => Some(Self(host)),
            Turned::Over(last) => {
                last.tell(exit.as_ref());
                None
            }
        }
    }

    fn queue(self, place: u32) {
        let host = self.0;
        // SAFETY: as in `turn`; and who wakes a strand has a reference of its own.
        unsafe { host.as_ref() }.queue_it(self, place);
    }

    #[cfg(feature = "testing")]
    pub(crate) fn path(&self) -> Path {
        self.turn().path()
    }

    pub(crate) fn mark(&self) -> Mark {
        self.turn().mark()
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let last = self.turn().give_up(Right(()));
        last.tell(None);
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready({})", self.turn().path())
    }
}

/// Proof that the caller is in this module, and has read its rules.
struct Right(());

/// What a turn came to.
enum Turned {
    Parked,
    /// The state is `Queued` again, for a `Ready` that the caller makes.
    Woken,
    Over(Last),
}

/// The reference that the strand had to its owner, with which the owner takes note of the end.
///
/// The owner may be gone after that, so no reference to it may be in use any more: not even the
/// `&self` of a method that has not returned.
#[must_use]
struct Last {
    host: Arc<dyn Turn>,
    lost: Option<u64>,
    place: u32,
}

impl Last {
    fn tell(self, exit: Option<&Exit>) {
        self.host.tell_over(exit, self.lost, self.place);
    }
}

/// A host without its types.
trait Turn: Send + Sync {
    /// The state is `Queued`, and the caller had the `Ready`. Why the incarnation is over, if it
    /// is, stays with the caller: it is not handed from one to the next.
    fn turn(&self, right: Right, exit: &mut Option<Exit>) -> Turned;
    /// The state is `Running` or `Woken`, and the caller moved it there.
    fn finish(&self, right: Right) -> Last;
    /// The state is `Queued`, and the caller had the `Ready`.
    fn give_up(&self, right: Right) -> Last;
    fn tell_over(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32);
    fn queue_it(&self, ready: Ready, place: u32);
    fn path(&self) -> Path;
    fn mark(&self) -> Mark;
}

impl<C: Host> Turn for C {
    fn turn(&self, right: Right, exit: &mut Option<Exit>) -> Turned {
        let strand = self.strand();
        let mut run = strand.run.lock();
        run.state = State::Running;
        run.data.begin_turn();
        let host = run.host.expect("what is queued was started");
        let waker = Borrowed::<C>::of(host);
        let mut cx = Context::from_waker(&waker);
        // The lock that began the turn is the one under which it looks for something to do.
        let mut held = Some(Held(run));
        // One in a turn: others wait for theirs.
        let mut heir = true;
        let came = self.during(|| {
            loop {
                let stand = strand.body.get_mut().with(|body| {
                    // SAFETY: we moved the state to `Running`, and are the host of the life.
                    unsafe { Body::turn(body, self, &mut held, exit, &mut cx) }
                });
                if matches!(stand, Stand::Over) {
                    exit.get_or_insert(Exit::Killed);
                    let may = mem::take(&mut heir);
                    // SAFETY: as above.
                    let renew = |body| unsafe { Body::renew(body, self, exit, may) };
                    if strand.body.get_mut().with(renew) {
                        continue;
                    }
                    return None;
                }
                let mut run = strand.run.lock();
                if self.is_down() {
                    return None;
                }
                if run.state == State::Woken {
                    run.state = State::Queued;
                    return Some(Turned::Woken);
                }
                if matches!(stand, Stand::Waits) || run.data.rest() {
                    run.state = State::Parked;
                    return Some(Turned::Parked);
                }
                held = Some(Held(run));
            }
        });
        came.unwrap_or_else(|| Turned::Over(self.finish(right)))
    }

    fn finish(&self, _: Right) -> Last {
        let strand = self.strand();
        // SAFETY: the caller moved the state to `Running` or `Woken`, or found it there as its own.
        let clear = |body| unsafe { Body::clear(body) };
        strand.body.get_mut().with(clear);
        let mut run = strand.run.lock();
        run.state = State::Off;
        let host = run.host.take().expect("what ran was started");
        let place = run.place;
        let lost = self.ended(Held(run));
        // SAFETY: `start` made the pointer from an `Arc<C>` for this moment.
        let host = unsafe { Arc::from_raw(host.as_ptr().cast_const()) };
        Last { host, lost, place }
    }

    #[cold]
    fn give_up(&self, right: Right) -> Last {
        self.strand().run.lock().state = State::Running;
        self.finish(right)
    }

    fn tell_over(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32) {
        self.over(exit, lost, place);
    }

    fn queue_it(&self, ready: Ready, place: u32) {
        self.queue(ready, place);
    }

    fn path(&self) -> Path {
        Host::path(self)
    }

    fn mark(&self) -> Mark {
        Host::mark(self)
    }
}

/// A waker without a reference of its own, for the time of a turn; its clones have one.
struct Borrowed<C>(ManuallyDrop<Waker>, std::marker::PhantomData<C>);

impl<C: Host> Borrowed<C> {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |host| {
            // SAFETY: the data of these wakers is a pointer from an `Arc<C>` that is alive.
            unsafe { Arc::increment_strong_count(host.cast::<C>()) };
            RawWaker::new(host, &Self::TABLE)
        },
        |host| {
            // SAFETY: a waker that is woken by value gives its reference up.
            let host = unsafe { Arc::from_raw(host.cast::<C>()) };
            wake::note_actor();
            host.strand().wake();
        },
        |host| {
            wake::note_actor();
            // SAFETY: a waker that is borrowed has a reference, or is borrowed from a turn.
            unsafe { &*host.cast::<C>() }.strand().wake();
        },
        |host| {
            // SAFETY: a waker that is dropped gives its reference up.
            drop(unsafe { Arc::from_raw(host.cast::<C>()) });
        },
    );

    fn of(host: NonNull<dyn Turn>) -> Self {
        let data = host.cast::<()>().as_ptr().cast_const();
        // SAFETY: the table is made for pointers from an `Arc<C>`, and the strand keeps one while
        // it runs; the waker is not dropped, so it gives no reference up that it does not have.
        let waker = unsafe { Waker::from_raw(RawWaker::new(data, &Self::TABLE)) };
        Self(ManuallyDrop::new(waker), std::marker::PhantomData)
    }
}

impl<C> Deref for Borrowed<C> {
    type Target = Waker;

    fn deref(&self) -> &Waker {
        &self.0
    }
}
