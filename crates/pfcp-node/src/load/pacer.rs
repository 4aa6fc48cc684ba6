//! The clock of an open loop.
//!
//! Timers of the runtime fire at whole milliseconds. At ten thousand requests per second they would
//! send bursts of ten, and the latency of the last request would include that of the whole burst.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strowger::{ActorRef, SendError};

use super::Pace;
use super::message::{LoadMsg, Tick};

/// The shortest step. A wake-up costs a few microseconds on processors that the peer may share.
const MIN_STEP: Duration = Duration::from_micros(100);
const MAX_STEP: Duration = Duration::from_millis(1);

/// Returns the interval at which a load checks its schedule: the time between requests, within the
/// bounds of [`MIN_STEP`] and [`MAX_STEP`].
pub(super) fn step(pace: Pace) -> Duration {
    match pace {
        Pace::Rate(rate) if rate > 0.0 => Duration::try_from_secs_f64(1.0 / rate)
            .map_or(MAX_STEP, |step| step.clamp(MIN_STEP, MAX_STEP)),
        Pace::Rate(_) | Pace::InFlight(_) => MAX_STEP,
    }
}

/// A thread that makes a load check its schedule at every step, until the pacer is dropped.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Set while a tick is queued; further steps are merged into it.
    is_queued: Arc<AtomicBool>,
}

impl Pacer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread.
    pub(super) fn start(step: Duration, load: ActorRef<LoadMsg>) -> io::Result<Self> {
        let is_queued = Arc::new(AtomicBool::new(false));
        let queued = Arc::downgrade(&is_queued);
        let run = move || {
            let mut next = Instant::now();
            while let Some(is_queued) = queued.upgrade() {
                if !is_queued.swap(true, Ordering::Relaxed)
                    && matches!(load.try_tell(Tick), Err(SendError::Closed(_)))
                {
                    return;
                }
                drop(is_queued);
                next += step;
                let now = Instant::now();
                // After a stall, the schedule determines the requests that are due, so missed steps
                // are not repeated.
                next = next.max(now);
                thread::sleep(next - now);
            }
        };
        // The thread is detached: it ends within one step after the pacer is dropped.
        drop(thread::Builder::new().name("pacer".to_owned()).spawn(run)?);
        Ok(Self { is_queued })
    }

    /// Records that the tick was handled.
    pub(super) fn tick_handled(&self) {
        self.is_queued.store(false, Ordering::Relaxed);
    }
}
