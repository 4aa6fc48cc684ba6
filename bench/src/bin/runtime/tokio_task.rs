//! A hand-written task and a channel: what one writes without an actor crate.

use tokio::sync::{mpsc, oneshot};

use crate::work::{Counter, Room, Subject, Token, Wiring};

/// Tasks and channels by hand.
#[derive(Debug, Clone)]
pub struct Tokio;

/// The sending half.
#[derive(Clone)]
pub enum Sender {
    Unbounded(mpsc::UnboundedSender<Msg>),
    Bounded(mpsc::Sender<Msg>),
}

/// What the task understands.
pub enum Msg {
    Add(u64),
    Get(u64, oneshot::Sender<u64>),
    Pass(Token),
    Wire(Box<Wiring<Sender>>),
}

impl Sender {
    async fn send(&self, msg: Msg) {
        let sent = match self {
            Self::Unbounded(sender) => sender.send(msg).is_ok(),
            Self::Bounded(sender) => sender.send(msg).await.is_ok(),
        };
        assert!(sent, "the task is running");
    }
}

async fn handle(counter: &mut Counter<Sender>, msg: Msg) {
    match msg {
        Msg::Add(value) => counter.add(value),
        Msg::Get(value, reply) => {
            let _ = reply.send(counter.add_and_get(value));
        }
        Msg::Pass(token) => {
            if let Some((next, token)) = counter.take(token) {
                next.send(Msg::Pass(token)).await;
            }
        }
        Msg::Wire(wiring) => counter.wire(*wiring),
    }
}

impl Subject for Tokio {
    const NAME: &'static str = "tokio";
    const TAKES_BOUNDS: bool = true;
    type Ref = Sender;

    async fn spawn(&self, room: Room) -> Sender {
        let mut counter = Counter::default();
        match room {
            Room::Unbounded => {
                let (sender, mut receiver) = mpsc::unbounded_channel();
                tokio::spawn(async move {
                    while let Some(msg) = receiver.recv().await {
                        handle(&mut counter, msg).await;
                    }
                });
                Sender::Unbounded(sender)
            }
            Room::Bounded => {
                let (sender, mut receiver) = mpsc::channel(Room::BOUND);
                tokio::spawn(async move {
                    while let Some(msg) = receiver.recv().await {
                        handle(&mut counter, msg).await;
                    }
                });
                Sender::Bounded(sender)
            }
        }
    }

    async fn tell(to: &Sender, value: u64) {
        to.send(Msg::Add(value)).await;
    }

    async fn ask(to: &Sender, value: u64) -> u64 {
        let (reply, answer) = oneshot::channel();
        to.send(Msg::Get(value, reply)).await;
        answer.await.expect("the task answers")
    }

    async fn pass(to: &Sender, token: Token) {
        to.send(Msg::Pass(token)).await;
    }

    async fn wire(to: &Sender, wiring: Wiring<Sender>) {
        to.send(Msg::Wire(Box::new(wiring))).await;
    }

    async fn stop(&self, actor: Sender) {
        // The task ends with its last sender.
        drop(actor);
    }
}
