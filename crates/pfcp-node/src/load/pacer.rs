//! The clock of an open loop.
//!
//! Timers of the runtime wake at whole milliseconds: at ten thousand requests a second they would
//! send ten at once and then none, and the latency of the last would be that of the burst.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strowger::{ActorRef, SendError};

use super::Pace;
use super::message::{LoadMsg, Tick};

/// The finest step: a wake-up costs some microseconds of the processors that the peer may share.
const FINEST: Duration = Duration::from_micros(100);
const COARSEST: Duration = Duration::from_millis(1);

/// How often a load looks at its schedule: for each request, as far as that is neither too fine
/// nor too coarse.
pub(super) fn step(pace: Pace) -> Duration {
    match pace {
        Pace::Rate(rate) if rate > 0.0 => Duration::try_from_secs_f64(1.0 / rate)
            .map_or(COARSEST, |step| step.clamp(FINEST, COARSEST)),
        Pace::Rate(_) | Pace::InFlight(_) => COARSEST,
    }
}

/// A thread that has a load look at its schedule at every step, until this is dropped.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Whether a step waits to be seen; those that pass meanwhile are one with it.
    waits: Arc<AtomicBool>,
}

impl Pacer {
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(step: Duration, load: ActorRef<LoadMsg>) -> io::Result<Self> {
        let waits = Arc::new(AtomicBool::new(false));
        let seen = Arc::downgrade(&waits);
        let run = move || {
            let mut next = Instant::now();
            while let Some(waits) = seen.upgrade() {
                if !waits.swap(true, Ordering::Relaxed)
                    && matches!(load.try_tell(Tick), Err(SendError::Closed(_)))
                {
                    return;
                }
                drop(waits);
                next += step;
                let now = Instant::now();
                // After a stall the schedule says what is due, not the steps that were left out.
                next = next.max(now);
                thread::sleep(next - now);
            }
        };
        // Its owner is the pacer: it ends within a step of it.
        drop(thread::Builder::new().name("pacer".to_owned()).spawn(run)?);
        Ok(Self { waits })
    }

    /// Takes note that a step was seen.
    pub(super) fn seen(&self) {
        self.waits.store(false, Ordering::Relaxed);
    }
}
