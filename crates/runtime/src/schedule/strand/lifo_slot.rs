//! The LIFO slot: a place for the value to take next, filled without an atomic read-modify-write
//! operation that would stall the processor.
//!
//! ```text
//!          put                  take               done
//!   EMPTY -----> FULL ---------------------> HELD -----> EMPTY
//!    (its writer)          (any thread)
//! ```
//!
//! Only the writer moves the state away from `EMPTY`, and only one thread has the writer: no other
//! thread touches the value until the state is `FULL`. The thread that moves the state to `HELD`
//! has exclusive access to the value until it moves the state on.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::sync::{AtomicBool, AtomicU8, Ordering, UnsafeCell, Weakening, weaken, weaken_or};

const EMPTY: u8 = 0;
const FULL: u8 = 1;
const HELD: u8 = 2;

struct LifoCell<T> {
    state: AtomicU8,
    /// Set if there is a writer.
    has_writer: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the state determines which thread touches the value, one at a time.
unsafe impl<T: Send> Sync for LifoCell<T> {}

/// The side from which any thread takes the value.
pub(crate) struct LifoSlot<T>(Arc<LifoCell<T>>);

/// The side that puts a value in; one thread has it.
pub(crate) struct LifoWriter<T> {
    place: Arc<LifoCell<T>>,
    not_sync: PhantomData<Cell<()>>,
}

impl<T> LifoSlot<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(LifoCell {
            state: AtomicU8::new(EMPTY),
            has_writer: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }))
    }

    /// Returns the filling side, unless another thread has it.
    pub(crate) fn writer(&self) -> Option<LifoWriter<T>> {
        let acq_rel = weaken_or(
            Weakening::LifoWriterAcquire,
            Ordering::AcqRel,
            Ordering::Release,
        );
        let taken = self.0.has_writer.swap(true, acq_rel);
        (!taken).then(|| LifoWriter {
            place: Arc::clone(&self.0),
            not_sync: PhantomData,
        })
    }

    /// Returns `true` if there is a value, as far as a relaxed load can tell.
    pub(crate) fn is_full(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) != EMPTY
    }

    /// Takes the value out, if there is one.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<T> {
        let place = &*self.0;
        if place.state.load(Ordering::Relaxed) == EMPTY {
            return None;
        }
        let acquire = weaken(Weakening::LifoFullAcquire, Ordering::Acquire);
        let held = place
            .state
            .compare_exchange(FULL, HELD, acquire, Ordering::Relaxed);
        // If another thread holds the place, that thread takes the value.
        held.ok()?;
        let taken = place.value.get_mut().with(|value| {
            // SAFETY: we moved the state to `HELD`.
            unsafe { (*value).take() }
        });
        let release = weaken(Weakening::LifoEmptyRelease, Ordering::Release);
        place.state.store(EMPTY, release);
        taken
    }
}

impl<T> LifoWriter<T> {
    /// Puts a value in; hands it back if the place is occupied.
    #[inline(always)]
    pub(crate) fn put(&self, value: T) -> Option<T> {
        let acquire = weaken(Weakening::LifoEmptyAcquire, Ordering::Acquire);
        if self.place.state.load(acquire) != EMPTY {
            return Some(value);
        }
        let fill = |place: *mut Option<T>| {
            // SAFETY: the state is `EMPTY`, from which only we move it; and nothing is in it.
            unsafe { place.write(Some(value)) };
        };
        self.place.value.get_mut().with(fill);
        let release = weaken(Weakening::LifoFullRelease, Ordering::Release);
        self.place.state.store(FULL, release);
        None
    }
}

impl<T> Drop for LifoWriter<T> {
    fn drop(&mut self) {
        let release = weaken(Weakening::LifoWriterRelease, Ordering::Release);
        self.place.has_writer.store(false, release);
    }
}
