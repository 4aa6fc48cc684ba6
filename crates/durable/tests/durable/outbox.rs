//! Messages between entities: once, in order, over failures and restarts.

mod kill;
mod simulation;
mod sourced;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::testing::TestSystem;
use strowger::{Accepts, Ask, BoxError, Request};
use strowger_durable::store::{EntityId, MemoryStore, StoreFault};
use strowger_durable::{
    Delivery, Durable, DurableActor, DurableArgs, DurableContext, Entities, EntityKind,
    OutboxError, OutboxLimits,
};

const SECOND: Duration = Duration::from_secs(1);

/// Sends so many messages of this size, until one is refused; the answer is the number that is not
/// delivered yet.
struct SendTo {
    receiver: EntityId,
    count: u64,
    size: usize,
}
impl Request for SendTo {
    type Reply = Result<usize, String>;
}

/// Returns the messages that were taken, with their senders, and the number not delivered.
struct Look;
impl Request for Look {
    type Reply = (Vec<(String, u64)>, usize);
}

enum NodeMessage {
    Send(Ask<SendTo>),
    Look(Ask<Look>),
}

impl Accepts<Ask<SendTo>> for NodeMessage {
    fn wrap(ask: Ask<SendTo>) -> Self {
        Self::Send(ask)
    }
}

impl Accepts<Ask<Look>> for NodeMessage {
    fn wrap(ask: Ask<Look>) -> Self {
        Self::Look(ask)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct NodeState {
    /// The number of messages sent to each entity.
    sent: BTreeMap<String, u64>,
    taken: Vec<(String, u64)>,
}

/// The fault to inject into `receive`, by key, and the number of attempts.
#[derive(Debug, Clone, Default)]
struct Trouble(Arc<Mutex<HashMap<String, (Kind, u64)>>>);

#[derive(Debug, Clone, Copy, Default)]
enum Kind {
    #[default]
    None,
    Fails,
    Hangs,
}

impl Trouble {
    fn set(&self, key: &str, kind: Kind) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.to_owned()).or_default().0 = kind;
    }

    fn attempt(&self, key: &str) -> Kind {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, attempts) = all.entry(key.to_owned()).or_default();
        *attempts += 1;
        *kind
    }

    fn attempts(&self, key: &str) -> u64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).map_or(0, |(_, attempts)| *attempts)
    }
}

/// An entity that sends and receives; there are two kinds.
struct Node<const MAIL: bool>(Trouble);

impl<const MAIL: bool> DurableActor for Node<MAIL> {
    const KIND: &'static str = if MAIL { "mail" } else { "node" };
    const IDLE: Duration = Duration::from_secs(1);
    const MAX_AWAKE: usize = 3;
    const OUTBOX: OutboxLimits = OutboxLimits {
        messages: 100,
        bytes: 2000,
        message_bytes: 1500,
    };

    type State = NodeState;
    type Msg = NodeMessage;
    type Args = Trouble;
    type Error = BoxError;

    async fn pre_start(
        trouble: Trouble,
        _: &mut NodeState,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        Ok(Self(trouble))
    }

    async fn handle(
        &mut self,
        message: NodeMessage,
        state: &mut NodeState,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match message {
            NodeMessage::Send(Ask { request, reply }) => {
                let sent = state.sent.entry(request.receiver.to_string()).or_default();
                let mut send = || {
                    let message = (*sent + 1, "x".repeat(request.size));
                    cx.send_durable(&request.receiver, &message)?;
                    *sent += 1;
                    Ok(())
                };
                let sent: Result<(), OutboxError> = (0..request.count).try_for_each(|_| send());
                let answer = sent.map(|()| cx.undelivered());
                cx.reply(reply, answer.map_err(|error| error.to_string()));
            }
            NodeMessage::Look(ask) => {
                let answer = (state.taken.clone(), cx.undelivered());
                cx.reply(ask.reply, answer);
            }
        }
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: Delivery,
        state: &mut NodeState,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match self.0.attempt(cx.entity().key()) {
            Kind::None => {}
            Kind::Fails => return Err("as told".into()),
            Kind::Hangs => std::future::pending().await,
        }
        let (number, _) = delivery.decode::<(u64, String)>()?;
        state.taken.push((delivery.sender().to_string(), number));
        Ok(())
    }
}

/// The two kinds in one process.
struct World {
    system: TestSystem,
    nodes: EntityKind<Node<false>>,
    mail: Option<EntityKind<Node<true>>>,
    trouble: Trouble,
}

impl World {
    fn new(store: &MemoryStore, has_mail: bool) -> Self {
        let system = TestSystem::new(1);
        let trouble = Trouble::default();
        let entities = Entities::new(Arc::new(store.clone()));
        let nodes = entities.start(system.system(), "nodes", trouble.clone());
        let mail = has_mail.then(|| {
            let mail = entities.start(system.system(), "mail", trouble.clone());
            mail.expect("the key is free")
        });
        Self {
            nodes: nodes.expect("the key is free"),
            mail,
            system,
            trouble,
        }
    }

    fn send(&self, from: &str, receiver: &EntityId, count: u64) -> Result<usize, String> {
        self.send_sized(from, receiver, count, 0)
    }

    fn send_sized(
        &self,
        from: &str,
        receiver: &EntityId,
        count: u64,
        size: usize,
    ) -> Result<usize, String> {
        let from = self.nodes.get(from).expect("a short key");
        let receiver = receiver.clone();
        let send = SendTo {
            receiver,
            count,
            size,
        };
        self.system.run(from.ask(send)).expect("an answer")
    }

    /// Returns what a node has taken from another, and the number that it has not delivered.
    fn look(&self, key: &str) -> (Vec<(String, u64)>, usize) {
        let node = self.nodes.get(key).expect("a short key");
        self.system.run(node.ask(Look)).expect("an answer")
    }

    fn look_mail(&self, key: &str) -> Vec<(String, u64)> {
        let mail = self.mail.as_ref().expect("it runs");
        let mail = mail.get(key).expect("a short key");
        self.system.run(mail.ask(Look)).expect("an answer").0
    }
}

fn node(key: &str) -> EntityId {
    EntityId::new("node", key).expect("a short key")
}

fn mail(key: &str) -> EntityId {
    EntityId::new("mail", key).expect("a short key")
}

fn taken(from: &str, count: u64) -> Vec<(String, u64)> {
    (1..=count)
        .map(|number| (from.to_owned(), number))
        .collect()
}

#[test]
fn messages_arrive_once_and_in_order() {
    let store = MemoryStore::seeded(1, Duration::from_millis(5));
    let world = World::new(&store, true);
    for receiver in [node("b"), node("a"), mail("b")] {
        let waiting = world.send("a", &receiver, 30).expect("it is accepted");
        assert!(waiting >= 30);
        world.system.advance(2 * SECOND);
    }
    assert_eq!(world.look("b"), (taken("node/a", 30), 0));
    assert_eq!(world.look("a"), (taken("node/a", 30), 0), "from itself");
    assert_eq!(world.look_mail("b"), taken("node/a", 30));
}

#[test]
fn sleeping_sender_delivers_after_restarts() {
    let mut store = MemoryStore::new();
    let world = World::new(&store, false);
    world.send("a", &mail("b"), 3).expect("it is accepted");
    world.system.advance(100 * SECOND);
    assert_eq!(world.look("a").1, 3, "its receiver has no host");
    drop(world);
    for round in 0..3 {
        store = store.reopen();
        store.set_wall_clock((1000 + round * 1000) * SECOND);
        // Only the hosts are started.
        let world = World::new(&store, round > 0);
        world.system.advance(40 * SECOND);
        if round > 0 {
            assert_eq!(world.look_mail("b"), taken("node/a", 3));
            assert_eq!(world.look("a").1, 0);
            assert_eq!(world.trouble.attempts("b"), if round == 1 { 3 } else { 0 });
        }
    }
}

#[test]
fn failing_receiver_holds_up_no_other_and_is_tried_less_and_less() {
    let world = World::new(&MemoryStore::new(), true);
    world.trouble.set("bad", Kind::Fails);
    world.trouble.set("stuck", Kind::Hangs);
    for receiver in [node("bad"), mail("stuck"), node("good"), mail("good")] {
        world.send("a", &receiver, 2).expect("it is accepted");
    }
    world.system.advance(5 * SECOND);
    assert_eq!(world.look("good").0, taken("node/a", 2));
    assert_eq!(world.look_mail("good"), taken("node/a", 2));
    assert_eq!(world.look("a").1, 4);
    let early = world.trouble.attempts("bad");
    assert!((6..=14).contains(&early), "{early} attempts");
    world.system.advance(595 * SECOND);
    let attempts = world.trouble.attempts("bad");
    assert!((25..=90).contains(&attempts), "{attempts} attempts");
    world.trouble.set("bad", Kind::None);
    world.system.advance(31 * SECOND);
    assert_eq!(world.look("bad").0, taken("node/a", 2));
    assert_eq!(world.look("a").1, 2);
}

#[test]
fn kind_that_does_not_receive_leaves_messages_to_their_sender() {
    let world = World::new(&MemoryStore::new(), false);
    let entities = Entities::new(Arc::new(MemoryStore::new()));
    let system = world.system.system();
    let nodes = entities.start::<Node<false>>(system, "others", Trouble::default());
    let counters = entities.start::<crate::counter::Counter>(system, "counters", None);
    let (nodes, counters) = (nodes.expect("free"), counters.expect("free"));
    let counter = counters.get("b").expect("a short key");
    let sender = nodes.get("a").expect("a short key");
    let sent = world.system.run(sender.ask(SendTo {
        receiver: counter.id().clone(),
        count: 1,
        size: 0,
    }));
    assert_eq!(sent.ok(), Some(Ok(1)));
    world.system.advance(100 * SECOND);
    let (_, undelivered) = world.system.run(sender.ask(Look)).expect("an answer");
    assert_eq!(undelivered, 1);
    let read = world.system.run(counter.ask(crate::counter::Get));
    assert_eq!(read.ok(), Some(0), "it still answers");
}

#[test]
fn outbox_is_bounded() {
    let world = World::new(&MemoryStore::new(), false);
    let send = |from: &str, count, size| world.send_sized(from, &mail("b"), count, size);
    let refused = |from: &str, count, size, parts: [&str; 3]| {
        let error = send(from, count, size).expect_err("it is refused");
        for part in parts.iter().chain(&[&*format!("node/{from}"), "mail/b"]) {
            assert!(error.contains(part), "{error}");
        }
    };
    refused(
        "a",
        1,
        1600,
        ["1605 bytes", "1500 (`OUTBOX.message_bytes`)", "raise"],
    );
    refused(
        "a",
        3,
        900,
        ["905 bytes", "1810 bytes", "2000 (`OUTBOX.bytes`)"],
    );
    assert_eq!(world.look("a").1, 2);
    assert_eq!(send("c", 100, 0), Ok(100));
    refused("c", 1, 0, ["100 messages", "`OUTBOX.messages`", "raise"]);
}

#[test]
fn actor_without_a_host_cannot_send() {
    let system = TestSystem::new(1);
    let args = DurableArgs::new(Arc::new(MemoryStore::new()), "a", Trouble::default());
    let sender = system.spawn::<Durable<Node<false>>>("a", args.expect("a short key"));
    let send = SendTo {
        receiver: node("b"),
        count: 1,
        size: 0,
    };
    let answer = system.run(sender.ask(send)).expect("an answer");
    let error = answer.expect_err("it is refused");
    assert!(
        error.contains("no host") && error.contains("`Entities`"),
        "{error}"
    );
}

#[test]
fn receiver_that_cannot_store_gets_the_message_again() {
    let store = MemoryStore::seeded(1, Duration::from_millis(5));
    let world = World::new(&store, true);
    world.send("a", &node("b"), 1).expect("it is accepted");
    // The write of the receiver, or the removal by the sender.
    for _ in 0..2 {
        store.inject(StoreFault::DiskFull);
        world.system.advance(40 * SECOND);
        world.send("a", &node("b"), 1).expect("it is accepted");
    }
    world.system.advance(40 * SECOND);
    assert_eq!(world.look("b").0, taken("node/a", 3));
}

#[test]
fn senders_of_a_full_kind_make_room_for_receivers() {
    let world = World::new(&MemoryStore::seeded(1, Duration::from_millis(5)), false);
    let keys = ["a", "b", "c", "d", "e", "f"];
    for round in 0..5 {
        for (place, key) in keys.iter().enumerate() {
            let receiver = node(keys[(place + round) % keys.len()]);
            world.send(key, &receiver, 1).expect("it is accepted");
        }
    }
    world.system.advance(200 * SECOND);
    for key in keys {
        let (taken, undelivered) = world.look(key);
        assert_eq!((taken.len(), undelivered), (5, 0));
    }
}
