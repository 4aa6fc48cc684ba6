//! Actors that choose not to run by stopping in `pre_start` (OTP: `ignore`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{
    Actor, ActorRef, AnyRef, BoxError, ChildError, ChildSpec, Context, Dynamic, Event, EventStream,
    Exit, Restart, Signal, StartError, Strategy, Supervisor, SupervisorRef,
};

const SECOND: Duration = Duration::from_secs(1);
const RESTARTS: [Restart; 3] = [Restart::Permanent, Restart::Transient, Restart::Temporary];
const STRATEGIES: [Strategy; 3] = [
    Strategy::OneForOne,
    Strategy::OneForAll,
    Strategy::RestForOne,
];

/// Runs only while it is wanted.
struct IgnoringActor;

#[derive(Clone)]
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn new(wanted: bool) -> Self {
        Self(Arc::new(AtomicBool::new(wanted)))
    }

    fn set(&self, wanted: bool) {
        self.0.store(wanted, Ordering::Relaxed);
    }
}

impl Actor for IgnoringActor {
    type Msg = ();
    type Args = Wanted;
    type Error = BoxError;

    async fn pre_start(wanted: Wanted, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        if !wanted.0.load(Ordering::Relaxed) {
            cx.stop();
        }
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Err("as ordered".into())
    }
}

/// Asks to stop, and then fails.
struct Torn;

impl Actor for Torn {
    type Msg = ();
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.stop();
        Err("and it fails".into())
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }
}

fn shy(key: &str, wanted: &Wanted) -> ChildSpec {
    ChildSpec::new::<IgnoringActor>(key, wanted.clone())
}

fn scripted(key: &str, probe: &Probe<RecordedEvent>) -> ChildSpec {
    ChildSpec::new::<ScriptedActor>(key, probe.recipient())
}

/// The children by key, each with `true` if it is running.
fn children(system: &TestSystem, supervisor: &SupervisorRef) -> Vec<(String, bool)> {
    let all = system.run(supervisor.which_children());
    let all = all.expect("it runs").into_iter();
    all.map(|child| (child.key.to_string(), child.actor.is_some()))
        .collect()
}

/// The exit reasons of the actors at a path, as the events give them.
fn ends(events: &mut EventStream, at: &str) -> Vec<&'static str> {
    let mut ends = Vec::new();
    while let Some(event) = events.try_next() {
        match event {
            Event::Stopped { path, exit } if path.as_str() == at => ends.push(exit.kind()),
            Event::Restarted { path, .. } if path.as_str() == at => ends.push("restarted"),
            _ => {}
        }
    }
    ends
}

/// OTP: "If the start function returns `ignore`, the child specification is kept in the supervisor,
/// unless it is a temporary child".
#[test]
fn supervisor_starts_without_ignored_child() {
    for strategy in STRATEGIES {
        for restart in RESTARTS {
            TestSystem::check(0..10, |system| {
                let probe = system.probe();
                let mut events = system.system().events();
                let supervisor = Supervisor::new(strategy)
                    .intensity(0, SECOND)
                    .child(scripted("a", &probe))
                    .child(shy("shy", &Wanted::new(false)).restart(restart))
                    .child(scripted("b", &probe));
                let supervisor = system.supervise("s", supervisor);
                assert_eq!(probe.event_lines(), ["/s/a started", "/s/b started"]);
                let mut kept = vec![("a".to_owned(), true), ("b".to_owned(), true)];
                if restart != Restart::Temporary {
                    kept.insert(1, ("shy".to_owned(), false));
                }
                assert_eq!(children(system, &supervisor), kept);
                assert!(supervisor.any_child("shy").is_none());
                assert_eq!(ends(&mut events, "/s/shy"), ["ignored"]);
            });
        }
    }
}

#[test]
fn ignored_child_can_be_restarted_or_deleted() {
    for restart in [Restart::Permanent, Restart::Transient] {
        let system = TestSystem::new(1);
        let wanted = Wanted::new(false);
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
        let started = system.run(supervisor.start_child(shy("shy", &wanted).restart(restart)));
        let error = started.expect_err("it does not want to");
        assert_eq!(error.to_string(), "/s/shy stopped itself in `pre_start`");
        let ignored = |started: Result<AnyRef, ChildError>| {
            matches!(started, Err(ChildError::Start(StartError::Ignored { .. })))
        };
        assert!(ignored(Err(error)));
        assert!(ignored(system.run(supervisor.restart_child("shy"))));
        wanted.set(true);
        let child = system.run(supervisor.restart_child("shy"));
        assert!(child.expect("it is wanted").is_alive());
        system
            .run(supervisor.terminate_child("shy"))
            .expect("it is there");
        wanted.set(false);
        assert!(ignored(system.run(supervisor.restart_child("shy"))));
        system
            .run(supervisor.delete_child("shy"))
            .expect("it does not run");
        assert_eq!(children(&system, &supervisor), []);
    }
}

#[test]
fn ignored_temporary_child_is_removed() {
    let system = TestSystem::new(1);
    let wanted = Wanted::new(false);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
    let spec = || shy("shy", &wanted).restart(Restart::Temporary);
    let started = system.run(supervisor.start_child(spec()));
    assert!(matches!(
        started,
        Err(ChildError::Start(StartError::Ignored { .. }))
    ));
    assert_eq!(children(&system, &supervisor), []);
    wanted.set(true);
    system
        .run(supervisor.start_child(spec()))
        .expect("the key is free");
}

#[test]
fn child_that_ignores_its_restart_stays_stopped() {
    for strategy in STRATEGIES {
        for restart in [Restart::Permanent, Restart::Transient] {
            TestSystem::check(0..20, |system| {
                let probe = system.probe();
                let wanted = Wanted::new(true);
                let mut events = system.system().events();
                let supervisor = Supervisor::new(strategy)
                    .intensity(1, SECOND)
                    .child(scripted("a", &probe))
                    .child(shy("shy", &wanted).restart(restart))
                    .child(scripted("b", &probe));
                let supervisor = system.supervise("s", supervisor);
                let child: ActorRef<()> = supervisor.child("shy").expect("it runs");
                wanted.set(false);
                child.try_tell(()).expect("there is room");
                assert!(matches!(system.run(child.stopped()), Exit::Ignored));
                let kept = [("a", true), ("shy", false), ("b", true)];
                let kept = kept.map(|(key, runs)| (key.to_owned(), runs));
                assert_eq!(children(system, &supervisor), kept);
                assert_eq!(ends(&mut events, "/s/shy"), ["restarted", "ignored"]);
                // It cost only one restart.
                wanted.set(true);
                let again = system.run(supervisor.restart_child("shy"));
                assert!(again.expect("it is wanted").is_alive());
            });
        }
    }
}

#[test]
fn ignored_child_does_not_undo_start_together() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let wanted = Wanted::new(false);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
    let specs = [
        scripted("a", &probe),
        shy("shy", &wanted),
        scripted("b", &probe),
    ];
    let started = system.run(supervisor.start_together(specs));
    let keys: Vec<_> = started.expect("none of them fails");
    let keys: Vec<_> = keys.iter().map(|child| child.path().to_string()).collect();
    assert_eq!(keys, ["/s/a", "/s/b"]);
    // The child that chose not to run is also undone with the others.
    system.inject("/s/d", Hook::PreStart, 1, InjectedFault::error("boom"));
    let specs = [
        scripted("c", &probe),
        shy("shy too", &wanted),
        scripted("d", &probe),
    ];
    let started = system.run(supervisor.start_together(specs));
    assert!(matches!(
        started,
        Err(ChildError::Start(StartError::Failed { .. }))
    ));
    let kept = [("a", true), ("shy", false), ("b", true)];
    let kept = kept.map(|(key, runs)| (key.to_owned(), runs));
    assert_eq!(children(&system, &supervisor), kept);
}

#[test]
fn dynamic_removes_ignored_child() {
    for restart in RESTARTS {
        TestSystem::check(0..10, |system| {
            let dynamic = Dynamic::<IgnoringActor>::new()
                .restart(restart)
                .intensity(0, SECOND);
            let dynamic = system.dynamic("d", dynamic);
            let wanted = Wanted::new(false);
            let child = dynamic.start_child("c", wanted.clone());
            let child = child.expect("the key is free");
            let started = system.run(child.started());
            let path = match started {
                Err(StartError::Ignored { path }) => path,
                other => panic!("{restart:?}: {other:?}"),
            };
            assert_eq!(path.as_str(), "/d/c");
            assert!(matches!(system.run(child.stopped()), Exit::Ignored));
            assert!(dynamic.is_empty(), "{restart:?}");
            wanted.set(true);
            let child = dynamic.start_child("c", wanted);
            let child = child.expect("the key is free again");
            assert!(system.run(child.started()).is_ok());
            assert_eq!(dynamic.len(), 1);
        });
    }
}

#[test]
fn start_error_after_stop_counts_as_failure() {
    let system = TestSystem::new(1);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
    let started = system.run(supervisor.start_child(ChildSpec::new::<Torn>("torn", ())));
    assert!(matches!(
        started,
        Err(ChildError::Start(StartError::Failed {
            exit: Exit::Failed(_),
            ..
        }))
    ));
    let torn = system.spawn::<Torn>("torn", ());
    let failed = system.run(torn.started());
    assert!(
        matches!(failed, Err(StartError::Failed { .. })),
        "{failed:?}"
    );
}

/// Starts a child that chooses not to run, and reports how it ended.
struct Parent(strowger::Recipient<String>);

impl Actor for Parent {
    type Msg = ();
    type Args = strowger::Recipient<String>;
    type Error = BoxError;

    async fn pre_start(to: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.spawn::<IgnoringActor>("shy", Wanted::new(false))?;
        Ok(Self(to))
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::ChildEnded { key, exit, .. } = signal {
            self.0.try_tell(format!("{key}: {exit}"))?;
        }
        Ok(())
    }
}

#[test]
fn parent_gets_child_ended_with_ignored() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe::<String>();
        let parent = system.spawn::<Parent>("parent", probe.recipient());
        system.run_until_idle();
        assert_eq!(probe.drain(), ["shy: ignored"]);
        assert!(parent.is_alive());
    });
}

#[test]
fn started_waits_across_restarts() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let supervisor = Supervisor::new(Strategy::OneForOne).child(scripted("p", &probe));
        let supervisor = system.supervise("s", supervisor);
        let child: ActorRef<ScriptCommand> = supervisor.child("p").expect("it runs");
        system.inject("/s/p", Hook::PreStart, 1, InjectedFault::panic("boom"));
        system.inject("/s/p", Hook::PreStart, 2, InjectedFault::Stall(SECOND));
        child.try_tell(ScriptCommand::Panic).expect("there is room");
        system.run_until_idle();
        let before = system.elapsed();
        assert!(system.run(child.started()).is_ok());
        assert_eq!(system.elapsed() - before, SECOND);
        assert_eq!(child.erase().info().restarts, 2);
        child
            .try_tell(ScriptCommand::Sleep(SECOND))
            .expect("there is room");
        supervisor.stop();
        system.run(supervisor.stopped());
        let gone = system.run(child.started());
        assert!(matches!(gone, Err(StartError::Failed { .. })), "{gone:?}");
    });
}

/// A supervisor that gives up during its start must first end its children, and has not started.
#[test]
fn slow_start_failure_is_reported_as_failed() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let inner = Supervisor::new(Strategy::OneForOne)
            .child(scripted("a", &probe))
            .child(scripted("b", &probe));
        system.inject(
            "/s/inner/b",
            Hook::PreStart,
            1,
            InjectedFault::error("boom"),
        );
        system.inject(
            "/s/inner/a",
            Hook::PostStop,
            1,
            InjectedFault::Stall(SECOND),
        );
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
        let started = system.run(supervisor.start_child(ChildSpec::supervisor("inner", inner)));
        assert!(
            matches!(started, Err(ChildError::Start(StartError::Failed { .. }))),
            "{started:?}"
        );
        assert_eq!(children(system, &supervisor), []);
    });
}
