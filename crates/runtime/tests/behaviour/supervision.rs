//! Supervision of a single child: restart kinds, hooks, mailboxes, limits, and its place in the
//! child table.

use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{
    ActorRef, ChildError, ChildSpec, Exit, MailboxSpec, Overflow, Restart, SendError, Shutdown,
    StartError, Strategy, Supervisor, SupervisorRef,
};

const SECOND: Duration = Duration::from_secs(1);

fn scripted(probe: &Probe<RecordedEvent>) -> ChildSpec {
    ChildSpec::new::<ScriptedActor>("p", probe.recipient())
}

/// A supervisor `/s` with one child `/s/p`, which has started.
pub(crate) fn one(
    system: &TestSystem,
    change: impl FnOnce(Supervisor) -> Supervisor,
    child: impl FnOnce(ChildSpec) -> ChildSpec,
) -> (SupervisorRef, ActorRef<ScriptCommand>, Probe<RecordedEvent>) {
    let probe = system.probe();
    let supervisor = change(Supervisor::new(Strategy::OneForOne)).child(child(scripted(&probe)));
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child("p").expect("it was started");
    assert_eq!(probe.event_lines(), ["/s/p started"]);
    (supervisor, child, probe)
}

pub(crate) fn tell(actor: &ActorRef<ScriptCommand>, order: ScriptCommand) {
    actor.try_tell(order).expect("there is room");
}

#[test]
fn child_spec_returns_its_key() {
    let system = TestSystem::new(1);
    assert_eq!(scripted(&system.probe()).key(), "p");
}

/// OTP: "A permanent child process is always restarted."
#[test]
fn a_permanent_child_is_always_restarted() {
    for (order, ended) in [
        (ScriptCommand::Stop, "stopped: normal"),
        (ScriptCommand::Error, "stopped: failed: as ordered"),
        (ScriptCommand::Panic, "dropped"),
    ] {
        let system = TestSystem::new(1);
        let (_, child, probe) = one(&system, |s| s, |c| c);
        tell(&child, order);
        assert_eq!(
            probe.event_lines(),
            [format!("/s/p {ended}"), "/s/p started".to_owned()]
        );
        assert!(child.is_alive());
    }
    let system = TestSystem::new(1);
    let (_, child, probe) = one(&system, |s| s, |c| c);
    child.kill();
    assert_eq!(probe.event_lines(), ["/s/p dropped", "/s/p started"]);
}

/// OTP: "A transient child process is restarted only if it terminates abnormally."
#[test]
fn a_transient_child_is_restarted_only_if_it_terminates_abnormally() {
    let system = TestSystem::new(1);
    let (supervisor, child, probe) = one(&system, |s| s, |c| c.restart(Restart::Transient));
    tell(&child, ScriptCommand::Error);
    assert_eq!(
        probe.event_lines(),
        ["/s/p stopped: failed: as ordered", "/s/p started"]
    );
    tell(&child, ScriptCommand::Stop);
    assert_eq!(probe.event_lines(), ["/s/p stopped: normal"]);
    assert!(!child.is_alive());
    // OTP keeps the specification: the child can be started again by name.
    assert_eq!(system.run(supervisor.count_children()).expect("it runs"), 1);
    system
        .run(supervisor.restart_child("p"))
        .expect("it starts");
    assert_eq!(probe.event_lines(), ["/s/p started"]);
    supervisor.any_child("p").expect("it runs").stop();
    assert_eq!(probe.event_lines(), ["/s/p stopped: shutdown"]);
}

/// OTP: "A temporary child process is never restarted", and its specification goes with it.
#[test]
fn a_temporary_child_is_never_restarted() {
    let system = TestSystem::new(1);
    let (supervisor, child, probe) = one(&system, |s| s, |c| c.restart(Restart::Temporary));
    tell(&child, ScriptCommand::Panic);
    assert_eq!(probe.event_lines(), ["/s/p dropped"]);
    assert!(!child.is_alive());
    assert_eq!(system.run(supervisor.count_children()).expect("it runs"), 0);
}

#[test]
fn panic_in_any_hook_is_reported_as_exit() {
    for hook in [Hook::PreStart, Hook::Handle, Hook::Signal, Hook::PostStop] {
        TestSystem::check(0..5, |system| {
            let probe = system.probe();
            let other = system.spawn::<ScriptedActor>("other", probe.recipient());
            let children = Supervisor::new(Strategy::OneForOne).child(scripted(&probe));
            let supervisor = system.supervise("s", children);
            let child: ActorRef<ScriptCommand> = supervisor.child("p").expect("it runs");
            tell(&child, ScriptCommand::Monitor(other.erase()));
            system.run_until_idle();
            system.inject("/s/p", hook, 1, InjectedFault::panic("boom"));
            tell(&child, ScriptCommand::Note(1));
            system.run_until_idle();
            other.stop();
            system.run_until_idle();
            if matches!(hook, Hook::PreStart | Hook::PostStop) {
                tell(&child, ScriptCommand::Error);
            }
            tell(&child, ScriptCommand::Note(2));
            assert_eq!(
                probe.event_lines().last().map(String::as_str),
                Some("/s/p noted 2"),
                "{hook:?}"
            );
            let info = child.erase().info();
            let exit = info.last_exit.expect("it was restarted").to_string();
            let (restarts, expected) = match hook {
                // The fault in `pre_start` hits the restart, which is then tried again.
                Hook::PreStart => (2, "panicked: boom"),
                // A panic in `post_stop` does not hide the reason why the actor ended.
                Hook::PostStop => (1, "failed: as ordered"),
                _ => (1, "panicked: boom"),
            };
            assert_eq!(
                (info.restarts, exit.as_str()),
                (restarts, expected),
                "{hook:?}"
            );
        });
    }
}

/// OTP: "An integer time-out value means that the supervisor tells the child process to terminate
/// [...] and then waits for an exit signal. If no exit signal is received within the specified
/// number of milliseconds, the child process is unconditionally terminated."
#[test]
fn a_child_that_exceeds_its_limit_is_killed() {
    for stall in [2, 4] {
        let system = TestSystem::new(1);
        let limit = Shutdown::Graceful(3 * SECOND);
        let (supervisor, _, probe) = one(&system, |s| s, |c| c.shutdown(limit));
        system.inject(
            "/s/p",
            Hook::PostStop,
            1,
            InjectedFault::Stall(stall * SECOND),
        );
        probe.monitor(&supervisor);
        supervisor.stop();
        let before = system.elapsed();
        let exit = probe.expect_down(&supervisor, 10 * SECOND);
        assert!(
            matches!(exit, Exit::Shutdown),
            "the supervisor's own end is orderly: {exit}"
        );
        assert_eq!(system.elapsed() - before, stall.min(3) * SECOND);
        let ended = if stall < 3 {
            "/s/p stopped: shutdown"
        } else {
            "/s/p dropped"
        };
        assert_eq!(probe.event_lines(), [ended]);
    }
}

/// OTP: "brutal_kill means that the child process is unconditionally terminated".
#[test]
fn an_immediate_shutdown_kills_without_post_stop() {
    let system = TestSystem::new(1);
    let (supervisor, child, probe) = one(&system, |s| s, |c| c.shutdown(Shutdown::Immediate));
    tell(&child, ScriptCommand::Sleep(SECOND));
    system.run_until_idle();
    system
        .run(supervisor.terminate_child("p"))
        .expect("it has such a child");
    assert_eq!(probe.event_lines(), ["/s/p dropped"]);
    assert!(system.elapsed() < SECOND);
}

/// OTP: "infinity" gives a subtree "ample time to shut down".
#[test]
fn an_infinite_shutdown_waits() {
    let system = TestSystem::new(1);
    let (supervisor, _, probe) = one(&system, |s| s, |c| c.shutdown(Shutdown::Infinity));
    system.inject(
        "/s/p",
        Hook::PostStop,
        1,
        InjectedFault::Stall(900 * SECOND),
    );
    supervisor.stop();
    system.advance(899 * SECOND);
    assert!(probe.event_lines().is_empty());
    system.advance(SECOND);
    assert_eq!(probe.event_lines(), ["/s/p stopped: shutdown"]);
}

/// OTP on `terminate_child`: the specification is kept, and the child can be started again.
#[test]
fn terminated_child_stays_in_the_table_until_deleted() {
    let system = TestSystem::new(1);
    let (supervisor, child, probe) = one(&system, |s| s, |c| c);
    let deleted = system.run(supervisor.delete_child("p"));
    assert!(matches!(deleted, Err(ChildError::Running { .. })));
    let restarted = system.run(supervisor.restart_child("p"));
    assert!(matches!(restarted, Err(ChildError::Running { .. })));
    system
        .run(supervisor.terminate_child("p"))
        .expect("it has such a child");
    assert!(!child.is_alive());
    assert_eq!(probe.event_lines(), ["/s/p stopped: shutdown"]);
    let children = system.run(supervisor.which_children()).expect("it runs");
    assert!(children.len() == 1 && children[0].actor.is_none());
    system
        .run(supervisor.restart_child("p"))
        .expect("it starts");
    assert_eq!(probe.event_lines(), ["/s/p started"]);
    system
        .run(supervisor.terminate_child("p"))
        .expect("it has such a child");
    system
        .run(supervisor.delete_child("p"))
        .expect("it was terminated");
    let unknown = system.run(supervisor.restart_child("p"));
    assert!(matches!(unknown, Err(ChildError::Unknown { .. })));
}

/// OTP on `restart_child`: "If the child process start function returns an error [...] the function
/// returns {error,Error}", and the supervisor does not retry by itself.
#[test]
fn failed_restart_child_is_not_retried() {
    TestSystem::check(0..10, |system| {
        let (supervisor, _, probe) = one(system, |s| s, |c| c);
        system
            .run(supervisor.terminate_child("p"))
            .expect("it has such a child");
        system.inject("/s/p", Hook::PreStart, 1, InjectedFault::error("not yet"));
        let failed = system.run(supervisor.restart_child("p"));
        assert!(matches!(
            failed,
            Err(ChildError::Start(StartError::Failed { .. }))
        ));
        assert_eq!(probe.event_lines(), ["/s/p stopped: shutdown"]);
        system
            .run(supervisor.restart_child("p"))
            .expect("the fault is over");
        assert_eq!(probe.event_lines(), ["/s/p started"]);
    });
}

/// OTP on `start_child`: "If the child process start function returns an error [...] the child
/// specification is discarded".
#[test]
fn child_that_fails_to_start_is_not_added() {
    let system = TestSystem::new(1);
    let (supervisor, _, probe) = one(&system, |s| s, |c| c);
    system.inject("/s/q", Hook::PreStart, 1, InjectedFault::panic("boom"));
    let spec = || ChildSpec::new::<ScriptedActor>("q", probe.recipient());
    let failed = system
        .run(supervisor.start_child(spec()))
        .expect_err("it panics");
    assert_eq!(failed.to_string(), "/s/q did not start: panicked: boom");
    assert_eq!(system.run(supervisor.count_children()).expect("it runs"), 1);
    system
        .run(supervisor.start_child(spec()))
        .expect("the fault is over");
    let taken = system
        .run(supervisor.start_child(spec()))
        .expect_err("it runs already");
    assert_eq!(taken.to_string(), "/s/q already exists");
    assert_eq!(probe.event_lines(), ["/s/q started"]);
}

/// OTP: a supervisor whose child fails to start terminates those already started, in reverse.
#[test]
fn supervisor_start_fails_if_a_child_fails() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let spec = |key: &str| ChildSpec::new::<ScriptedActor>(key, probe.recipient());
    let children = ["a", "b", "c"]
        .iter()
        .fold(Supervisor::new(Strategy::OneForOne), |s, k| {
            s.child(spec(k))
        });
    system.inject("/s/c", Hook::PreStart, 1, InjectedFault::error("no"));
    let failed = system
        .run(system.system().supervise("s", children))
        .expect_err("c fails");
    assert!(
        failed
            .to_string()
            .contains("/s/c did not start: failed: no"),
        "{failed}"
    );
    let expected = [
        "/s/a started",
        "/s/b started",
        "/s/b stopped: shutdown",
        "/s/a stopped: shutdown",
    ];
    assert_eq!(probe.event_lines(), expected);
    assert!(
        system
            .system()
            .actors()
            .iter()
            .all(|actor| actor.path.key().starts_with("probe"))
    );
}

#[test]
fn child_spec_overrides_the_mailbox() {
    let system = TestSystem::new(1);
    let small = MailboxSpec::bounded(2).overflow(Overflow::Fail);
    let (_, child, probe) = one(&system, |s| s, |c| c.mailbox(small));
    tell(&child, ScriptCommand::Note(1));
    tell(&child, ScriptCommand::Note(2));
    assert!(matches!(
        child.try_tell(ScriptCommand::Note(3)),
        Err(SendError::Full(ScriptCommand::Note(3)))
    ));
    assert_eq!(probe.event_lines(), ["/s/p noted 1", "/s/p noted 2"]);
    assert_eq!(child.erase().info().capacity, Some(2));
}
