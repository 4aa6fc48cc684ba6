//! Restarts: their delay and number, the state that a child keeps across them, and the events that
//! report them.

use std::time::Duration;

use strowger::testing::{ScriptCommand, ScriptedActor, TestSystem};
use strowger::{
    ActorLifecycle, Backoff, ChildError, ChildSpec, Event, EventStream, Exit, Restart, SendError,
    Strategy, Supervisor,
};

use crate::supervision::{one, tell};

const SECOND: Duration = Duration::from_secs(1);

/// Number of turns that an actor has had.
fn turns(system: &TestSystem, path: &str) -> usize {
    let trace = system.trace();
    let steps = trace.steps().iter();
    steps.filter(|step| step.path.as_str() == path).count()
}

#[test]
fn restart_without_backoff_does_not_run_the_supervisor() {
    TestSystem::check(0..10, |system| {
        let (_, child, probe) = one(system, |s| s, |c| c);
        let before = turns(system, "/s");
        tell(&child, ScriptCommand::Error);
        assert_eq!(
            probe.event_lines().last().map(String::as_str),
            Some("/s/p started")
        );
        assert_eq!(turns(system, "/s"), before);
    });
}

#[test]
fn all_children_in_backoff_are_restarted() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let mut supervisor = Supervisor::new(Strategy::OneForOne).intensity(9, SECOND);
    supervisor = supervisor.backoff(Backoff::new(10 * SECOND, 10 * SECOND));
    for key in ["a", "b"] {
        supervisor = supervisor.child(ChildSpec::new::<ScriptedActor>(key, probe.recipient()));
    }
    let supervisor = system.supervise("s", supervisor);
    // The first restart is immediate, the second comes after ten seconds.
    for key in ["a", "b"] {
        let child = supervisor.child(key).expect("it runs");
        tell(&child, ScriptCommand::Error);
        tell(&child, ScriptCommand::Error);
        system.advance(4 * SECOND);
    }
    let _before = probe.event_lines();
    system.advance(2 * SECOND);
    assert_eq!(probe.event_lines(), ["/s/a started"]);
    system.advance(4 * SECOND);
    assert_eq!(probe.event_lines(), ["/s/b started"]);
}

fn dead_letters(events: &mut EventStream) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    while let Some(event) = events.try_next() {
        if let Event::DeadLetter { count, exit, .. } = event {
            found.push((count, exit.to_string()));
        }
    }
    found
}

#[test]
fn restart_keeps_the_address_and_resets_the_state() {
    let system = TestSystem::new(1);
    let (_, child, probe) = one(&system, |s| s.intensity(10, SECOND), |c| c);
    let id = child.id();
    for number in 0..5 {
        tell(&child, ScriptCommand::Panic);
        tell(&child, ScriptCommand::Note(number));
        let expected = [
            "/s/p dropped".into(),
            "/s/p started".into(),
            format!("/s/p noted {number}"),
        ];
        assert_eq!(probe.event_lines(), expected);
    }
    assert_eq!(child.id(), id);
    let info = child.erase().info();
    assert_eq!((info.restarts, info.state), (5, ActorLifecycle::Running));
    assert_eq!(info.last_exit.map(|exit| exit.kind()), Some("panicked"));
}

/// OTP: "If more than MaxR number of restarts occur in the last MaxT seconds, the supervisor
/// terminates all the child processes and then itself."
#[test]
fn exceeding_the_intensity_ends_the_supervisor() {
    TestSystem::check(0..10, |system| {
        let (supervisor, child, probe) = one(system, |s| s.intensity(2, 10 * SECOND), |c| c);
        tell(&child, ScriptCommand::Panic);
        system.advance(4 * SECOND);
        tell(&child, ScriptCommand::Panic);
        // Ten seconds after the first restart, that restart still counts: the period is inclusive.
        system.advance(6 * SECOND);
        assert!(child.is_alive());
        tell(&child, ScriptCommand::Panic);
        let exit = system.run(supervisor.stopped());
        let Exit::Escalated {
            child: culprit,
            exit,
        } = exit
        else {
            panic!("{exit}")
        };
        assert_eq!((culprit.as_str(), exit.kind()), ("/s/p", "panicked"));
        assert!(!child.is_alive());
        let starts = probe
            .event_lines()
            .iter()
            .filter(|line| line.ends_with("started"))
            .count();
        assert_eq!(starts, 2);
    });
}

#[test]
fn restarts_older_than_the_period_do_not_count() {
    let system = TestSystem::new(1);
    let (_, child, _) = one(&system, |s| s.intensity(1, SECOND), |c| c);
    for _ in 0..10 {
        tell(&child, ScriptCommand::Panic);
        system.advance(SECOND + Duration::from_millis(1));
        assert!(child.is_alive());
    }
    assert_eq!(child.erase().info().restarts, 10);
}

#[test]
fn the_first_restart_is_immediate_and_the_next_ones_back_off() {
    TestSystem::check(0..10, |system| {
        let backoff = Backoff::new(SECOND, 3 * SECOND);
        let (_, child, probe) = one(system, |s| s.intensity(99, SECOND).backoff(backoff), |c| c);
        for pause in [0, 1, 2, 3, 3] {
            tell(&child, ScriptCommand::Panic);
            assert_eq!(probe.expect(Duration::ZERO).to_string(), "/s/p dropped");
            let before = system.elapsed();
            assert_eq!(probe.expect(10 * SECOND).to_string(), "/s/p started");
            assert_eq!(system.elapsed() - before, pause * SECOND);
        }
        system.advance(4 * SECOND);
        tell(&child, ScriptCommand::Panic);
        assert_eq!(probe.event_lines(), ["/s/p dropped", "/s/p started"]);
    });
}

#[test]
fn messages_sent_during_backoff_are_handled_after_restart() {
    let system = TestSystem::new(1);
    let backoff = Backoff::new(SECOND, SECOND);
    let (_, child, probe) = one(&system, |s| s.backoff(backoff), |c| c);
    tell(&child, ScriptCommand::Panic);
    tell(&child, ScriptCommand::Panic);
    system.run_until_idle();
    assert_eq!(child.erase().info().state, ActorLifecycle::Restarting);
    tell(&child, ScriptCommand::Note(1));
    assert_eq!(
        probe.event_lines(),
        ["/s/p dropped", "/s/p started", "/s/p dropped"]
    );
    system.advance(SECOND);
    assert_eq!(probe.event_lines(), ["/s/p started", "/s/p noted 1"]);
}

#[test]
fn child_in_backoff_cannot_be_restarted_on_request() {
    let system = TestSystem::new(1);
    let backoff = Backoff::new(SECOND, SECOND);
    let (supervisor, child, probe) = one(&system, |s| s.backoff(backoff), |c| c);
    tell(&child, ScriptCommand::Panic);
    tell(&child, ScriptCommand::Panic);
    assert_eq!(probe.event_lines().len(), 3);
    let refused = system.run(supervisor.restart_child("p"));
    assert!(matches!(refused, Err(ChildError::Running { .. })));
    assert!(probe.event_lines().is_empty());
    system.advance(SECOND);
    assert_eq!(probe.event_lines(), ["/s/p started"]);
}

#[test]
fn supervisor_can_stop_while_a_child_is_in_backoff() {
    let system = TestSystem::new(1);
    let backoff = Backoff::new(99 * SECOND, 99 * SECOND);
    let (supervisor, child, probe) = one(&system, |s| s.backoff(backoff), |c| c);
    tell(&child, ScriptCommand::Panic);
    tell(&child, ScriptCommand::Panic);
    system.run_until_idle();
    supervisor.stop();
    system.run_until_idle();
    assert!(!child.is_alive());
    assert!(system.system().find("/s").is_none());
    system.advance(100 * SECOND);
    assert_eq!(
        probe.event_lines(),
        ["/s/p dropped", "/s/p started", "/s/p dropped"]
    );
}

#[test]
fn restart_keeps_queued_messages_in_order() {
    TestSystem::check(0..20, |system| {
        let (_, child, probe) = one(system, |s| s, |c| c);
        (0..5).for_each(|number| tell(&child, ScriptCommand::Note(number)));
        tell(&child, ScriptCommand::Error);
        (5..10).for_each(|number| tell(&child, ScriptCommand::Note(number)));
        let mut expected: Vec<_> = (0..5).map(|n| format!("/s/p noted {n}")).collect();
        expected.push("/s/p stopped: failed: as ordered".into());
        expected.push("/s/p started".into());
        expected.extend((5..10).map(|n| format!("/s/p noted {n}")));
        assert_eq!(probe.event_lines(), expected);
    });
}

#[test]
fn failed_message_is_one_dead_letter_and_not_redelivered() {
    for (order, reason) in [
        (ScriptCommand::Panic, "panicked: as ordered"),
        (ScriptCommand::Error, "failed: as ordered"),
    ] {
        let system = TestSystem::new(1);
        let (_, child, probe) = one(&system, |s| s, |c| c);
        let mut events = system.events();
        tell(&child, order);
        tell(&child, ScriptCommand::Note(1));
        assert_eq!(
            probe.event_lines().last().map(String::as_str),
            Some("/s/p noted 1")
        );
        assert_eq!(dead_letters(&mut events), [(1, reason.to_owned())]);
        assert_eq!(child.erase().info().restarts, 1);
    }
}

#[test]
fn message_interrupted_by_kill_is_one_dead_letter() {
    let system = TestSystem::new(1);
    let (_, child, probe) = one(&system, |s| s, |c| c);
    let mut events = system.events();
    tell(&child, ScriptCommand::Sleep(SECOND));
    tell(&child, ScriptCommand::Note(1));
    system.run_until_idle();
    child.kill();
    assert_eq!(
        probe.event_lines(),
        ["/s/p dropped", "/s/p started", "/s/p noted 1"]
    );
    assert_eq!(dead_letters(&mut events), [(1, "killed".to_owned())]);
}

#[test]
fn queued_messages_become_dead_letters_at_the_final_exit() {
    let system = TestSystem::new(1);
    let (_, child, _) = one(&system, |s| s, |c| c.restart(Restart::Temporary));
    let mut events = system.events();
    tell(&child, ScriptCommand::Stop);
    (0..3).for_each(|number| tell(&child, ScriptCommand::Note(number)));
    system.run_until_idle();
    assert_eq!(dead_letters(&mut events), [(3, "normal".to_owned())]);
    let refused = child.try_tell(ScriptCommand::Note(9));
    assert!(matches!(
        refused,
        Err(SendError::Closed(ScriptCommand::Note(9)))
    ));
}

#[test]
fn every_restart_is_an_event() {
    let system = TestSystem::new(1);
    let (supervisor, child, _) = one(&system, |s| s.intensity(1, SECOND), |c| c);
    let mut events = system.events();
    tell(&child, ScriptCommand::Panic);
    system.run_until_idle();
    tell(&child, ScriptCommand::Panic);
    system.run_until_idle();
    let mut seen = Vec::new();
    while let Some(event) = events.try_next() {
        let name = match &event {
            Event::Restarted { .. } => "restarted",
            Event::Escalated { .. } => "escalated",
            Event::Stopped { .. } => "stopped",
            _ => continue,
        };
        seen.push(format!("{} {name}", event.path()));
    }
    assert_eq!(
        seen,
        [
            "/s/p restarted",
            "/s escalated",
            "/s/p stopped",
            "/s stopped"
        ]
    );
    assert!(!supervisor.erase().is_alive());
}

#[test]
fn restart_event_carries_the_last_exit() {
    TestSystem::check(0..20, |system| {
        let (_, child, _) = one(system, |s| s.intensity(9, SECOND), |c| c);
        let mut events = system.events();
        for order in [
            ScriptCommand::Error,
            ScriptCommand::Panic,
            ScriptCommand::Error,
        ] {
            tell(&child, order);
        }
        system.run_until_idle();
        let mut whys = Vec::new();
        while let Some(event) = events.try_next() {
            if let Event::Restarted { exit, .. } = event {
                whys.push(exit.to_string());
            }
        }
        let (failed, panicked) = ("failed: as ordered", "panicked: as ordered");
        assert_eq!(whys, [failed, panicked, failed]);
    });
}
