//! Delivery rules of topics: round robin, and by key.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{Probe, TestSystem};
use strowger::{Actor, ActorSystem, Context, MailboxSpec, Topic};

fn topic(system: &TestSystem) -> Topic<u32> {
    system.system().topic("work/jobs").expect("a name")
}

fn subscribers(system: &TestSystem, topic: &Topic<u32>, count: usize) -> Vec<Probe<Arc<u32>>> {
    let one = |_| {
        let probe = system.probe();
        assert!(topic.subscribe(probe.recipient()).is_ok());
        probe
    };
    (0..count).map(one).collect()
}

fn drain(probe: &Probe<Arc<u32>>) -> Vec<u32> {
    probe.drain().iter().map(|number| **number).collect()
}

/// Takes one message and never finishes handling it.
struct Stuck;

impl Actor for Stuck {
    type Msg = Arc<u32>;
    type Args = ();
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, _: Arc<u32>, _: &mut Context<Self>) -> Result<(), Infallible> {
        std::future::pending().await
    }
}

#[test]
fn round_robin_delivers_each_message_to_one_subscriber() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    let probes = subscribers(&system, &topic, 3);
    for number in 0..9 {
        assert_eq!(topic.publish_round_robin(number).delivered, 1);
    }
    let seen: Vec<_> = probes.iter().map(drain).collect();
    assert_eq!(seen, [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
    assert_eq!(topic.info().delivered, 9);
}

#[test]
fn round_robin_continues_while_subscribers_change() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    let mut probes = subscribers(&system, &topic, 3);
    topic.publish_round_robin(0);
    topic.publish_round_robin(1);
    topic.unsubscribe(probes[1].actor());
    topic.publish_round_robin(2);
    probes.extend(subscribers(&system, &topic, 1));
    (3..6).for_each(|number| drop(topic.publish_round_robin(number)));
    let seen: Vec<_> = probes.iter().map(drain).collect();
    assert_eq!(seen, [vec![0, 4], vec![1], vec![2, 5], vec![3]]);
}

#[test]
fn round_robin_skips_full_and_filtered_subscribers() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    let stuck = system.spawn::<Stuck>("stuck", ());
    assert!(topic.subscribe(stuck.recipient()).is_ok());
    let picky = system.probe();
    let odd = |number: &u32| number % 2 == 1;
    assert!(topic.subscribe_where(picky.recipient(), odd).is_ok());
    assert_eq!(
        topic.publish_round_robin(1).delivered,
        1,
        "to the stuck one"
    );
    let published = topic.publish_round_robin(2);
    assert_eq!(published.delivered, 0, "one is full, the other is picky");
    assert_eq!((published.filtered, published.full.len()), (1, 1));
    assert_eq!(topic.info().dropped, 1);
    let published = topic.publish_round_robin(3);
    assert_eq!(published.delivered, 1);
    assert_eq!(topic.info().dropped, 1, "it was not lost");
    assert_eq!(drain(&picky), [3]);
}

#[test]
fn key_owner_is_stable_while_subscribers_change() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    let mut probes = subscribers(&system, &topic, 5);
    let owners = |probes: &[Probe<Arc<u32>>]| {
        (0..200).for_each(|key: u32| drop(topic.publish_by_key(key, key)));
        let mut owners = BTreeMap::new();
        for (owner, probe) in probes.iter().enumerate() {
            for key in drain(probe) {
                assert_eq!(owners.insert(key, owner), None, "one subscriber for a key");
            }
        }
        assert_eq!(owners.len(), 200, "no key without an owner");
        owners
    };
    let before = owners(&probes);
    assert_eq!(owners(&probes), before, "the same key, the same subscriber");
    for owner in 0..5 {
        let share = before.values().filter(|one| **one == owner).count();
        assert!((15..=80).contains(&share), "{share} of 200 keys");
    }
    probes[2].actor().stop();
    system.run_until_idle();
    let after = owners(&probes);
    for (key, owner) in &before {
        assert!(*owner == 2 || after[key] == *owner, "key {key} moved");
    }
    assert!(after.values().all(|owner| *owner != 2));
    probes.extend(subscribers(&system, &topic, 1));
    let last = owners(&probes);
    for (key, owner) in &last {
        assert!(*owner == 5 || after[key] == *owner, "key {key} moved");
    }
    assert!(last.values().any(|owner| *owner == 5));
}

#[test]
fn full_key_owner_misses_the_message() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    let stuck = system.spawn::<Stuck>("stuck", ());
    assert!(topic.subscribe(stuck.recipient()).is_ok());
    let probes = subscribers(&system, &topic, 1);
    let mut of_stuck = 0;
    let mut of_probe = Vec::new();
    for key in 0..100 {
        let published = topic.publish_by_key(key, key);
        assert_eq!(published.delivered + published.full.len(), 1);
        if let [full] = &published.full[..] {
            assert_eq!(full.id(), stuck.id());
            of_stuck += 1;
        } else {
            of_probe.push(key);
        }
    }
    // One of the delivered messages waits for the stuck subscriber.
    let seen = drain(&probes[0]);
    assert_eq!(seen.len() + 1, of_probe.len());
    assert!(of_stuck > 0);
    assert_eq!(topic.info().dropped, of_stuck);
}

#[test]
fn filters_limit_key_owners() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    let (small, large) = (system.probe(), system.probe());
    let filtered = topic.subscribe_where(small.recipient(), |number| *number < 50);
    assert!(filtered.is_ok());
    let filtered = topic.subscribe_where(large.recipient(), |number| *number >= 50);
    assert!(filtered.is_ok());
    for key in 0..100 {
        assert_eq!(topic.publish_by_key(key, key).delivered, 1);
    }
    assert_eq!(drain(&small), (0..50).collect::<Vec<_>>());
    assert_eq!(drain(&large), (50..100).collect::<Vec<_>>());
}

#[test]
fn publishing_without_subscribers_loses_nothing() {
    let system = TestSystem::new(1);
    let topic = topic(&system);
    assert_eq!(topic.publish(1).delivered, 0);
    assert_eq!(topic.publish_round_robin(1).delivered, 0);
    assert_eq!(topic.publish_by_key("key", 1).delivered, 0);
    let info = topic.info();
    assert_eq!((info.published, info.delivered, info.dropped), (3, 0, 0));
}

struct Relay(usize, Seen);

type Seen = tokio::sync::mpsc::UnboundedSender<(usize, u32)>;

impl Actor for Relay {
    type Msg = Arc<u32>;
    type Args = (usize, Seen);
    type Error = strowger::BoxError;
    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

    async fn pre_start(
        (name, seen): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, strowger::BoxError> {
        let me = cx.actor_ref().recipient::<Arc<u32>>();
        cx.system().subscribe("line/*", me)?;
        Ok(Self(name, seen))
    }

    async fn handle(
        &mut self,
        number: Arc<u32>,
        _: &mut Context<Self>,
    ) -> Result<(), strowger::BoxError> {
        let _sent = self.1.send((self.0, *number));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wildcard_subscribers_agree_on_one_order() {
    let system = ActorSystem::new("threads").expect("inside tokio");
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    for name in 0..2 {
        let args = (name, sender.clone());
        let actor = system.spawn::<Relay>(format!("relay-{name}"), args);
        assert!(actor.is_ok());
    }
    while system
        .topic::<u32>("line/0")
        .expect("a name")
        .info()
        .subscribers
        < 2
    {
        tokio::task::yield_now().await;
    }
    let publish = |name: &str, base: u32| {
        let topic = system.topic::<u32>(name).expect("a name");
        tokio::task::spawn_blocking(move || {
            for number in base..base + 500 {
                topic.publish(number);
            }
        })
    };
    let (one, other) = (publish("line/0", 0), publish("line/1", 1000));
    one.await.expect("no panic");
    other.await.expect("no panic");
    let mut lists = [Vec::new(), Vec::new()];
    for _ in 0..2000 {
        let (name, number) = seen.recv().await.expect("the actors live");
        lists[name].push(number);
    }
    assert_eq!(lists[0], lists[1]);
    system.shutdown(Duration::from_secs(5)).await;
}
