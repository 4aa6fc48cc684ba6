//! Asking: every ask has a deadline, and every reason for a missing answer has a name.
//!
//! `#[handlers]` generates the code between handlers and messages; `counter.rs` shows the same code
//! written by hand.
//!
//! `cargo run -p strowger-examples ask`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use strowger::{Actor, ActorSystem, Ask, BoxError, Context, Reply, Request, handlers};

/// Asks for the number of this name.
struct Lookup(&'static str);
impl Request for Lookup {
    type Reply = Option<u32>;
}

/// Waits for the number of this name; answered once it is entered.
struct WaitFor(&'static str);
impl Request for WaitFor {
    type Reply = u32;
}

/// A new entry.
struct Enter(&'static str, u32);

/// A telephone directory.
#[derive(Default)]
struct Directory {
    numbers: BTreeMap<&'static str, u32>,
    waiting: Vec<(&'static str, Reply<u32>)>,
}

#[handlers]
impl Actor for Directory {
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self::default())
    }

    /// The return value of a handler is the answer.
    async fn lookup(&mut self, Lookup(name): Lookup) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// A `Reply` is a value: an actor can keep it, and send the answer later.
    async fn wait_for(&mut self, ask: Ask<WaitFor>) {
        match self.numbers.get(ask.request.0) {
            Some(number) => ask.reply.send(*number),
            None => self.waiting.push((ask.request.0, ask.reply)),
        }
    }

    async fn enter(&mut self, Enter(name, number): Enter) {
        self.numbers.insert(name, number);
        let (known, waiting) = self.waiting.drain(..).partition(|(who, _)| *who == name);
        self.waiting = waiting;
        let known: Vec<_> = known;
        for (_, reply) in known {
            reply.send(number);
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let directory = system.spawn::<Directory>("directory", ())?;

    directory.tell(Enter("Almon", 1)).await?;
    println!("Almon: {:?}", directory.ask(Lookup("Almon")).await?);
    println!("Emma: {:?}", directory.ask(Lookup("Emma")).await?);

    // The ask is sent first, and answered once the number is entered.
    let waiting = directory.ask(WaitFor("Emma"));
    let entering = directory.tell(Enter("Emma", 2));
    let (answer, entered) = tokio::join!(waiting, entering);
    entered?;
    println!("Emma, after a wait: {}", answer?);

    // Nobody enters this number. Without a limit, `ask` waits five seconds, or as the system is
    // set.
    let within = Duration::from_millis(10);
    let answer = directory.ask_within(WaitFor("Nobody"), within).await;
    println!(
        "Nobody: {}",
        answer.map_or_else(|e| e.to_string(), |n| n.to_string())
    );

    // The directory drops the reply when it stops, so the caller does not wait for the deadline.
    let waiting = directory.ask(WaitFor("Nobody"));
    let stopping = async { directory.stop() };
    let (answer, ()) = tokio::join!(waiting, stopping);
    println!(
        "At the end: {}",
        answer.map_or_else(|e| e.to_string(), |n| n.to_string())
    );

    directory.stopped().await;
    let answer = directory.ask(Lookup("Almon")).await;
    println!(
        "After it: {}",
        answer.map_or_else(|e| e.to_string(), |n| format!("{n:?}"))
    );
    Ok(())
}
