//! Monitors and links. Erlang: "If the monitored process dies, a 'DOWN' message is delivered."

use std::time::Duration;

use strowger::testing::{Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem};
use strowger::{ActorRef, ChildSpec, Exit, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);

fn scripted(
    system: &TestSystem,
    probe: &Probe<RecordedEvent>,
    key: &str,
) -> ActorRef<ScriptCommand> {
    let scripted = system.spawn::<ScriptedActor>(key, probe.recipient());
    assert_eq!(probe.event_lines(), [format!("/{key} started")]);
    scripted
}

fn tell(actor: &ActorRef<ScriptCommand>, order: ScriptCommand) {
    actor.try_tell(order).expect("there is room");
}

#[test]
fn monitor_delivers_one_down_with_the_exit() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        scripted(&system, &probe, "one"),
        scripted(&system, &probe, "two"),
    );
    tell(&one, ScriptCommand::Monitor(two.erase()));
    system.run_until_idle();
    tell(&two, ScriptCommand::Error);
    let story = [
        "/two stopped: failed: as ordered",
        "/one saw /two end: failed: as ordered",
    ];
    assert_eq!(probe.event_lines(), story);
    assert!(probe.event_lines().is_empty());
}

#[test]
fn monitoring_an_ended_actor_delivers_down() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        scripted(&system, &probe, "one"),
        scripted(&system, &probe, "two"),
    );
    two.kill();
    assert_eq!(probe.event_lines(), ["/two dropped"]);
    tell(&one, ScriptCommand::Monitor(two.erase()));
    assert_eq!(probe.event_lines(), ["/one saw /two end: killed"]);
}

#[test]
fn each_monitor_delivers_its_own_down() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        scripted(&system, &probe, "one"),
        scripted(&system, &probe, "two"),
    );
    tell(&one, ScriptCommand::Monitor(two.erase()));
    tell(&one, ScriptCommand::Monitor(two.erase()));
    system.run_until_idle();
    two.stop();
    let down = "/one saw /two end: shutdown";
    assert_eq!(probe.event_lines(), ["/two stopped: shutdown", down, down]);
}

#[test]
fn down_is_delivered_at_the_final_exit_only() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = scripted(&system, &probe, "one");
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(1, SECOND)
        .child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<ScriptCommand>("p").unwrap();
    tell(&one, ScriptCommand::Monitor(child.erase()));
    tell(&child, ScriptCommand::Error);
    system.run_until_idle();
    tell(&child, ScriptCommand::Error);
    let downs: Vec<_> = probe
        .event_lines()
        .into_iter()
        .filter(|line| line.contains("saw"))
        .collect();
    assert_eq!(downs, ["/one saw /s/p end: failed: as ordered"]);
}

#[test]
fn monitors_end_with_their_incarnation() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let other = scripted(&system, &probe, "other");
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<ScriptCommand>("p").unwrap();
    tell(&child, ScriptCommand::Monitor(other.erase()));
    tell(&child, ScriptCommand::Error);
    let _ = probe.event_lines();
    other.stop();
    assert_eq!(probe.event_lines(), ["/other stopped: shutdown"]);
}

#[test]
fn links_propagate_abnormal_exits_both_ways() {
    for first in ["one", "two"] {
        let system = TestSystem::new(1);
        let probe = system.probe();
        let (one, two) = (
            scripted(&system, &probe, "one"),
            scripted(&system, &probe, "two"),
        );
        tell(&one, ScriptCommand::Link(two.erase()));
        system.run_until_idle();
        let (cause, other) = if first == "one" {
            (&one, &two)
        } else {
            (&two, &one)
        };
        tell(cause, ScriptCommand::Error);
        let exit = system.run(other.stopped());
        assert!(matches!(exit, Exit::Linked { path, .. } if path == cause.path()));
    }
}

#[test]
fn orderly_exit_is_not_propagated() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        scripted(&system, &probe, "one"),
        scripted(&system, &probe, "two"),
    );
    tell(&one, ScriptCommand::Link(two.erase()));
    system.run_until_idle();
    tell(&two, ScriptCommand::Stop);
    system.run_until_idle();
    assert!(one.is_alive());
}

#[test]
fn linking_a_failed_actor_ends_the_linker() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        scripted(&system, &probe, "one"),
        scripted(&system, &probe, "two"),
    );
    tell(&two, ScriptCommand::Panic);
    system.run_until_idle();
    tell(&one, ScriptCommand::Link(two.erase()));
    assert!(matches!(system.run(one.stopped()), Exit::Linked { .. }));
}

#[test]
fn link_affects_only_the_linked_incarnation() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = scripted(&system, &probe, "one");
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<ScriptCommand>("p").unwrap();
    tell(&child, ScriptCommand::Link(one.erase()));
    system.run_until_idle();
    child.kill();
    assert!(matches!(system.run(one.stopped()), Exit::Linked { .. }));
    assert_eq!(
        child.erase().info().restarts,
        1,
        "the end of the one came from it"
    );
}
