//! An actor that counts: telling, asking, and getting the message back when a send fails.
//!
//! `cargo run -p strowger-examples counter`

use std::convert::Infallible;

use strowger::{Accepts, Actor, ActorSystem, Ask, BoxError, Context, Request, SendError};

/// The messages that can be sent to the counter: one type each.
struct Add(u64);
struct Get;

impl Request for Get {
    type Reply = u64;
}

/// The counter's mailbox type: one enum, so that `handle` can match every message.
enum Message {
    Add(Add),
    Get(Ask<Get>),
}

impl Accepts<Add> for Message {
    fn wrap(message: Add) -> Self {
        Self::Add(message)
    }
}

impl Accepts<Ask<Get>> for Message {
    fn wrap(message: Ask<Get>) -> Self {
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

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let counter = system.spawn::<Counter>("counter", 40)?;

    counter.tell(Add(1)).await?;
    counter.try_tell(Add(1))?;
    println!(
        "{} has counted to {}",
        counter.path(),
        counter.ask(Get).await?
    );

    counter.stop();
    println!("it ended: {}", counter.stopped().await);

    // A send to an actor that has ended fails and returns the message.
    if let Err(SendError::Closed(Add(more))) = counter.tell(Add(7)).await {
        println!("nobody took Add({more})");
    }
    Ok(())
}
