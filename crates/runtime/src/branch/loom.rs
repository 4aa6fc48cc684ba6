//! Models of the latch: who comes in, and who shuts, in every order.

use std::sync::Arc;

use ::loom::model;
use ::loom::thread;

use super::latch::Latch;

/// Comes in, unless it is shut.
fn come_in(latch: &Latch<u32>) -> bool {
    latch.enter().map(|mut inside| *inside += 1).is_some()
}

#[test]
fn nobody_comes_into_what_was_shut_because_it_was_empty() {
    model(|| {
        let latch = Arc::new(Latch::default());
        latch.mark_others();
        let other = Arc::clone(&latch);
        let other = thread::spawn(move || come_in(&other));
        let shut = latch.shut_if(|inside| *inside == 0);
        let came = other.join().expect("no panic");
        assert_ne!(shut, came, "one of the two was first");
        assert_eq!(*latch.lock(), u32::from(came));
    });
}

#[test]
fn who_shuts_sees_all_who_came_in() {
    model(|| {
        let latch = Arc::new(Latch::default());
        latch.mark_others();
        let other = Arc::clone(&latch);
        let other = thread::spawn(move || come_in(&other));
        latch.shut();
        let seen = *latch.lock();
        let came = other.join().expect("no panic");
        assert_eq!(seen, u32::from(came), "nobody came in later");
    });
}

#[test]
fn what_is_open_again_lets_the_next_one_in() {
    model(|| {
        let latch = Arc::new(Latch::default());
        latch.mark_others();
        assert!(latch.shut_if(|inside| *inside == 0), "nobody came in");
        let other = Arc::clone(&latch);
        let other = thread::spawn(move || come_in(&other));
        latch.open();
        latch.mark_together();
        let came = other.join().expect("no panic");
        assert!(come_in(&latch), "it is open");
        assert_eq!(*latch.lock(), 1 + u32::from(came));
    });
}
