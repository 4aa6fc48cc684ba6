//! The counter on Strowger, with everything that an actor gets by default: a place in the tree, a
//! guard against panics, figures, and a deadline on every question.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strowger::{Accepts, Actor, ActorRef, ActorSystem, Ask, Context, MailboxSpec, Reply, Request};

use crate::work::{Counter, Room, Subject, Token, Wiring};

/// Actors of one system.
#[derive(Clone)]
pub struct Strowger {
    system: ActorSystem,
    spawned: Arc<AtomicU64>,
}

impl Strowger {
    /// Starts a system on the runtime that is entered.
    pub fn start() -> Self {
        let system = ActorSystem::new("bench").expect("panics unwind here");
        Self {
            system,
            spawned: Arc::default(),
        }
    }
}

/// What the actor understands.
pub enum Msg {
    Add(u64),
    Get(u64, Reply<u64>),
    Pass(Token),
    Wire(Box<Wiring<ActorRef<Msg>>>),
}

/// Adds a number and asks for the sum.
#[derive(Debug, Clone, Copy)]
pub struct Get(u64);

impl Request for Get {
    type Reply = u64;
}

impl Accepts<Ask<Get>> for Msg {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask.request.0, ask.reply)
    }
}

struct CounterActor<const ROOM: usize>(Counter<ActorRef<Msg>>);

impl<const ROOM: usize> Actor for CounterActor<ROOM> {
    type Msg = Msg;
    type Args = ();
    type Error = Infallible;

    const MAILBOX: MailboxSpec = if ROOM == 0 {
        MailboxSpec::unbounded()
    } else {
        MailboxSpec::bounded(ROOM)
    };

    async fn pre_start((): (), _cx: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(Counter::default()))
    }

    async fn handle(&mut self, msg: Msg, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            Msg::Add(value) => self.0.add(value),
            Msg::Get(value, reply) => reply.send(self.0.add_and_get(value)),
            Msg::Pass(token) => {
                if let Some((next, token)) = self.0.take(token) {
                    assert!(
                        next.tell(Msg::Pass(token)).await.is_ok(),
                        "the next actor runs"
                    );
                }
            }
            Msg::Wire(wiring) => self.0.wire(*wiring),
        }
        Ok(())
    }
}

async fn send(to: &ActorRef<Msg>, msg: Msg) {
    assert!(to.tell(msg).await.is_ok(), "the actor is running");
}

impl Subject for Strowger {
    const NAME: &'static str = "strowger";
    const TAKES_BOUNDS: bool = true;
    type Ref = ActorRef<Msg>;

    async fn spawn(&self, room: Room) -> ActorRef<Msg> {
        let key = self.spawned.fetch_add(1, Ordering::Relaxed).to_string();
        let started = match room {
            Room::Unbounded => self.system.spawn::<CounterActor<0>>(key, ()),
            Room::Bounded => self.system.spawn::<CounterActor<{ Room::BOUND }>>(key, ()),
        };
        started.expect("the key is free")
    }

    async fn tell(to: &ActorRef<Msg>, value: u64) {
        send(to, Msg::Add(value)).await;
    }

    async fn ask(to: &ActorRef<Msg>, value: u64) -> u64 {
        to.ask(Get(value)).await.expect("the actor answers")
    }

    async fn pass(to: &ActorRef<Msg>, token: Token) {
        send(to, Msg::Pass(token)).await;
    }

    async fn wire(to: &ActorRef<Msg>, wiring: Wiring<ActorRef<Msg>>) {
        send(to, Msg::Wire(Box::new(wiring))).await;
    }

    async fn stop(&self, actor: ActorRef<Msg>) {
        actor.stop();
        actor.stopped().await;
    }
}
