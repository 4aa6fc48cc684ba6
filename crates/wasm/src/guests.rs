//! Guest threads: where the calls of heavy components run.
//!
//! They are as many as the node has processors for them, have the lowest priority of the system,
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
use self::job::Job;
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
    pub(crate) fn new(most: usize) -> Self {
        Self {
            queue: Arc::new(RunQueue::default()),
            most: most.max(1),
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
            // Whoever waited may have gone; then nobody wants it.
            let _ = done.send(call.await);
        });
        let job = Job::new(party, call, &self.queue);
        self.staff()?;
        let mut waiter = Waiter(Some(Arc::clone(&job)));
        job.start();
        let outcome = outcome.await;
        // The thread may not have noted yet that the call is over.
        waiter.0 = None;
        outcome.map_err(|_| Lost::Panicked)
    }

    /// Starts one thread more, unless there are enough.
    fn staff(&self) -> Result<(), Lost> {
        let mut threads = self.threads.lock();
        let enough = threads.len() >= self.most || !threads.is_empty() && self.queue.has_idle();
        if enough {
            return Ok(());
        }
        let queue = Arc::clone(&self.queue);
        let name = format!("guest-{}", threads.len());
        match thread::Builder::new()
            .name(name)
            .spawn(move || work(&queue))
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
struct Waiter(Option<Arc<Job>>);

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(job) = self.0.take() {
            job.abandon();
        }
    }
}

fn work(queue: &RunQueue) {
    yield_to_others();
    while let Some(job) = queue.next() {
        // What a guest does is a trap; a panic is one of the host's own functions.
        if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
            job.discard();
        }
    }
}

/// Gives this thread the lowest priority: what is native goes first.
#[cfg(target_os = "linux")]
fn yield_to_others() {
    // On Linux this is the priority of the thread that asks. One that may not lower it goes on.
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::warn!(%error, "guest threads have the priority of all others");
    }
}

/// Elsewhere the priority of a thread is not its own matter.
#[cfg(not(target_os = "linux"))]
const fn yield_to_others() {}
