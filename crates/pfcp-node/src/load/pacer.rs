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

use super::LoadPace;
use super::message::{LoadMsg, Tick};

/// The shortest step. A wake-up costs a few microseconds on processors that the peer may share.
const MIN_STEP: Duration = Duration::from_micros(100);
const MAX_STEP: Duration = Duration::from_millis(1);

/// Returns the interval at which a load checks its schedule: the time between requests, within the
/// bounds of [`MIN_STEP`] and [`MAX_STEP`].
pub(super) fn step(pace: LoadPace) -> Duration {
    match pace {
        LoadPace::Rate(rate) if rate > 0.0 => Duration::try_from_secs_f64(1.0 / rate)
            .map_or(MAX_STEP, |step| step.clamp(MIN_STEP, MAX_STEP)),
        LoadPace::Rate(_) | LoadPace::InFlight(_) => MAX_STEP,
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
                if !is_queued.swap(true, Ordering::Relaxed) {
                    match load.try_tell(Tick) {
                        Ok(()) => {}
                        Err(SendError::Closed(_)) => return,
                        // Nothing was queued, so nothing will clear the flag: the next step tries
                        // again.
                        Err(_) => is_queued.store(false, Ordering::Relaxed),
                    }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use strowger::{Actor, ActorSystem, Context, MailboxSpec};
    use tokio::sync::{Semaphore, mpsc};
    use tokio::time::timeout;

    use super::*;
    use crate::load::message::Stop;

    /// An actor with room for one message, which handles each with a permit and reports the ticks.
    struct Slow(Arc<Semaphore>, mpsc::UnboundedSender<()>);

    impl Actor for Slow {
        type Msg = LoadMsg;
        type Args = (Arc<Semaphore>, mpsc::UnboundedSender<()>);
        type Error = Infallible;
        const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

        async fn pre_start(
            (permits, ticks): Self::Args,
            _: &mut Context<Self>,
        ) -> Result<Self, Infallible> {
            Ok(Self(permits, ticks))
        }

        async fn handle(&mut self, msg: LoadMsg, _: &mut Context<Self>) -> Result<(), Infallible> {
            if let Ok(permit) = self.0.acquire().await {
                permit.forget();
            }
            if matches!(msg, LoadMsg::Tick) {
                // The test has ended if nobody receives it.
                let _ = self.1.send(());
            }
            Ok(())
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn pacing_goes_on_after_the_mailbox_was_full() {
        let system = ActorSystem::new("pacer").unwrap();
        let permits = Arc::new(Semaphore::new(0));
        let (report, mut ticks) = mpsc::unbounded_channel();
        let load = system.spawn::<Slow>("load", (Arc::clone(&permits), report));
        let load = load.unwrap();
        // One message is being handled, and one fills the mailbox.
        load.tell(Stop).await.unwrap();
        load.tell(Stop).await.unwrap();
        let _pacer = Pacer::start(MAX_STEP, load).unwrap();
        let early = timeout(20 * MAX_STEP, ticks.recv()).await;
        assert!(early.is_err(), "a tick overtook the messages before it");
        permits.add_permits(3);
        let tick = timeout(Duration::from_secs(10), ticks.recv()).await;
        assert_eq!(tick, Ok(Some(())), "no step ticks any more");
    }
}
