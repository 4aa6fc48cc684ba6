//! A child that fails again and again, without a limit and without a backoff: its supervisor and
//! its siblings still answer (OTP: `hanging_restart_loop`).

use std::convert::Infallible;
use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, Dynamic, Exit,
    Request, Restart, Shutdown, Strategy, Supervisor, SupervisorRef,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The time within which every request is answered on a machine that is not overloaded.
const PROMPT: Duration = Duration::from_millis(250);

/// A guard against hanging.
const LONG: Duration = Duration::from_secs(20);

/// Number of attempts on a machine that is overloaded.
const TRIES: usize = 5;

const STRATEGIES: [Strategy; 3] = [
    Strategy::OneForOne,
    Strategy::OneForAll,
    Strategy::RestForOne,
];

/// The way in which a child fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// Each start but the first fails.
    Start,
    /// Each start but the first fails after a while.
    SlowStart,
    /// Each start succeeds, and handling the first message fails.
    FirstMessage,
}

const FAILURES: [Failure; 3] = [Failure::Start, Failure::SlowStart, Failure::FirstMessage];

/// A child that fails forever once it is told to.
struct Failing;

#[derive(Clone)]
struct Failings(Failure, Arc<AtomicU64>);

impl Actor for Failing {
    type Msg = ();
    type Args = Failings;
    type Error = BoxError;

    async fn pre_start(args: Failings, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let Failings(failure, starts) = args;
        if starts.fetch_add(1, Ordering::Relaxed) == 0 {
            return Ok(Self);
        }
        match failure {
            Failure::Start => Err("it does not start".into()),
            Failure::SlowStart => {
                let _late = timeout(Duration::from_millis(20), pending::<()>()).await;
                Err("it does not start in time".into())
            }
            Failure::FirstMessage => {
                cx.actor_ref().try_tell(())?;
                Ok(Self)
            }
        }
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Err("as ordered".into())
    }
}

/// A sibling that answers.
struct Steady;

struct Ping;

impl Request for Ping {
    type Reply = ();
}

struct SteadyMsg(Ask<Ping>);

impl Accepts<Ask<Ping>> for SteadyMsg {
    fn wrap(ask: Ask<Ping>) -> Self {
        Self(ask)
    }
}

impl Actor for Steady {
    type Msg = SteadyMsg;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        SteadyMsg(ask): SteadyMsg,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        ask.reply.send(());
        Ok(())
    }
}

/// A supervisor `/s` with the children `steady` and `failing`, which is in its restart loop.
struct Office {
    system: ActorSystem,
    supervisor: SupervisorRef,
    steady: ActorRef<SteadyMsg>,
    starts: Arc<AtomicU64>,
}

impl Office {
    async fn open(strategy: Strategy, failure: Failure) -> Self {
        let system = ActorSystem::new("loop").expect("inside tokio");
        let starts = Arc::<AtomicU64>::default();
        let failing = Failings(failure, Arc::clone(&starts));
        let supervisor = Supervisor::new(strategy)
            .intensity(u32::MAX, LONG)
            .child(ChildSpec::new::<Steady>("steady", ()))
            .child(ChildSpec::new::<Failing>("failing", failing));
        let supervisor = system.supervise("s", supervisor).await.expect("it starts");
        let steady = supervisor.child("steady").expect("it runs");
        let failing: ActorRef<()> = supervisor.child("failing").expect("it runs");
        failing.try_tell(()).expect("there is room");
        let this = Self {
            system,
            supervisor,
            steady,
            starts,
        };
        this.go_on(5).await;
        // An exit that happens while the supervisor is busy is not handled in place: from then on,
        // each exit may be sent to the supervisor as a message.
        for _ in 0..20 {
            let counted = timeout(LONG, this.supervisor.count_children()).await;
            let counted = counted.unwrap_or_else(|_| panic!("{strategy:?}, {failure:?}: no count"));
            assert_eq!(counted.expect("it runs"), 2);
        }
        this.go_on(5).await;
        this
    }

    /// Waits for `more` further starts.
    async fn go_on(&self, more: u64) {
        let starts = self.starts.load(Ordering::Relaxed) + more;
        let went_on = async {
            while self.starts.load(Ordering::Relaxed) < starts {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, went_on).await.expect("it is started again");
    }

    async fn close(self) {
        let report = timeout(LONG, self.system.shutdown(LONG)).await;
        let report = report.expect("it ends");
        assert!(report.not_stopped.is_empty(), "{report:?}");
    }
}

fn current_thread() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

fn two_workers() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(2).enable_all();
    builder.build().expect("a runtime")
}

/// A runtime that a failed test leaves behind: an actor that restarts forever would keep the test
/// from ending.
struct Abandonable(Option<Runtime>);

impl Drop for Abandonable {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take_if(|_| std::thread::panicking()) {
            runtime.shutdown_background();
        }
    }
}

/// Repeats an attempt on both kinds of runtime until it is fast enough: a busy machine may be slow
/// now and then, but a starved supervisor never answers.
fn promptly<F: Future<Output = Duration>>(what: &str, mut attempt: impl FnMut() -> F) {
    for (runtime, name) in [
        (current_thread(), "one thread"),
        (two_workers(), "two workers"),
    ] {
        let runtime = Abandonable(Some(runtime));
        let mut took = Vec::new();
        while took.last().is_none_or(|took| *took > PROMPT) {
            assert!(took.len() < TRIES, "{what} took {took:?} on {name}");
            let tried = runtime
                .0
                .as_ref()
                .expect("it runs")
                .block_on(async { timeout(LONG, attempt()).await });
            took.push(tried.unwrap_or_else(|_| panic!("{what}: hangs on {name}")));
        }
    }
}

async fn time<T>(future: impl Future<Output = T>) -> (Duration, T) {
    let since = Instant::now();
    let came = timeout(LONG, future).await.expect("it is answered");
    (since.elapsed(), came)
}

fn for_all(run: impl Fn(Strategy, Failure, &str)) {
    for strategy in STRATEGIES {
        for failure in FAILURES {
            run(strategy, failure, &format!("{strategy:?}, {failure:?}"));
        }
    }
}

#[test]
fn always_failing_child_can_be_terminated() {
    for_all(|strategy, failure, what| {
        promptly(what, || async move {
            let office = Office::open(strategy, failure).await;
            let (took, done) = time(office.supervisor.terminate_child("failing")).await;
            done.expect("there is such a child");
            assert!(office.supervisor.any_child("failing").is_none());
            let starts = office.starts.load(Ordering::Relaxed);
            // The siblings that were stopped with the child come back.
            let (_, count) = time(office.supervisor.count_children()).await;
            assert_eq!(count.expect("it runs"), 2, "it keeps its place");
            time(office.steady.ask(Ping)).await.1.expect("it answers");
            assert_eq!(office.starts.load(Ordering::Relaxed), starts, "it is over");
            office.close().await;
            took
        });
    });
}

#[test]
fn supervisor_of_an_always_failing_child_answers() {
    for_all(|strategy, failure, what| {
        promptly(what, || async move {
            let office = Office::open(strategy, failure).await;
            let mut took = Vec::new();
            for round in 0..5 {
                let supervisor = &office.supervisor;
                let (one, which) = time(supervisor.which_children()).await;
                assert_eq!(which.expect("it runs").len(), 2 + round);
                let (two, count) = time(supervisor.count_children()).await;
                assert_eq!(count.expect("it runs"), 2 + round);
                let spec = ChildSpec::new::<Steady>(format!("more {round}"), ());
                let (three, started) = time(supervisor.start_child(spec)).await;
                started.expect("the key is free");
                took.extend([one, two, three]);
                office.go_on(1).await;
            }
            office.close().await;
            took.into_iter().max().unwrap_or_default()
        });
    });
}

#[test]
fn supervisor_of_an_always_failing_child_can_be_stopped() {
    for_all(|strategy, failure, what| {
        promptly(what, || async move {
            let office = Office::open(strategy, failure).await;
            office.supervisor.stop();
            let (took, exit) = time(office.supervisor.stopped()).await;
            assert!(matches!(exit, Exit::Shutdown), "{exit}");
            office.close().await;
            took
        });
    });
}

#[test]
fn siblings_of_an_always_failing_child_are_served() {
    for failure in FAILURES {
        for strategy in [Strategy::OneForOne, Strategy::RestForOne] {
            promptly(&format!("{strategy:?}, {failure:?}"), || async move {
                let office = Office::open(strategy, failure).await;
                let mut took = Vec::new();
                for _ in 0..5 {
                    let (one, answer) = time(office.steady.ask(Ping)).await;
                    answer.expect("it answers");
                    took.push(one);
                    office.go_on(1).await;
                }
                assert_eq!(office.steady.erase().info().restarts, 0);
                office.close().await;
                took.into_iter().max().unwrap_or_default()
            });
        }
    }
}

#[test]
fn always_failing_child_does_not_starve_tasks() {
    for failure in FAILURES {
        promptly(&format!("{failure:?}"), || async move {
            let office = Office::open(Strategy::OneForOne, failure).await;
            let due = Duration::from_millis(5);
            let (took, _) = time(timeout(due, pending::<()>())).await;
            let (task, ran) = time(tokio::spawn(async {})).await;
            ran.expect("it runs");
            office.close().await;
            took.max(task)
        });
    }
}

#[test]
fn dynamic_children_can_start_while_one_always_fails() {
    for failure in FAILURES {
        promptly(&format!("{failure:?}"), || async move {
            let system = ActorSystem::new("loop").expect("inside tokio");
            let dynamic = Dynamic::<Failing>::new()
                .restart(Restart::Permanent)
                .intensity(u32::MAX, LONG);
            let dynamic = system.dynamic("d", dynamic).expect("the key is free");
            let args = || Failings(failure, Arc::default());
            let (failing, sound) = (args(), args());
            let starts = Arc::clone(&failing.1);
            let child = dynamic.start_child("failing", failing).expect("a new key");
            child.try_tell(()).expect("there is room");
            let went_on = async {
                while starts.load(Ordering::Relaxed) < 5 {
                    tokio::task::yield_now().await;
                }
            };
            timeout(LONG, went_on).await.expect("it is started again");
            let (one, sound) = time(async { dynamic.start_child("sound", sound) }).await;
            sound.expect("a new key");
            assert_eq!(dynamic.len(), 2);
            let (two, found) = time(dynamic.terminate_child("failing")).await;
            assert!(found && dynamic.len() == 1 && !child.is_alive());
            let child = dynamic.start_child("failing", args()).expect("a free key");
            child.try_tell(()).expect("there is room");
            dynamic.stop();
            let (three, exit) = time(dynamic.stopped()).await;
            assert!(matches!(exit, Exit::Shutdown), "{exit}");
            time(system.shutdown(LONG)).await;
            one.max(two).max(three)
        });
    }
}

/// Fails on the first message of each incarnation, which it sends to itself until it has healed.
struct Healing;

#[derive(Clone, Default)]
struct Health {
    sound: Arc<AtomicBool>,
    starts: Arc<AtomicU64>,
}

impl Actor for Healing {
    type Msg = ();
    type Args = Health;
    type Error = BoxError;

    async fn pre_start(health: Health, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        health.starts.fetch_add(1, Ordering::Relaxed);
        if !health.sound.load(Ordering::Relaxed) {
            cx.actor_ref().try_tell(())?;
        }
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Err("not sound yet".into())
    }
}

#[test]
fn child_terminated_during_restart_ends() {
    const ROUNDS: u64 = 10_000;
    two_workers().block_on(async {
        let system = ActorSystem::new("meet").expect("inside tokio");
        // It has all the time that it needs: a child that is never told to stop never ends.
        let dynamic = Dynamic::<Healing>::new()
            .restart(Restart::Permanent)
            .shutdown(Shutdown::Infinity)
            .intensity(u32::MAX, LONG);
        let dynamic = system.dynamic("d", dynamic).expect("the key is free");
        for round in 0..ROUNDS {
            let health = Health::default();
            let child = dynamic.start_child("c", health.clone());
            child.expect("the key is free");
            while health.starts.load(Ordering::Relaxed) < round % 50 {
                std::hint::spin_loop();
            }
            health.sound.store(true, Ordering::Relaxed);
            let ended = timeout(LONG, dynamic.terminate_child("c")).await;
            assert_eq!(ended, Ok(true), "it ends, in round {round}");
        }
        let report = system.shutdown(LONG).await;
        assert!(report.not_stopped.is_empty(), "{report:?}");
    });
}
