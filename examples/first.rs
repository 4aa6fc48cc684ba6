//! The first program: an actor that counts, and the supervisor that restarts it.
//!
//! `cargo run -p strowger-examples first`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use strowger::{
    Actor, ActorSystem, BoxError, ChildSpec, Context, Request, Strategy, Supervisor, handlers,
};

/// Adds to the count; the reply is the new count.
struct Add(u64);
impl Request for Add {
    type Reply = u64;
}

/// Makes the counter fail.
struct Fail;

struct Counter(u64);

#[handlers]
impl Actor for Counter {
    type Args = u64;
    type Error = BoxError;

    async fn pre_start(first: u64, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(first))
    }

    async fn add(&mut self, Add(more): Add) -> u64 {
        self.0 += more;
        self.0
    }

    async fn fail(&mut self, _: Fail) -> Result<(), BoxError> {
        Err("on purpose".into())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("first")?;
    let office = Supervisor::new(Strategy::OneForOne)
        .intensity(3, Duration::from_secs(5))
        .child(ChildSpec::new::<Counter>("counter", 40));
    let office = system.supervise("office", office).await?;
    let counter = office.child::<CounterMessage>("counter");
    let counter = counter.ok_or("the supervisor started it")?;

    println!("40 + 2 = {}", counter.ask(Add(2)).await?);
    counter.tell(Fail).await?;
    // The same address reaches the next incarnation, which starts at 40 again.
    println!("40 + 1 = {}", counter.ask(Add(1)).await?);
    Ok(())
}
