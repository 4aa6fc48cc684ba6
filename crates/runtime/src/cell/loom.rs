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
        let other = thread::spawn(move || {
            other.stand.enter(Phase::Running);
            other.work.store(1, Ordering::Relaxed);
            assert!(other.stand.set_last(&Exit::Killed), "its kind says it all");
            other.stand.enter(Phase::Ended);
        });
        if done.stand.phase() == Phase::Ended {
            assert_eq!(done.work.load(Ordering::Relaxed), 1);
            assert!(matches!(done.stand.last(), Ok(Some(Exit::Killed))));
        }
        other.join().expect("no panic");
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
