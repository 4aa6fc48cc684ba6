//! Batches of children started in one call, and supervisors with very many children.

use std::convert::Infallible;
use std::time::Duration;

use strowger::testing::{Hook, InjectedFault, Probe, RecordedEvent, ScriptedActor, TestSystem};
use strowger::{
    Actor, ActorLifecycle, ActorRef, ActorSystem, Ask, ChildError, ChildSpec, Context, Dynamic,
    Exit, Key, Reply, Request, Restart, Shutdown, StartError, Strategy, Supervisor,
};

/// A limit that even a slow machine does not reach.
const LONG: Duration = Duration::from_secs(600);

fn spec(key: &str, probe: &Probe<RecordedEvent>) -> ChildSpec {
    ChildSpec::new::<ScriptedActor>(key, probe.recipient())
}

#[test]
fn start_children_starts_in_order_and_returns_one_result_each() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let office = Supervisor::new(Strategy::OneForOne).child(spec("a", &probe));
        let office = system.supervise("o", office);
        assert_eq!(probe.event_lines(), ["/o/a started"]);
        let specs = ["b", "a", "c"].map(|key| spec(key, &probe));
        let results = system.run(office.start_children(specs)).expect("it runs");
        let failed: Vec<bool> = results.iter().map(Result::is_err).collect();
        assert_eq!(failed, [false, true, false]);
        assert!(matches!(
            results[1],
            Err(ChildError::Start(StartError::KeyTaken { .. }))
        ));
        assert_eq!(probe.event_lines(), ["/o/b started", "/o/c started"]);
        let children = system.run(office.which_children()).expect("it runs");
        let keys: Vec<&str> = children.iter().map(|child| &*child.key).collect();
        assert_eq!(keys, ["a", "b", "c"]);
    });
}

#[test]
fn start_children_keeps_other_children_when_one_fails() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let office = system.supervise("o", Supervisor::new(Strategy::OneForOne));
        system.inject("/o/b", Hook::PreStart, 1, InjectedFault::error("no line"));
        let specs = ["a", "b", "c"].map(|key| spec(key, &probe));
        let results = system.run(office.start_children(specs)).expect("it runs");
        assert!(matches!(
            &results[1],
            Err(ChildError::Start(StartError::Failed { path, .. })) if path.as_str() == "/o/b"
        ));
        assert_eq!(probe.event_lines(), ["/o/a started", "/o/c started"]);
        assert_eq!(system.run(office.count_children()).expect("it runs"), 2);
    });
}

#[test]
fn start_together_starts_all_children_or_none() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let office = system.supervise("o", Supervisor::new(Strategy::OneForOne));
        system.inject("/o/c", Hook::PreStart, 1, InjectedFault::error("no line"));
        let specs = || ["a", "b", "c", "d"].map(|key| spec(key, &probe));
        let refused = system.run(office.start_together(specs()));
        assert!(matches!(
            refused,
            Err(ChildError::Start(StartError::Failed { .. }))
        ));
        let stopped = [
            "/o/a started",
            "/o/b started",
            "/o/b stopped: shutdown",
            "/o/a stopped: shutdown",
        ];
        assert_eq!(probe.event_lines(), stopped);
        assert_eq!(system.run(office.count_children()).expect("it runs"), 0);
        let started = system.run(office.start_together(specs()));
        assert_eq!(started.expect("nothing fails now").len(), 4);
    });
}

#[test]
fn ended_supervisor_refuses_new_children() {
    let system = TestSystem::new(1);
    let office = system.supervise("o", Supervisor::new(Strategy::OneForOne));
    office.stop();
    system.run(office.stopped());
    let probe = system.probe();
    let specs = vec![spec("a", &probe)];
    let refused = system.run(office.start_children(specs));
    assert!(matches!(refused, Err(ChildError::Ended)));
}

#[test]
fn dynamic_start_children_returns_one_result_each() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let lines = system.dynamic("d", Dynamic::<ScriptedActor>::new().max_children(2));
        let keys = ["a", "a", "b", "c"];
        let results = lines.start_children(keys.map(|key| (key, probe.recipient())));
        assert!(results[0].is_ok() && results[2].is_ok());
        assert!(matches!(results[1], Err(StartError::KeyTaken { .. })));
        assert!(matches!(
            results[3],
            Err(StartError::TooManyChildren { limit: 2, .. })
        ));
        let mut story = probe.event_lines();
        story.sort();
        assert_eq!(story, ["/d/a started", "/d/b started"]);
        let more = ["x", "y"].map(|key| (key, probe.recipient()));
        let refused = system.run(lines.start_all(more));
        assert!(matches!(refused, Err(StartError::TooManyChildren { .. })));
        assert_eq!(lines.len(), 2);
    });
}

/// A line that counts its calls.
struct Line(u32);

struct Call;

impl Request for Call {
    type Reply = u32;
}

enum Msg {
    Call(Reply<u32>),
    Fail,
}

impl strowger::Accepts<Ask<Call>> for Msg {
    fn wrap(ask: Ask<Call>) -> Self {
        Self::Call(ask.reply)
    }
}

impl Actor for Line {
    type Msg = Msg;
    type Args = u32;
    type Error = strowger::BoxError;

    async fn pre_start(first: u32, _: &mut Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self(first))
    }

    async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), Self::Error> {
        match msg {
            Msg::Call(reply) => {
                self.0 += 1;
                reply.send(self.0);
                Ok(())
            }
            Msg::Fail => Err("cut".into()),
        }
    }
}

/// Runs on real time: drawing a random schedule from this many actors would take longer than
/// running them.
#[tokio::test]
async fn a_hundred_thousand_children_start_restart_and_stop() {
    const LINES: u32 = 100_000;
    let system = ActorSystem::new("test").expect("a runtime runs");
    let lines = Dynamic::<Line>::new()
        .restart(Restart::Permanent)
        .shutdown(Shutdown::Graceful(LONG));
    let lines = system.dynamic("lines", lines).expect("a new key");
    let results = lines.start_children((0..LINES).map(|number| (number, number)));
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(lines.len(), LINES as usize);

    let call = async |number: u32| {
        let line = lines.child(&number.to_string()).expect("it was started");
        line.ask_within(Call, LONG).await.expect("an answer")
    };
    assert_eq!(call(LINES - 1).await, LINES);
    assert_eq!(call(LINES / 2).await, LINES / 2 + 1);
    assert_eq!(call(LINES / 2).await, LINES / 2 + 2);
    let middle = lines.child(&(LINES / 2).to_string()).expect("it runs");
    assert!(middle.try_tell(Msg::Fail).is_ok());
    assert_eq!(call(LINES / 2).await, LINES / 2 + 1, "a fresh state");
    let info = middle.erase().info();
    assert_eq!((info.restarts, info.state), (1, ActorLifecycle::Running));
    assert_eq!(
        call(LINES / 2 + 1).await,
        LINES / 2 + 2,
        "its neighbour goes on"
    );
    let children = lines.children();
    let in_order = children
        .iter()
        .zip(0..LINES)
        .all(|(child, number)| child.path().key() == number.to_string());
    assert!(in_order, "in the order of their start");

    lines.stop();
    assert!(matches!(lines.stopped().await, Exit::Shutdown));
    assert!(lines.is_empty());
    let orderly =
        |child: &ActorRef<Msg>| matches!(child.erase().info().last_exit, Some(Exit::Shutdown));
    assert!(children.iter().all(orderly), "none was killed at its limit");
    assert!(system.actors().is_empty());
}

/// Stops as soon as it has started.
struct Short;

impl Actor for Short {
    type Msg = Infallible;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, Infallible> {
        cx.stop();
        Ok(Self)
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), Infallible> {
        match never {}
    }
}

#[test]
fn number_and_its_decimal_text_are_the_same_key() {
    let system = TestSystem::new(1);
    let lines = system.dynamic("lines", Dynamic::<Line>::new());
    lines.start_child(7_u32, 0).expect("a new key");
    let taken = lines.start_child("7", 0).expect_err("it runs");
    assert_eq!(taken.to_string(), "/lines/7 already exists");
    assert!(system.system().find("/lines/7").is_some());
    assert!(lines.child("07").is_none());
    assert_eq!(Key::from(7_u32).to_string(), "7");
}

#[test]
fn ended_dynamic_children_free_their_memory() {
    let system = TestSystem::new(1);
    let short = system.dynamic("short", Dynamic::<Short>::new());
    for round in 0..100_u32 {
        let results = short.start_children((0..100_u32).map(|number| (number, ())));
        assert!(results.iter().all(Result::is_ok), "round {round}");
        system.run_until_idle();
        assert!(short.is_empty(), "round {round}");
    }
    let slots: Vec<u32> = system.system().actors().iter().map(|a| a.id.slot).collect();
    assert!(
        slots.iter().all(|slot| *slot <= 100),
        "slots are used again"
    );
}
