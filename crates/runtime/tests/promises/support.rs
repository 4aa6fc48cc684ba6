//! An actor that does what it is asked to do, and runtimes to run it on.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use strowger::{Accepts, Actor, Ask, Context, Request};
use tokio::runtime::{Builder, Runtime};

/// Gives the machine to one test at a time: a test that keeps the processors busy must not count
/// against the durations that another one asserts.
pub(crate) fn exclusive_machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limit for everything that must end eventually.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// A request for a piece of work; the reply is the address of a variable on the stack that did it.
pub(crate) enum Work {
    /// Computes for this time.
    Compute(Duration),
    /// Blocks its thread for this time without using a processor.
    Block(Duration),
    /// Waits for this time.
    Wait(Duration),
}

impl Request for Work {
    type Reply = ();
}

/// The message of a [`Worker`].
pub(crate) struct Job(Ask<Work>);

impl Accepts<Ask<Work>> for Job {
    fn wrap(ask: Ask<Work>) -> Self {
        Self(ask)
    }
}

/// Does its work.
pub(crate) struct Worker;

impl Actor for Worker {
    type Msg = Job;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, job: Job, _: &mut Context<Self>) -> Result<(), Infallible> {
        match job.0.request {
            Work::Compute(time) => compute(time),
            Work::Block(time) => thread::sleep(time),
            Work::Wait(time) => tokio::time::sleep(time).await,
        }
        job.0.reply.send(());
        Ok(())
    }
}

/// Uses a processor for this time.
pub(crate) fn compute(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A runtime with this number of workers.
pub(crate) fn runtime(workers: usize) -> Runtime {
    let built = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build();
    built.expect("a runtime starts")
}

/// A runtime on the calling thread.
pub(crate) fn current_thread() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("a runtime starts")
}

/// Runs a future as a task of the runtime, where a worker polls it.
pub(crate) fn on_worker<T: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = T> + Send + 'static,
) -> T {
    let joined =
        runtime.block_on(async { tokio::time::timeout(MAX_WAIT, tokio::spawn(future)).await });
    joined.expect("it ends").expect("no panic")
}
