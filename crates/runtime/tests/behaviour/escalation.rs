//! Trees of supervisors: escalation and subtrees. No child outlives its supervisor.

use std::convert::Infallible;
use std::time::Duration;

use strowger::testing::{Fault, Hook, Order, Probe, Puppet, Story, TestSystem};
use strowger::{
    Actor, ActorRef, AnyRef, ChildSpec, Context, Event, Exit, Path, Restart, Strategy, Supervisor,
    SupervisorRef,
};

const SECOND: Duration = Duration::from_secs(1);

fn puppet(key: &str, probe: &Probe<Story>) -> ChildSpec {
    ChildSpec::new::<Puppet>(key, probe.recipient())
}

/// `/top` with the children `/top/a` and `/top/mid`; `/top/mid` has the children `/top/mid/x` and
/// `/top/mid/y` and allows one restart per second.
fn two_levels(system: &TestSystem, top: Supervisor) -> (SupervisorRef, Probe<Story>) {
    let probe = system.probe();
    let mid = Supervisor::new(Strategy::OneForOne)
        .intensity(1, SECOND)
        .child(puppet("x", &probe))
        .child(puppet("y", &probe));
    let top = top.child(puppet("a", &probe)).supervisor("mid", mid);
    let top = system.supervise("top", top);
    let started = ["/top/a started", "/top/mid/x started", "/top/mid/y started"];
    assert_eq!(probe.story(), started);
    (top, probe)
}

fn find(system: &TestSystem, path: &str) -> AnyRef {
    system.system().find(path).expect("it runs")
}

fn tell(system: &TestSystem, path: &str, order: Order) {
    let puppet: ActorRef<Order> = find(system, path).downcast().expect("it is a puppet");
    puppet.try_tell(order).expect("there is room");
}

/// OTP: "When the supervisor terminates, then the next higher-level supervisor takes some action.
/// It either restarts the terminated supervisor or terminates itself."
#[test]
fn a_supervisor_that_gives_up_is_restarted_by_the_next_higher_level() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
        let mid = find(system, "/top/mid");
        let old = find(system, "/top/mid/x");
        tell(system, "/top/mid/x", Order::Panic);
        assert_eq!(probe.story(), ["/top/mid/x dropped", "/top/mid/x started"]);
        tell(system, "/top/mid/x", Order::Panic);
        let expected = [
            "/top/mid/x dropped",
            "/top/mid/y stopped: shutdown",
            "/top/mid/x started",
            "/top/mid/y started",
        ];
        assert_eq!(probe.story(), expected);
        assert!(
            mid.is_alive(),
            "the supervisor's address survives its restart"
        );
        assert!(
            !old.is_alive(),
            "its children are others, as all their state is fresh"
        );
        // The new incarnation starts counting again.
        tell(system, "/top/mid/x", Order::Panic);
        assert_eq!(probe.story(), ["/top/mid/x dropped", "/top/mid/x started"]);
    });
}

#[test]
fn escalation_goes_through_two_levels_to_the_top() {
    TestSystem::check(0..20, |system| {
        let strict = Supervisor::new(Strategy::OneForOne).intensity(0, SECOND);
        let (top, probe) = two_levels(system, strict);
        let mut events = system.events();
        tell(system, "/top/mid/y", Order::Panic);
        system.run_until_idle();
        tell(system, "/top/mid/y", Order::Panic);
        let exit = system.run(top.stopped());
        assert_eq!(
            exit.to_string(),
            "gave up on /top/mid: gave up on /top/mid/y: panicked: as ordered"
        );
        let expected = [
            "/top/mid/y dropped",
            "/top/mid/y started",
            "/top/mid/y dropped",
            "/top/mid/x stopped: shutdown",
            "/top/a stopped: shutdown",
        ];
        assert_eq!(probe.story(), expected);
        let mut escalated = Vec::new();
        while let Some(event) = events.try_next() {
            if let Event::Escalated { path, .. } = event {
                escalated.push(path);
            }
        }
        assert_eq!(escalated, [Path::from("/top/mid"), Path::from("/top")]);
    });
}

#[test]
fn a_subtree_takes_part_in_the_strategy_above_it() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForAll));
        tell(system, "/top/a", Order::Panic);
        let expected = [
            "/top/a dropped",
            "/top/mid/y stopped: shutdown",
            "/top/mid/x stopped: shutdown",
            "/top/a started",
            "/top/mid/x started",
            "/top/mid/y started",
        ];
        assert_eq!(probe.story(), expected);
    });
}

#[test]
fn a_temporary_supervisor_that_gives_up_takes_its_subtree_along() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let mid = Supervisor::new(Strategy::OneForOne)
        .intensity(0, SECOND)
        .child(puppet("x", &probe))
        .child(puppet("y", &probe));
    let mid = ChildSpec::supervisor("mid", mid).restart(Restart::Temporary);
    let top = Supervisor::new(Strategy::OneForOne)
        .child(mid)
        .child(puppet("a", &probe));
    system.supervise("top", top);
    assert_eq!(probe.story().len(), 3);
    tell(&system, "/top/mid/x", Order::Panic);
    assert_eq!(
        probe.story(),
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
fn actors_of_different_types_stand_in_one_tree() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let mid = Supervisor::new(Strategy::RestForOne)
        .child(ChildSpec::new::<Adder>("adder", 8))
        .child(puppet("p", &probe));
    let top = Supervisor::new(Strategy::OneForOne)
        .supervisor("mid", mid)
        .child(puppet("a", &probe));
    system.supervise("top", top);
    assert_eq!(probe.story(), ["/top/mid/p started", "/top/a started"]);
    let adder: ActorRef<u64> = find(&system, "/top/mid/adder").downcast().expect("it adds");
    adder.try_tell(3).expect("there is room");
    assert_eq!(
        probe.story(),
        ["/top/mid/p stopped: shutdown", "/top/mid/p started"]
    );
    assert!(adder.is_alive());
    let kinds: Vec<_> = system
        .system()
        .actors()
        .into_iter()
        .map(|info| info.kind)
        .collect();
    assert!(
        kinds.iter().any(|kind| kind.ends_with("Adder")),
        "{kinds:?}"
    );
    assert!(
        kinds.iter().any(|kind| kind.ends_with("Puppet")),
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
            assert_eq!(probe.story().len(), 3);
        });
    }
}

#[test]
fn a_killed_supervisor_is_restarted_with_a_fresh_subtree() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
        find(system, "/top/mid").kill();
        let story = probe.story();
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
fn a_supervisor_that_panics_is_restarted_as_any_child() {
    let system = TestSystem::new(1);
    let (_, probe) = two_levels(&system, Supervisor::new(Strategy::OneForOne));
    find(&system, "/top/mid").inject_panic("a fault of ours");
    let expected = [
        "/top/mid/y stopped: shutdown",
        "/top/mid/x stopped: shutdown",
        "/top/mid/x started",
        "/top/mid/y started",
    ];
    assert_eq!(probe.story(), expected);
}

#[test]
fn shutdown_ends_all_in_reverse_order_and_reports_nothing_left() {
    TestSystem::check(0..20, |system| {
        let (_, probe) = two_levels(system, Supervisor::new(Strategy::OneForOne));
        let report = system.shutdown(10 * SECOND);
        assert!(report.not_stopped.is_empty(), "{report:?}");
        let expected = [
            "/top/mid/y stopped: shutdown",
            "/top/mid/x stopped: shutdown",
            "/top/a stopped: shutdown",
        ];
        assert_eq!(probe.story(), expected);
        assert!(system.system().actors().is_empty());
    });
}

#[test]
fn shutdown_kills_what_does_not_stop_within_its_limit() {
    let system = TestSystem::new(1);
    let (_, probe) = two_levels(&system, Supervisor::new(Strategy::OneForOne));
    system.inject("/top/mid/x", Hook::PostStop, 1, Fault::Stall(4 * SECOND));
    let mut events = system.events();
    let before = system.elapsed();
    let report = system.shutdown(SECOND);
    assert_eq!(system.elapsed() - before, SECOND);
    assert!(report.not_stopped.is_empty(), "{report:?}");
    // The probe is killed with the rest, so the exits are read from the events.
    assert_eq!(probe.story(), ["/top/mid/y stopped: shutdown"]);
    let mut killed = false;
    while let Some(event) = events.try_next() {
        if let Event::Stopped { path, exit } = event {
            killed |= path == Path::from("/top/mid/x") && exit.kind() == "killed";
        }
    }
    assert!(killed);
    assert!(system.system().actors().is_empty());
}

#[test]
fn a_system_that_is_shut_down_starts_nothing() {
    let system = TestSystem::new(1);
    let probe = system.probe::<Story>();
    system.shutdown(SECOND);
    let refused = system.system().spawn::<Puppet>("late", probe.recipient());
    assert_eq!(
        refused.expect_err("it is closed").to_string(),
        "the parent of /late is ending"
    );
}

#[test]
fn an_actors_own_children_end_before_its_post_stop_and_also_when_it_is_restarted() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let top = Supervisor::new(Strategy::OneForOne).child(puppet("p", &probe));
        system.supervise("s", top);
        tell(system, "/s/p", Order::Spawn("x".into()));
        tell(system, "/s/p", Order::Spawn("y".into()));
        let story = probe.story();
        assert_eq!(story.len(), 3, "{story:?}");
        let child = find(system, "/s/p/x");
        tell(system, "/s/p", Order::Fail);
        let expected = [
            "/s/p/y stopped: shutdown",
            "/s/p/x stopped: shutdown",
            "/s/p stopped: failed: as ordered",
            "/s/p started",
        ];
        assert_eq!(probe.story(), expected);
        assert!(!child.is_alive());
        assert!(matches!(system.run(child.stopped()), Exit::Shutdown));
    });
}
