//! A slot for one value, handed from a sender to a receiver that waits.
//!
//! ```text
//!             wait              put
//!   Empty <----------> Waits ----------> Taken ---> Full
//!    |  |                ^                           ^
//!    |  |                +-- call, watch --> Held    |
//!    |  +------------------- put --------------------+
//!    +-- leave --> Left
//! ```
//!
//! Both sides hold a pointer, and there is no reference count. The value belongs to the sender
//! until the slot is `Full`. After that the sender touches nothing, and the receiver frees the
//! slot. If the receiver has `Left` first, the receiver touches nothing any more, and the sender
//! frees the slot. The waker belongs to the receiver while the slot is `Empty`, and to the sender
//! once it has taken a slot that waits.
//!
//! A slot that is watched contains something that must be told before the slot is full. It is put
//! in once, while the slot is `Held`, and never taken out. The way to `Full` then leads through
//! `Taken`.
//!
//! A slot that waits may be in a list of recent asks ([`recent_asks`](super::recent_asks)), which
//! calls the receiver: the list holds the slot while it copies the waker, and both sides wait for
//! that. The list reaches a slot only while the receiver has not left.
//!
//! A slot that waited is `Empty` only while its receiver polls or leaves, and a poll looks for the
//! value once more before it returns. A sender or a list that meets an empty slot therefore wakes
//! nothing. For anything else that the receiver does with a slot that waits, it holds the slot.

use std::ptr::NonNull;
use std::task::{Poll, Waker};

use super::arena::SizeClass;
use super::recent_asks::{RecentAsk, RecentAsks};
use crate::seeded_bug::{Bug, linger, seeded};
use crate::sync::{AtomicU8, Ordering, UnsafeCell, Weakening, spin_or_yield, weaken, weakened};

const EMPTY: u8 = 0;
const WAITING: u8 = 1;
const SENDING: u8 = 2;
const FULL: u8 = 3;
const RECEIVER_DROPPED: u8 = 4;
const HELD: u8 = 5;
/// A flag that is combined with `EMPTY`, `WAITING` or `HELD`.
const WATCHED: u8 = 8;

struct Slot<T, W> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
    waker: UnsafeCell<Option<Waker>>,
    watch: UnsafeCell<Option<W>>,
    /// The receiver's entry in a list of recent asks.
    entry: RecentAsk,
}

/// The side that puts the value in, which it has to do.
pub(crate) struct SlotSender<T, W>(NonNull<Slot<T, W>>);

/// The side that takes the value out.
pub(crate) struct SlotReceiver<T, W>(NonNull<Slot<T, W>>);

// SAFETY: the states determine which thread touches what, one thread at a time.
unsafe impl<T: Send, W: Send> Send for SlotSender<T, W> {}
// SAFETY: a shared reference to it gives no access.
unsafe impl<T: Send, W: Send> Sync for SlotSender<T, W> {}
// SAFETY: as for the sender.
unsafe impl<T: Send, W: Send> Send for SlotReceiver<T, W> {}
// SAFETY: a shared reference to it gives no access.
unsafe impl<T: Send, W: Send> Sync for SlotReceiver<T, W> {}

/// Creates an empty slot.
#[inline]
pub(crate) fn channel<T, W>() -> (SlotSender<T, W>, SlotReceiver<T, W>) {
    let slot = Slot::<T, W>::BUFFER.take().cast::<Slot<T, W>>();
    let empty = Slot {
        state: AtomicU8::new(EMPTY),
        value: UnsafeCell::new(None),
        waker: UnsafeCell::new(None),
        watch: UnsafeCell::new(None),
        entry: RecentAsk::new(slot.cast(), call::<T, W>),
    };
    // SAFETY: the room is ours, and for this.
    unsafe { slot.write(empty) };
    (SlotSender(slot), SlotReceiver(slot))
}

impl<T, W> Slot<T, W> {
    /// An ask that is answered at once costs no allocation.
    const BUFFER: SizeClass = SizeClass::of::<Self>();
}

impl<T, W> SlotSender<T, W> {
    /// Returns `true` if the receiver has left, so that the value will not be taken out.
    pub(crate) fn is_closed(&self) -> bool {
        // SAFETY: the slot is there until it is full, or we free it.
        let slot = unsafe { self.0.as_ref() };
        slot.state.load(Ordering::Relaxed) == RECEIVER_DROPPED
    }

    /// Puts the value in, and tells the watcher; returns the waker to wake.
    // Inlined, so that the value is written where it stays: a processor stalls if it reads as a
    // whole what was just written in parts.
    #[inline(always)]
    pub(crate) fn send(self, value: T, tell: impl FnOnce(&W)) -> Option<Waker> {
        // SAFETY: the slot is there until it is full, or we free it.
        let slot = unsafe { self.0.as_ref() };
        // SAFETY: the value is ours, and there is none.
        let full = |place: *mut Option<T>| unsafe { place.write(Some(value)) };
        slot.value.get_mut().with(full);
        self.hand_over(tell)
    }

    /// Hands the value that was put in over to the receiver.
    fn hand_over(self, tell: impl FnOnce(&W)) -> Option<Waker> {
        // SAFETY: as in `put`.
        let slot = unsafe { self.0.as_ref() };
        let mut round = 0;
        loop {
            let now = slot.state.load(Ordering::Acquire);
            if now == RECEIVER_DROPPED {
                // SAFETY: the receiver touches nothing any more.
                unsafe { free(self.0) };
                return None;
            }
            if now & !WATCHED == HELD {
                spin_or_yield(round);
                round = round.saturating_add(1);
                continue;
            }
            let next = if now == EMPTY { FULL } else { SENDING };
            let moved = slot
                .state
                .compare_exchange(now, next, Ordering::AcqRel, Ordering::Relaxed);
            if moved.is_err() {
                continue;
            }
            if next == FULL {
                return None;
            }
            if now & WATCHED != 0 {
                // SAFETY: the watcher is not written again.
                let watch = |watch: *mut Option<W>| unsafe { (*watch).as_ref().map(tell) };
                slot.watch.get_mut().with(watch);
            }
            let mut waker = None;
            if now & WAITING != 0 && !weakened(Weakening::ValueWakesTaker) {
                // SAFETY: we took a slot that waits, so the waker is ours.
                let take = |place: *mut Option<Waker>| unsafe { (*place).take() };
                waker = slot.waker.get_mut().with(take);
            }
            let release = weaken(Weakening::SlotFullRelease, Ordering::Release);
            slot.state.store(FULL, release);
            return waker;
        }
    }
}

#[expect(
    clippy::needless_pass_by_ref_mut,
    reason = "what the receiver may touch, nobody else may meanwhile"
)]
impl<T, W> SlotReceiver<T, W> {
    fn slot(&self) -> &Slot<T, W> {
        // SAFETY: the slot is there until we leave it.
        unsafe { self.0.as_ref() }
    }

    /// Returns `true` if the value is there.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        let acquire = weaken(Weakening::SlotFullAcquire, Ordering::Acquire);
        self.slot().state.load(acquire) == FULL
    }

    /// Returns the value, if it is there.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<T> {
        let slot = self.slot();
        if !self.is_full() {
            return None;
        }
        // SAFETY: the slot is full, so the value is ours.
        let take = |value: *mut Option<T>| unsafe { (*value).take() };
        slot.value.get_mut().with(take)
    }

    /// Returns the value, or `None` if it was taken before. While the value is not there, registers
    /// the waker.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Option<T>> {
        let Some(was) = self.reset_to_empty() else {
            return Poll::Ready(self.take());
        };
        let slot = self.slot();
        let waker = waker.clone();
        // SAFETY: the slot is empty, so this is ours.
        let old = |place: *mut Option<Waker>| unsafe { (*place).replace(waker) };
        let old = slot.waker.get_mut().with(old);
        let empty = was & !WAITING;
        let waits = slot.state.compare_exchange(
            empty,
            empty | WAITING,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        drop(old);
        if waits.is_ok() {
            return Poll::Pending;
        }
        self.spin_until_full();
        Poll::Ready(self.take())
    }

    /// Registers a watcher to be told before the slot is full, once. Returns `false` if that is too
    /// late: the sender has taken the slot, and with it the waker, if there is one.
    ///
    /// The slot is not `Empty` meanwhile. The receiver need not poll again after this, so a sender
    /// that comes has to find the waker.
    pub(crate) fn watch(&mut self, watch: W) -> bool {
        // A list meets a slot that is held only where a poll follows.
        debug_assert!(
            !self.slot().entry.is_listed(),
            "what is listed is not watched yet"
        );
        let is_lost =
            seeded(Bug::AnswerLostWhileWatchIsSet) || weakened(Weakening::SlotHeldForWatch);
        let held = if is_lost { EMPTY } else { HELD };
        let Some(was) = self.acquire_as(held) else {
            return false;
        };
        let slot = self.slot();
        debug_assert_eq!(was & WATCHED, 0, "it is watched once");
        // SAFETY: the slot is held and not watched, so this is ours.
        let put = |place: *mut Option<W>| unsafe { *place = Some(watch) };
        slot.watch.get_mut().with(put);
        linger(Bug::AnswerLostWhileWatchIsSet);
        slot.state
            .compare_exchange(held, was | WATCHED, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Moves a slot that waits back to empty. Returns the state before; `None` if the slot is full.
    fn reset_to_empty(&self) -> Option<u8> {
        self.acquire_as(EMPTY)
    }

    /// Moves a slot that is empty or waits to one of the two states in which the receiver may touch
    /// all but the value. Returns the state before; `None` if the slot is full.
    fn acquire_as(&self, ours: u8) -> Option<u8> {
        let state = &self.slot().state;
        let mut round = 0;
        loop {
            let now = state.load(Ordering::Acquire);
            match now & !WATCHED {
                EMPTY if ours == EMPTY => return Some(now),
                EMPTY | WAITING => {
                    let next = now & WATCHED | ours;
                    let moved =
                        state.compare_exchange(now, next, Ordering::AcqRel, Ordering::Relaxed);
                    if moved.is_ok() {
                        return Some(now);
                    }
                }
                HELD => {
                    spin_or_yield(round);
                    round = round.saturating_add(1);
                }
                _ => {
                    self.spin_until_full();
                    return None;
                }
            }
        }
    }

    /// Puts the receiver, which waits, in a list of recent asks.
    #[inline]
    pub(crate) fn insert_into(&mut self, list: &'static RecentAsks) {
        // SAFETY: the entry is ours and stays in the slot, which is freed after `remove`.
        unsafe { self.slot().entry.insert_into(list) };
    }

    /// Returns `true` if a list of recent asks, in which the receiver waits, will call it.
    #[inline]
    pub(crate) fn will_be_woken(&self) -> bool {
        self.slot().entry.will_be_woken()
    }

    /// Waits for the sender, which has taken the slot and is about to fill it, or has done so.
    fn spin_until_full(&self) {
        let mut round = 0;
        while self.slot().state.load(Ordering::Acquire) != FULL {
            spin_or_yield(round);
            round = round.saturating_add(1);
        }
    }
}

impl<T, W> Drop for SlotReceiver<T, W> {
    #[inline]
    fn drop(&mut self) {
        self.slot().entry.remove();
        let state = &self.slot().state;
        if state.load(Ordering::Acquire) != FULL
            && let Some(was) = self.reset_to_empty()
        {
            let empty = was & !WAITING;
            let acq_rel = weaken(Weakening::SlotDropRelease, Ordering::AcqRel);
            let left = state.compare_exchange(empty, RECEIVER_DROPPED, acq_rel, Ordering::Relaxed);
            if left.is_ok() {
                return;
            }
            self.spin_until_full();
        }
        // SAFETY: it is full, so the sender touches nothing any more.
        unsafe { free(self.0) };
    }
}

/// Copies the waker of a slot that waits.
///
/// # Safety
/// It is from `channel`, for values of these types, and the receiver has not left.
unsafe fn call<T, W>(slot: NonNull<()>) -> Option<Waker> {
    // SAFETY: the receiver has not left, so the slot is there.
    let slot = unsafe { slot.cast::<Slot<T, W>>().as_ref() };
    let now = slot.state.load(Ordering::Relaxed);
    if now & !WATCHED != WAITING {
        return None;
    }
    let held = now & WATCHED | HELD;
    let moved = slot
        .state
        .compare_exchange(now, held, Ordering::AcqRel, Ordering::Relaxed);
    moved.ok()?;
    // SAFETY: while we hold the slot, nothing else touches the waker.
    let copy = |place: *mut Option<Waker>| unsafe { (*place).clone() };
    let waker = slot.waker.get_mut().with(copy);
    slot.state.store(now, Ordering::Release);
    waker
}

/// Frees a slot.
///
/// # Safety
/// It is from `channel`, and nothing else touches it any more.
unsafe fn free<T, W>(slot: NonNull<Slot<T, W>>) {
    // SAFETY: `channel` took it as room of this kind. Given back even if a value panics.
    let _guard = unsafe { Slot::<T, W>::BUFFER.guard(slot.cast()) };
    // SAFETY: it is dropped once, here.
    unsafe { slot.drop_in_place() };
}
