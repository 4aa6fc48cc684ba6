//! Topics: typed publish and subscribe.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{Hook, InjectedFault, Probe, TestSystem};
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
fn subscribers_get_all_messages_in_order() {
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
fn subscriber_gets_only_messages_during_its_subscription() {
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
fn second_subscription_replaces_the_first() {
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
fn topic_identity_is_type_and_name() {
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
fn subscription_ends_with_its_actor() {
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
fn ended_subscribers_leave_an_idle_topic() {
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
        InjectedFault::Stall(Duration::from_secs(1)),
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
fn full_subscriber_does_not_block_and_loss_is_counted() {
    assert_eq!(overrun::<0>(), (vec![1, 2], 3, 3));
    assert_eq!(overrun::<1>(), (vec![1, 2], 3, 3));
}

#[test]
fn full_subscriber_applies_its_own_overflow_rule() {
    assert_eq!(overrun::<2>(), (vec![1, 2], 0, 3));
    assert_eq!(overrun::<3>(), (vec![4, 5], 0, 3));
    // Each message that finds no room displaces all waiting ones: 3 displaces two, and 5 two more.
    assert_eq!(overrun::<4>(), (vec![5], 0, 4));
}

#[test]
fn contramap_converts_published_messages() {
    let system = TestSystem::new(1);
    let topic = topic(&system, "numbers");
    let probe = system.probe();
    let plain = probe.recipient().contramap(|number: Arc<u32>| *number + 1);
    subscribe(&topic, plain);
    topic.publish(1);
    assert_eq!(probe.drain(), [2]);
}

#[test]
fn message_published_by_a_conversion_is_delivered_after_it() {
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
fn panicking_conversion_affects_only_its_subscriber() {
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
fn topic_frees_ended_subscribers() {
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
