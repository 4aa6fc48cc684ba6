//! Who runs the counters, and where.

use std::future::Future;
use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::counter::{Failure, Toil, Token, Wiring};
use crate::work::Work;

/// How much a mailbox takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As much as memory holds.
    Unbounded,
    /// [`Room::BOUND`] messages; a teller waits for room.
    Bounded,
}

impl Room {
    /// How much a bounded mailbox takes.
    pub const BOUND: usize = 1024;
}

/// Where a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// With the driver of the work.
    Here,
    /// On another worker than the driver, where the seats are apart.
    There,
    /// Wherever the subject would have a task of this number.
    Any(usize),
}

/// The two workers: of one runtime, which share what there is to do, or of two that share nothing.
#[derive(Debug, Clone)]
pub struct Seats {
    /// Where the driver runs.
    pub here: Handle,
    /// Where actors run that are to be on another worker.
    pub there: Handle,
}

impl Seats {
    /// Runs a task.
    pub fn run(&self, seat: Seat, task: impl Future<Output = ()> + Send + 'static) {
        let runtime = match seat {
            Seat::Here | Seat::Any(_) => &self.here,
            Seat::There => &self.there,
        };
        runtime.spawn(task);
    }
}

/// A counter that runs.
pub struct Running<S: Subject> {
    /// Its address.
    pub actor: S::Ref,
    /// What its end is waited for with.
    pub end: S::End,
}

/// A counter that is started again when it fails.
pub struct Supervised<S: Subject> {
    /// Its address.
    pub actor: S::Ref,
    /// Where the address of each successor arrives, if it is not the same.
    pub successors: Option<mpsc::UnboundedReceiver<S::Ref>>,
    /// Ends the counter and its supervisor.
    pub end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// A way to run counters.
pub trait Subject: Clone + Send + Sync + 'static {
    /// The name in the table.
    const NAME: &'static str;
    /// How an actor is addressed.
    type Ref: Clone + Send + Sync + 'static;
    /// What the end of an actor is waited for with.
    type End: Send + Sync + 'static;

    /// Starts what actors need.
    fn start(seats: Seats) -> Self;
    /// Why this subject cannot do the work, if it cannot.
    fn lacks(work: Work, room: Room) -> Option<&'static str>;
    /// Runs a task of the driver.
    fn run(&self, seat: Seat, task: impl Future<Output = ()> + Send + 'static);

    /// Starts a counter.
    fn spawn(&self, room: Room) -> impl Future<Output = Running<Self>> + Send;
    /// Calls `Counter::add` and does not wait for it.
    fn tell(to: &Self::Ref, value: u64) -> impl Future<Output = ()> + Send;
    /// Calls `Counter::add_and_get` and waits for the answer.
    fn ask(to: &Self::Ref, value: u64) -> impl Future<Output = u64> + Send;
    /// Calls `Counter::take` and does not wait for it.
    fn pass(to: &Self::Ref, token: Token) -> impl Future<Output = ()> + Send;
    /// Has the number told to all peers of a counter.
    fn fan(to: &Self::Ref, value: u64) -> impl Future<Output = ()> + Send;
    /// Has a counter compute, and waits for the result.
    fn compute(to: &Self::Ref, toil: Toil) -> impl Future<Output = u64> + Send;
    /// Calls `Counter::churn`, and does not wait for it: the counter tells itself the same again.
    fn churn(to: &Self::Ref, toil: Toil) -> impl Future<Output = ()> + Send;
    /// Has a counter ask its first peer, one question at a time, by [`questions`]; waits until it
    /// has all answers, and returns the last one.
    fn query(to: &Self::Ref, count: u64) -> impl Future<Output = u64> + Send;
    /// Calls `Counter::wire` and does not wait for it.
    fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) -> impl Future<Output = ()> + Send;
    /// Ends a counter and waits until it ended.
    fn stop(&self, running: Running<Self>) -> impl Future<Output = ()> + Send;

    /// Starts a counter that is started again whenever it fails.
    fn supervise(&self, room: Room) -> impl Future<Output = Supervised<Self>> + Send;
    /// Makes a counter fail, and does not wait for it.
    fn fail(to: &Self::Ref, failure: Failure) -> impl Future<Output = ()> + Send;

    /// Runs a task whose result is waited for.
    fn task<T: Send + 'static>(
        &self,
        seat: Seat,
        task: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, result) = oneshot::channel();
        self.run(seat, async move {
            // Whoever waited may have given up.
            let _ = done.send(task.await);
        });
        result
    }
}

/// Asks a counter that is empty, one question at a time; every answer is checked.
pub async fn questions<S: Subject>(actor: &S::Ref, count: u64) -> u64 {
    let mut sum = 0;
    for value in 0..count {
        sum += value;
        let answer = S::ask(actor, value).await;
        assert_eq!(answer, sum, "the answer belongs to the question");
    }
    sum
}
