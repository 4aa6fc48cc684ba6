//! A pipeline with back-pressure: three stages, each as fast as the slowest.
//!
//! A mailbox is bounded, and `tell` waits for room. So a slow stage holds back the stage before it,
//! and that one holds back the source: no queue grows, and nothing is dropped.
//!
//! `cargo run -p strowger-examples pipeline`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;

use strowger::{
    Actor, ActorRef, ActorSystem, Ask, BoxError, Context, MailboxSpec, Request, handlers,
};

/// The mailbox of each stage has room for four messages.
const ROOM: MailboxSpec = MailboxSpec::bounded(4);

/// A record of a call, as the exchange writes it: `from>to,seconds`.
struct Line(String);

/// A parsed record of a call.
struct Call {
    from: String,
    seconds: u32,
}

/// The first stage: parses lines.
struct Parser {
    bills: ActorRef<BillsMessage>,
}

#[handlers]
impl Actor for Parser {
    type Args = ActorRef<BillsMessage>;
    type Error = BoxError;
    const MAILBOX: MailboxSpec = ROOM;

    async fn pre_start(bills: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self { bills })
    }

    async fn line(&mut self, Line(line): Line) -> Result<(), BoxError> {
        let (from, rest) = line.split_once('>').ok_or("a line without a caller")?;
        let (_, seconds) = rest.split_once(',').ok_or("a line without a duration")?;
        let (from, seconds) = (from.to_owned(), seconds.parse()?);
        // Waits while the next stage is full; meanwhile this mailbox fills up and holds back the
        // source.
        self.bills.tell(Call { from, seconds }).await?;
        Ok(())
    }

    /// Forwards the ask with its reply: no task waits here for the answer.
    async fn total(&mut self, ask: Ask<Total>) -> Result<(), BoxError> {
        Ok(self.bills.tell(ask).await?)
    }
}

/// The second stage: adds up the seconds, slowly.
#[derive(Default)]
struct Bills {
    seconds: BTreeMap<String, u32>,
}

/// Asks for the bills; queued behind all calls.
struct Total;
impl Request for Total {
    type Reply = Vec<(String, u32)>;
}

#[handlers]
impl Actor for Bills {
    type Args = ();
    type Error = BoxError;
    const MAILBOX: MailboxSpec = ROOM;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self::default())
    }

    async fn call(&mut self, call: Call) {
        // Makes this stage slower than the parser: yields before each call.
        tokio::task::yield_now().await;
        *self.seconds.entry(call.from).or_default() += call.seconds;
    }

    async fn total(&mut self, _: Total) -> Vec<(String, u32)> {
        let seconds = self.seconds.iter();
        seconds
            .map(|(from, seconds)| (from.clone(), *seconds))
            .collect()
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let bills = system.spawn::<Bills>("bills", ())?;
    let parser = system.spawn::<Parser>("parser", bills.clone())?;

    for number in 0..10_000_u32 {
        let caller = ["Almon", "Emma", "Joseph"][number as usize % 3];
        let line = format!("{caller}>{number},{}", number % 60);
        parser.tell(Line(line)).await?; // The source waits for room, too.
    }
    // Queued behind everything that was sent, through both stages; the last stage answers.
    for (caller, seconds) in parser.ask(Total).await? {
        println!("{caller} talked for {seconds} s");
    }
    for stage in [parser.erase(), bills.erase()] {
        let info = stage.info();
        println!(
            "{}: never more than {} waited: {}",
            info.path,
            info.capacity.unwrap_or(usize::MAX),
            Some(info.high_water) <= info.capacity
        );
    }
    Ok(())
}
