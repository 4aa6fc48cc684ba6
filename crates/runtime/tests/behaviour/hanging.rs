//! Hooks that never return: the rest of the system keeps working, and the actors can be ended.

use std::time::Duration;

use strowger::testing::{Fault, Hook, Order, Probe, Puppet, Story, TestSystem};
use strowger::{ActorRef, ChildSpec, Dynamic, Exit, Shutdown, State, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);
const EVER: Duration = Duration::from_secs(1_000_000);

fn puppet(key: &str, probe: &Probe<Story>) -> ChildSpec {
    ChildSpec::new::<Puppet>(key, probe.recipient())
}

#[test]
fn a_system_whose_first_start_hangs_can_be_shut_down() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.inject("/s/b", Hook::PreStart, 1, Fault::Stall(EVER));
    let children = Supervisor::new(Strategy::OneForOne)
        .child(puppet("a", &probe))
        .child(puppet("b", &probe));
    let handle = system.system().clone();
    let started = system.run(async move {
        tokio::time::timeout(SECOND, handle.supervise("s", children))
            .await
            .is_ok()
    });
    assert!(!started);
    let info = system.system().find("/s").expect("it is starting").info();
    assert_eq!(info.state, State::Starting);
    let report = system.shutdown(SECOND);
    assert!(report.not_stopped.is_empty(), "{report:?}");
    assert!(system.system().actors().is_empty());
}

#[test]
fn a_child_that_hangs_in_its_restart_can_be_killed_and_is_tried_again() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForOne).child(puppet("a", &probe));
        let supervisor = system.supervise("s", children);
        let child: ActorRef<Order> = supervisor.child("a").expect("it runs");
        system.inject("/s/a", Hook::PreStart, 1, Fault::Stall(EVER));
        child.try_tell(Order::Panic).expect("there is room");
        child.try_tell(Order::Note(1)).expect("there is room");
        system.advance(SECOND);
        assert_eq!(child.erase().info().state, State::Starting);
        child.kill();
        let expected = [
            "/s/a started",
            "/s/a dropped",
            "/s/a started",
            "/s/a noted 1",
        ];
        assert_eq!(probe.story(), expected);
    });
}

#[test]
fn a_killed_supervisor_takes_a_child_that_hangs_in_its_start_along() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForOne)
            .child(puppet("a", &probe))
            .child(puppet("b", &probe));
        let supervisor = system.supervise("s", children);
        let child: ActorRef<Order> = supervisor.child("a").expect("it runs");
        system.inject("/s/a", Hook::PreStart, 1, Fault::Stall(EVER));
        child.try_tell(Order::Panic).expect("there is room");
        system.run_until_idle();
        supervisor.kill();
        assert!(matches!(system.run(supervisor.stopped()), Exit::Killed));
        assert!(!child.is_alive());
        assert!(system.system().find("/s").is_none());
    });
}

#[test]
fn a_supervisor_that_waits_for_a_start_still_stops_when_it_is_told_to() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForOne)
            .child(puppet("a", &probe))
            .child(puppet("b", &probe).shutdown(Shutdown::Graceful(SECOND)));
        let supervisor = system.supervise("s", children);
        let child: ActorRef<Order> = supervisor.child("b").expect("it runs");
        system.inject("/s/b", Hook::PreStart, 1, Fault::Stall(EVER));
        child.try_tell(Order::Panic).expect("there is room");
        system.run_until_idle();
        let before = system.elapsed();
        supervisor.stop();
        assert!(matches!(system.run(supervisor.stopped()), Exit::Shutdown));
        // The hanging child gets its own time limit, and is then killed.
        assert_eq!(system.elapsed() - before, SECOND);
        let expected = [
            "/s/a started",
            "/s/b started",
            "/s/b dropped",
            "/s/a stopped: shutdown",
        ];
        assert_eq!(probe.story(), expected);
    });
}

#[test]
fn a_handler_that_hangs_is_killed_at_its_limit() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let limit = Shutdown::Graceful(2 * SECOND);
    let children = Supervisor::new(Strategy::OneForOne).child(puppet("a", &probe).shutdown(limit));
    let supervisor = system.supervise("s", children);
    let child: ActorRef<Order> = supervisor.child("a").expect("it runs");
    child.try_tell(Order::Wait(EVER)).expect("there is room");
    system.run_until_idle();
    let before = system.elapsed();
    system
        .run(supervisor.terminate_child("a"))
        .expect("it has such a child");
    assert_eq!(system.elapsed() - before, 2 * SECOND);
    assert_eq!(probe.story(), ["/s/a started", "/s/a dropped"]);
}

#[test]
fn one_child_that_hangs_does_not_hold_its_siblings_in_a_dynamic_supervisor() {
    let system = TestSystem::new(1);
    let probe = system.probe::<Story>();
    let dynamic = system.dynamic("d", Dynamic::<Puppet>::new());
    system.inject("/d/a", Hook::PreStart, 1, Fault::Stall(EVER));
    let hanging = dynamic
        .start_child("a", probe.recipient())
        .expect("a new key");
    dynamic
        .start_child("b", probe.recipient())
        .expect("a new key");
    assert_eq!(probe.story(), ["/d/b started"]);
    assert!(system.run(dynamic.terminate_child("a")));
    assert!(!hanging.is_alive());
    assert_eq!(system.elapsed(), 5 * SECOND);
}

#[test]
fn a_supervisor_that_waits_for_its_first_children_still_stops_when_it_is_told_to() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let inner = Supervisor::new(Strategy::OneForOne)
            .child(puppet("a", &probe))
            .child(puppet("b", &probe).shutdown(Shutdown::Immediate));
        system.inject("/s/inner/b", Hook::PreStart, 1, Fault::Stall(EVER));
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
        let starting = supervisor.clone();
        let stopping = supervisor.clone();
        let started = system.run(async move {
            let inner = ChildSpec::supervisor("inner", inner);
            tokio::join!(starting.start_child(inner), async {
                tokio::time::sleep(SECOND).await;
                stopping.stop();
            })
        });
        assert!(started.0.is_err());
        assert!(matches!(system.run(supervisor.stopped()), Exit::Shutdown));
        assert_eq!(
            probe.story(),
            ["/s/inner/a started", "/s/inner/a stopped: shutdown"]
        );
        assert!(system.system().find("/s").is_none());
    });
}
