//! Glue written by hand, with the parts that are easily forgotten.

use std::convert::Infallible;
use std::rc::Rc;

use strowger::{Accepts, Actor, ActorRef, Ask, Context, Request};

struct Add(u64);
struct Subtract(u64);
struct Get;
struct Shared;

impl Request for Get {
    type Reply = u64;
}

impl Request for Shared {
    type Reply = Rc<u64>;
}

enum Message {
    Add(Add),
    Get(Ask<Get>),
}

impl Accepts<Add> for Message {
    fn wrap(message: Add) -> Self {
        Self::Add(message)
    }
}

impl Accepts<Get> for Message {
    fn wrap(message: Get) -> Self {
        Self::Get(message)
    }
}

struct Counter(u64);

impl Actor for Counter {
    type Msg = Message;
    type Args = u64;
    type Error = Infallible;

    async fn pre_start(first: u64, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(first))
    }

    async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<(), Infallible> {
        match message {
            Message::Add(Add(more)) => self.0 += more,
            Message::Get(ask) => ask.reply.send(self.0),
        }
        Ok(())
    }
}

async fn send(counter: &ActorRef<Message>) {
    let _ = counter.try_tell(Subtract(1));
    let _ = counter.ask(Get).await;
    let _ = counter.ask(Add(1)).await;
    let _ = counter.recipient::<Subtract>();
}

fn main() {}
