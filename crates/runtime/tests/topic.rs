//! Topics: typed publish and subscribe.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{Fault, Hook, Probe, TestSystem};
use strowger::{Actor, Context, Event, MailboxSpec, Overflow, Recipient, Topic};

const SOON: Duration = Duration::from_millis(10);

fn drain(probe: &Probe<Arc<u32>>) -> Vec<u32> {
    probe.drain().iter().map(|number| **number).collect()
}

#[test]
fn every_subscriber_sees_all_that_is_published_in_order() {
    TestSystem::check(0..10, |system| {
        let topic = system.system().topic::<u32>("numbers");
        let probes: Vec<_> = (0..3).map(|_| system.probe::<Arc<u32>>()).collect();
        for probe in &probes {
            topic.subscribe(probe.recipient());
        }
        (0..50).for_each(|number| topic.publish(number));
        for probe in &probes {
            assert_eq!(drain(probe), (0..50).collect::<Vec<_>>());
        }
    });
}

#[test]
fn subscribers_share_one_payload() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let (one, other) = (system.probe(), system.probe());
    topic.subscribe(one.recipient());
    topic.subscribe(other.recipient());
    let payload = Arc::new(7);
    topic.publish(Arc::clone(&payload));
    assert!(Arc::ptr_eq(&one.expect(SOON), &payload));
    assert!(Arc::ptr_eq(&other.expect(SOON), &payload));
}

#[test]
fn a_subscriber_sees_nothing_from_before_or_after_its_subscription() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let probe = system.probe();
    topic.publish(1);
    topic.subscribe(probe.recipient());
    topic.publish(2);
    topic.unsubscribe(probe.actor());
    topic.unsubscribe(probe.actor());
    topic.publish(3);
    assert_eq!(drain(&probe), [2]);
}

#[test]
fn a_second_subscription_of_an_actor_takes_the_place_of_the_first() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let probe = system.probe();
    topic.subscribe(probe.recipient());
    topic.subscribe(
        probe
            .recipient()
            .contramap(|number: Arc<u32>| Arc::new(*number + 1)),
    );
    topic.publish(1);
    assert_eq!(topic.info().subscribers, 1);
    assert_eq!(drain(&probe), [2]);
}

#[test]
fn a_topic_is_named_by_its_type_and_its_name() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system
        .system()
        .topic::<u32>("a")
        .subscribe(probe.recipient());
    system.system().topic::<u32>("b").publish(1);
    system.system().topic::<u64>("a").publish(2_u64);
    system.system().topic::<u32>("a").publish(3);
    assert_eq!(drain(&probe), [3]);
    assert_eq!(system.system().topic::<u32>("a").name(), "a");
}

#[test]
fn a_subscriber_is_dropped_with_its_actor() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let (stays, ends) = (system.probe(), system.probe());
    topic.subscribe(ends.recipient());
    topic.subscribe(stays.recipient());
    ends.actor().stop();
    system.run_until_idle();
    topic.publish(1);
    assert_eq!(topic.info().subscribers, 1);
    assert_eq!(drain(&stays), [1]);
}

#[test]
fn those_who_ended_leave_a_topic_to_which_nothing_is_published() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    for _ in 0..100 {
        let probe = system.probe();
        topic.subscribe(probe.recipient());
        probe.actor().stop();
        system.run_until_idle();
    }
    assert_eq!(topic.info().subscribers, 1);
}

const RULES: [Overflow; 5] = [
    Overflow::Wait,
    Overflow::Fail,
    Overflow::DropNewest,
    Overflow::DropOldest,
    Overflow::KeepLatest,
];

/// A subscriber with room for two, which passes on what it gets.
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

/// Publishes 1 to 5 while a subscriber with this rule is busy; what it got, and what the topic
/// and the event stream say was dropped.
fn overrun<const RULE: usize>() -> (Vec<u32>, u64, u64) {
    let system = TestSystem::new(RULE as u64);
    let (probe, quick) = (system.probe(), system.probe());
    let topic = system.system().topic::<u32>("numbers");
    system.inject(
        "/slow",
        Hook::PreStart,
        1,
        Fault::Stall(Duration::from_secs(1)),
    );
    let slow = system.spawn::<Slow<RULE>>("slow", probe.recipient());
    topic.subscribe(slow.recipient());
    topic.subscribe(quick.recipient());
    let mut events = system.events();
    system.run_until_idle();
    (1..=5).for_each(|number| topic.publish(number));
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
    // Each message that finds no room displaces all that wait: 3 displaces two, 5 again two.
    assert_eq!(overrun::<4>(), (vec![5], 0, 4));
}

#[test]
fn a_conversion_stands_for_an_adapter() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let probe = system.probe();
    topic.subscribe(probe.recipient().contramap(|number: Arc<u32>| *number + 1));
    topic.publish(1);
    assert_eq!(probe.drain(), [2]);
}

#[test]
fn what_a_conversion_publishes_comes_after_what_it_converts() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let (first, last) = (system.probe(), system.probe());
    let again: Topic<u32> = topic.clone();
    topic.subscribe(first.recipient().contramap(move |number: Arc<u32>| {
        if *number < 3 {
            again.publish(*number + 1);
        }
        number
    }));
    topic.subscribe(last.recipient());
    topic.publish(1);
    assert_eq!(drain(&first), [1, 2, 3]);
    assert_eq!(drain(&last), [1, 2, 3]);
}

#[test]
fn a_conversion_that_panics_does_not_silence_the_topic() {
    let system = TestSystem::new(1);
    let topic = system.system().topic::<u32>("numbers");
    let (first, last) = (system.probe::<Arc<u32>>(), system.probe());
    topic.subscribe(first.recipient().contramap(|number: Arc<u32>| {
        if *number == 1 {
            std::panic::resume_unwind(Box::new("one"));
        }
        number
    }));
    topic.subscribe(last.recipient());
    let publish = std::panic::AssertUnwindSafe(|| topic.publish(1));
    assert!(std::panic::catch_unwind(publish).is_err());
    topic.publish(2);
    assert_eq!(drain(&first), [2]);
    assert_eq!(drain(&last), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_on_two_threads_are_seen_in_one_order_by_all() {
    let system = strowger::ActorSystem::new("threads").expect("inside tokio");
    let topic = system.topic::<u32>("numbers");
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    for name in 0..2 {
        let sender = sender.clone();
        let actor = system.spawn::<Relay>(format!("relay-{name}"), (name, sender));
        topic.subscribe(actor.expect("a new key").recipient());
    }
    let publish = |base: u32| {
        let topic = topic.clone();
        tokio::task::spawn_blocking(move || (base..base + 500).for_each(|n| topic.publish(n)))
    };
    let (one, other) = (publish(0), publish(1000));
    one.await.expect("no panic");
    other.await.expect("no panic");
    let mut lists = [Vec::new(), Vec::new()];
    for _ in 0..2000 {
        let (name, number): (usize, u32) = seen.recv().await.expect("the actors live");
        lists[name].push(number);
    }
    assert_eq!(lists[0], lists[1]);
    system.shutdown(Duration::from_secs(5)).await;
}

type Seen = tokio::sync::mpsc::UnboundedSender<(usize, u32)>;

struct Relay(usize, Seen);

impl Actor for Relay {
    type Msg = Arc<u32>;
    type Args = (usize, Seen);
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

    async fn pre_start(
        (name, seen): Self::Args,
        _: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self(name, seen))
    }

    async fn handle(&mut self, number: Arc<u32>, _: &mut Context<Self>) -> Result<(), Infallible> {
        let _sent = self.1.send((self.0, *number));
        Ok(())
    }
}
