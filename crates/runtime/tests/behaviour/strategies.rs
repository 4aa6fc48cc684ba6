//! Restart strategies: the siblings that stop and start with a child that ended, and their order.

use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{ActorRef, ChildSpec, Restart, Strategy, Supervisor, SupervisorRef};

const SECOND: Duration = Duration::from_secs(1);

fn scripted(key: &str, probe: &Probe<RecordedEvent>) -> ChildSpec {
    ChildSpec::new::<ScriptedActor>(key, probe.recipient())
}

/// A supervisor `/s` with four children, which have all started.
fn four(system: &TestSystem, strategy: Strategy) -> (SupervisorRef, Probe<RecordedEvent>) {
    let probe = system.probe();
    let supervisor = ["a", "b", "c", "d"]
        .iter()
        .fold(Supervisor::new(strategy), |supervisor, key| {
            supervisor.child(scripted(key, &probe))
        });
    let supervisor = system.supervise("s", supervisor);
    assert_eq!(
        probe.event_lines(),
        [
            "/s/a started",
            "/s/b started",
            "/s/c started",
            "/s/d started"
        ]
    );
    (supervisor, probe)
}

fn order(supervisor: &SupervisorRef, key: &str, order: ScriptCommand) {
    let child: ActorRef<ScriptCommand> = supervisor.child(key).expect("it runs");
    child.try_tell(order).expect("there is room");
}

/// OTP: "If a child process terminates, only that process is restarted."
#[test]
fn one_for_one_restarts_only_that_child() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::OneForOne);
        order(&supervisor, "b", ScriptCommand::Error);
        assert_eq!(
            probe.event_lines(),
            ["/s/b stopped: failed: as ordered", "/s/b started"]
        );
    });
}

/// OTP: "If a child process terminates, all other child processes are terminated, and then all
/// child processes, including the terminated one, are restarted."
#[test]
fn one_for_all_terminates_all_others_and_restarts_all() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::OneForAll);
        order(&supervisor, "b", ScriptCommand::Error);
        let expected = [
            "/s/b stopped: failed: as ordered",
            "/s/d stopped: shutdown",
            "/s/c stopped: shutdown",
            "/s/a stopped: shutdown",
            "/s/a started",
            "/s/b started",
            "/s/c started",
            "/s/d started",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

/// OTP: "If a child process terminates, the rest of the child processes (that is, the child
/// processes after the terminated process in start order) are terminated. Then the terminated
/// child process and all child processes after it are restarted."
#[test]
fn rest_for_one_restarts_later_children() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::RestForOne);
        order(&supervisor, "b", ScriptCommand::Panic);
        let expected = [
            "/s/b dropped",
            "/s/d stopped: shutdown",
            "/s/c stopped: shutdown",
            "/s/b started",
            "/s/c started",
            "/s/d started",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

#[test]
fn rest_for_one_restarts_the_last_child_alone() {
    let system = TestSystem::new(1);
    let (supervisor, probe) = four(&system, Strategy::RestForOne);
    order(&supervisor, "d", ScriptCommand::Panic);
    assert_eq!(probe.event_lines(), ["/s/d dropped", "/s/d started"]);
}

/// OTP: "The supervisor starts its children from left to right", one after the other.
#[test]
fn a_child_starts_when_the_one_before_it_has_started() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        system.inject("/s/a", Hook::PreStart, 1, InjectedFault::Stall(3 * SECOND));
        let children = Supervisor::new(Strategy::OneForOne)
            .child(scripted("a", &probe))
            .child(scripted("b", &probe));
        let before = system.elapsed();
        system.supervise("s", children);
        assert_eq!(system.elapsed() - before, 3 * SECOND);
        assert_eq!(probe.event_lines(), ["/s/a started", "/s/b started"]);
    });
}

/// OTP: "When a supervisor is terminated, its child processes are terminated in reversed start
/// order", each before the next.
#[test]
fn children_stop_in_reverse_order_each_after_the_other() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::OneForOne);
        system.inject("/s/c", Hook::PostStop, 1, InjectedFault::Stall(SECOND));
        supervisor.stop();
        assert_eq!(probe.event_lines(), ["/s/d stopped: shutdown"]);
        system.advance(SECOND);
        let rest = [
            "/s/c stopped: shutdown",
            "/s/b stopped: shutdown",
            "/s/a stopped: shutdown",
        ];
        assert_eq!(probe.event_lines(), rest);
        assert!(system.system().find("/s").is_none());
    });
}

/// OTP's counterpart of `post_stop` is `terminate`: it returns before the child is started again.
#[test]
fn the_old_incarnation_has_stopped_before_the_new_one_starts() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::OneForOne);
        system.inject("/s/b", Hook::PostStop, 1, InjectedFault::Stall(2 * SECOND));
        order(&supervisor, "b", ScriptCommand::Error);
        assert!(probe.event_lines().is_empty());
        system.advance(2 * SECOND);
        assert_eq!(
            probe.event_lines(),
            ["/s/b stopped: failed: as ordered", "/s/b started"]
        );
    });
}

/// OTP: "A temporary child process is never restarted (even when the supervisor's restart
/// strategy is rest_for_one or one_for_all and a sibling's death causes the temporary process to
/// be terminated)."
#[test]
fn temporary_sibling_is_removed_by_group_restart() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForAll)
            .child(scripted("a", &probe))
            .child(scripted("t", &probe).restart(Restart::Temporary))
            .child(scripted("b", &probe));
        let supervisor = system.supervise("s", children);
        let temporary: ActorRef<ScriptCommand> = supervisor.child("t").expect("it runs");
        assert_eq!(probe.event_lines().len(), 3);
        order(&supervisor, "b", ScriptCommand::Panic);
        let expected = [
            "/s/b dropped",
            "/s/t stopped: shutdown",
            "/s/a stopped: shutdown",
            "/s/a started",
            "/s/b started",
        ];
        assert_eq!(probe.event_lines(), expected);
        assert!(!temporary.is_alive());
        assert_eq!(system.run(supervisor.count_children()).expect("it runs"), 2);
    });
}

/// OTP retries a start that failed; each attempt counts as a restart.
#[test]
fn group_restart_that_fails_midway_is_retried() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::OneForAll);
        system.inject("/s/c", Hook::PreStart, 1, InjectedFault::error("not yet"));
        order(&supervisor, "a", ScriptCommand::Panic);
        let expected = [
            "/s/a dropped",
            "/s/d stopped: shutdown",
            "/s/c stopped: shutdown",
            "/s/b stopped: shutdown",
            "/s/a started",
            "/s/b started",
            // The third does not start; the group stops in reverse and starts again.
            "/s/b stopped: shutdown",
            "/s/a stopped: shutdown",
            "/s/a started",
            "/s/b started",
            "/s/c started",
            "/s/d started",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

#[test]
fn rest_for_one_retries_from_the_child_that_failed() {
    TestSystem::check(0..20, |system| {
        let (supervisor, probe) = four(system, Strategy::RestForOne);
        system.inject("/s/c", Hook::PreStart, 1, InjectedFault::panic("not yet"));
        order(&supervisor, "b", ScriptCommand::Panic);
        let expected = [
            "/s/b dropped",
            "/s/d stopped: shutdown",
            "/s/c stopped: shutdown",
            "/s/b started",
            "/s/c started",
            "/s/d started",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

/// Two children that end at the same time cause two restarts, decided one after the other.
#[test]
fn children_that_exit_at_once_are_all_restarted() {
    TestSystem::check(0..50, |system| {
        let (supervisor, probe) = four(system, Strategy::RestForOne);
        order(&supervisor, "d", ScriptCommand::Panic);
        order(&supervisor, "b", ScriptCommand::Panic);
        system.run_until_idle();
        let story = probe.event_lines();
        let last = |key: &str| {
            let path = format!("/s/{key} ");
            story
                .iter()
                .rev()
                .find(|line| line.starts_with(&path))
                .cloned()
        };
        for key in ["b", "c", "d"] {
            assert_eq!(last(key), Some(format!("/s/{key} started")), "{story:?}");
        }
        assert_eq!(last("a"), None);
        for key in ["b", "c", "d"] {
            let mut alive = true;
            for line in story
                .iter()
                .filter(|line| line.starts_with(&format!("/s/{key} ")))
            {
                let starts = line.ends_with(" started");
                assert_ne!(alive, starts, "{story:?}");
                alive = starts;
            }
        }
    });
}
