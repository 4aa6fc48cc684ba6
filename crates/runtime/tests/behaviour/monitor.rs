//! Monitors and links. Erlang: "If the monitored process dies, a 'DOWN' message is delivered."

use std::time::Duration;

use strowger::testing::{Order, Probe, Puppet, Story, TestSystem};
use strowger::{ActorRef, ChildSpec, Exit, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);

fn puppet(system: &TestSystem, probe: &Probe<Story>, key: &str) -> ActorRef<Order> {
    let puppet = system.spawn::<Puppet>(key, probe.recipient());
    assert_eq!(probe.story(), [format!("/{key} started")]);
    puppet
}

fn tell(actor: &ActorRef<Order>, order: Order) {
    actor.try_tell(order).expect("there is room");
}

#[test]
fn exactly_one_down_with_the_reason() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        puppet(&system, &probe, "one"),
        puppet(&system, &probe, "two"),
    );
    tell(&one, Order::Monitor(two.erase()));
    system.run_until_idle();
    tell(&two, Order::Fail);
    let story = [
        "/two stopped: failed: as ordered",
        "/one saw /two end: failed: as ordered",
    ];
    assert_eq!(probe.story(), story);
    assert!(probe.story().is_empty());
}

#[test]
fn the_dead_have_a_down_too() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        puppet(&system, &probe, "one"),
        puppet(&system, &probe, "two"),
    );
    two.kill();
    assert_eq!(probe.story(), ["/two dropped"]);
    tell(&one, Order::Monitor(two.erase()));
    assert_eq!(probe.story(), ["/one saw /two end: killed"]);
}

#[test]
fn each_monitor_has_its_own_down() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        puppet(&system, &probe, "one"),
        puppet(&system, &probe, "two"),
    );
    tell(&one, Order::Monitor(two.erase()));
    tell(&one, Order::Monitor(two.erase()));
    system.run_until_idle();
    two.stop();
    let down = "/one saw /two end: shutdown";
    assert_eq!(probe.story(), ["/two stopped: shutdown", down, down]);
}

#[test]
fn restart_is_not_a_down_and_the_last_end_is() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = puppet(&system, &probe, "one");
    let child = ChildSpec::new::<Puppet>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(1, SECOND)
        .child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<Order>("p").unwrap();
    tell(&one, Order::Monitor(child.erase()));
    tell(&child, Order::Fail);
    system.run_until_idle();
    tell(&child, Order::Fail);
    let downs: Vec<_> = probe
        .story()
        .into_iter()
        .filter(|line| line.contains("saw"))
        .collect();
    assert_eq!(downs, ["/one saw /s/p end: failed: as ordered"]);
}

#[test]
fn monitors_end_with_the_incarnation_that_placed_them() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let other = puppet(&system, &probe, "other");
    let child = ChildSpec::new::<Puppet>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<Order>("p").unwrap();
    tell(&child, Order::Monitor(other.erase()));
    tell(&child, Order::Fail);
    let _ = probe.story();
    other.stop();
    assert_eq!(probe.story(), ["/other stopped: shutdown"]);
}

#[test]
fn linked_actors_share_their_fate_both_ways() {
    for first in ["one", "two"] {
        let system = TestSystem::new(1);
        let probe = system.probe();
        let (one, two) = (
            puppet(&system, &probe, "one"),
            puppet(&system, &probe, "two"),
        );
        tell(&one, Order::Link(two.erase()));
        system.run_until_idle();
        let (cause, other) = if first == "one" {
            (&one, &two)
        } else {
            (&two, &one)
        };
        tell(cause, Order::Fail);
        let exit = system.run(other.stopped());
        assert!(matches!(exit, Exit::Linked { path, .. } if path == cause.path()));
    }
}

#[test]
fn orderly_end_does_not_spread() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        puppet(&system, &probe, "one"),
        puppet(&system, &probe, "two"),
    );
    tell(&one, Order::Link(two.erase()));
    system.run_until_idle();
    tell(&two, Order::Stop);
    system.run_until_idle();
    assert!(one.is_alive());
}

#[test]
fn link_to_one_that_failed_ends_at_once() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let (one, two) = (
        puppet(&system, &probe, "one"),
        puppet(&system, &probe, "two"),
    );
    tell(&two, Order::Panic);
    system.run_until_idle();
    tell(&one, Order::Link(two.erase()));
    assert!(matches!(system.run(one.stopped()), Exit::Linked { .. }));
}

#[test]
fn link_reaches_the_incarnation_that_was_linked_only() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = puppet(&system, &probe, "one");
    let child = ChildSpec::new::<Puppet>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<Order>("p").unwrap();
    tell(&child, Order::Link(one.erase()));
    system.run_until_idle();
    child.kill();
    assert!(matches!(system.run(one.stopped()), Exit::Linked { .. }));
    assert_eq!(
        child.erase().info().restarts,
        1,
        "the end of the one came from it"
    );
}
