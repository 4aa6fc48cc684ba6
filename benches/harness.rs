//! Shared code of the benchmarks: a system on two workers, an actor that counts, and a latch.
//!
//! Work runs as a task of the runtime, as in a program, and decides which part of it is timed:
//! setup and teardown are not. Its result is asserted.

#[path = "../bench/src/allocation.rs"]
mod allocation;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, ChildSpec, Context, MailboxSpec, Reply, Request,
    Topic,
};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

pub use allocation::{CountingAllocator, LiveBytes, allocations};

/// Returns Criterion configured as the documents ask: thirty samples, and short enough that all
/// files together take less than five minutes.
#[macro_export]
macro_rules! criterion {
    () => {
        criterion::Criterion::default()
            .sample_size(30)
            .warm_up_time(std::time::Duration::from_millis(200))
            .measurement_time(std::time::Duration::from_millis(800))
    };
}

/// A system on a runtime with two workers.
#[derive(Debug)]
pub struct Bench {
    runtime: Runtime,
    /// The system; each actor needs its own key.
    pub system: ActorSystem,
    keys: Arc<AtomicU64>,
}

impl Bench {
    /// Starts the runtime and the system. The seeded panics of the benchmarks are not printed:
    /// printing costs more than the restart that is measured.
    ///
    /// # Panics
    /// If the runtime does not start.
    #[must_use]
    pub fn start() -> Self {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(InjectedFailure::PANIC) {
                default(panic);
            }
        }));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("tokio starts two workers");
        let inside = runtime.enter();
        let system = ActorSystem::new("bench").expect("panics unwind here");
        drop(inside);
        Self {
            runtime,
            system,
            keys: Arc::default(),
        }
    }

    /// Runs work as a task of the runtime.
    ///
    /// # Panics
    /// If the work panics.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.runtime.spawn(work);
        self.runtime.block_on(task).expect("no assertion fails")
    }

    /// Returns a handle that starts actors from within work.
    #[must_use]
    pub fn spawner(&self) -> Spawner {
        Spawner {
            system: self.system.clone(),
            keys: Arc::clone(&self.keys),
        }
    }
}

/// Starts actors at the top of the tree, each under a new key.
#[derive(Debug, Clone)]
pub struct Spawner {
    /// The system.
    pub system: ActorSystem,
    keys: Arc<AtomicU64>,
}

impl Spawner {
    /// Returns a key that is not in use.
    #[must_use]
    pub fn key(&self) -> String {
        self.keys.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// Starts a counter that hits the latch with every number.
    ///
    /// # Panics
    /// If the system is shutting down.
    #[must_use]
    pub fn counter(&self, latch: &Arc<Latch>) -> ActorRef<Msg> {
        let started = self.system.spawn::<Counter>(self.key(), Arc::clone(latch));
        started.expect("the key is unused")
    }

    /// Creates a topic and subscribes these actors to it.
    ///
    /// # Panics
    /// If one of the actors has ended.
    #[must_use]
    pub fn topic(&self, subscribers: &[ActorRef<Msg>]) -> Topic<u64> {
        let topic = self.system.topic::<u64>(&self.key());
        let topic = topic.expect("a number is a name");
        for actor in subscribers {
            let subscribed = topic.subscribe(actor.recipient());
            subscribed.expect("it is running");
        }
        topic
    }

    /// Starts counters, and returns once each has answered.
    pub async fn counters(&self, count: usize, latch: &Arc<Latch>) -> Vec<ActorRef<Msg>> {
        let actors: Vec<_> = (0..count).map(|_| self.counter(latch)).collect();
        for actor in &actors {
            ask(actor, 0).await;
        }
        actors
    }
}

/// A latch that opens after a number of hits.
#[derive(Debug, Default)]
pub struct Latch {
    left: AtomicU64,
    open: Notify,
}

impl Latch {
    /// Sets the number of hits that open the latch.
    pub fn expect(&self, hits: u64) {
        self.left.store(hits, Ordering::Release);
    }

    /// Hits the latch.
    pub fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open.notify_one();
        }
    }

    /// Waits until the latch is open.
    pub async fn opened(&self) {
        self.open.notified().await;
    }
}

/// The actor that most benchmarks run, with the default mailbox: 1024 messages, then tellers wait.
#[derive(Debug)]
pub struct Counter {
    sum: u64,
    latch: Arc<Latch>,
}

/// The messages of a counter.
#[derive(Debug)]
pub enum Msg {
    /// Adds a number and hits the latch.
    Add(u64),
    /// Adds a published number.
    Published(Arc<u64>),
    /// Adds a number and answers with the sum.
    Get(u64, Reply<u64>),
    /// Sends a ball back until no flights are left, then hits the latch.
    Ball(u64, ActorRef<Self>),
    /// Waits until the gate is opened.
    Gate(Arc<Notify>),
    /// Returns an error.
    Fail,
    /// Panics.
    Panic,
}

/// Adds a number and asks for the sum.
#[derive(Debug, Clone, Copy)]
pub struct Get(pub u64);

impl Request for Get {
    type Reply = u64;
}

impl Accepts<Ask<Get>> for Msg {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask.request.0, ask.reply)
    }
}

impl Accepts<Arc<u64>> for Msg {
    fn wrap(published: Arc<u64>) -> Self {
        Self::Published(published)
    }
}

/// The error that a counter returns on request.
#[derive(Debug, Clone, Copy)]
pub struct InjectedFailure;

impl InjectedFailure {
    const PANIC: &'static str = "planted";
}

impl fmt::Display for InjectedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PANIC)
    }
}

impl std::error::Error for InjectedFailure {}

impl Actor for Counter {
    type Msg = Msg;
    type Args = Arc<Latch>;
    type Error = InjectedFailure;

    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    async fn pre_start(
        latch: Arc<Latch>,
        _cx: &mut Context<Self>,
    ) -> Result<Self, InjectedFailure> {
        Ok(Self { sum: 0, latch })
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), InjectedFailure> {
        match msg {
            Msg::Add(value) => {
                self.sum += value;
                self.latch.hit();
            }
            Msg::Published(value) => {
                self.sum += *value;
                self.latch.hit();
            }
            Msg::Get(value, reply) => {
                self.sum += value;
                reply.send(self.sum);
            }
            Msg::Ball(0, _) => self.latch.hit(),
            Msg::Ball(left, other) => {
                self.sum += 1;
                tell(&other, Msg::Ball(left - 1, cx.actor_ref())).await;
            }
            Msg::Gate(open) => open.notified().await,
            Msg::Fail => return Err(InjectedFailure),
            Msg::Panic => panic!("{}", InjectedFailure::PANIC),
        }
        Ok(())
    }
}

/// Tells an actor that is expected to run.
///
/// # Panics
/// If the actor is not running.
pub async fn tell(to: &ActorRef<Msg>, msg: Msg) {
    assert!(to.tell(msg).await.is_ok(), "the actor is running");
}

/// Adds a number and returns the sum.
///
/// # Panics
/// If the actor does not answer.
pub async fn ask(to: &ActorRef<Msg>, value: u64) -> u64 {
    to.ask(Get(value)).await.expect("the actor answers")
}

/// Stops actors and waits for their exits.
pub async fn stop(actors: Vec<ActorRef<Msg>>) {
    for actor in actors {
        actor.stop();
        actor.stopped().await;
    }
}

/// Returns the specification of a child that is a counter.
pub fn child(key: &str, latch: &Arc<Latch>) -> ChildSpec {
    ChildSpec::new::<Counter>(key, Arc::clone(latch))
}

/// A stopwatch that adds up the time of parts of the work.
#[derive(Debug, Default, Clone, Copy)]
pub struct Stopwatch(Duration);

impl Stopwatch {
    /// Times a part.
    pub async fn time<T>(&mut self, part: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = part.await;
        self.0 += start.elapsed();
        result
    }

    /// Returns the total time of all parts.
    #[must_use]
    pub const fn total(self) -> Duration {
        self.0
    }
}
