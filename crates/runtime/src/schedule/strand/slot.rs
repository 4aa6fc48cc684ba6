//! A place for one value, on its way from one who has it to one who waits.
//!
//! ```text
//!           wait
//!   Empty <------> Waits ---- put ----> Taken ---> Full
//!     |  \           ^                             ^
//!     |   +----------|------ put ------------------+
//!     +-- leave --> Left
//!                    +-- call --> Held (for a moment)
//! ```
//!
//! Both sides hold a pointer, and nobody counts. The value is the giver's until the slot is `Full`,
//! after which the giver touches nothing, and the taker frees the slot. Where the taker has `Left`
//! first, that touches nothing any more, and the giver frees the slot. The waker is the taker's
//! while the slot is `Empty`, and the giver's once it took a slot that waits.
//!
//! A slot that is watched has something that must be told before it is full: it is put in once,
//! while the slot is `Empty`, and never taken out. The way to `Full` leads through `Taken` then.
//!
//! A slot that waits may be in the list of those that began to a moment ago
//! ([`fresh`](super::fresh)), which calls the taker: it holds the slot while it copies the waker,
//! and both sides wait for that. It comes to a slot only while the taker has not left.

use std::ptr::NonNull;
use std::task::{Poll, Waker};

use super::fresh::{Entry, Fresh};
use super::scratch::Room;
use crate::sync::{AtomicU8, Ordering, UnsafeCell, relax};

const EMPTY: u8 = 0;
const WAITS: u8 = 1;
const TAKEN: u8 = 2;
const FULL: u8 = 3;
const LEFT: u8 = 4;
const HELD: u8 = 5;
/// Beside `EMPTY` or `WAITS`.
const WATCHED: u8 = 8;

struct Slot<T, W> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
    waker: UnsafeCell<Option<Waker>>,
    watch: UnsafeCell<Option<W>>,
    /// The taker's place among those that began to wait a moment ago.
    entry: Entry,
}

/// The side that puts the value in, which it has to.
pub(crate) struct Giver<T, W>(NonNull<Slot<T, W>>);

/// The side that takes it out.
pub(crate) struct Taker<T, W>(NonNull<Slot<T, W>>);

// SAFETY: the states say who touches what, one thread at a time.
unsafe impl<T: Send, W: Send> Send for Giver<T, W> {}
// SAFETY: nothing can be done with a reference to it.
unsafe impl<T: Send, W: Send> Sync for Giver<T, W> {}
// SAFETY: as for the giver.
unsafe impl<T: Send, W: Send> Send for Taker<T, W> {}
// SAFETY: nothing can be done with a reference to it.
unsafe impl<T: Send, W: Send> Sync for Taker<T, W> {}

/// Makes an empty slot.
#[inline]
pub(crate) fn slot<T, W>() -> (Giver<T, W>, Taker<T, W>) {
    let slot = Slot::<T, W>::ROOM.take().cast::<Slot<T, W>>();
    let empty = Slot {
        state: AtomicU8::new(EMPTY),
        value: UnsafeCell::new(None),
        waker: UnsafeCell::new(None),
        watch: UnsafeCell::new(None),
        entry: Entry::new(slot.cast(), call::<T, W>),
    };
    // SAFETY: the room is ours, and for this.
    unsafe { slot.write(empty) };
    (Giver(slot), Taker(slot))
}

impl<T, W> Slot<T, W> {
    /// A question that is answered at once costs no allocation.
    const ROOM: Room = Room::of::<Self>();
}

impl<T, W> Giver<T, W> {
    /// Whether nobody will take the value out.
    pub(crate) fn is_left(&self) -> bool {
        // SAFETY: the slot is there until it is full, or we free it.
        let slot = unsafe { self.0.as_ref() };
        slot.state.load(Ordering::Relaxed) == LEFT
    }

    /// Puts the value in, and tells who watches; returns whom to wake.
    // Inlined, so that the value is written where it stays: a processor that reads as a whole what
    // was just written in parts waits for it.
    #[inline(always)]
    pub(crate) fn put(self, value: T, tell: impl FnOnce(&W)) -> Option<Waker> {
        // SAFETY: the slot is there until it is full, or we free it.
        let slot = unsafe { self.0.as_ref() };
        // SAFETY: the value is ours, and there is none.
        let full = |place: *mut Option<T>| unsafe { place.write(Some(value)) };
        slot.value.get_mut().with(full);
        self.hand_over(tell)
    }

    /// Lets the taker have the value that was put in.
    fn hand_over(self, tell: impl FnOnce(&W)) -> Option<Waker> {
        // SAFETY: as in `put`.
        let slot = unsafe { self.0.as_ref() };
        let mut round = 0;
        loop {
            let now = slot.state.load(Ordering::Acquire);
            if now == LEFT {
                // SAFETY: the taker touches nothing any more.
                unsafe { free(self.0) };
                return None;
            }
            if now & !WATCHED == HELD {
                relax(round);
                round = round.saturating_add(1);
                continue;
            }
            let next = if now == EMPTY { FULL } else { TAKEN };
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
                // SAFETY: what is there is not written again.
                let watch = |watch: *mut Option<W>| unsafe { (*watch).as_ref().map(tell) };
                slot.watch.get_mut().with(watch);
            }
            let mut waker = None;
            if now & WAITS != 0 {
                // SAFETY: we took a slot that waits, so the waker is ours.
                let take = |place: *mut Option<Waker>| unsafe { (*place).take() };
                waker = slot.waker.get_mut().with(take);
            }
            slot.state.store(FULL, Ordering::Release);
            return waker;
        }
    }
}

#[expect(
    clippy::needless_pass_by_ref_mut,
    reason = "what the taker may touch, nobody else may meanwhile"
)]
impl<T, W> Taker<T, W> {
    fn slot(&self) -> &Slot<T, W> {
        // SAFETY: the slot is there until we leave it.
        unsafe { self.0.as_ref() }
    }

    /// Whether the value is there.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.slot().state.load(Ordering::Acquire) == FULL
    }

    /// The value, if it is there.
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

    /// The value, or nothing if it was taken before. The waker is woken when it comes.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Option<T>> {
        let Some(was) = self.reclaim() else {
            return Poll::Ready(self.take());
        };
        let slot = self.slot();
        let waker = waker.clone();
        // SAFETY: the slot is empty, so this is ours.
        let old = |place: *mut Option<Waker>| unsafe { (*place).replace(waker) };
        let old = slot.waker.get_mut().with(old);
        let empty = was & !WAITS;
        let waits =
            slot.state
                .compare_exchange(empty, empty | WAITS, Ordering::AcqRel, Ordering::Relaxed);
        drop(old);
        if waits.is_ok() {
            return Poll::Pending;
        }
        self.until_full();
        Poll::Ready(self.take())
    }

    /// Has someone told before the slot is full. Once; false if that comes too late.
    pub(crate) fn watch(&mut self, watch: W) -> bool {
        let Some(was) = self.reclaim() else {
            return false;
        };
        let slot = self.slot();
        debug_assert_eq!(was & WATCHED, 0, "it is watched once");
        // SAFETY: the slot is empty and not watched, so this is ours.
        let put = |place: *mut Option<W>| unsafe { *place = Some(watch) };
        slot.watch.get_mut().with(put);
        let watched =
            slot.state
                .compare_exchange(EMPTY, was | WATCHED, Ordering::AcqRel, Ordering::Relaxed);
        watched.is_ok()
    }

    /// Makes the slot empty if it waits, and says whether it did; nothing once it is full.
    fn reclaim(&self) -> Option<u8> {
        let state = &self.slot().state;
        let mut round = 0;
        loop {
            let now = state.load(Ordering::Acquire);
            match now & !WATCHED {
                EMPTY => return Some(now),
                WAITS => {
                    let empty = now & !WAITS;
                    let moved =
                        state.compare_exchange(now, empty, Ordering::AcqRel, Ordering::Relaxed);
                    if moved.is_ok() {
                        return Some(now);
                    }
                }
                HELD => {
                    relax(round);
                    round = round.saturating_add(1);
                }
                _ => {
                    self.until_full();
                    return None;
                }
            }
        }
    }

    /// Puts the taker, which waits, among those that began to a moment ago.
    #[inline]
    pub(crate) fn list(&mut self, list: &'static Fresh) {
        // SAFETY: the entry is ours and stays in the slot, which is freed after `unlist`.
        unsafe { self.slot().entry.list(list) };
    }

    /// Returns `true` while the taker is among those that began to wait a moment ago.
    #[inline]
    pub(crate) fn is_listed(&self) -> bool {
        self.slot().entry.is_listed()
    }

    /// Waits for the giver, which has taken the slot and is about to fill it, or did.
    fn until_full(&self) {
        let mut round = 0;
        while self.slot().state.load(Ordering::Acquire) != FULL {
            relax(round);
            round = round.saturating_add(1);
        }
    }
}

impl<T, W> Drop for Taker<T, W> {
    #[inline]
    fn drop(&mut self) {
        self.slot().entry.unlist();
        let state = &self.slot().state;
        if state.load(Ordering::Acquire) != FULL
            && let Some(was) = self.reclaim()
        {
            let empty = was & !WAITS;
            let left = state.compare_exchange(empty, LEFT, Ordering::AcqRel, Ordering::Relaxed);
            if left.is_ok() {
                return;
            }
            self.until_full();
        }
        // SAFETY: it is full, so the giver touches nothing any more.
        unsafe { free(self.0) };
    }
}

/// Copies the waker of a slot that waits.
///
/// # Safety
/// It is from `slot`, for values of these types, and the taker has not left.
unsafe fn call<T, W>(slot: NonNull<()>) -> Option<Waker> {
    // SAFETY: the taker has not left, so the slot is there.
    let slot = unsafe { slot.cast::<Slot<T, W>>().as_ref() };
    let now = slot.state.load(Ordering::Relaxed);
    if now & !WATCHED != WAITS {
        return None;
    }
    let held = now & WATCHED | HELD;
    let moved = slot
        .state
        .compare_exchange(now, held, Ordering::AcqRel, Ordering::Relaxed);
    moved.ok()?;
    // SAFETY: while we hold the slot nobody else touches the waker.
    let copy = |place: *mut Option<Waker>| unsafe { (*place).clone() };
    let waker = slot.waker.get_mut().with(copy);
    slot.state.store(now, Ordering::Release);
    waker
}

/// Frees a slot.
///
/// # Safety
/// It is from `slot`, and nobody else touches it any more.
unsafe fn free<T, W>(slot: NonNull<Slot<T, W>>) {
    // SAFETY: `slot` took it as room of this kind. Given back also if a value panics.
    let _back = unsafe { Slot::<T, W>::ROOM.back(slot.cast()) };
    // SAFETY: it is dropped once, here.
    unsafe { slot.drop_in_place() };
}
