//! A test kit: systems on virtual time with a schedule determined by a seed.
//!
//! A [`TestSystem`] is a real [`ActorSystem`] on one thread. Time stands still while anything can
//! run, and jumps to the next timer when nothing can, so tests never sleep. The actor that runs
//! next is drawn with a random generator: the same seed gives the same run each time, another seed
//! another interleaving. A failing test prints its seed.
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use strowger::testing::TestSystem;
//! use strowger::{Actor, Context, Recipient};
//!
//! /// Passes each number on after a second.
//! struct Delay(Recipient<u32>);
//!
//! impl Actor for Delay {
//!     type Msg = u32;
//!     type Args = Recipient<u32>;
//!     type Error = Infallible;
//!
//!     async fn pre_start(to: Recipient<u32>, _: &mut Context<Self>) -> Result<Self, Infallible> {
//!         Ok(Self(to))
//!     }
//!
//!     async fn handle(&mut self, number: u32, _: &mut Context<Self>) -> Result<(), Infallible> {
//!         tokio::time::sleep(Duration::from_secs(1)).await;
//!         let _ = self.0.try_tell(number);
//!         Ok(())
//!     }
//! }
//!
//! TestSystem::check(0..20, |system| {
//!     let probe = system.probe::<u32>();
//!     let delay = system.spawn::<Delay>("delay", probe.recipient());
//!     delay.try_tell(7).expect("there is room");
//!     probe.expect_none(Duration::from_millis(999));
//!     assert_eq!(probe.expect(Duration::from_millis(1)), 7);
//! });
//! ```

mod fault;
mod probe;
mod scripted_actor;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::ActorRef;
use crate::event::EventStream;
use crate::path::{ActorPath, Key};
use crate::schedule::Scheduler;
use crate::schedule::seeded::SeededScheduler;
use crate::supervision::{Dynamic, DynamicRef, Supervisor, SupervisorRef};
use crate::system::{ActorSystem, ShutdownReport};

pub use crate::schedule::seeded::{ScheduleStep, ScheduleTrace};
pub(crate) use fault::FaultPlan;
pub use fault::{Hook, InjectedFault};
pub use probe::{Probe, ProbeMsg};
pub use scripted_actor::{EventKind, RecordedEvent, ScriptCommand, ScriptedActor};

/// An actor system on virtual time, with a schedule determined by a seed.
///
/// Its methods drive the system from a plain `#[test]` and must not be called from async code.
/// Timers have a granularity of one millisecond.
pub struct TestSystem {
    driver: Arc<TestDriver>,
    /// Dropped before the driver.
    system: Option<ActorSystem>,
}

/// The virtual time within which anything that a test waits for must happen.
const MAX_VIRTUAL_TIME: Duration = Duration::from_secs(3600);

/// The number of turns without any progress of time after which a run is aborted.
const MAX_IDLE_TURNS: u64 = 5_000_000;

impl TestSystem {
    /// Creates an empty system.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime with a timer and nothing else needs no resources");
        let start = {
            let _inside = runtime.enter();
            Instant::now()
        };
        let queue = SeededScheduler::new(seed, start);
        queue.set_clock(runtime.handle().clone());
        let scheduler = Scheduler::Seeded(Arc::clone(&queue));
        let settings = ActorSystem::builder("test").seed(seed);
        let system = Some(ActorSystem::with_scheduler(settings, scheduler));
        Self {
            driver: Arc::new(TestDriver {
                runtime,
                queue,
                seed,
                start,
            }),
            system,
        }
    }

    /// Runs a scenario once for each seed. If it panics, the seed is printed. To run with a single
    /// seed, set the environment variable `STROWGER_SEED`.
    pub fn check(seeds: impl IntoIterator<Item = u64>, scenario: impl Fn(&Self)) {
        let only = std::env::var("STROWGER_SEED").ok();
        let only = only.map(|seed| seed.parse().expect("STROWGER_SEED must be a number"));
        match only {
            Some(seed) => scenario(&Self::new(seed)),
            None => seeds
                .into_iter()
                .for_each(|seed| scenario(&Self::new(seed))),
        }
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.driver.seed
    }

    /// Returns the system under test.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.system
            .as_ref()
            .expect("it is taken out only when this is dropped")
    }

    /// Returns the virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let _inside = self.driver.runtime.enter();
        self.driver.start.elapsed()
    }

    /// Starts an actor at the top of the tree, like [`ActorSystem::spawn`].
    ///
    /// # Panics
    /// Panics if the key is taken or invalid.
    pub fn spawn<A: Actor>(&self, key: impl Into<Key>, args: A::Args) -> ActorRef<A::Msg> {
        match self.system().spawn::<A>(key, args) {
            Ok(actor) => actor,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a supervisor at the top of the tree, and runs the system until it and its children
    /// have started.
    ///
    /// # Panics
    /// Panics if the key is taken or invalid, or if a child fails to start.
    pub fn supervise(&self, key: impl Into<Key>, supervisor: Supervisor) -> SupervisorRef {
        match self.run(self.system().supervise(key, supervisor)) {
            Ok(supervisor) => supervisor,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a dynamic supervisor at the top of the tree.
    ///
    /// # Panics
    /// Panics if the key is taken or invalid.
    pub fn dynamic<A: Actor>(&self, key: impl Into<Key>, dynamic: Dynamic<A>) -> DynamicRef<A> {
        match self.system().dynamic(key, dynamic) {
            Ok(dynamic) => dynamic,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts an actor that records the messages it receives.
    #[must_use]
    pub fn probe<T: Send + 'static>(&self) -> Probe<T> {
        Probe::start(&self.driver, self.system())
    }

    /// Subscribes to the events of the system from now on.
    #[must_use]
    pub fn events(&self) -> EventStream {
        self.system().events()
    }

    /// Runs until nothing can run without a timer. Time does not advance.
    ///
    /// Tasks that actors spawned on tokio directly get some turns, but are not waited for.
    ///
    /// # Panics
    /// Panics if the run does not end within five million turns.
    pub fn run_until_idle(&self) {
        self.driver.run_until_idle();
    }

    /// Advances time, stopping at each timer on the way, and then runs until idle.
    ///
    /// # Panics
    /// Panics if actors run for five million turns without waiting for a timer.
    pub fn advance(&self, by: Duration) {
        self.driver.block_on(async { tokio::time::sleep(by).await });
        self.driver.run_until_idle();
    }

    /// Runs the system until a future completes. Time advances when only timers are left.
    ///
    /// # Panics
    /// Panics if the future does not complete within an hour of virtual time.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let Some(output) = self.driver.block_on_within(MAX_VIRTUAL_TIME, future) else {
            panic!("not done within {MAX_VIRTUAL_TIME:?} of virtual time");
        };
        output
    }

    /// Injects a fault into an actor: the hook of the actor at `path` fails when it is about to run
    /// for the `nth` time, counted from now and across restarts. The first time is 1.
    pub fn inject(&self, path: impl Into<ActorPath>, hook: Hook, nth: u64, fault: InjectedFault) {
        self.system().faults().add(path.into(), hook, nth, fault);
    }

    /// Takes the injected faults that have occurred, in order.
    #[must_use]
    pub fn take_injected_faults(&self) -> Vec<(Hook, InjectedFault)> {
        self.system().faults().take_injected()
    }

    /// Stops all actors in order; see [`ActorSystem::shutdown`].
    #[expect(
        clippy::must_use_candidate,
        reason = "most tests do not read the report"
    )]
    pub fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let report = self.run(self.system().shutdown(limit));
        self.run_until_idle();
        report
    }

    /// Drops the system, and returns `true` if nothing of it remains in memory.
    ///
    /// Something remains if an address, or anything else with a reference to one of its actors, is
    /// still held: by the caller, or by actors that hold each other's addresses in a cycle.
    #[must_use]
    pub fn into_is_leak_free(self) -> bool {
        let shared = self.system().downgrade();
        drop(self);
        shared.strong_count() == 0
    }

    /// Returns a record of the actors that ran so far, in order. It is the same for the same seed
    /// and the same calls.
    #[must_use]
    pub fn trace(&self) -> ScheduleTrace {
        self.driver.queue.trace()
    }
}

impl Drop for TestSystem {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "failed with seed {0}: repeat with STROWGER_SEED={0}",
                self.driver.seed
            );
        }
        let _inside = self.driver.runtime.enter();
        self.system = None;
        self.driver.queue.clear();
    }
}

impl fmt::Debug for TestSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSystem")
            .field("seed", &self.driver.seed)
            .finish_non_exhaustive()
    }
}

/// Drives the run queue inside a tokio runtime with a paused clock.
struct TestDriver {
    runtime: Runtime,
    queue: Arc<SeededScheduler>,
    seed: u64,
    start: Instant,
}

impl TestDriver {
    /// Runs until a future completes. The future is polled only when no actor can run.
    ///
    /// If nothing can run, tokio parks; with a paused clock, that advances time to the next timer.
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(async {
            let mut future = pin!(future);
            let mut turns = 0u64;
            let mut since = Instant::now();
            let driving = poll_fn(|cx| {
                loop {
                    while self.queue.run_one(cx.waker()) {
                        turns += 1;
                        if turns == MAX_IDLE_TURNS {
                            let now = Instant::now();
                            assert!(
                                now > since,
                                "no end after {MAX_IDLE_TURNS} turns without a timer"
                            );
                            (turns, since) = (0, now);
                        }
                    }
                    let polled = future.as_mut().poll(cx);
                    if polled.is_ready() || self.queue.is_idle() {
                        return polled;
                    }
                }
            });
            // All actors run inside this one future, so tokio's budget for a single task must not
            // apply.
            tokio::task::coop::unconstrained(driving).await
        })
    }

    fn block_on_within<F: Future>(&self, within: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        self.block_on(async {
            let mut deadline = pin!(tokio::time::sleep(within));
            poll_fn(|cx| {
                if let Poll::Ready(output) = future.as_mut().poll(cx) {
                    return Poll::Ready(Some(output));
                }
                deadline.as_mut().poll(cx).map(|()| None)
            })
            .await
        })
    }

    fn run_until_idle(&self) {
        self.block_on(async {
            // Each round gives tasks that were spawned on tokio directly a turn.
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        });
    }
}
