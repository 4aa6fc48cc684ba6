//! The counter on kameo.

use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::mailbox;
use kameo::message::{Context, Message};

use crate::work::{Counter, Room, Subject, Token, Wiring};

/// Actors of kameo.
#[derive(Debug, Clone)]
pub struct Kameo;

/// The actor.
pub struct CounterActor(Counter<ActorRef<CounterActor>>);

impl Actor for CounterActor {
    type Args = ();
    type Error = Infallible;

    async fn on_start((): (), _me: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self(Counter::default()))
    }
}

/// Adds a number.
pub struct Add(u64);
/// Adds a number and asks for the sum.
pub struct Get(u64);
/// Takes a token.
pub struct Pass(Token);
/// Begins anew.
pub struct Wire(Box<Wiring<ActorRef<CounterActor>>>);

impl Message<Add> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Add, _cx: &mut Context<Self, ()>) {
        self.0.add(msg.0);
    }
}

impl Message<Get> for CounterActor {
    type Reply = u64;

    async fn handle(&mut self, msg: Get, _cx: &mut Context<Self, u64>) -> u64 {
        self.0.add_and_get(msg.0)
    }
}

impl Message<Pass> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Pass, _cx: &mut Context<Self, ()>) {
        if let Some((next, token)) = self.0.take(msg.0) {
            assert!(
                next.tell(Pass(token)).await.is_ok(),
                "the next actor is running"
            );
        }
    }
}

impl Message<Wire> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Wire, _cx: &mut Context<Self, ()>) {
        self.0.wire(*msg.0);
    }
}

impl Subject for Kameo {
    const NAME: &'static str = "kameo";
    const TAKES_BOUNDS: bool = true;
    type Ref = ActorRef<CounterActor>;

    async fn spawn(&self, room: Room) -> Self::Ref {
        match room {
            Room::Unbounded => CounterActor::spawn_with_mailbox((), mailbox::unbounded()),
            Room::Bounded => CounterActor::spawn_with_mailbox((), mailbox::bounded(Room::BOUND)),
        }
    }

    async fn tell(to: &Self::Ref, value: u64) {
        assert!(to.tell(Add(value)).await.is_ok(), "the actor is running");
    }

    async fn ask(to: &Self::Ref, value: u64) -> u64 {
        to.ask(Get(value)).await.expect("the actor answers")
    }

    async fn pass(to: &Self::Ref, token: Token) {
        assert!(to.tell(Pass(token)).await.is_ok(), "the actor is running");
    }

    async fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) {
        assert!(
            to.tell(Wire(Box::new(wiring))).await.is_ok(),
            "the actor is running"
        );
    }

    async fn stop(&self, actor: Self::Ref) {
        actor
            .stop_gracefully()
            .await
            .expect("the actor takes the stop");
        actor.wait_for_shutdown().await;
    }
}
