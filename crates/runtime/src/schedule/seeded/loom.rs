//! Models of the seeded run queue, in every order.

use std::sync::Arc;

use ::loom::model;
use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::thread;

use super::queued::QueuedFlag;

/// A task, the reason for its wake, and the number of times that it was queued.
struct Woken {
    queued: QueuedFlag,
    news: AtomicUsize,
    entries: AtomicUsize,
}

impl Woken {
    fn wake(&self) {
        self.news.store(1, Ordering::Relaxed);
        if self.queued.set() {
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn writes_before_a_wake_are_seen_by_the_next_turn() {
    model(|| {
        let task = Arc::new(Woken {
            queued: QueuedFlag::new(),
            news: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
        });
        assert!(task.queued.set(), "for the turn below");
        let other = Arc::clone(&task);
        let other = thread::spawn(move || other.wake());
        task.queued.clear();
        let seen = task.news.load(Ordering::Relaxed) == 1;
        other.join().expect("no panic");
        let again = task.entries.load(Ordering::Relaxed) == 1;
        assert!(seen || again, "the news wait for ever");
    });
}
