//! Links and monitors: which actors learn of an exit, and how often.

use std::time::Duration;

use strowger::testing::{Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem};
use strowger::{ActorRef, ChildSpec, Exit, Restart, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);

fn pair(
    system: &TestSystem,
) -> (
    ActorRef<ScriptCommand>,
    ActorRef<ScriptCommand>,
    Probe<RecordedEvent>,
) {
    let probe = system.probe();
    let a = system.spawn::<ScriptedActor>("a", probe.recipient());
    let b = system.spawn::<ScriptedActor>("b", probe.recipient());
    assert_eq!(probe.event_lines().len(), 2);
    (a, b, probe)
}

fn tell(actor: &ActorRef<ScriptCommand>, order: ScriptCommand) {
    actor.try_tell(order).expect("there is room");
}

/// OTP: "the process that called monitor/2 is sent a 'DOWN' message" with the exit reason.
#[test]
fn monitor_reports_every_kind_of_exit() {
    for (end, told) in [
        (Some(ScriptCommand::Stop), "normal"),
        (Some(ScriptCommand::Error), "failed: as ordered"),
        (Some(ScriptCommand::Panic), "panicked: as ordered"),
        (None, "killed"),
    ] {
        TestSystem::check(0..10, |system| {
            let (a, b, probe) = pair(system);
            tell(&a, ScriptCommand::Monitor(b.erase()));
            system.run_until_idle();
            match end.clone() {
                Some(order) => tell(&b, order),
                None => b.kill(),
            }
            let story = probe.event_lines();
            assert_eq!(
                story.last(),
                Some(&format!("/a saw /b end: {told}")),
                "{story:?}"
            );
            assert!(a.is_alive(), "a monitor shares no fate");
        });
    }
}

/// OTP: a monitor of a process that does not exist is triggered at once.
#[test]
fn monitor_of_an_ended_actor_fires_at_once() {
    let system = TestSystem::new(1);
    let (a, b, probe) = pair(&system);
    tell(&b, ScriptCommand::Error);
    system.run_until_idle();
    tell(&a, ScriptCommand::Monitor(b.erase()));
    let expected = [
        "/b stopped: failed: as ordered",
        "/a saw /b end: failed: as ordered",
    ];
    assert_eq!(probe.event_lines(), expected);
}

#[test]
fn each_monitor_fires_exactly_once() {
    TestSystem::check(0..50, |system| {
        let (a, b, probe) = pair(system);
        // The exit happens while the monitor requests are in flight.
        (0..3).for_each(|_| tell(&a, ScriptCommand::Monitor(b.erase())));
        b.kill();
        system.advance(SECOND);
        b.kill();
        b.stop();
        system.advance(SECOND);
        let downs = probe
            .event_lines()
            .iter()
            .filter(|line| line.contains(" saw /b end"))
            .count();
        assert_eq!(downs, 3);
    });
}

#[test]
fn restart_does_not_fire_monitors() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient()).restart(Restart::Transient);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
    let child: ActorRef<ScriptCommand> = supervisor.child("p").expect("it runs");
    probe.monitor(&child);
    tell(&child, ScriptCommand::Panic);
    system.advance(SECOND);
    assert!(probe.take_downs().is_empty());
    tell(&child, ScriptCommand::Stop);
    assert!(matches!(probe.expect_down(&child, SECOND), Exit::Normal));
}

#[test]
fn signal_overtakes_queued_messages() {
    TestSystem::check(0..10, |system| {
        let (a, b, probe) = pair(system);
        tell(&a, ScriptCommand::Monitor(b.erase()));
        system.run_until_idle();
        tell(&a, ScriptCommand::Sleep(SECOND));
        (0..3).for_each(|number| tell(&a, ScriptCommand::Note(number)));
        system.run_until_idle();
        b.stop();
        system.advance(SECOND);
        let expected = [
            "/b stopped: shutdown",
            "/a saw /b end: shutdown",
            "/a noted 0",
            "/a noted 1",
            "/a noted 2",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

/// OTP: "If a process terminates abnormally, its linked processes terminate too", in both
/// directions.
#[test]
fn link_propagates_abnormal_exits_both_ways() {
    TestSystem::check(0..20, |system| {
        for first_ends in [true, false] {
            let system = TestSystem::new(system.seed());
            let (a, b, _) = pair(&system);
            tell(&a, ScriptCommand::Link(b.erase()));
            system.run_until_idle();
            let (ends, follows) = if first_ends { (&a, &b) } else { (&b, &a) };
            tell(ends, ScriptCommand::Panic);
            let exit = system.run(follows.stopped());
            let Exit::Linked { path, exit } = exit else {
                panic!("{exit}")
            };
            assert_eq!((path, exit.kind()), (ends.path(), "panicked"));
        }
    });
}

/// OTP: an exit signal with reason `normal` is ignored by a linked process.
#[test]
fn link_ignores_orderly_exits() {
    for order in [Some(ScriptCommand::Stop), None] {
        let system = TestSystem::new(1);
        let (a, b, _) = pair(&system);
        tell(&a, ScriptCommand::Link(b.erase()));
        system.run_until_idle();
        match order {
            Some(order) => tell(&b, order),
            None => b.stop(),
        }
        system.advance(SECOND);
        assert!(a.is_alive() && !b.is_alive());
    }
}

#[test]
fn link_after_restart_affects_the_current_incarnation() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let spec =
            ChildSpec::new::<ScriptedActor>("b", probe.recipient()).restart(Restart::Transient);
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(spec));
        let b: ActorRef<ScriptCommand> = supervisor.child("b").expect("it was started");
        tell(&b, ScriptCommand::Panic);
        system.run_until_idle();
        let a = system.spawn::<ScriptedActor>("a", probe.recipient());
        tell(&a, ScriptCommand::Link(b.erase()));
        system.run_until_idle();
        assert_eq!(b.erase().info().restarts, 1);
        tell(&a, ScriptCommand::Error);
        system.run_until_idle();
        assert_eq!(b.erase().info().restarts, 2, "{:?}", probe.event_lines());
    });
}

#[test]
fn link_to_a_failed_actor_propagates_at_once() {
    let system = TestSystem::new(1);
    let (a, b, _) = pair(&system);
    tell(&b, ScriptCommand::Panic);
    system.run_until_idle();
    tell(&a, ScriptCommand::Link(b.erase()));
    assert_eq!(
        system.run(a.stopped()).to_string(),
        "linked /b ended: panicked: as ordered"
    );
}

#[test]
fn exit_propagates_along_a_chain_of_links() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let chain: Vec<_> = (0..10)
            .map(|n| system.spawn::<ScriptedActor>(format!("p{n}"), probe.recipient()))
            .collect();
        for two in chain.windows(2) {
            tell(&two[0], ScriptCommand::Link(two[1].erase()));
        }
        system.run_until_idle();
        chain[4].kill();
        system.advance(SECOND);
        assert!(chain.iter().all(|actor| !actor.is_alive()));
    });
}

#[test]
fn a_link_ends_with_the_incarnation_that_made_it() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let other = system.spawn::<ScriptedActor>("other", probe.recipient());
        let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
        let child: ActorRef<ScriptCommand> = supervisor.child("p").expect("it runs");
        tell(&child, ScriptCommand::Link(other.erase()));
        system.run_until_idle();
        // An orderly exit ends the link silently.
        tell(&child, ScriptCommand::Stop);
        system.run_until_idle();
        assert!(other.is_alive());
        tell(&other, ScriptCommand::Panic);
        system.advance(SECOND);
        assert_eq!(child.erase().info().restarts, 1);
    });
}

#[test]
fn child_ended_by_a_link_is_restarted() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let spec = |key: &str| ChildSpec::new::<ScriptedActor>(key, probe.recipient());
        let children = Supervisor::new(Strategy::OneForOne)
            .child(spec("a"))
            .child(spec("b"));
        let supervisor = system.supervise("s", children);
        let a: ActorRef<ScriptCommand> = supervisor.child("a").expect("it runs");
        let b: ActorRef<ScriptCommand> = supervisor.child("b").expect("it runs");
        tell(&a, ScriptCommand::Link(b.erase()));
        system.run_until_idle();
        tell(&b, ScriptCommand::Panic);
        system.advance(SECOND);
        let (a, b) = (a.erase().info(), b.erase().info());
        assert_eq!((a.restarts, b.restarts), (1, 1));
        assert_eq!(a.last_exit.map(|exit| exit.kind()), Some("linked"));
    });
}

#[test]
fn link_to_self_has_no_effect() {
    let system = TestSystem::new(1);
    let (a, _, probe) = pair(&system);
    tell(&a, ScriptCommand::Link(a.erase()));
    tell(&a, ScriptCommand::Error);
    assert_eq!(probe.event_lines(), ["/a stopped: failed: as ordered"]);
}
