//! The test kit: virtual time, seeded schedules, probes and faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use strowger::Exit;
use strowger::testing::{Fault, Hook, Order, Puppet, Story, TestSystem, Trace};

const SECOND: Duration = Duration::from_secs(1);

/// A few puppets that all have work at the same time.
fn bustle(seed: u64) -> (Trace, Vec<String>) {
    let system = TestSystem::new(seed);
    let probe = system.probe();
    for key in ["a", "b", "c", "d"] {
        let puppet = system.spawn::<Puppet>(key, probe.recipient());
        for number in 0..3 {
            puppet.try_tell(Order::Note(number)).expect("there is room");
            puppet.try_tell(Order::Wait(SECOND)).expect("there is room");
        }
        puppet
            .try_tell(Order::Later(SECOND, 9))
            .expect("there is room");
    }
    system.advance(5 * SECOND);
    (system.trace(), probe.story())
}

#[test]
fn one_seed_gives_the_same_run_twice() {
    for seed in 0..20 {
        assert_eq!(bustle(seed), bustle(seed), "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_orders_of_the_same_events() {
    let mut stories: Vec<_> = (0..20).map(|seed| bustle(seed).1).collect();
    let sorted = |story: &Vec<String>| {
        let mut story = story.clone();
        story.sort();
        story
    };
    let first = sorted(&stories[0]);
    assert!(stories.iter().all(|story| sorted(story) == first));
    stories.sort();
    stories.dedup();
    assert!(stories.len() > 15, "{} of 20 are distinct", stories.len());
}

#[test]
fn a_trace_names_the_actors_whose_turn_it_was() {
    let (trace, _) = bustle(3);
    assert_eq!(trace.seed(), 3);
    assert!(
        trace
            .steps()
            .iter()
            .any(|step| step.path.as_str() == "/b" && step.at >= SECOND)
    );
    assert!(trace.to_string().starts_with("seed 3, "));
}

#[test]
fn time_moves_only_when_the_test_says_so() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let puppet = system.spawn::<Puppet>("p", probe.recipient());
    puppet
        .try_tell(Order::Later(SECOND, 1))
        .expect("there is room");
    system.run_until_idle();
    assert_eq!(system.elapsed(), Duration::ZERO);
    system.advance(SECOND - Duration::from_millis(1));
    assert_eq!(probe.story(), ["/p started"]);
    system.advance(Duration::from_millis(1));
    assert_eq!(probe.story(), ["/p noted 1"]);
    assert_eq!(system.elapsed(), SECOND);
}

#[test]
fn timers_on_the_way_are_met_at_their_own_time() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let puppet = system.spawn::<Puppet>("p", probe.recipient());
    // The second timer is set while the first wait is handled, half way through.
    puppet.try_tell(Order::Wait(SECOND)).expect("there is room");
    puppet
        .try_tell(Order::Later(SECOND, 2))
        .expect("there is room");
    system.advance(3 * SECOND);
    let trace = system.trace();
    let at: Vec<_> = trace
        .steps()
        .iter()
        .filter(|s| s.path.key() == "p")
        .map(|s| s.at)
        .collect();
    assert!(at.contains(&SECOND) && at.contains(&(2 * SECOND)), "{at:?}");
    assert_eq!(probe.story(), ["/p started", "/p noted 2"]);
}

#[test]
fn a_future_is_run_to_its_end_and_time_with_it() {
    let system = TestSystem::new(1);
    let waited = system.run(async {
        tokio::time::sleep(10 * SECOND).await;
        7
    });
    assert_eq!((waited, system.elapsed()), (7, 10 * SECOND));
}

#[test]
#[should_panic(expected = "not done within 3600s of virtual time")]
fn a_future_that_never_ends_fails_at_once() {
    TestSystem::new(1).run(std::future::pending::<()>());
}

#[test]
fn a_probe_waits_for_as_long_as_it_is_told() {
    let system = TestSystem::new(1);
    let probe = system.probe::<Story>();
    let puppet = system.spawn::<Puppet>("p", probe.recipient());
    assert_eq!(probe.expect(SECOND).to_string(), "/p started");
    puppet
        .try_tell(Order::Later(3 * SECOND, 1))
        .expect("there is room");
    probe.expect_none(2 * SECOND);
    assert_eq!(probe.expect(SECOND).to_string(), "/p noted 1");
    let none = AssertUnwindSafe(|| probe.expect(SECOND));
    assert!(catch_unwind(none).is_err());
}

#[test]
fn a_probe_sees_the_end_of_what_it_monitors_once() {
    let system = TestSystem::new(1);
    let probe = system.probe::<Story>();
    let puppet = system.spawn::<Puppet>("p", probe.recipient());
    probe.monitor(&puppet);
    puppet.kill();
    assert!(matches!(probe.expect_down(&puppet, SECOND), Exit::Killed));
    system.advance(SECOND);
    assert!(probe.downs().is_empty());
}

#[test]
fn a_fault_strikes_the_nth_time_and_then_no_more() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.inject("/p", Hook::Handle, 3, Fault::fail("disk full"));
    let puppet = system.spawn::<Puppet>("p", probe.recipient());
    (1..=4).for_each(|number| puppet.try_tell(Order::Note(number)).expect("there is room"));
    let told = [
        "/p started",
        "/p noted 1",
        "/p noted 2",
        "/p stopped: failed: disk full",
    ];
    assert_eq!(probe.story(), told);
}

#[test]
fn faults_strike_in_every_hook() {
    let exit_of = |hook, fault: Fault| {
        let system = TestSystem::new(1);
        let probe = system.probe::<Story>();
        let other = system.spawn::<Puppet>("other", probe.recipient());
        system.inject("/p", hook, 1, fault);
        let puppet = system.spawn::<Puppet>("p", probe.recipient());
        let watched = Order::Monitor(other.erase());
        let _sent = puppet.try_tell(watched);
        system.run_until_idle();
        other.stop();
        system.run_until_idle();
        puppet.stop();
        system.run(puppet.stopped()).to_string()
    };
    for hook in [Hook::PreStart, Hook::Handle, Hook::Signal] {
        assert_eq!(
            exit_of(hook, Fault::panic("boom")),
            "panicked: boom",
            "{hook:?}"
        );
        assert_eq!(exit_of(hook, Fault::fail("no")), "failed: no", "{hook:?}");
    }
    assert_eq!(exit_of(Hook::PostStop, Fault::panic("boom")), "shutdown");
}

#[test]
fn a_stalled_hook_takes_that_much_longer() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.inject("/p", Hook::PostStop, 1, Fault::Stall(2 * SECOND));
    let puppet = system.spawn::<Puppet>("p", probe.recipient());
    puppet.stop();
    assert_eq!(probe.story(), ["/p started"]);
    let exit = system.run(puppet.stopped());
    assert!(matches!(exit, Exit::Shutdown));
    assert_eq!(system.elapsed(), 2 * SECOND);
    assert_eq!(probe.story(), ["/p stopped: shutdown"]);
}

#[test]
fn a_check_runs_every_seed_and_stops_at_the_one_that_fails() {
    let seen = Mutex::new(Vec::new());
    let run = AssertUnwindSafe(|| {
        TestSystem::check(0..10, |system| {
            seen.lock()
                .expect("no panic while it is held")
                .push(system.seed());
            if system.seed() == 4 {
                std::panic::resume_unwind(Box::new("the fourth"));
            }
        });
    });
    assert!(catch_unwind(run).is_err());
    assert_eq!(
        *seen.lock().expect("no panic while it is held"),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn nothing_of_a_system_is_left_when_it_is_dropped() {
    let held = std::sync::Arc::new(());
    let system = TestSystem::new(1);
    let probe = system.probe::<Story>();
    let inside = std::sync::Arc::clone(&held);
    let recipient = probe.recipient().contramap(move |story: Story| {
        let _inside = &inside;
        story
    });
    for key in ["a", "b"] {
        let puppet = system.spawn::<Puppet>(key, recipient.clone());
        puppet.try_tell(Order::Wait(SECOND)).expect("there is room");
        puppet
            .try_tell(Order::Spawn("child".into()))
            .expect("there is room");
        puppet.try_tell(Order::Wait(SECOND)).expect("there is room");
    }
    system.advance(SECOND + SECOND / 2);
    drop(recipient);
    drop(system);
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}
