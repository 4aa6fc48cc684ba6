//! Properties of the machine that explain rows about two threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::pin;

/// The properties of the machine that every row about two threads depends on, whatever the subject.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Time that a cache line takes to the other processor and back. For two threads of one core it
    /// is 20 nanoseconds, for two cores of one chip 100, and for two chips 300.
    pub crossing: Duration,
    /// Time from waking a sleeping thread until it runs on the other processor. In a virtual
    /// machine whose idle processors do not poll for work, the host determines it.
    pub waking: Duration,
}

impl Machine {
    /// Measures both properties, in about twenty milliseconds; takes the median of several tries.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    #[must_use]
    pub fn measure() -> Self {
        Self {
            crossing: crossing(),
            waking: waking(),
        }
    }
}

fn crossing() -> Duration {
    const ROUNDS: u32 = 2000;
    let ball = Arc::new(AtomicU32::new(0));
    let both = Arc::new(Barrier::new(2));
    let (other, start) = (Arc::clone(&ball), Arc::clone(&both));
    let returning = std::thread::spawn(move || {
        pin(1);
        start.wait();
        for round in 0..10 * ROUNDS {
            await_value(&other, 2 * round + 1);
            other.store(2 * round + 2, Ordering::Release);
        }
    });
    let throwing = std::thread::spawn(move || {
        pin(0);
        both.wait();
        let mut tries = Vec::new();
        for a_try in 0..10 {
            let start = Instant::now();
            for round in a_try * ROUNDS..(a_try + 1) * ROUNDS {
                ball.store(2 * round + 1, Ordering::Release);
                await_value(&ball, 2 * round + 2);
            }
            tries.push(start.elapsed() / ROUNDS);
        }
        median(tries)
    });
    let crossing = throwing.join().expect("the ball comes back");
    returning.join().expect("the ball comes back");
    crossing
}

/// Spins until the value appears. Yields now and then, in case both threads share one processor.
fn await_value(ball: &AtomicU32, value: u32) {
    let mut spins = 0_u32;
    while ball.load(Ordering::Acquire) != value {
        spins += 1;
        if spins.is_multiple_of(10_000) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

fn waking() -> Duration {
    const TRIES: u32 = 21;
    let epoch = Instant::now();
    let (sender, receiver) = std::sync::mpsc::channel::<Duration>();
    let sleeper = std::thread::spawn(move || {
        pin(1);
        let woken = |sent| epoch.elapsed().saturating_sub(sent);
        median(receiver.into_iter().map(woken).collect())
    });
    let waker = std::thread::spawn(move || {
        pin(0);
        for _ in 0..TRIES {
            // Long enough for the other thread and its processor to go to sleep.
            std::thread::sleep(Duration::from_micros(500));
            if sender.send(epoch.elapsed()).is_err() {
                break;
            }
        }
    });
    waker.join().expect("it wakes");
    sleeper.join().expect("it is woken")
}

fn median(mut tries: Vec<Duration>) -> Duration {
    tries.sort();
    tries[tries.len() / 2]
}
