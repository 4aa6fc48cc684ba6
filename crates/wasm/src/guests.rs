//! Guest threads: where the calls of heavy components run.
//!
//! They are as many as the node has processors for them, have a low priority,
//! and take calls from one run queue in the order of virtual time: the processor time that a
//! component has used, by its weight. A call that has used its slice while others wait is put aside
//! on its own stack; so every component gets its share, however long its calls are.
//!
//! ```text
//!  actor ── call, Store ─▶ run queue ─▶ guest thread ── slice ─▶ run queue ...
//!    ▲                    least virtual time first    └─ done ─▶ outcome, Store
//!    └──────────────────────────────────────────────────────────────┘
//! ```

mod clock;
mod job;
mod queue;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub(crate) use self::clock::Clock;
use self::job::{Deliver, Job};
use self::queue::RunQueue;
use crate::host::Host;
use crate::usage::Usage;

/// After this much of a processor a call makes way for others that wait.
pub(crate) const TURN: Duration = Duration::from_millis(2);

/// The guest threads of a host; they end with it.
#[derive(Debug)]
pub(crate) struct Guests {
    queue: Arc<RunQueue>,
    most: usize,
    nice: u8,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Whose calls run, and what they run with.
pub(crate) struct Party {
    pub(crate) host: Host,
    pub(crate) usage: Arc<Usage>,
    pub(crate) clock: Arc<Clock>,
    /// The runtime in which what the host does for a call finds its timers.
    pub(crate) runtime: Option<Handle>,
}

/// Why a call on a guest thread has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    #[error("the system has no thread for it")]
    NoThread,
    #[error("what the host did for it panicked")]
    Panicked,
}

impl Guests {
    /// At most so many threads, whose priority is so much below that of others.
    pub(crate) fn new(most: usize, nice: u8) -> Self {
        Self {
            queue: Arc::new(RunQueue::default()),
            most: most.max(1),
            nice: nice.min(19),
            threads: Mutex::default(),
        }
    }

    /// Returns `true` if calls wait for a guest thread.
    pub(crate) fn is_wanted(&self) -> bool {
        self.queue.waiting() > 0
    }

    /// Runs a call on a guest thread. A call that nobody waits for any more is interrupted.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        party: Party,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let (done, outcome) = oneshot::channel();
        let call = Box::pin(async move {
            let outcome = call.await;
            let deliver: Deliver = Box::new(move || {
                // Whoever waited may have gone; then nobody wants it.
                let _ = done.send(outcome);
            });
            deliver
        });
        let job = Job::new(party, call, &self.queue);
        self.staff()?;
        let _waiter = Waiter(Arc::clone(&job));
        job.start();
        outcome.await.map_err(|_| Lost::Panicked)
    }

    /// Starts one thread more, unless there are enough.
    fn staff(&self) -> Result<(), Lost> {
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
                tracing::error!(%error, "no thread for components that compute for long");
                return Err(Lost::NoThread);
            }
            // Those that are there do.
            Err(_) => {}
        }
        Ok(())
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.queue.close();
        let me = thread::current().id();
        for thread in self.threads.get_mut().drain(..) {
            // The last who knows the host may be a call, and then this is one of the threads.
            if thread.thread().id() != me {
                drop(thread.join());
            }
        }
    }
}

/// Whoever waits for a call; dropped before its outcome is there, nobody does.
struct Waiter(Arc<Job>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn work(queue: &RunQueue, nice: u8) {
    lower_priority(nice);
    while let Some(job) = queue.next() {
        // What a guest does is a trap; a panic is one of the host's own functions.
        if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
            job.discard();
        }
    }
}

/// Gives this thread a lower priority: what is native goes first.
#[cfg(target_os = "linux")]
fn lower_priority(nice: u8) {
    // On Linux this is the priority of the thread that asks. One that may not lower it goes on.
    let lowered = match nice {
        0 => Ok(()),
        nice => rustix::process::setpriority_process(None, nice.into()),
    };
    if let Err(error) = lowered {
        tracing::warn!(%error, "guest threads have the priority of all others");
    }
}

/// Elsewhere the priority of a thread is not its own matter.
#[cfg(not(target_os = "linux"))]
const fn lower_priority(_: u8) {}
