//! The lifecycle of an actor, from its start to its exit.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::testing::{ScriptCommand, ScriptedActor, TestSystem};
use strowger::{
    Accepts, Actor, ActorSystem, Ask, AskError, ChildSpec, Context, Dynamic, Event, Exit, Reply,
    Request, Restart, SendError, Signal, StartError, Strategy, Supervisor,
};

struct Counter(u64);

#[derive(Debug, PartialEq)]
struct Add(u64);
struct Get;
struct Boom;

impl Request for Get {
    type Reply = u64;
}

enum CounterMsg {
    Add(u64),
    Get(Reply<u64>),
    Boom,
}

impl Accepts<Add> for CounterMsg {
    fn wrap(add: Add) -> Self {
        Self::Add(add.0)
    }
}

impl Accepts<Boom> for CounterMsg {
    fn wrap(_: Boom) -> Self {
        Self::Boom
    }
}

impl Accepts<Ask<Get>> for CounterMsg {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask.reply)
    }
}

impl Actor for Counter {
    type Msg = CounterMsg;
    type Args = u64;
    type Error = Infallible;

    async fn pre_start(start: u64, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(start))
    }

    async fn handle(&mut self, msg: CounterMsg, _: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            CounterMsg::Add(n) => self.0 += n,
            CounterMsg::Get(reply) => reply.send(self.0),
            CounterMsg::Boom => panic!("boom"),
        }
        Ok(())
    }
}

#[tokio::test]
async fn messages_reach_the_actor_in_order() {
    let system = ActorSystem::new("test").unwrap();
    let counter = system.spawn::<Counter>("counter", 1).unwrap();
    counter.tell(Add(2)).await.unwrap();
    assert_eq!(counter.ask(Get).await, Ok(3));
    assert_eq!(counter.path().as_str(), "/counter");
}

#[tokio::test]
async fn tell_to_an_ended_actor_returns_the_message() {
    let system = ActorSystem::new("test").unwrap();
    let counter = system.spawn::<Counter>("counter", 1).unwrap();
    counter.stop();
    assert!(matches!(counter.stopped().await, Exit::Shutdown));
    assert_eq!(counter.try_tell(Add(7)), Err(SendError::Closed(Add(7))));
    assert_eq!(counter.ask(Get).await, Err(AskError::Closed));
    assert!(system.find("/counter").is_none());
    assert!(
        system.spawn::<Counter>("counter", 1).is_ok(),
        "the name is free again"
    );
}

#[tokio::test]
async fn panic_exit_carries_the_panic_message() {
    let system = ActorSystem::new("test").unwrap();
    let counter = system.spawn::<Counter>("counter", 1).unwrap();
    counter.tell(Boom).await.unwrap();
    let exit = counter.stopped().await;
    assert!(matches!(exit, Exit::Panicked(message) if &*message == "boom"));
    let report = system.shutdown(Duration::from_secs(60)).await;
    assert!(report.not_stopped.is_empty());
}

#[tokio::test]
async fn address_is_valid_after_restart() {
    let system = ActorSystem::new("test").unwrap();
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(ChildSpec::new::<Counter>("a", 10))
        .child(ChildSpec::new::<Counter>("b", 20));
    let supervisor = system.supervise("top", supervisor).await.unwrap();
    let a = supervisor.child::<CounterMsg>("a").unwrap();
    a.tell(Add(1)).await.unwrap();
    a.tell(Boom).await.unwrap();
    a.tell(Add(2)).await.unwrap();
    assert_eq!(
        a.ask(Get).await,
        Ok(12),
        "fresh state, and what waited was kept"
    );
    assert_eq!(a.erase().info().restarts, 1);
    assert_eq!(a.path().as_str(), "/top/a");
    let report = system.shutdown(Duration::from_secs(60)).await;
    assert_eq!((report.stopped, report.not_stopped.len()), (3, 0));
}

#[tokio::test]
async fn dynamic_children_can_be_started_and_terminated() {
    let system = ActorSystem::new("test").unwrap();
    let dynamic = Dynamic::<Counter>::new()
        .restart(Restart::Transient)
        .max_children(2);
    let dynamic = system.dynamic("many", dynamic).unwrap();
    let one = dynamic.start_child("1", 1).unwrap();
    let two = dynamic.start_child("2", 2).unwrap();
    assert!(dynamic.start_child("2", 2).is_err());
    assert!(dynamic.start_child("3", 3).is_err());
    one.tell(Boom).await.unwrap();
    assert_eq!(one.ask(Get).await, Ok(1));
    two.stop();
    two.stopped().await;
    assert_eq!(dynamic.len(), 1);
    assert!(dynamic.terminate_child("1").await);
    assert!(!one.is_alive());
    assert!(
        system
            .find("/many")
            .unwrap()
            .dynamic::<Counter>()
            .unwrap()
            .is_empty()
    );
}

/// Fails or panics in the given hook, and records what it observes.
struct Fragile {
    args: FragileArgs,
}

#[derive(Clone)]
struct FragileArgs {
    hook: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl FragileArgs {
    fn reach(&self, hook: &str) {
        self.seen.lock().push(hook.to_owned());
        if self.hook == hook {
            std::panic::resume_unwind(Box::new(format!("in {hook}")));
        }
    }
}

impl Actor for Fragile {
    type Msg = ();
    type Args = FragileArgs;
    type Error = Infallible;

    async fn pre_start(args: FragileArgs, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        args.reach("pre_start");
        cx.task("short", async {});
        Ok(Self { args })
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        self.args.reach("handle");
        cx.stop();
        Ok(())
    }

    async fn signal(&mut self, _: Signal, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.args.reach("signal");
        Ok(())
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        self.args.reach("post_stop");
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.args.reach("drop");
    }
}

fn fragile(hook: &'static str) -> (Exit, Vec<String>) {
    let system = TestSystem::new(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let args = FragileArgs {
        hook,
        seen: Arc::clone(&seen),
    };
    let actor = system.spawn::<Fragile>("fragile", args);
    system.run_until_idle();
    let _closed_already = actor.try_tell(());
    let exit = system.run(actor.stopped());
    let seen = seen.lock().clone();
    (exit, seen)
}

#[test]
fn panic_in_any_hook_becomes_the_exit() {
    let (exit, seen) = fragile("none");
    assert!(matches!(exit, Exit::Normal));
    assert_eq!(seen, ["pre_start", "signal", "handle", "post_stop", "drop"]);
    for (hook, seen_then) in [
        ("pre_start", &["pre_start"][..]),
        ("signal", &["pre_start", "signal", "drop"]),
        ("handle", &["pre_start", "signal", "handle", "drop"]),
    ] {
        let (exit, seen) = fragile(hook);
        let reason = format!("in {hook}");
        assert!(
            matches!(&exit, Exit::Panicked(message) if **message == reason),
            "{exit}"
        );
        assert_eq!(seen, seen_then, "{hook}");
    }
}

#[test]
fn panic_in_post_stop_or_drop_does_not_change_the_exit() {
    for hook in ["post_stop", "drop"] {
        let (exit, seen) = fragile(hook);
        assert!(matches!(exit, Exit::Normal), "{hook}: {exit}");
        assert_eq!(seen, ["pre_start", "signal", "handle", "post_stop", "drop"]);
    }
}

/// Survives a panic, and records its count in `post_stop`.
struct Survivor(u32, Arc<Mutex<Vec<u32>>>);

impl Actor for Survivor {
    type Msg = bool;
    type Args = Arc<Mutex<Vec<u32>>>;
    type Error = Infallible;

    const SURVIVES_PANIC: bool = true;

    async fn pre_start(told: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(0, told))
    }

    async fn handle(&mut self, panics: bool, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.0 += 1;
        if panics {
            std::panic::resume_unwind(Box::new("as told"));
        }
        Ok(())
    }

    async fn post_stop(self, exit: &Exit, _: &mut Context<Self>) {
        assert!(matches!(exit, Exit::Panicked(_)));
        self.1.lock().push(self.0);
    }
}

#[test]
fn post_stop_runs_after_panic_if_survives_panic() {
    let system = TestSystem::new(1);
    let told = Arc::new(Mutex::new(Vec::new()));
    let actor = system.spawn::<Survivor>("survivor", Arc::clone(&told));
    actor.try_tell(false).unwrap();
    actor.try_tell(true).unwrap();
    system.run(actor.stopped());
    assert_eq!(*told.lock(), [2]);
}

#[test]
fn kill_ends_at_the_next_await_without_post_stop() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    scripted
        .try_tell(ScriptCommand::Sleep(Duration::from_secs(3600)))
        .unwrap();
    scripted
        .try_tell(ScriptCommand::Spawn("never".into()))
        .unwrap();
    system.run_until_idle();
    scripted.kill();
    assert_eq!(probe.event_lines(), ["/p started", "/p dropped"]);
    assert!(matches!(system.run(scripted.stopped()), Exit::Killed));
    assert_eq!(system.elapsed(), Duration::ZERO);
}

#[test]
fn children_end_before_their_parent_and_in_reverse() {
    for kill in [false, true] {
        let system = TestSystem::new(1);
        let probe = system.probe();
        let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
        for key in ["a", "b"] {
            scripted.try_tell(ScriptCommand::Spawn(key.into())).unwrap();
        }
        system.run_until_idle();
        let child = system
            .system()
            .find("/p/a")
            .unwrap()
            .downcast::<ScriptCommand>()
            .unwrap();
        child.try_tell(ScriptCommand::Spawn("deep".into())).unwrap();
        let _ = probe.event_lines();
        if kill {
            scripted.kill();
            let dropped = ["/p/b", "/p/a/deep", "/p/a", "/p"].map(|p| format!("{p} dropped"));
            assert_eq!(probe.event_lines(), dropped);
        } else {
            scripted.stop();
            let stopped = ["/p/b", "/p/a/deep", "/p/a", "/p"];
            assert_eq!(
                probe.event_lines(),
                stopped.map(|p| format!("{p} stopped: shutdown"))
            );
        }
    }
}

#[test]
fn message_that_fails_its_actor_is_one_dead_letter_and_not_redelivered() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
    let scripted = supervisor.child::<ScriptCommand>("p").unwrap();
    let mut events = system.events();
    scripted.try_tell(ScriptCommand::Panic).unwrap();
    system.run_until_idle();
    let seen: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
    assert!(
        matches!(
            &seen[..],
            [
                Event::DeadLetter {
                    count: 1,
                    exit: Exit::Panicked(_),
                    ..
                },
                Event::Restarted {
                    exit: Exit::Panicked(_),
                    ..
                },
            ]
        ),
        "{seen:?}"
    );
}

/// Runs a task beside itself.
struct Tasked;

impl Actor for Tasked {
    type Msg = ();
    type Args = (bool, Arc<()>);
    type Error = Infallible;

    async fn pre_start(
        (panics, held): (bool, Arc<()>),
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        cx.task("beside", async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if panics {
                std::panic::resume_unwind(Box::new("in the task"));
            }
            let _held = held;
            std::future::pending().await
        });
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn panic_in_a_task_ends_its_actor() {
    let system = TestSystem::new(1);
    let actor = system.spawn::<Tasked>("tasked", (true, Arc::new(())));
    let exit = system.run(actor.stopped());
    assert!(matches!(exit, Exit::Panicked(message) if &*message == "in the task"));
}

#[test]
fn tasks_are_aborted_when_the_actor_ends() {
    let system = TestSystem::new(1);
    let held = Arc::new(());
    let actor = system.spawn::<Tasked>("tasked", (false, Arc::clone(&held)));
    system.advance(Duration::from_secs(2));
    assert!(actor.is_alive());
    actor.stop();
    system.run(actor.stopped());
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Never awaits anything.
struct Busy(u32);

impl Actor for Busy {
    type Msg = ();
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(0))
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        self.0 += 1;
        if self.0 == 3 {
            cx.actor_ref().kill();
        }
        assert!(self.0 < 4, "killed before the next message");
        Ok(())
    }
}

#[test]
fn kill_ends_an_actor_that_is_never_idle() {
    let system = TestSystem::new(1);
    let actor = system.spawn::<Busy>("busy", ());
    for () in [(); 10] {
        actor.try_tell(()).unwrap();
    }
    assert!(matches!(system.run(actor.stopped()), Exit::Killed));
}

#[test]
fn duplicate_child_key_is_refused() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.spawn::<ScriptedActor>("p", probe.recipient());
    let again = system
        .system()
        .spawn::<ScriptedActor>("p", probe.recipient());
    assert!(matches!(again, Err(StartError::KeyTaken { path }) if path.as_str() == "/p"));
    for key in ["", "a/b"] {
        let bad = system
            .system()
            .spawn::<ScriptedActor>(key, probe.recipient());
        assert!(matches!(bad, Err(StartError::InvalidKey { .. })));
    }
}

/// Starts a child when it stops, and another one when told `true`; fails when told `false`.
struct Parent(Arc<Mutex<Vec<String>>>);

impl Parent {
    fn start(&self, key: &'static str, cx: &mut Context<Self>) {
        let started = cx.spawn::<Counter>(key, 0);
        let outcome =
            started.map_or_else(|error| error.to_string(), |child| child.path().to_string());
        self.0.lock().push(outcome);
    }
}

impl Actor for Parent {
    type Msg = bool;
    type Args = Arc<Mutex<Vec<String>>>;
    type Error = &'static str;

    async fn pre_start(seen: Self::Args, _: &mut Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self(seen))
    }

    async fn handle(&mut self, starts: bool, cx: &mut Context<Self>) -> Result<(), Self::Error> {
        if !starts {
            return Err("as told");
        }
        self.start("now", cx);
        Ok(())
    }

    async fn post_stop(self, _: &Exit, cx: &mut Context<Self>) {
        self.start("late", cx);
    }
}

#[test]
fn ending_incarnation_refuses_children_and_next_accepts_them() {
    TestSystem::check(0..20, |system| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let child = ChildSpec::new::<Parent>("p", Arc::clone(&seen));
        let top = Supervisor::new(Strategy::OneForOne).child(child);
        let top = system.supervise("s", top);
        let parent = top.child::<bool>("p").expect("it runs");
        // Twice without ever having had a child, and once with a child.
        for starts in [false, false, true, false, true] {
            parent.try_tell(starts).expect("there is room");
        }
        system.run_until_idle();
        let late = "cannot start /s/p/late: its parent is stopping";
        let now = "/s/p/now";
        assert_eq!(*seen.lock(), [late, late, now, late, now]);
    });
}
