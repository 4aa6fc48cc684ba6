//! Lists of recent asks, for the few that are not answered soon.
//!
//! A deadline costs a clock read and a place in the timer wheel, and nearly every ask is answered
//! long before its deadline. An ask that begins to wait is therefore only put in the list of its
//! thread, and taken out with its answer. The monitor empties the lists at every look, and calls
//! the asks that it finds, which set their deadlines then.
//!
//! ```text
//!   ask ──▶ listed ──▶ answered: taken out            (nearly always)
//!              └─────▶ a look later: called, and waits with a deadline
//! ```
//!
//! An entry is part of the slot of its ask. It is touched only under the lock of its list, except
//! for one flag, with which the list announces that it touches the entry no more. That flag alone
//! does not tell an asker that it will be called: see [`RecentAsk::will_be_woken`].

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::task::Waker;

use super::SpinLock;
use crate::sync::{AtomicBool, Ordering, Weakening, weaken, weakened};

/// This many entries are taken out under one lock, so that no thread waits for it for long.
const TAKE_BATCH: usize = 64;

/// One list. Aligned so that two lists do not share a cache line.
#[repr(align(64))]
pub(crate) struct RecentAsks {
    /// Set, unless it already is, by a thread that adds an entry: the monitor will check the list.
    pub(crate) needs_check: AtomicBool,
    head: SpinLock<ListHead>,
}

struct ListHead(*const RecentAsk);

// SAFETY: entries are in slots, which may be touched on any thread, and are under the lock here.
unsafe impl Send for ListHead {}

/// An entry of a list.
pub(super) struct RecentAsk {
    /// Set while the entry is in a list; cleared by the list when it touches the entry no more.
    listed: AtomicBool,
    list: Cell<*const RecentAsks>,
    next: Cell<*const Self>,
    prev: Cell<*const Self>,
    /// Returns the waker to call, if the receiver waits.
    take_waker: unsafe fn(NonNull<()>) -> Option<Waker>,
    slot: NonNull<()>,
}

impl RecentAsks {
    #[cfg(not(strowger_loom))]
    pub(crate) const fn new() -> Self {
        Self {
            needs_check: AtomicBool::new(false),
            head: SpinLock::new_const(ListHead(ptr::null())),
        }
    }

    #[cfg(strowger_loom)]
    pub(crate) fn new() -> Self {
        Self {
            needs_check: AtomicBool::new(false),
            head: SpinLock::new(ListHead(ptr::null())),
        }
    }

    /// Takes entries out of the list, and adds the wakers of those that wait. Returns `true` if
    /// there may be more.
    pub(crate) fn take(&self, wakers: &mut Vec<Waker>) -> bool {
        let mut head = self.head.lock();
        for _ in 0..TAKE_BATCH {
            // SAFETY: an entry in the list stays valid, under its lock, until it is taken out.
            let Some(entry) = (unsafe { head.0.as_ref() }) else {
                return false;
            };
            unlink(&mut head, entry);
            // SAFETY: the entry is in its slot, which is there while the entry is listed.
            wakers.extend(unsafe { (entry.take_waker)(entry.slot) });
            // After this, the owner may free the entry.
            let release = weaken(Weakening::UnlistedRelease, Ordering::Release);
            entry.listed.store(false, release);
        }
        true
    }
}

impl RecentAsk {
    pub(super) fn new(slot: NonNull<()>, call: unsafe fn(NonNull<()>) -> Option<Waker>) -> Self {
        Self {
            listed: AtomicBool::new(false),
            list: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            take_waker: call,
            slot,
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        let acquire = weaken(Weakening::UnlistedAcquire, Ordering::Acquire);
        self.listed.load(acquire)
    }

    /// Returns `true` if the entry is in a list that will call the receiver, which waits.
    ///
    /// Without the lock, a receiver that polls while the list takes its entry out could lose both:
    /// the list met the slot while its waker was being replaced, and called nothing or the task
    /// before, and the flag is still set because the list is not done with the entry. Under the
    /// lock, the list is done with the entry, or meets the slot as the receiver has left it.
    #[inline]
    pub(super) fn will_be_woken(&self) -> bool {
        if !self.is_listed() {
            return false;
        }
        if weakened(Weakening::ListedCheckedUnderLock) {
            return self.is_listed();
        }
        // SAFETY: it was put in this list, which outlives it.
        let list = unsafe { &*self.list.get() };
        let _head = list.head.lock();
        self.is_listed()
    }

    /// Puts the entry in a list.
    ///
    /// # Safety
    /// The caller owns the entry, which is in no list; the entry stays where it is until it is
    /// `remove`ed, and the list outlives it.
    #[inline]
    pub(super) unsafe fn insert_into(&self, list: &RecentAsks) {
        self.list.set(list);
        let mut head = list.head.lock();
        let this: *const Self = self;
        self.prev.set(ptr::null());
        self.next.set(head.0);
        // SAFETY: an entry in the list stays valid.
        if let Some(next) = unsafe { head.0.as_ref() } {
            next.prev.set(this);
        }
        head.0 = this;
        self.listed.store(true, Ordering::Relaxed);
    }

    /// Takes the entry out, if it is in a list. After that only its owner touches it.
    #[inline]
    pub(super) fn remove(&self) {
        if !self.is_listed() {
            return;
        }
        // SAFETY: it was put in this list, which outlives it.
        let list = unsafe { &*self.list.get() };
        let mut head = list.head.lock();
        // The list may have taken it out in between.
        if self.listed.load(Ordering::Relaxed) {
            unlink(&mut head, self);
            self.listed.store(false, Ordering::Relaxed);
        }
    }
}

/// Takes an entry out of the list that it is in.
fn unlink(head: &mut ListHead, entry: &RecentAsk) {
    let (before, next) = (entry.prev.get(), entry.next.get());
    // SAFETY: an entry in the list stays valid.
    match unsafe { before.as_ref() } {
        Some(before) => before.next.set(next),
        None => head.0 = next,
    }
    // SAFETY: as above.
    if let Some(next) = unsafe { next.as_ref() } {
        next.prev.set(before);
    }
}
