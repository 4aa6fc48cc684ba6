//! A place for the one that is next: put there without an atomic step for which others are waited.
//!
//! ```text
//!          put                  take               done
//!   EMPTY -----> FULL ---------------------> HELD -----> EMPTY
//!    (its filler)         (who gets there)
//! ```
//!
//! Only the filler leads away from `EMPTY`, and only one thread has it: what is there is nobody
//! else's until it is `FULL`. Who moves the state to `HELD` has the value alone until it moves it
//! on.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::sync::{AtomicBool, AtomicU8, Ordering, UnsafeCell};

const EMPTY: u8 = 0;
const FULL: u8 = 1;
const HELD: u8 = 2;

struct Place<T> {
    state: AtomicU8,
    /// Whether there is a filler.
    filled: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the state says who touches the value, one thread at a time.
unsafe impl<T: Send> Sync for Place<T> {}

/// The side from which a value is taken, by any thread.
pub(crate) struct Next<T>(Arc<Place<T>>);

/// The side that puts a value in; one thread has it.
pub(crate) struct Filler<T> {
    place: Arc<Place<T>>,
    alone: PhantomData<Cell<()>>,
}

impl<T> Next<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Place {
            state: AtomicU8::new(EMPTY),
            filled: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }))
    }

    /// The other side, unless somebody has it.
    pub(crate) fn filler(&self) -> Option<Filler<T>> {
        let taken = self.0.filled.swap(true, Ordering::AcqRel);
        (!taken).then(|| Filler {
            place: Arc::clone(&self.0),
            alone: PhantomData,
        })
    }

    /// Whether there is a value, as far as one can tell.
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
        let held = place
            .state
            .compare_exchange(FULL, HELD, Ordering::Acquire, Ordering::Relaxed);
        // Where another holds it, that one takes it out.
        held.ok()?;
        let taken = place.value.get_mut().with(|value| {
            // SAFETY: we moved the state to `HELD`.
            unsafe { (*value).take() }
        });
        place.state.store(EMPTY, Ordering::Release);
        taken
    }
}

impl<T> Filler<T> {
    /// Puts a value in; hands it back if there is one.
    #[inline(always)]
    pub(crate) fn put(&self, value: T) -> Option<T> {
        if self.place.state.load(Ordering::Acquire) != EMPTY {
            return Some(value);
        }
        let fill = |place: *mut Option<T>| {
            // SAFETY: the state is `EMPTY`, from which only we move it; and nothing is in it.
            unsafe { place.write(Some(value)) };
        };
        self.place.value.get_mut().with(fill);
        self.place.state.store(FULL, Ordering::Release);
        None
    }
}

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        self.place.filled.store(false, Ordering::Release);
    }
}
