//! Topic patterns: wildcards, filters, limits and statistics.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};
use strowger::testing::{Probe, TestSystem};
use strowger::{
    Actor, ActorSystem, ChildSpec, Context, MailboxSpec, Recipient, Strategy, Subscription,
    Supervisor, Topic, TopicError, TopicLimits,
};

fn topic(system: &TestSystem, name: &str) -> Topic<u32> {
    system.system().topic(name).expect("a name")
}

fn subscribe(system: &TestSystem, pattern: &str, probe: &Probe<Arc<u32>>) -> Subscription {
    let subscribed = system.system().subscribe(pattern, probe.recipient());
    subscribed.expect("a pattern, and the probe lives")
}

fn drain(probe: &Probe<Arc<u32>>) -> Vec<u32> {
    probe.drain().iter().map(|number| **number).collect()
}

#[test]
fn wildcards_match_one_or_any_number_of_segments() {
    let system = TestSystem::new(1);
    let one = |pattern: &str| {
        let probe = system.probe();
        subscribe(&system, pattern, &probe);
        probe
    };
    let probes = ["n4/*/load", "n4/**", "**/load", "n4/**/load", "*", "**"].map(one);
    let names = ["n4", "load", "n4/load", "n4/1/load", "n4/1/2/load", "n4/1"];
    for (number, name) in (0..).zip(names) {
        topic(&system, name).publish(number);
    }
    let seen = probes.each_ref().map(drain);
    assert_eq!(seen[0], [3]);
    assert_eq!(seen[1], [0, 2, 3, 4, 5]);
    assert_eq!(seen[2], [1, 2, 3, 4]);
    assert_eq!(seen[3], [2, 3, 4]);
    assert_eq!(seen[4], [0, 1]);
    assert_eq!(seen[5], [0, 1, 2, 3, 4, 5]);
}

#[test]
fn wildcard_subscriber_sees_publication_order() {
    TestSystem::check(0..5, |system| {
        let probe = system.probe();
        subscribe(system, "node/**", &probe);
        let topics = ["node/a", "node/b", "node/c/d"].map(|name| topic(system, name));
        for number in 0..99_u32 {
            topics[number as usize % 3].publish(number);
        }
        assert_eq!(drain(&probe), (0..99).collect::<Vec<_>>());
    });
}

#[test]
fn two_matching_patterns_deliver_two_copies() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    subscribe(&system, "a/*", &probe);
    subscribe(&system, "a/b", &probe);
    let one = subscribe(&system, "**", &probe);
    assert_eq!(topic(&system, "a/b").publish(1).delivered, 3);
    assert!(one.unsubscribe());
    assert_eq!(topic(&system, "a/b").publish(2).delivered, 2);
    assert_eq!(drain(&probe), [1, 1, 1, 2, 2]);
}

#[test]
fn same_pattern_replaces_the_subscription() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let first = subscribe(&system, "a/*", &probe);
    let odd = |number: &u32| number % 2 == 1;
    let system_of = system.system();
    let second = system_of.subscribe_where("a/*", probe.recipient(), odd);
    (1..=4).for_each(|number| drop(topic(&system, "a/b").publish(number)));
    assert_eq!(drain(&probe), [1, 3]);
    assert!(first.unsubscribe(), "it stands for the pattern");
    assert!(!second.expect("a pattern").unsubscribe());
    assert_eq!(topic(&system, "a/b").publish(5).delivered, 0);
}

#[test]
fn filtered_messages_are_dropped_and_counted() {
    let system = TestSystem::new(1);
    let (even, all) = (system.probe(), system.probe());
    let numbers = topic(&system, "numbers");
    let filtered = numbers.subscribe_where(even.recipient(), |number| number % 2 == 0);
    assert_eq!(filtered.expect("the probe lives").pattern(), "numbers");
    subscribe(&system, "numbers", &all);
    for number in 0..10 {
        let published = numbers.publish(number);
        assert_eq!(published.delivered + published.filtered, 2);
    }
    assert_eq!(drain(&even), [0, 2, 4, 6, 8]);
    assert_eq!(drain(&all), (0..10).collect::<Vec<_>>());
    let info = numbers.info();
    assert_eq!((info.published, info.delivered), (10, 15));
    assert_eq!((info.filtered, info.dropped), (5, 0));
}

#[test]
fn panicking_filter_affects_only_its_subscriber() {
    let system = TestSystem::new(1);
    let (fragile, sound) = (system.probe(), system.probe());
    let numbers = topic(&system, "numbers");
    let filter = |number: &u32| 10 / number > 0;
    let subscribed = numbers.subscribe_where(fragile.recipient(), filter);
    assert!(subscribed.is_ok());
    subscribe(&system, "numbers", &sound);
    let published = numbers.publish(0);
    assert_eq!((published.delivered, published.panicked), (1, 1));
    numbers.publish(1);
    assert_eq!(drain(&fragile), [1]);
    assert_eq!(drain(&sound), [0, 1]);
}

#[test]
fn unsubscribe_ends_only_its_pattern() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let wide = subscribe(&system, "a/**", &probe);
    let narrow = subscribe(&system, "a/b", &probe);
    topic(&system, "a/b").publish(1);
    assert!(narrow.unsubscribe());
    assert!(!narrow.unsubscribe());
    topic(&system, "a/b").publish(2);
    assert!(wide.unsubscribe());
    topic(&system, "a/b").publish(3);
    assert_eq!(drain(&probe), [1, 1, 2]);
}

/// Subscribes at each start and forwards what it receives; fails on zero.
struct Restless(Recipient<u32>);

impl Actor for Restless {
    type Msg = Arc<u32>;
    type Args = Recipient<u32>;
    type Error = strowger::BoxError;

    async fn pre_start(
        to: Recipient<u32>,
        cx: &mut Context<Self>,
    ) -> Result<Self, strowger::BoxError> {
        let me = cx.actor_ref().recipient::<Arc<u32>>();
        cx.system().subscribe("numbers/*", me)?;
        Ok(Self(to))
    }

    async fn handle(
        &mut self,
        number: Arc<u32>,
        _: &mut Context<Self>,
    ) -> Result<(), strowger::BoxError> {
        if *number == 0 {
            return Err("zero".into());
        }
        let _sent = self.0.try_tell(*number);
        Ok(())
    }
}

#[test]
fn resubscribing_at_each_start_keeps_one_subscription() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe::<u32>();
        let child = ChildSpec::new::<Restless>("restless", probe.recipient());
        system.supervise("top", Supervisor::new(Strategy::OneForOne).child(child));
        let numbers = topic(system, "numbers/1");
        for number in [1, 0, 2] {
            numbers.publish(number);
        }
        system.advance(Duration::from_secs(10));
        numbers.publish(3);
        assert_eq!(probe.drain(), [1, 2, 3]);
        assert_eq!(numbers.info().subscribers, 1);
    });
}

#[test]
fn topic_limits_are_enforced() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("nothing is needed").block_on(async {
        let limits = TopicLimits::DEFAULT
            .length(8)
            .depth(2)
            .topics(2)
            .subscriptions(3);
        let builder = ActorSystem::builder("limits").topic_limits(limits);
        let system = builder.build().expect("inside tokio");
        let refused = |name: &str| system.topic::<u32>(name).expect_err("a bad name");
        assert!(matches!(refused("a/b/c"), TopicError::TooDeep { .. }));
        assert!(matches!(refused("123456789"), TopicError::TooLong { .. }));
        assert!(matches!(refused("a/*"), TopicError::Wildcard { at: 2, .. }));
        assert!(matches!(
            refused("a/"),
            TopicError::EmptySegment { at: 2, .. }
        ));

        let quiet = system.spawn::<Quiet>("quiet", ()).expect("a new key");
        let subscribe = |pattern: &str| system.subscribe::<u32>(pattern, quiet.recipient());
        let mixed = subscribe("a/b*").expect_err("neither plain nor a wildcard");
        assert!(matches!(mixed, TopicError::MixedWildcard { at: 2, .. }));
        let handles = ["a", "b", "**"].map(|pattern| subscribe(pattern).expect("in the limit"));
        assert!(subscribe("a").is_ok(), "in the place of the first");
        let full = subscribe("c").expect_err("one too many");
        assert_eq!(
            full.to_string(),
            "the limit of 3 subscriptions of u32 is reached"
        );
        assert!(handles[2].unsubscribe());
        assert!(subscribe("c").is_ok());

        let (a, b) = (system.topic::<u32>("a"), system.topic::<u32>("b"));
        let full = system.topic::<u32>("d").expect_err("one too many");
        assert_eq!(full.to_string(), "the limit of 2 topics of u32 is reached");
        drop((a, b));
        assert!(system.topic::<u32>("d").is_err(), "they are subscribed to");
        assert!(handles[0].unsubscribe());
        assert!(system.topic::<u32>("d").is_ok());
        assert!(system.topic::<u64>("d").is_ok(), "another type");
    });
}

struct Quiet;

impl Actor for Quiet {
    type Msg = Arc<u32>;
    type Args = ();
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, _: Arc<u32>, _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn an_actor_that_has_ended_cannot_subscribe() {
    let system = TestSystem::new(1);
    let probe = system.probe::<Arc<u32>>();
    probe.actor().stop();
    system.run_until_idle();
    let refused = system.system().subscribe("a", probe.recipient());
    let refused = refused.expect_err("it has ended");
    assert_eq!(
        refused.to_string(),
        format!("{} has ended and cannot subscribe", probe.actor().path())
    );
    assert_eq!(topic(&system, "a").publish(1).delivered, 0);
}

#[test]
fn publish_outcome_names_full_subscribers() {
    let system = TestSystem::new(1);
    let numbers = topic(&system, "numbers");
    let quick = system.probe();
    subscribe(&system, "numbers", &quick);
    let slow = system.spawn::<Quiet>("slow", ());
    let subscribed = numbers.subscribe(slow.recipient());
    assert!(subscribed.is_ok());
    assert_eq!(numbers.publish(1).delivered, 2);
    let published = numbers.publish(2);
    assert_eq!(published.delivered, 1);
    assert_eq!(published.full.len(), 1);
    assert_eq!(published.full[0].id(), slow.id());
    assert_eq!(drain(&quick), [1, 2]);
}

#[test]
fn topics_are_listed_with_stats() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    subscribe(&system, "**", &probe);
    topic(&system, "b").publish(1);
    topic(&system, "a").publish(2);
    let held = system.system().topic::<u64>("a").expect("a name");
    let infos = system.system().topics();
    let listed: Vec<_> = infos
        .iter()
        .map(|info| {
            (
                &*info.name,
                info.message_type,
                info.published,
                info.subscribers,
            )
        })
        .collect();
    let expected = [("a", "u32", 1, 1), ("a", "u64", 0, 0), ("b", "u32", 1, 1)];
    assert_eq!(listed, expected);
    drop(held);
}

#[test]
fn unused_topics_are_dropped() {
    let system = TestSystem::new(1);
    for number in 0..10_000 {
        topic(&system, &format!("session/{number}")).publish(number);
    }
    assert!(system.system().topics().len() <= 64);
}

/// The definition of matching, against which the routes of a system are checked.
fn matches(pattern: &[&str], name: &[&str]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        (["*", rest @ ..], [_, name @ ..]) => matches(rest, name),
        ([plain, rest @ ..], [first, name @ ..]) => plain == first && matches(rest, name),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn matching_is_correct_while_subscriptions_change(
        steps in vec((any::<u8>(), any::<u8>()), 1..60),
    ) {
        const PATTERNS: [&str; 8] = ["a", "a/b", "a/*", "*/b", "**", "a/**", "**/b", "*/*/*"];
        const NAMES: [&str; 6] = ["a", "b", "a/b", "b/b", "a/a/b", "a/b/c"];
        let system = TestSystem::new(1);
        let probes = PATTERNS.map(|_| system.probe());
        let mut live: [Option<Subscription>; 8] = [const { None }; 8];
        let mut expected: [Vec<u32>; 8] = [const { Vec::new() }; 8];
        for (number, (which, what)) in (0..).zip(steps) {
            let place = usize::from(which) % 8;
            if what % 3 == 0 {
                live[place] = match live[place].take() {
                    Some(subscription) => {
                        subscription.unsubscribe();
                        None
                    }
                    None => Some(subscribe(&system, PATTERNS[place], &probes[place])),
                };
                continue;
            }
            let name = NAMES[usize::from(which) % 6];
            topic(&system, name).publish(number);
            let name: Vec<_> = name.split('/').collect();
            for (at, expected) in expected.iter_mut().enumerate() {
                let pattern: Vec<_> = PATTERNS[at].split('/').collect();
                if live[at].is_some() && matches(&pattern, &name) {
                    expected.push(number);
                }
            }
        }
        prop_assert_eq!(probes.each_ref().map(drain), expected);
    }
}
