//! Guest threads, which run the calls of heavy components.
//!
//! There are as many as the node allows. They have a low priority, and take calls from one run
//! queue in order of virtual time: the processor time that a component has used, divided by its
//! weight. A call that has used its turn while others wait is suspended on its own stack, so that
//! every component gets its share, however long its calls are.
//!
//! ```text
//!  actor ── call, Store ─▶ run queue ─▶ guest thread ── turn ──▶ run queue ...
//!    ▲                    least virtual time first    └─ done ─▶ outcome, Store
//!    └──────────────────────────────────────────────────────────────┘
//! ```

mod clock;
mod job;
mod queue;
mod turns;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub(crate) use self::clock::TurnClock;
use self::job::{DeliverOutcome, Job};
use self::queue::RunQueue;
use crate::host::Host;
#[cfg(target_os = "linux")]
use crate::seeded_bug::{Bug, seeded};
use crate::usage::ComponentUsage;

/// Processor time after which a call yields to others that wait.
pub(crate) const GUEST_TURN: Duration = Duration::from_millis(2);

/// The guest threads of a host; they end with it.
#[derive(Debug)]
pub(crate) struct GuestThreads {
    queue: Arc<RunQueue>,
    most: usize,
    nice: u8,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The component whose call runs, and its context.
pub(crate) struct JobContext {
    pub(crate) host: Host,
    pub(crate) usage: Arc<ComponentUsage>,
    pub(crate) clock: Arc<TurnClock>,
    /// The runtime that provides timers for the host functions of the call.
    pub(crate) runtime: Option<Handle>,
}

/// The error returned when a call on a guest thread has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JobError {
    #[error("the operating system refused a thread")]
    NoThread,
    #[error("the host panicked during the call")]
    Panicked,
}

impl GuestThreads {
    /// Creates a pool of at most `most` threads, whose nice value is `nice`.
    pub(crate) fn new(most: usize, nice: u8) -> Self {
        Self {
            queue: Arc::new(RunQueue::default()),
            most: most.max(1),
            nice: nice.min(19),
            threads: Mutex::default(),
        }
    }

    /// Returns `true` if calls wait for a guest thread.
    pub(crate) fn has_waiting(&self) -> bool {
        self.queue.waiting() > 0
    }

    /// Runs a call on a guest thread. The call is interrupted if the returned future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        context: JobContext,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JobError> {
        let (done, outcome) = oneshot::channel();
        let call = Box::pin(async move {
            let outcome = call.await;
            let deliver: DeliverOutcome = Box::new(move || {
                // The receiver may be gone; then the outcome is not needed.
                let _ = done.send(outcome);
            });
            deliver
        });
        let job = Job::new(context, call, &self.queue);
        self.start_thread()?;
        let _waiter = AbandonOnDrop(Arc::clone(&job));
        job.start();
        outcome.await.map_err(|_| JobError::Panicked)
    }

    /// Starts another thread, unless there are enough.
    fn start_thread(&self) -> Result<(), JobError> {
        let mut threads = self.threads.lock();
        let enough = threads.len() >= self.most || !threads.is_empty() && self.queue.has_idle();
        if enough {
            return Ok(());
        }
        let (queue, nice) = (Arc::clone(&self.queue), self.nice);
        let name = format!("guest-{}", threads.len());
        match thread::Builder::new()
            .name(name)
            .spawn(move || work(&queue, nice))
        {
            Ok(thread) => threads.push(thread),
            Err(error) if threads.is_empty() => {
                tracing::error!(%error, "cannot start guest threads");
                return Err(JobError::NoThread);
            }
            // The existing threads run the call.
            Err(_) => {}
        }
        Ok(())
    }
}

impl Drop for GuestThreads {
    fn drop(&mut self) {
        self.queue.close();
        let me = thread::current().id();
        for thread in self.threads.get_mut().drain(..) {
            // A call may hold the last reference to the host. Then this code runs on a guest
            // thread, which cannot join itself.
            if thread.thread().id() != me {
                drop(thread.join());
            }
        }
    }
}

/// The waiter for a call. If it is dropped before the outcome arrives, the call is abandoned.
struct AbandonOnDrop(Arc<Job>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn work(queue: &RunQueue, nice: u8) {
    lower_priority(nice);
    while let Some(job) = queue.next() {
        // A guest can only trap; a panic comes from a function of the host.
        if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
            job.discard();
        }
    }
}

/// Lowers the priority of this thread, so that native code runs first.
#[cfg(target_os = "linux")]
fn lower_priority(nice: u8) {
    // On Linux this sets the priority of the calling thread. On failure the thread continues.
    let lowered = match nice {
        0 => Ok(()),
        _ if seeded(Bug::GuestThreadsNotNiced) => Ok(()),
        nice => rustix::process::setpriority_process(None, nice.into()),
    };
    if let Err(error) = lowered {
        tracing::warn!(%error, "guest threads run at normal priority");
    }
}

/// On other systems, threads have no priority of their own.
#[cfg(not(target_os = "linux"))]
const fn lower_priority(_: u8) {}
