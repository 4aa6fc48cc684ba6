//! Trees of supervisors: escalation and subtrees. No child outlives its supervisor.

use std::convert::Infallible;
use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{
    Actor, ActorPath, ActorRef, AnyRef, ChildSpec, Context, Event, Exit, Restart, Strategy,
    Supervisor, SupervisorRef,
};

const SECOND: Duration = Duration::from_secs(1);

fn scripted(key: &str, probe: &Probe<RecordedEvent>) -> ChildSpec {
    ChildSpec::new::<ScriptedActor>(key, probe.recipient())
}

/// `/top` with the children `/top/a` and `/top/mid`; `/top/mid` has the children `/top/mid/x` and
/// `/top/mid/y` and allows one restart per second.
fn two_levels(system: &TestSystem, top: Supervisor) -> (SupervisorRef, Probe<RecordedEvent>) {
    let probe = system.probe();
    let mid = Supervisor::new(Strategy::OneForOne)
        .intensity(1, SECOND)
        .child(scripted("x", &probe))
        .child(scripted("y", &probe));
    let top = top.child(scripted("a", &probe)).supervisor("mid", mid);
    let top = system.supervise("top", top);
    let started = ["/top/a started", "/top/mid/x started", "/top/mid/y started"];
    assert_eq!(probe.event_lines(), started);
    (top, probe)
}

fn find(system: &TestSystem, path: &str) -> AnyRef {
    system.system().find(path).expect("it runs")
}

fn tell(system: &TestSystem, path: &str, order: ScriptCommand) {
    let scripted: ActorRef<ScriptCommand> =
        find(system, path).downcast().expect("it is a scripted");
    scripted.try_tell(order).expect("there is room");
}

/// OTP: "When the supervisor terminates, then the next higher-level supervisor takes some action.
/// It either restarts the terminated supervisor or terminates itself."
#[test]
fn escalating_supervisor_is_restarted_by_its_parent() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
        let mid = find(system, "/top/mid");
        let old = find(system, "/top/mid/x");
        tell(system, "/top/mid/x", ScriptCommand::Panic);
        assert_eq!(
            probe.event_lines(),
            ["/top/mid/x dropped", "/top/mid/x started"]
        );
        tell(system, "/top/mid/x", ScriptCommand::Panic);
        let expected = [
            "/top/mid/x dropped",
            "/top/mid/y stopped: shutdown",
            "/top/mid/x started",
            "/top/mid/y started",
        ];
        assert_eq!(probe.event_lines(), expected);
        assert!(
            mid.is_alive(),
            "the supervisor's address survives its restart"
        );
        assert!(
            !old.is_alive(),
            "its children are others, as all their state is fresh"
        );
        // The new incarnation starts counting again.
        tell(system, "/top/mid/x", ScriptCommand::Panic);
        assert_eq!(
            probe.event_lines(),
            ["/top/mid/x dropped", "/top/mid/x started"]
        );
    });
}

#[test]
fn escalation_propagates_through_two_levels() {
    TestSystem::check(0..20, |system| {
        let strict = Supervisor::new(Strategy::OneForOne).intensity(0, SECOND);
        let (top, probe) = two_levels(system, strict);
        let mut events = system.events();
        tell(system, "/top/mid/y", ScriptCommand::Panic);
        system.run_until_idle();
        tell(system, "/top/mid/y", ScriptCommand::Panic);
        let exit = system.run(top.stopped());
        assert_eq!(
            exit.to_string(),
            "escalated /top/mid: escalated /top/mid/y: panicked: as ordered"
        );
        let expected = [
            "/top/mid/y dropped",
            "/top/mid/y started",
            "/top/mid/y dropped",
            "/top/mid/x stopped: shutdown",
            "/top/a stopped: shutdown",
        ];
        assert_eq!(probe.event_lines(), expected);
        let mut escalated = Vec::new();
        while let Some(event) = events.try_next() {
            if let Event::Escalated { path, .. } = event {
                escalated.push(path);
            }
        }
        assert_eq!(
            escalated,
            [ActorPath::from("/top/mid"), ActorPath::from("/top")]
        );
    });
}

#[test]
fn subtree_follows_the_strategy_of_its_parent() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForAll));
        tell(system, "/top/a", ScriptCommand::Panic);
        let expected = [
            "/top/a dropped",
            "/top/mid/y stopped: shutdown",
            "/top/mid/x stopped: shutdown",
            "/top/a started",
            "/top/mid/x started",
            "/top/mid/y started",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

#[test]
fn temporary_supervisor_that_escalates_removes_its_subtree() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let mid = Supervisor::new(Strategy::OneForOne)
        .intensity(0, SECOND)
        .child(scripted("x", &probe))
        .child(scripted("y", &probe));
    let mid = ChildSpec::supervisor("mid", mid).restart(Restart::Temporary);
    let top = Supervisor::new(Strategy::OneForOne)
        .child(mid)
        .child(scripted("a", &probe));
    system.supervise("top", top);
    assert_eq!(probe.event_lines().len(), 3);
    tell(&system, "/top/mid/x", ScriptCommand::Panic);
    assert_eq!(
        probe.event_lines(),
        ["/top/mid/x dropped", "/top/mid/y stopped: shutdown"]
    );
    assert!(system.system().find("/top/mid").is_none());
    assert!(system.system().find("/top/a").is_some());
}

/// A child of a different type, to nest in the same tree.
struct Adder(u64);

impl Actor for Adder {
    type Msg = u64;
    type Args = u64;
    type Error = Infallible;

    async fn pre_start(start: u64, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(start))
    }

    async fn handle(&mut self, number: u64, cx: &mut Context<Self>) -> Result<(), Infallible> {
        self.0 += number;
        if self.0 > 10 {
            cx.stop();
        }
        Ok(())
    }
}

#[test]
fn one_supervisor_has_children_of_different_types() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let mid = Supervisor::new(Strategy::RestForOne)
        .child(ChildSpec::new::<Adder>("adder", 8))
        .child(scripted("p", &probe));
    let top = Supervisor::new(Strategy::OneForOne)
        .supervisor("mid", mid)
        .child(scripted("a", &probe));
    system.supervise("top", top);
    assert_eq!(
        probe.event_lines(),
        ["/top/mid/p started", "/top/a started"]
    );
    let adder: ActorRef<u64> = find(&system, "/top/mid/adder").downcast().expect("it adds");
    adder.try_tell(3).expect("there is room");
    assert_eq!(
        probe.event_lines(),
        ["/top/mid/p stopped: shutdown", "/top/mid/p started"]
    );
    assert!(adder.is_alive());
    let kinds: Vec<_> = system
        .system()
        .actors()
        .into_iter()
        .map(|info| info.type_name)
        .collect();
    assert!(
        kinds.iter().any(|kind| kind.ends_with("Adder")),
        "{kinds:?}"
    );
    assert!(
        kinds.iter().any(|kind| kind.ends_with("ScriptedActor")),
        "{kinds:?}"
    );
}

/// OTP: "the supervisor [...] terminates all its child processes": no child outlives it.
#[test]
fn no_child_outlives_its_supervisor() {
    for kill in [false, true] {
        TestSystem::check(0..20, |system| {
            let (top, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
            let below: Vec<_> = ["/top/a", "/top/mid", "/top/mid/x", "/top/mid/y"]
                .iter()
                .map(|path| find(system, path))
                .collect();
            if kill {
                top.kill()
            } else {
                top.stop()
            }
            let exit = system.run(top.stopped());
            assert_eq!(exit.kind(), if kill { "killed" } else { "shutdown" });
            for actor in &below {
                assert!(
                    !actor.is_alive(),
                    "{} outlives its supervisor",
                    actor.path()
                );
            }
            assert_eq!(probe.event_lines().len(), 3);
        });
    }
}

#[test]
fn a_killed_supervisor_is_restarted_with_a_fresh_subtree() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
        find(system, "/top/mid").kill();
        let story = probe.event_lines();
        assert_eq!(
            story[2..],
            ["/top/mid/x started", "/top/mid/y started"],
            "{story:?}"
        );
        assert!(
            story[..2].contains(&"/top/mid/x dropped".to_owned()),
            "{story:?}"
        );
        assert!(
            story[..2].contains(&"/top/mid/y dropped".to_owned()),
            "{story:?}"
        );
    });
}

#[test]
fn panicking_supervisor_is_restarted() {
    let system = TestSystem::new(1);
    let (_, probe) = two_levels(&system, Supervisor::new(Strategy::OneForOne));
    find(&system, "/top/mid").inject_panic("a fault of ours");
    let expected = [
        "/top/mid/y stopped: shutdown",
        "/top/mid/x stopped: shutdown",
        "/top/mid/x started",
        "/top/mid/y started",
    ];
    assert_eq!(probe.event_lines(), expected);
}

#[test]
fn shutdown_stops_all_in_reverse_order() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
        let report = system.shutdown(10 * SECOND);
        assert!(report.not_stopped.is_empty(), "{report:?}");
        let expected = [
            "/top/mid/y stopped: shutdown",
            "/top/mid/x stopped: shutdown",
            "/top/a stopped: shutdown",
        ];
        assert_eq!(probe.event_lines(), expected);
        assert!(system.system().actors().is_empty());
    });
}

#[test]
fn shutdown_kills_actors_that_exceed_their_limit() {
    let system = TestSystem::new(1);
    let (_, probe) = two_levels(&system, Supervisor::new(Strategy::OneForOne));
    system.inject(
        "/top/mid/x",
        Hook::PostStop,
        1,
        InjectedFault::Stall(4 * SECOND),
    );
    let mut events = system.events();
    let before = system.elapsed();
    let report = system.shutdown(SECOND);
    assert_eq!(system.elapsed() - before, SECOND);
    assert!(report.not_stopped.is_empty(), "{report:?}");
    // The probe is killed with the rest, so the exits are read from the events.
    assert_eq!(probe.event_lines(), ["/top/mid/y stopped: shutdown"]);
    let mut killed = false;
    while let Some(event) = events.try_next() {
        if let Event::Stopped { path, exit } = event {
            killed |= path == ActorPath::from("/top/mid/x") && exit.kind() == "killed";
        }
    }
    assert!(killed);
    assert!(system.system().actors().is_empty());
}

#[test]
fn shut_down_system_refuses_to_spawn() {
    let system = TestSystem::new(1);
    let probe = system.probe::<RecordedEvent>();
    system.shutdown(SECOND);
    let refused = system
        .system()
        .spawn::<ScriptedActor>("late", probe.recipient());
    assert_eq!(
        refused.expect_err("it is closed").to_string(),
        "cannot start /late: its parent is stopping"
    );
}

#[test]
fn children_end_before_post_stop_on_stop_and_on_restart() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let top = Supervisor::new(Strategy::OneForOne).child(scripted("p", &probe));
        system.supervise("s", top);
        tell(system, "/s/p", ScriptCommand::Spawn("x".into()));
        tell(system, "/s/p", ScriptCommand::Spawn("y".into()));
        let story = probe.event_lines();
        assert_eq!(story.len(), 3, "{story:?}");
        let child = find(system, "/s/p/x");
        tell(system, "/s/p", ScriptCommand::Error);
        let expected = [
            "/s/p/y stopped: shutdown",
            "/s/p/x stopped: shutdown",
            "/s/p stopped: failed: as ordered",
            "/s/p started",
        ];
        assert_eq!(probe.event_lines(), expected);
        assert!(!child.is_alive());
        assert!(matches!(system.run(child.stopped()), Exit::Shutdown));
    });
}
