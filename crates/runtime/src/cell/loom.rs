//! Models of the state of an actor that is read without a lock, in every order.

use std::sync::Arc;

use ::loom::model;
use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::thread;

use super::state::AtomicFlags;
use super::state::AtomicPhase;
use super::{KILLED, Phase, SPANNED, TRACED};
use crate::exit::Exit;

/// A phase, and work that is done before it is entered.
#[derive(Default)]
struct Done {
    phase_cell: AtomicPhase,
    work: AtomicUsize,
}

#[test]
fn phase_publishes_earlier_writes() {
    model(|| {
        let done = Arc::new(Done::default());
        let other = Arc::clone(&done);
        // Not the other way round: loom keeps one access of each atomic to go back to, and the load
        // in a change of the phase would hide the reader's.
        let reader = thread::spawn(move || {
            if other.phase_cell.phase() == Phase::Ended {
                assert_eq!(other.work.load(Ordering::Relaxed), 1);
                assert!(matches!(
                    other.phase_cell.last_exit_kind(),
                    Ok(Some(Exit::Killed))
                ));
            }
        });
        done.phase_cell.enter(Phase::Running);
        done.work.store(1, Ordering::Relaxed);
        assert!(
            done.phase_cell.set_last_kind(&Exit::Killed),
            "its kind says it all"
        );
        done.phase_cell.enter(Phase::Ended);
        reader.join().expect("no panic");
    });
}

#[test]
fn concurrent_flag_updates_are_not_lost() {
    model(|| {
        let flags = Arc::new(AtomicFlags::default());
        flags.set(SPANNED);
        let other = Arc::clone(&flags);
        let other = thread::spawn(move || other.set(KILLED));
        flags.set(TRACED);
        flags.clear(SPANNED);
        other.join().expect("no panic");
        assert!(flags.intersects(KILLED) && flags.intersects(TRACED) && !flags.intersects(SPANNED));
    });
}
