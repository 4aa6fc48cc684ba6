//! Topics: typed publish and subscribe.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{Fault, Hook, Probe, TestSystem};
use strowger::{Actor, Context, Event, MailboxSpec, Overflow, Recipient, Subscription, Topic};

const SOON: Duration = Duration::from_millis(10);

fn topic(system: &TestSystem, name: &str) -> Topic<u32> {
    system.system().topic(name).expect("a name")
}

fn subscribe(topic: &Topic<u32>, recipient: Recipient<Arc<u32>>) -> Subscription {
    topic.subscribe(recipient).expect("the actor lives")
}

fn drain(probe: &Probe<Arc<u32>>) -> Vec<u32> {
    probe.drain().iter().map(|number| **number).collect()
}

#[test]
fn every_subscriber_sees_all_that_is_published_in_order() {
    TestSystem::check(0..10, |system| {
        let topic = topic(system, "numbers");
        let probes: Vec<_> = (0..3).map(|_| system.probe::<Arc<u32>>()).collect();
        for probe in &probes {
            subscribe(&topic, probe.recipient());
        }
        (0..50).for_each(|number| drop(topic.publish(number)));
        for probe in &probes {
            assert_eq!(drain(probe), (0..50).collect::<Vec<_>>());
        }
    });
}

#[test]
fn subscribers_share_one_payload() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let (one, other) = (system.probe(), system.probe());
    subscribe(&topic, one.recipient());
    subscribe(&topic, other.recipient());
    let payload = Arc::new(7);
    topic.publish(Arc::clone(&payload));
    assert!(Arc::ptr_eq(&one.expect(SOON), &payload));
    assert!(Arc::ptr_eq(&other.expect(SOON), &payload));
}

#[test]
fn a_subscriber_sees_nothing_from_before_or_after_its_subscription() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let probe = system.probe();
    topic.publish(1);
    subscribe(&topic, probe.recipient());
    topic.publish(2);
    topic.unsubscribe(probe.actor());
    topic.unsubscribe(probe.actor());
    topic.publish(3);
    assert_eq!(drain(&probe), [2]);
}

#[test]
fn a_second_subscription_of_an_actor_takes_the_place_of_the_first() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let probe = system.probe();
    subscribe(&topic, probe.recipient());
    let more = |number: Arc<u32>| Arc::new(*number + 1);
    subscribe(&topic, probe.recipient().contramap(more));
    topic.publish(1);
    assert_eq!(topic.info().subscribers, 1);
    assert_eq!(drain(&probe), [2]);
}

#[test]
fn a_topic_is_named_by_its_type_and_its_name() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    subscribe(&topic(&system, "a"), probe.recipient());
    topic(&system, "b").publish(1);
    let other_type = system.system().topic::<u64>("a").expect("a name");
    other_type.publish(2_u64);
    topic(&system, "a").publish(3);
    assert_eq!(drain(&probe), [3]);
    assert_eq!(topic(&system, "a").name(), "a");
}

#[test]
fn a_subscriber_is_dropped_with_its_actor() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let (stays, ends) = (system.probe(), system.probe());
    subscribe(&topic, ends.recipient());
    subscribe(&topic, stays.recipient());
    ends.actor().stop();
    system.run_until_idle();
    topic.publish(1);
    assert_eq!(topic.info().subscribers, 1);
    assert_eq!(drain(&stays), [1]);
}

#[test]
fn those_who_ended_leave_a_topic_to_which_nothing_is_published() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    for _ in 0..100 {
        let probe = system.probe();
        subscribe(&topic, probe.recipient());
        probe.actor().stop();
        system.run_until_idle();
    }
    assert_eq!(topic.info().subscribers, 0);
}

const RULES: [Overflow; 5] = [
    Overflow::Wait,
    Overflow::Fail,
    Overflow::DropNewest,
    Overflow::DropOldest,
    Overflow::KeepLatest,
];

/// A subscriber with room for two messages that forwards what it receives.
struct Slow<const RULE: usize>(Recipient<u32>);

impl<const RULE: usize> Actor for Slow<RULE> {
    type Msg = Arc<u32>;
    type Args = Recipient<u32>;
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2).overflow(RULES[RULE]);

    async fn pre_start(to: Recipient<u32>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(to))
    }

    async fn handle(&mut self, number: Arc<u32>, _: &mut Context<Self>) -> Result<(), Infallible> {
        let _sent = self.0.try_tell(*number);
        Ok(())
    }
}

/// Publishes 1 to 5 while a subscriber with this rule is busy; returns what it received, and the
/// number of drops that the topic and the event stream report.
fn overrun<const RULE: usize>() -> (Vec<u32>, u64, u64) {
    let system = TestSystem::new(RULE as u64);
    let (probe, quick) = (system.probe(), system.probe());
    let topic = topic(&system, "numbers");
    system.inject(
        "/slow",
        Hook::PreStart,
        1,
        Fault::Stall(Duration::from_secs(1)),
    );
    let slow = system.spawn::<Slow<RULE>>("slow", probe.recipient());
    subscribe(&topic, slow.recipient());
    subscribe(&topic, quick.recipient());
    let mut events = system.events();
    system.run_until_idle();
    (1..=5).for_each(|number| drop(topic.publish(number)));
    assert_eq!(drain(&quick), [1, 2, 3, 4, 5], "others are not held up");
    let mut reported = 0;
    while let Some(event) = events.try_next() {
        if let Event::Overflow { path, count, .. } = event {
            assert_eq!(path.as_str(), "/slow");
            reported += count;
        }
    }
    system.advance(Duration::from_secs(2));
    (probe.drain(), topic.info().dropped, reported)
}

#[test]
fn a_full_subscriber_never_holds_the_publisher_and_the_loss_is_counted() {
    assert_eq!(overrun::<0>(), (vec![1, 2], 3, 3));
    assert_eq!(overrun::<1>(), (vec![1, 2], 3, 3));
}

#[test]
fn a_full_subscriber_drops_by_its_own_rule() {
    assert_eq!(overrun::<2>(), (vec![1, 2], 0, 3));
    assert_eq!(overrun::<3>(), (vec![4, 5], 0, 3));
    // Each message that finds no room displaces all waiting ones: 3 displaces two, and 5 two more.
    assert_eq!(overrun::<4>(), (vec![5], 0, 4));
}

#[test]
fn a_conversion_stands_for_an_adapter() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let probe = system.probe();
    let plain = probe.recipient().contramap(|number: Arc<u32>| *number + 1);
    subscribe(&topic, plain);
    topic.publish(1);
    assert_eq!(probe.drain(), [2]);
}

#[test]
fn what_a_conversion_publishes_comes_after_what_it_converts() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let (first, last) = (system.probe(), system.probe());
    let again = topic.clone();
    let echo = first.recipient().contramap(move |number: Arc<u32>| {
        if *number < 3 {
            assert!(again.publish(*number + 1).deferred);
        }
        number
    });
    subscribe(&topic, echo);
    subscribe(&topic, last.recipient());
    assert!(!topic.publish(1).deferred);
    assert_eq!(drain(&first), [1, 2, 3]);
    assert_eq!(drain(&last), [1, 2, 3]);
}

#[test]
fn a_conversion_that_panics_costs_its_own_subscriber_the_message_and_nobody_else() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let (first, last) = (system.probe::<Arc<u32>>(), system.probe());
    let fragile = first.recipient().contramap(|number: Arc<u32>| {
        if *number == 1 {
            std::panic::resume_unwind(Box::new("one"));
        }
        number
    });
    subscribe(&topic, fragile);
    subscribe(&topic, last.recipient());
    let published = topic.publish(1);
    assert_eq!((published.delivered, published.panicked), (1, 1));
    topic.publish(2);
    assert_eq!(drain(&first), [2]);
    assert_eq!(drain(&last), [1, 2]);
    assert_eq!(topic.info().dropped, 1);
}

#[test]
fn what_a_topic_holds_of_its_subscribers_ends_with_them() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let (payload, probe) = (Arc::new(()), system.probe());
    let held = Arc::clone(&payload);
    let wants = move |_: &u32| Arc::strong_count(&held) > 0;
    let filtered = topic.subscribe_where(probe.recipient(), wants);
    assert!(filtered.is_ok());
    topic.publish(1);
    probe.actor().stop();
    system.run_until_idle();
    assert_eq!(Arc::strong_count(&payload), 1);
}
