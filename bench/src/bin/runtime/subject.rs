//! The actor libraries under comparison, and the workers that the counters run on.

use std::future::Future;
use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::counter::{Computation, Failure, Token, Wiring};
use crate::work::Workload;

/// The capacity of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// No bound on the number of messages.
    Unbounded,
    /// Bounded at [`Capacity::BOUND`] messages; a teller waits until there is room.
    Bounded,
}

impl Capacity {
    /// The capacity of a bounded mailbox.
    pub const BOUND: usize = 1024;
}

/// The place where a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On the worker of the driver.
    Here,
    /// On another worker than the driver, if the workers are separate runtimes.
    There,
    /// The placement that the subject itself would choose for the task with this number.
    Any(usize),
}

/// The two workers: either of one runtime, which share the run queue, or of two runtimes, which
/// share nothing.
#[derive(Debug, Clone)]
pub struct WorkerHandles {
    /// The runtime of the driver.
    pub here: Handle,
    /// The runtime of actors that belong on another worker.
    pub there: Handle,
}

impl WorkerHandles {
    /// Runs a task.
    pub fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static) {
        let runtime = match placement {
            Placement::Here | Placement::Any(_) => &self.here,
            Placement::There => &self.there,
        };
        runtime.spawn(task);
    }
}

/// A running counter.
pub struct Running<S: Subject> {
    /// The address of the counter.
    pub actor: S::Ref,
    /// The handle to await the exit of the counter with.
    pub end: S::End,
}

/// A counter that is restarted when it fails.
pub struct Supervised<S: Subject> {
    /// The address of the counter.
    pub actor: S::Ref,
    /// Receives the address of each restarted counter, if it differs from the first one.
    pub successors: Option<mpsc::UnboundedReceiver<S::Ref>>,
    /// Ends the counter and its supervisor.
    pub end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// A library that runs counters.
pub trait Subject: Clone + Send + Sync + 'static {
    /// The name in the table.
    const NAME: &'static str;
    /// The address of an actor.
    type Ref: Clone + Send + Sync + 'static;
    /// The handle to await the exit of an actor with.
    type End: Send + Sync + 'static;

    /// Starts the environment that actors need.
    fn start(handles: WorkerHandles) -> Self;
    /// Returns the reason why this subject cannot do the work, if it cannot.
    fn unsupported(work: Workload, capacity: Capacity) -> Option<&'static str>;
    /// Runs a task of the driver.
    fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static);

    /// Starts a counter.
    fn spawn(&self, capacity: Capacity) -> impl Future<Output = Running<Self>> + Send;
    /// Calls `Counter::add` without waiting for it.
    fn tell(to: &Self::Ref, value: u64) -> impl Future<Output = ()> + Send;
    /// Calls `Counter::add_and_get` and waits for the answer.
    fn ask(to: &Self::Ref, value: u64) -> impl Future<Output = u64> + Send;
    /// Calls `Counter::take` without waiting for it.
    fn pass(to: &Self::Ref, token: Token) -> impl Future<Output = ()> + Send;
    /// Makes a counter tell the number to all its peers.
    fn fan(to: &Self::Ref, value: u64) -> impl Future<Output = ()> + Send;
    /// Makes a counter compute, and waits for the result.
    fn compute(to: &Self::Ref, computation: Computation) -> impl Future<Output = u64> + Send;
    /// Calls `Counter::churn` without waiting for it; the counter then sends itself the same
    /// message again.
    fn churn(to: &Self::Ref, computation: Computation) -> impl Future<Output = ()> + Send;
    /// Makes a counter ask its first peer, one ask at a time, with [`questions`]; waits for all
    /// answers and returns the last one.
    fn query(to: &Self::Ref, count: u64) -> impl Future<Output = u64> + Send;
    /// Calls `Counter::wire` without waiting for it.
    fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) -> impl Future<Output = ()> + Send;
    /// Stops a counter and waits for it to exit.
    fn stop(&self, running: Running<Self>) -> impl Future<Output = ()> + Send;

    /// Starts a counter that is restarted whenever it fails.
    fn supervise(&self, capacity: Capacity) -> impl Future<Output = Supervised<Self>> + Send;
    /// Makes a counter fail, without waiting for it.
    fn fail(to: &Self::Ref, failure: Failure) -> impl Future<Output = ()> + Send;

    /// Runs a task and returns a receiver for its result.
    fn task<T: Send + 'static>(
        &self,
        placement: Placement,
        task: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, result) = oneshot::channel();
        self.run(placement, async move {
            // The caller may have given up waiting.
            let _ = done.send(task.await);
        });
        result
    }
}

/// Asks a counter that starts at zero, one ask at a time; checks every answer.
pub async fn ask_repeatedly<S: Subject>(actor: &S::Ref, count: u64) -> u64 {
    let mut sum = 0;
    for value in 0..count {
        sum += value;
        let answer = S::ask(actor, value).await;
        assert_eq!(answer, sum, "the answer belongs to the question");
    }
    sum
}
