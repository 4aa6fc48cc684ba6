//! Dynamic supervisors: children of one kind that start and stop at any time.

use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{
    Backoff, ChildSpec, Dynamic, DynamicRef, Exit, MailboxSpec, Overflow, Restart, Shutdown,
    Strategy, Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);

/// A dynamic supervisor `/d` with children `c0`, `c1` and `c2`, which have all started.
fn three(
    system: &TestSystem,
    change: impl FnOnce(Dynamic<ScriptedActor>) -> Dynamic<ScriptedActor>,
) -> (DynamicRef<ScriptedActor>, Probe<RecordedEvent>) {
    let probe = system.probe();
    let dynamic = system.dynamic("d", change(Dynamic::new()));
    for key in ["c0", "c1", "c2"] {
        dynamic
            .start_child(key, probe.recipient())
            .expect("a new key");
    }
    assert_eq!(probe.event_lines().len(), 3);
    (dynamic, probe)
}

fn tell(dynamic: &DynamicRef<ScriptedActor>, key: &str, order: ScriptCommand) {
    dynamic
        .child(key)
        .expect("it runs")
        .try_tell(order)
        .expect("there is room");
}

/// Number of turns that an actor has had.
fn turns(system: &TestSystem, path: &str) -> usize {
    let trace = system.trace();
    let steps = trace.steps().iter();
    steps.filter(|step| step.path.as_str() == path).count()
}

#[test]
fn restart_without_backoff_does_not_run_the_supervisor() {
    TestSystem::check(0..10, |system| {
        let (dynamic, probe) = three(system, |d| d.restart(Restart::Permanent));
        let before = turns(system, "/d");
        tell(&dynamic, "c1", ScriptCommand::Error);
        assert_eq!(
            probe.event_lines().last().map(String::as_str),
            Some("/d/c1 started")
        );
        assert_eq!(turns(system, "/d"), before);
    });
}

#[test]
fn first_restart_with_backoff_runs_in_one_supervisor_turn() {
    TestSystem::check(0..10, |system| {
        let backoff = Backoff::new(SECOND, SECOND);
        let (dynamic, probe) = three(system, |d| d.restart(Restart::Permanent).backoff(backoff));
        let before = turns(system, "/d");
        tell(&dynamic, "c1", ScriptCommand::Error);
        assert_eq!(
            probe.event_lines().last().map(String::as_str),
            Some("/d/c1 started")
        );
        assert_eq!(turns(system, "/d"), before + 1);
    });
}

/// OTP: "In a simple_one_for_one supervisor children are dynamically added instances of the same
/// process type". By default they are not restarted here.
#[test]
fn children_can_be_started_and_terminated() {
    TestSystem::check(0..10, |system| {
        let (dynamic, probe) = three(system, |d| d);
        tell(&dynamic, "c1", ScriptCommand::Stop);
        assert_eq!(probe.event_lines(), ["/d/c1 stopped: normal"]);
        tell(&dynamic, "c2", ScriptCommand::Panic);
        assert_eq!(probe.event_lines(), ["/d/c2 dropped"]);
        assert!(dynamic.len() == 1 && !dynamic.is_empty());
        dynamic
            .start_child("c1", probe.recipient())
            .expect("its key is free again");
        assert_eq!(probe.event_lines(), ["/d/c1 started"]);
        let paths: Vec<_> = dynamic
            .children()
            .iter()
            .map(|c| c.path().to_string())
            .collect();
        assert_eq!(paths, ["/d/c0", "/d/c1"]);
    });
}

#[test]
fn duplicate_key_is_refused() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d);
    let taken = dynamic
        .start_child("c1", probe.recipient())
        .expect_err("it runs");
    assert_eq!(taken.to_string(), "/d/c1 already exists");
    for bad in ["", "a/b"] {
        let refused = dynamic
            .start_child(bad, probe.recipient())
            .expect_err("not a key");
        assert!(refused.to_string().contains("invalid key"), "{refused}");
    }
}

#[test]
fn max_children_is_enforced() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d.max_children(3));
    let refused = dynamic
        .start_child("c3", probe.recipient())
        .expect_err("it is full");
    assert_eq!(
        refused.to_string(),
        "cannot start /d/c3: its parent has reached the limit of 3 children"
    );
    tell(&dynamic, "c0", ScriptCommand::Stop);
    system.run_until_idle();
    dynamic
        .start_child("c3", probe.recipient())
        .expect("there is a place again");
}

#[test]
fn a_permanent_child_is_restarted_alone_from_its_own_arguments() {
    TestSystem::check(0..10, |system| {
        let own = system.probe::<RecordedEvent>();
        let (dynamic, probe) = three(system, |d| d.restart(Restart::Permanent));
        dynamic
            .start_child("own", own.recipient())
            .expect("a new key");
        let child = dynamic.child("own").expect("it runs");
        tell(&dynamic, "own", ScriptCommand::Panic);
        tell(&dynamic, "own", ScriptCommand::Note(1));
        let expected = [
            "/d/own started",
            "/d/own dropped",
            "/d/own started",
            "/d/own noted 1",
        ];
        assert_eq!(own.event_lines(), expected);
        assert!(probe.event_lines().is_empty());
        assert!(child.is_alive());
        assert_eq!(child.erase().info().restarts, 1);
    });
}

#[test]
fn a_transient_child_is_restarted_only_if_it_terminates_abnormally() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d.restart(Restart::Transient));
    tell(&dynamic, "c0", ScriptCommand::Error);
    assert_eq!(
        probe.event_lines(),
        ["/d/c0 stopped: failed: as ordered", "/d/c0 started"]
    );
    tell(&dynamic, "c0", ScriptCommand::Stop);
    assert_eq!(probe.event_lines(), ["/d/c0 stopped: normal"]);
    assert_eq!(dynamic.len(), 2);
}

#[test]
fn restarts_back_off_for_each_child() {
    let system = TestSystem::new(1);
    let backoff = Backoff::new(SECOND, 4 * SECOND);
    let (dynamic, probe) = three(&system, |d| {
        d.restart(Restart::Permanent)
            .intensity(99, SECOND)
            .backoff(backoff)
    });
    tell(&dynamic, "c0", ScriptCommand::Panic);
    tell(&dynamic, "c0", ScriptCommand::Panic);
    tell(&dynamic, "c1", ScriptCommand::Panic);
    let mut story = probe.event_lines();
    story.sort();
    let expected = [
        "/d/c0 dropped",
        "/d/c0 dropped",
        "/d/c0 started",
        "/d/c1 dropped",
        "/d/c1 started",
    ];
    assert_eq!(story, expected);
    probe.expect_none(SECOND - Duration::from_millis(1));
    assert_eq!(probe.expect(SECOND).to_string(), "/d/c0 started");
}

#[test]
fn the_intensity_counts_the_restarts_of_all_children() {
    TestSystem::check(0..10, |system| {
        let (dynamic, probe) = three(system, |d| {
            d.restart(Restart::Permanent).intensity(2, SECOND)
        });
        for key in ["c0", "c1", "c2"] {
            tell(&dynamic, key, ScriptCommand::Panic);
            system.run_until_idle();
        }
        let exit = system.run(dynamic.stopped());
        let Exit::Escalated { child, .. } = exit else {
            panic!("{exit}")
        };
        assert_eq!(child.as_str(), "/d/c2");
        assert!(dynamic.is_empty());
        assert!(system.system().find("/d").is_none());
        let stopped = probe
            .event_lines()
            .iter()
            .filter(|line| line.ends_with(": shutdown"))
            .count();
        assert_eq!(stopped, 2);
    });
}

/// OTP: children of one kind are stopped asynchronously: their limits do not add up.
#[test]
fn children_stop_together_and_within_one_limit() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d.shutdown(Shutdown::Graceful(3 * SECOND)));
    for key in ["c0", "c1", "c2"] {
        let stall = InjectedFault::Stall(if key == "c1" { 9 * SECOND } else { 2 * SECOND });
        system.inject(format!("/d/{key}").as_str(), Hook::PostStop, 1, stall);
    }
    let before = system.elapsed();
    dynamic.stop();
    system.run(dynamic.stopped());
    assert_eq!(system.elapsed() - before, 3 * SECOND);
    let mut story = probe.event_lines();
    story.sort();
    assert_eq!(
        story,
        [
            "/d/c0 stopped: shutdown",
            "/d/c1 dropped",
            "/d/c2 stopped: shutdown"
        ]
    );
}

#[test]
fn terminated_child_is_not_restarted() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d.restart(Restart::Permanent));
    assert!(system.run(dynamic.terminate_child("c1")));
    assert!(!system.run(dynamic.terminate_child("c1")));
    assert_eq!(probe.event_lines(), ["/d/c1 stopped: shutdown"]);
    system.advance(SECOND);
    assert!(dynamic.child("c1").is_none());
}

#[test]
fn a_child_that_waits_for_its_restart_can_be_terminated() {
    let system = TestSystem::new(1);
    let backoff = Backoff::new(SECOND, SECOND);
    let (dynamic, probe) = three(&system, |d| d.restart(Restart::Permanent).backoff(backoff));
    let child = dynamic.child("c1").expect("it runs");
    tell(&dynamic, "c1", ScriptCommand::Panic);
    tell(&dynamic, "c1", ScriptCommand::Panic);
    assert_eq!(probe.event_lines().len(), 3);
    assert!(system.run(dynamic.terminate_child("c1")));
    assert!(!child.is_alive());
    system.advance(2 * SECOND);
    assert!(probe.event_lines().is_empty());
    assert_eq!(dynamic.len(), 2);
}

#[test]
fn stopped_dynamic_refuses_children() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d);
    dynamic.stop();
    system.run(dynamic.stopped());
    assert!(dynamic.start_child("late", probe.recipient()).is_err());
}

#[test]
fn restarted_nested_dynamic_has_no_children() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe::<RecordedEvent>();
        let strict = Dynamic::<ScriptedActor>::new()
            .restart(Restart::Permanent)
            .intensity(0, SECOND);
        let top = Supervisor::new(Strategy::OneForOne).child(ChildSpec::dynamic("d", strict));
        let top = system.supervise("top", top);
        let any = top.any_child("d").expect("it runs");
        let dynamic = any
            .dynamic::<ScriptedActor>()
            .expect("it is one for scripted_actors");
        assert!(any.dynamic::<OtherKind>().is_none());
        let (a, b) = (probe.recipient(), probe.recipient());
        let a = dynamic.start_child("a", a).expect("a new key");
        dynamic.start_child("b", b).expect("a new key");
        assert_eq!(probe.event_lines().len(), 2);
        a.try_tell(ScriptCommand::Panic).expect("there is room");
        assert_eq!(
            probe.event_lines(),
            ["/top/d/a dropped", "/top/d/b stopped: shutdown"]
        );
        assert!(!a.is_alive());
        assert!(any.is_alive());
        assert!(dynamic.is_empty());
        dynamic
            .start_child("a", probe.recipient())
            .expect("the address survives");
        assert_eq!(probe.event_lines(), ["/top/d/a started"]);
    });
}

#[test]
fn restarted_dynamic_has_full_intensity() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe::<RecordedEvent>();
        let patient = Dynamic::<ScriptedActor>::new()
            .restart(Restart::Permanent)
            .intensity(1, 1000 * SECOND);
        let top = Supervisor::new(Strategy::OneForOne).child(ChildSpec::dynamic("d", patient));
        let top = system.supervise("top", top);
        let any = top.any_child("d").expect("it runs");
        let dynamic = any
            .dynamic::<ScriptedActor>()
            .expect("it is one for scripted_actors");
        for given_up in 0..2 {
            dynamic
                .start_child("a", probe.recipient())
                .expect("a new key");
            assert!(!dynamic.is_empty());
            tell(&dynamic, "a", ScriptCommand::Panic);
            let expected = ["/top/d/a started", "/top/d/a dropped", "/top/d/a started"];
            assert_eq!(probe.event_lines(), expected);
            assert_eq!(any.info().restarts, given_up);
            tell(&dynamic, "a", ScriptCommand::Panic);
            assert_eq!(probe.event_lines(), ["/top/d/a dropped"]);
            assert!(dynamic.is_empty());
            assert_eq!(any.info().restarts, given_up + 1);
        }
    });
}

#[test]
fn children_use_the_mailbox_of_the_specification() {
    let system = TestSystem::new(1);
    let mailbox = MailboxSpec::bounded(1).overflow(Overflow::Fail);
    let (dynamic, _) = three(&system, |d| d.restart(Restart::Permanent).mailbox(mailbox));
    for _ in 0..2 {
        let child = dynamic.child("c0").expect("it runs");
        child
            .try_tell(ScriptCommand::Panic)
            .expect("there is room for one");
        assert!(child.try_tell(ScriptCommand::Stop).is_err());
        system.run_until_idle();
    }
}

struct OtherKind;

impl strowger::Actor for OtherKind {
    type Msg = ();
    type Args = ();
    type Error = std::convert::Infallible;

    async fn pre_start((): (), _: &mut strowger::Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut strowger::Context<Self>) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[test]
fn ten_thousand_children_start_and_terminate() {
    let system = TestSystem::new(1);
    let probe = system.probe::<RecordedEvent>();
    let dynamic = system.dynamic("d", Dynamic::<ScriptedActor>::new());
    for number in 0..10_000 {
        dynamic
            .start_child(number.to_string(), probe.recipient())
            .expect("a new key");
    }
    assert_eq!(probe.drain().len(), 10_000);
    assert_eq!(dynamic.len(), 10_000);
    dynamic.stop();
    system.run(dynamic.stopped());
    assert_eq!(probe.drain().len(), 10_000);
}

#[test]
fn dropping_the_system_frees_children_in_backoff() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| {
        d.restart(Restart::Permanent)
            .backoff(Backoff::new(SECOND, 4 * SECOND))
            .intensity(9, SECOND)
    });
    // The first restart is immediate, the second comes after a backoff.
    for _ in 0..2 {
        tell(&dynamic, "c1", ScriptCommand::Panic);
        system.run_until_idle();
    }
    drop((dynamic, probe));
    assert!(system.into_is_leak_free());
}

#[test]
fn child_arguments_are_dropped_with_the_supervisor() {
    let system = TestSystem::new(1);
    let (dynamic, probe) = three(&system, |d| d.restart(Restart::Permanent));
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let recipient = probe.recipient().contramap(move |story: RecordedEvent| {
        let _inside = &inside;
        story
    });
    dynamic.start_child("c3", recipient).expect("a new key");
    dynamic.stop();
    system.run(dynamic.stopped());
    assert_eq!(Arc::strong_count(&held), 1);
}
