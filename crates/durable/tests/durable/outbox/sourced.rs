//! Event-sourced entities send and receive.

use std::sync::Arc;
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{Ask, BoxError};
use strowger_durable::store::MemoryStore;
use strowger_durable::{Delivery, Entities, EventContext, EventSourced, Sourced};

use super::{Look, Node, SECOND, SendTo, Trouble, node, taken};

/// Takes numbers and passes each on to the node `c`. Its events are the numbers.
struct Relay;

impl EventSourced for Relay {
    const KIND: &'static str = "relay";
    const SNAPSHOT_EVERY: u64 = 7;
    const IDLE: Duration = Duration::from_secs(1);

    type State = Vec<u64>;
    type Event = u64;
    type Msg = Ask<Look>;
    type Args = ();
    type Error = BoxError;

    fn apply(numbers: &mut Vec<u64>, number: u64) {
        numbers.push(number);
    }

    async fn pre_start(_: (), _: &mut EventContext<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        ask: Ask<Look>,
        cx: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let numbers = cx.state().iter();
        let numbers = numbers
            .map(|number| ("node/a".to_owned(), *number))
            .collect();
        let undelivered = cx.undelivered();
        cx.reply(ask.reply, (numbers, undelivered));
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: Delivery,
        cx: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let (number, text) = delivery.decode::<(u64, String)>()?;
        cx.emit(&number);
        cx.send_durable(&node("c"), &(number, text))?;
        Ok(())
    }
}

#[test]
fn event_sourced_entity_takes_messages_once_and_passes_them_on() {
    let mut store = MemoryStore::seeded(3, Duration::from_millis(5));
    for round in 1..=3 {
        let system = TestSystem::new(round);
        let entities = Entities::new(Arc::new(store.clone()));
        let nodes = entities.start::<Node<false>>(system.system(), "nodes", Trouble::default());
        let relays = entities.start::<Sourced<Relay>>(system.system(), "relays", ());
        let (nodes, relays) = (nodes.expect("free"), relays.expect("free"));
        let relay = relays.get("b").expect("a short key");
        let send = SendTo {
            receiver: relay.id().clone(),
            count: 10,
            size: 0,
        };
        let sender = nodes.get("a").expect("a short key");
        let sent = system.run(sender.ask(send)).expect("an answer");
        sent.expect("the outbox has room");
        if round < 3 {
            // The system ends while messages are under way.
            system.advance(Duration::from_millis(100));
        } else {
            system.advance(60 * SECOND);
            let relayed = system.run(relay.ask(Look)).expect("an answer");
            assert_eq!(relayed, (taken("node/a", 30), 0));
            let last = nodes.get("c").expect("a short key");
            let (last, _) = system.run(last.ask(Look)).expect("an answer");
            assert_eq!(last, taken("relay/b", 30));
        }
        drop(system);
        store = store.reopen();
    }
}
