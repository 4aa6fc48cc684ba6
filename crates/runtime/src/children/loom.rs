//! Loom models of the mutex that can be closed: one thread enters while another closes it, in every
//! order.

use std::sync::Arc;

use ::loom::model;
use ::loom::thread;

use super::closable_mutex::ClosableMutex;

/// Enters the mutex and returns `true`, unless it is closed.
fn come_in(mutex: &ClosableMutex<u32>) -> bool {
    mutex
        .lock_if_open()
        .map(|mut inside| *inside += 1)
        .is_some()
}

#[test]
fn no_entry_after_close_if_empty() {
    model(|| {
        let mutex = Arc::new(ClosableMutex::default());
        mutex.set_shared();
        let other = Arc::clone(&mutex);
        let other = thread::spawn(move || come_in(&other));
        let close = mutex.close_if(|inside| *inside == 0);
        let came = other.join().expect("no panic");
        assert_ne!(close, came, "one of the two was first");
        assert_eq!(*mutex.lock(), u32::from(came));
    });
}

#[test]
fn close_sees_all_entries() {
    model(|| {
        let mutex = Arc::new(ClosableMutex::default());
        mutex.set_shared();
        let other = Arc::clone(&mutex);
        let other = thread::spawn(move || come_in(&other));
        mutex.close();
        let seen = *mutex.lock();
        let came = other.join().expect("no panic");
        assert_eq!(seen, u32::from(came), "nobody came in later");
    });
}

#[test]
fn reopened_mutex_admits_entries() {
    model(|| {
        let mutex = Arc::new(ClosableMutex::default());
        mutex.set_shared();
        assert!(mutex.close_if(|inside| *inside == 0), "nobody came in");
        let other = Arc::clone(&mutex);
        let other = thread::spawn(move || come_in(&other));
        mutex.open();
        mutex.set_stop_together();
        let came = other.join().expect("no panic");
        assert!(come_in(&mutex), "it is open");
        assert_eq!(*mutex.lock(), 1 + u32::from(came));
    });
}
