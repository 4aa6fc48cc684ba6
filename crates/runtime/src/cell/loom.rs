//! Models of what is read of an actor without a lock, in every order.

use std::sync::Arc;

use ::loom::model;
use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::thread;

use super::marks::Marks;
use super::stand::Stand;
use super::{KILLED, Phase, SPANNED, TRACED};
use crate::exit::Exit;

/// A phase, and something that is done before it is entered.
#[derive(Default)]
struct Done {
    stand: Stand,
    work: AtomicUsize,
}

#[test]
fn who_sees_the_end_sees_what_was_done_before() {
    model(|| {
        let done = Arc::new(Done::default());
        let other = Arc::clone(&done);
        // Not the other way round: loom keeps one access of each atomic to go back to, and the load
        // in a change of the phase would hide the reader's.
        let reader = thread::spawn(move || {
            if other.stand.phase() == Phase::Ended {
                assert_eq!(other.work.load(Ordering::Relaxed), 1);
                assert!(matches!(other.stand.last(), Ok(Some(Exit::Killed))));
            }
        });
        done.stand.enter(Phase::Running);
        done.work.store(1, Ordering::Relaxed);
        assert!(done.stand.set_last(&Exit::Killed), "its kind says it all");
        done.stand.enter(Phase::Ended);
        reader.join().expect("no panic");
    });
}

#[test]
fn no_mark_is_lost_to_another() {
    model(|| {
        let marks = Arc::new(Marks::default());
        marks.set(SPANNED);
        let other = Arc::clone(&marks);
        let other = thread::spawn(move || other.set(KILLED));
        marks.set(TRACED);
        marks.clear(SPANNED);
        other.join().expect("no panic");
        assert!(marks.has(KILLED) && marks.has(TRACED) && !marks.has(SPANNED));
    });
}
