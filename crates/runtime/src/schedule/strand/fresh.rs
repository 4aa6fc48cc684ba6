//! Questions that were asked a moment ago, for the few that are not answered soon.
//!
//! A deadline costs the clock and a place in the wheel, and nearly every question is answered long
//! before. So one that begins to wait is only put in the list of its thread, and taken out with its
//! answer. The monitor empties the lists with every look, and calls those that it finds: they set
//! their deadline then.
//!
//! ```text
//!   ask ──▶ listed ──▶ answered: taken out            (nearly always)
//!              └─────▶ a look later: called, and waits with a deadline
//! ```
//!
//! An entry lies in the slot of its question. It is touched under the lock of its list alone, but
//! for one flag: the list says with it that it touches the entry no more.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::task::Waker;

use super::Lock;
use crate::sync::{AtomicBool, Ordering};

/// As many are taken out under one lock, so that nobody waits long for it.
const BATCH: usize = 64;

/// One list. Aligned so that two do not share a line.
#[repr(align(64))]
pub(crate) struct Fresh {
    /// Set by who puts something in, unless it is set: the list will be looked at.
    pub(crate) wanted: AtomicBool,
    head: Lock<Head>,
}

struct Head(*const Entry);

// SAFETY: entries are in slots, which may be touched on any thread, and are under the lock here.
unsafe impl Send for Head {}

/// A place in a list.
pub(super) struct Entry {
    /// Set while it is in a list; reset by the list when that touches it no more.
    listed: AtomicBool,
    list: Cell<*const Fresh>,
    next: Cell<*const Self>,
    before: Cell<*const Self>,
    /// Returns whom to call, if somebody waits.
    call: unsafe fn(NonNull<()>) -> Option<Waker>,
    slot: NonNull<()>,
}

impl Fresh {
    #[cfg(not(strowger_loom))]
    pub(crate) const fn new() -> Self {
        Self {
            wanted: AtomicBool::new(false),
            head: Lock::new_const(Head(ptr::null())),
        }
    }

    #[cfg(strowger_loom)]
    pub(crate) fn new() -> Self {
        Self {
            wanted: AtomicBool::new(false),
            head: Lock::new(Head(ptr::null())),
        }
    }

    /// Empties the list; returns some of those who wait, and whether there may be more.
    pub(crate) fn take(&self, wakers: &mut Vec<Waker>) -> bool {
        let mut head = self.head.lock();
        for _ in 0..BATCH {
            // SAFETY: what is in the list is there, under its lock, until it is taken out.
            let Some(entry) = (unsafe { head.0.as_ref() }) else {
                return false;
            };
            unlink(&mut head, entry);
            // SAFETY: the entry is in its slot, which is there while the entry is listed.
            wakers.extend(unsafe { (entry.call)(entry.slot) });
            // After this its owner may free it.
            entry.listed.store(false, Ordering::Release);
        }
        true
    }
}

impl Entry {
    pub(super) fn new(slot: NonNull<()>, call: unsafe fn(NonNull<()>) -> Option<Waker>) -> Self {
        Self {
            listed: AtomicBool::new(false),
            list: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            before: Cell::new(ptr::null()),
            call,
            slot,
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    /// Puts the entry in a list.
    ///
    /// # Safety
    /// The caller owns the entry, which is in no list; the entry stays where it is until it is
    /// `unlist`ed, and the list outlives it.
    #[inline]
    pub(super) unsafe fn list(&self, list: &Fresh) {
        self.list.set(list);
        let mut head = list.head.lock();
        let this: *const Self = self;
        self.before.set(ptr::null());
        self.next.set(head.0);
        // SAFETY: what is in the list is there.
        if let Some(next) = unsafe { head.0.as_ref() } {
            next.before.set(this);
        }
        head.0 = this;
        self.listed.store(true, Ordering::Relaxed);
    }

    /// Takes the entry out, if it is in a list. After that nobody but its owner touches it.
    #[inline]
    pub(super) fn unlist(&self) {
        if !self.is_listed() {
            return;
        }
        // SAFETY: it was put in this list, which outlives it.
        let list = unsafe { &*self.list.get() };
        let mut head = list.head.lock();
        // The list may have done so in between.
        if self.listed.load(Ordering::Relaxed) {
            unlink(&mut head, self);
            self.listed.store(false, Ordering::Relaxed);
        }
    }
}

/// Takes an entry out of the list that it is in.
fn unlink(head: &mut Head, entry: &Entry) {
    let (before, next) = (entry.before.get(), entry.next.get());
    // SAFETY: what is in the list is there.
    match unsafe { before.as_ref() } {
        Some(before) => before.next.set(next),
        None => head.0 = next,
    }
    // SAFETY: as above.
    if let Some(next) = unsafe { next.as_ref() } {
        next.before.set(before);
    }
}
