//! Links and monitors: which actors learn of an exit, and how often.

use std::time::Duration;

use strowger::testing::{Order, Probe, Puppet, Story, TestSystem};
use strowger::{ActorRef, ChildSpec, Exit, Restart, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);

fn pair(system: &TestSystem) -> (ActorRef<Order>, ActorRef<Order>, Probe<Story>) {
    let probe = system.probe();
    let a = system.spawn::<Puppet>("a", probe.recipient());
    let b = system.spawn::<Puppet>("b", probe.recipient());
    assert_eq!(probe.story().len(), 2);
    (a, b, probe)
}

fn tell(actor: &ActorRef<Order>, order: Order) {
    actor.try_tell(order).expect("there is room");
}

/// OTP: "the process that called monitor/2 is sent a 'DOWN' message" with the exit reason.
#[test]
fn a_monitor_tells_of_every_kind_of_end() {
    for (end, told) in [
        (Some(Order::Stop), "normal"),
        (Some(Order::Fail), "failed: as ordered"),
        (Some(Order::Panic), "panicked: as ordered"),
        (None, "killed"),
    ] {
        TestSystem::check(0..10, |system| {
            let (a, b, probe) = pair(system);
            tell(&a, Order::Monitor(b.erase()));
            system.run_until_idle();
            match end.clone() {
                Some(order) => tell(&b, order),
                None => b.kill(),
            }
            let story = probe.story();
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
fn a_monitor_of_an_actor_that_has_ended_tells_at_once() {
    let system = TestSystem::new(1);
    let (a, b, probe) = pair(&system);
    tell(&b, Order::Fail);
    system.run_until_idle();
    tell(&a, Order::Monitor(b.erase()));
    let expected = [
        "/b stopped: failed: as ordered",
        "/a saw /b end: failed: as ordered",
    ];
    assert_eq!(probe.story(), expected);
}

#[test]
fn each_monitor_tells_exactly_once() {
    TestSystem::check(0..50, |system| {
        let (a, b, probe) = pair(system);
        // The exit happens while the monitor requests are in flight.
        (0..3).for_each(|_| tell(&a, Order::Monitor(b.erase())));
        b.kill();
        system.advance(SECOND);
        b.kill();
        b.stop();
        system.advance(SECOND);
        let downs = probe
            .story()
            .iter()
            .filter(|line| line.contains(" saw /b end"))
            .count();
        assert_eq!(downs, 3);
    });
}

#[test]
fn a_restart_is_no_end() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = ChildSpec::new::<Puppet>("p", probe.recipient()).restart(Restart::Transient);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
    let child: ActorRef<Order> = supervisor.child("p").expect("it runs");
    probe.monitor(&child);
    tell(&child, Order::Panic);
    system.advance(SECOND);
    assert!(probe.downs().is_empty());
    tell(&child, Order::Stop);
    assert!(matches!(probe.expect_down(&child, SECOND), Exit::Normal));
}

#[test]
fn a_signal_overtakes_all_messages_that_wait() {
    TestSystem::check(0..10, |system| {
        let (a, b, probe) = pair(system);
        tell(&a, Order::Monitor(b.erase()));
        system.run_until_idle();
        tell(&a, Order::Wait(SECOND));
        (0..3).for_each(|number| tell(&a, Order::Note(number)));
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
        assert_eq!(probe.story(), expected);
    });
}

/// OTP: "If a process terminates abnormally, its linked processes terminate too", in both
/// directions.
#[test]
fn a_link_shares_a_disorderly_end_both_ways() {
    TestSystem::check(0..20, |system| {
        for first_ends in [true, false] {
            let system = TestSystem::new(system.seed());
            let (a, b, _) = pair(&system);
            tell(&a, Order::Link(b.erase()));
            system.run_until_idle();
            let (ends, follows) = if first_ends { (&a, &b) } else { (&b, &a) };
            tell(ends, Order::Panic);
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
fn a_link_does_not_share_an_orderly_end() {
    for order in [Some(Order::Stop), None] {
        let system = TestSystem::new(1);
        let (a, b, _) = pair(&system);
        tell(&a, Order::Link(b.erase()));
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
fn a_link_to_an_actor_that_was_restarted_reaches_the_one_that_runs() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let spec = ChildSpec::new::<Puppet>("b", probe.recipient()).restart(Restart::Transient);
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(spec));
        let b: ActorRef<Order> = supervisor.child("b").expect("it was started");
        tell(&b, Order::Panic);
        system.run_until_idle();
        let a = system.spawn::<Puppet>("a", probe.recipient());
        tell(&a, Order::Link(b.erase()));
        system.run_until_idle();
        assert_eq!(b.erase().info().restarts, 1);
        tell(&a, Order::Fail);
        system.run_until_idle();
        assert_eq!(b.erase().info().restarts, 2, "{:?}", probe.story());
    });
}

#[test]
fn a_link_to_an_actor_that_failed_fails_at_once() {
    let system = TestSystem::new(1);
    let (a, b, _) = pair(&system);
    tell(&b, Order::Panic);
    system.run_until_idle();
    tell(&a, Order::Link(b.erase()));
    assert_eq!(
        system.run(a.stopped()).to_string(),
        "linked /b ended: panicked: as ordered"
    );
}

#[test]
fn a_chain_of_links_ends_to_its_last() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let chain: Vec<_> = (0..10)
            .map(|n| system.spawn::<Puppet>(format!("p{n}"), probe.recipient()))
            .collect();
        for two in chain.windows(2) {
            tell(&two[0], Order::Link(two[1].erase()));
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
        let other = system.spawn::<Puppet>("other", probe.recipient());
        let child = ChildSpec::new::<Puppet>("p", probe.recipient());
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
        let child: ActorRef<Order> = supervisor.child("p").expect("it runs");
        tell(&child, Order::Link(other.erase()));
        system.run_until_idle();
        // An orderly exit ends the link silently.
        tell(&child, Order::Stop);
        system.run_until_idle();
        assert!(other.is_alive());
        tell(&other, Order::Panic);
        system.advance(SECOND);
        assert_eq!(child.erase().info().restarts, 1);
    });
}

#[test]
fn a_linked_child_that_fails_with_another_is_restarted_by_its_supervisor() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe();
        let spec = |key: &str| ChildSpec::new::<Puppet>(key, probe.recipient());
        let children = Supervisor::new(Strategy::OneForOne)
            .child(spec("a"))
            .child(spec("b"));
        let supervisor = system.supervise("s", children);
        let a: ActorRef<Order> = supervisor.child("a").expect("it runs");
        let b: ActorRef<Order> = supervisor.child("b").expect("it runs");
        tell(&a, Order::Link(b.erase()));
        system.run_until_idle();
        tell(&b, Order::Panic);
        system.advance(SECOND);
        let (a, b) = (a.erase().info(), b.erase().info());
        assert_eq!((a.restarts, b.restarts), (1, 1));
        assert_eq!(a.last_exit.map(|exit| exit.kind()), Some("linked"));
    });
}

#[test]
fn a_link_to_oneself_is_nothing() {
    let system = TestSystem::new(1);
    let (a, _, probe) = pair(&system);
    tell(&a, Order::Link(a.erase()));
    tell(&a, Order::Fail);
    assert_eq!(probe.story(), ["/a stopped: failed: as ordered"]);
}
