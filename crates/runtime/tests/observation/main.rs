//! Observation from outside a system: counters, events and statistics.

mod counters;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
use parking_lot::Mutex;
use strowger::{
    Actor, ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, Event, MailboxSpec, Overflow,
    Reply, Request, Strategy, Supervisor,
};
use tokio::runtime::Runtime;

const LIMIT: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A recorder that keeps sums by name and labels.
#[derive(Default)]
struct Sums(Mutex<HashMap<String, Arc<Sum>>>);

/// Gauges move in whole steps here, so one integer serves both kinds.
#[derive(Default)]
struct Sum(AtomicU64);

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl GaugeFn for Sum {
    fn increment(&self, value: f64) {
        assert!(value == 1.0, "one actor at a time");
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn decrement(&self, value: f64) {
        assert!(value == 1.0, "one actor at a time");
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn set(&self, _: f64) {
        panic!("a gauge of several systems is never set");
    }
}

impl Sums {
    fn sum(&self, key: &Key) -> Arc<Sum> {
        let mut name = key.name().to_owned();
        for label in key.labels() {
            name = format!("{name} {}={}", label.key(), label.value());
        }
        Arc::clone(self.0.lock().entry(name).or_default())
    }

    fn of(&self, name: &str) -> u64 {
        let sums = self.0.lock();
        sums.get(name)
            .map_or(0, |sum| sum.0.load(Ordering::Relaxed))
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        let name = format!("described {}", name.as_str());
        self.0.lock().entry(name).or_default();
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_counter(name, unit, text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_counter(name, unit, text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.sum(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.sum(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("the runtime records no histogram");
    }
}

/// Holds the last two numbers; fails on zero.
struct Line(u64);

enum LineMsg {
    Number(u64),
    Last(Reply<u64>),
}

struct Last;

impl Request for Last {
    type Reply = u64;
}

impl strowger::Accepts<u64> for LineMsg {
    fn wrap(number: u64) -> Self {
        Self::Number(number)
    }
}

impl strowger::Accepts<Ask<Last>> for LineMsg {
    fn wrap(ask: Ask<Last>) -> Self {
        Self::Last(ask.reply)
    }
}

impl Actor for Line {
    type Msg = LineMsg;
    type Args = ();
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2).overflow(Overflow::DropOldest);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(0))
    }

    async fn handle(&mut self, message: LineMsg, _: &mut Context<Self>) -> Result<(), BoxError> {
        match message {
            LineMsg::Number(0) => return Err("no such line".into()),
            LineMsg::Number(number) => self.0 = number,
            LineMsg::Last(reply) => reply.send(self.0),
        }
        Ok(())
    }
}

async fn fails_twice_and_overflows(system: &ActorSystem) {
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(1, LIMIT)
        .child(ChildSpec::new::<Line>("line", ()));
    let supervisor = system
        .supervise("office", supervisor)
        .await
        .expect("it starts");
    let line: ActorRef<LineMsg> = supervisor.child("line").expect("it was started");
    // The thread is ours until the next await: including the ask, two of four messages find no
    // room.
    for number in 1..=3_u64 {
        line.try_tell(number).expect("the oldest makes room");
    }
    assert_eq!(line.ask(Last).await.expect("an answer"), 3);
    line.try_tell(0).expect("room");
    assert_eq!(
        line.ask(Last)
            .await
            .expect("an answer of the next incarnation"),
        0
    );
    line.try_tell(0).expect("room");
    supervisor.stopped().await;
}

#[test]
fn counters_agree_with_events() {
    let sums = Sums::default();
    let mut counted: HashMap<&str, u64> = HashMap::new();
    metrics::with_local_recorder(&sums, || {
        runtime().block_on(async {
            let system = ActorSystem::new("counters").expect("a system");
            let mut events = system.events();
            fails_twice_and_overflows(&system).await;
            let _still_there = system.spawn::<Line>("other", ()).expect("an actor");
            assert_eq!(sums.of("strowger_actors"), 1);
            system.shutdown(LIMIT).await;
            while let Some(event) = events.next().await {
                let (name, by) = match event {
                    Event::Started { .. } => ("started", 1),
                    Event::Stopped { exit, .. } => (exit.kind(), 1),
                    Event::Restarted { .. } => ("restarted", 1),
                    Event::Escalated { .. } => ("gave up", 1),
                    Event::DeadLetter { count, .. } => ("dead letters", count),
                    Event::Overflow { count, .. } => ("overflow", count),
                    other => panic!("an event without a counter: {other:?}"),
                };
                *counted.entry(name).or_default() += by;
            }
        });
    });
    let pairs = [
        ("strowger_actors_started_total", "started", 3),
        ("strowger_actors_stopped_total exit=failed", "failed", 1),
        (
            "strowger_actors_stopped_total exit=escalated",
            "escalated",
            1,
        ),
        ("strowger_actors_stopped_total exit=shutdown", "shutdown", 1),
        ("strowger_actor_restarts_total", "restarted", 1),
        ("strowger_escalations_total", "gave up", 1),
        ("strowger_dead_letters_total", "dead letters", 2),
        ("strowger_mailbox_overflow_total", "overflow", 2),
    ];
    for (name, event, wanted) in pairs {
        assert_eq!(sums.of(name), wanted, "{name}");
        assert_eq!(counted.remove(event), Some(wanted), "{event}");
    }
    assert_eq!(counted, HashMap::new());
    assert_eq!(sums.of("strowger_actors"), 0);
}

#[test]
fn every_emitted_metric_is_described() {
    let sums = Sums::default();
    metrics::with_local_recorder(&sums, || {
        runtime().block_on(async {
            let system = ActorSystem::new("described").expect("a system");
            fails_twice_and_overflows(&system).await;
            system.shutdown(LIMIT).await;
        });
    });
    let sums = sums.0.lock();
    for name in sums.keys().filter(|name| !name.starts_with("described ")) {
        let name = name.split(' ').next().expect("a name");
        assert!(sums.contains_key(&format!("described {name}")), "{name}");
    }
}

/// Counts down, sending the remaining count to itself.
struct Busy;

struct Turn {
    left: u32,
    done: Arc<tokio::sync::Notify>,
}

impl Actor for Busy {
    type Msg = Turn;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(&mut self, turn: Turn, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match turn.left.checked_sub(1) {
            Some(left) => cx
                .actor_ref()
                .try_tell(Turn { left, ..turn })
                .map_err(|_| "no room")?,
            None => turn.done.notify_one(),
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_are_consistent_under_load() {
    const ACTORS: u64 = 20;
    const TURNS: u32 = 2_000;
    let system = ActorSystem::new("loaded").expect("a system");
    let mut ends = Vec::new();
    for number in 0..ACTORS {
        let busy = system
            .spawn::<Busy>(format!("busy-{number}"), ())
            .expect("an actor");
        let done = Arc::new(tokio::sync::Notify::new());
        ends.push(Arc::clone(&done));
        busy.tell(Turn {
            left: TURNS - 1,
            done,
        })
        .await
        .expect("it lives");
    }
    let all = ACTORS * u64::from(TURNS);
    let mut before = 0;
    // Each reading includes all actors, and the sum only grows.
    while before < all {
        let actors = system.actors();
        assert_eq!(actors.len() as u64, ACTORS);
        let handled = actors.iter().map(|info| info.handled).sum();
        assert!((before..=all).contains(&handled), "{before} then {handled}");
        before = handled;
        tokio::task::yield_now().await;
    }
    for done in ends {
        done.notified().await;
    }
    assert_eq!(
        system
            .tree()
            .iter()
            .map(|node| node.info.handled)
            .sum::<u64>(),
        all
    );
    system.shutdown(LIMIT).await;
}
