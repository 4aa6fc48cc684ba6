//! Work that blocks a thread, in the two ways that hold up nobody else.
//!
//! A handler that computes for long, or waits for a disk without `.await`, would hold its worker
//! and all actors behind it. Such work belongs on a thread that may block:
//!
//! - of tokio's pool, for a piece of work now and then: a pipe brings what it comes to back as a
//!   message, gives it up with the incarnation, and the actor goes on meanwhile;
//! - of the actor's own, where blocking is all it does, or where what blocks must stay on one
//!   thread: `BLOCKING`. Its messages wait for each other as always, and a thread for each such
//!   actor is what it costs.
//!
//! `cargo run -p strowger-examples --bin blocking`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;

use strowger::{Actor, ActorSystem, Ask, BoxError, Context, Reply, Request, handlers};
use tokio::task::{JoinError, spawn_blocking};

/// Asks for the sum of what somebody writes, line by line, until the writer ends.
struct AddUp(mpsc::Receiver<u64>);
impl Request for AddUp {
    type Reply = u64;
}

/// Asks how many sums are being made.
struct Busy;
impl Request for Busy {
    type Reply = usize;
}

/// A sum is made, or its thread panicked. The reply goes along, so that nothing is looked up.
struct Done {
    sum: Result<u64, JoinError>,
    reply: Reply<u64>,
}

struct Clerk;

#[handlers]
impl Actor for Clerk {
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn add_up(&mut self, ask: Ask<AddUp>, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let Ask { request, reply } = ask;
        // Receives without `.await`: the thread waits, whoever else is on it.
        let work = spawn_blocking(move || request.0.iter().sum());
        cx.pipe(work, |sum| Done { sum, reply })?;
        Ok(())
    }

    async fn done(&mut self, done: Done) -> Result<(), BoxError> {
        done.reply.send(done.sum?);
        Ok(())
    }

    async fn busy(&mut self, _: Busy, cx: &mut Context<Self>) -> usize {
        cx.pipes()
    }
}

/// Writes down what it is told, one line after the other.
struct Ledger(File);

/// Something to be written down.
struct Line(String);

/// Asks how long the ledger is, in octets.
struct Length;
impl Request for Length {
    type Reply = u64;
}

#[handlers]
impl Actor for Ledger {
    type Args = ();
    type Error = BoxError;

    const BLOCKING: bool = true;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(tempfile::tempfile()?))
    }

    async fn line(&mut self, Line(text): Line) -> Result<(), BoxError> {
        writeln!(self.0, "{text}")?;
        // Waits for the disk: this thread is the ledger's own.
        self.0.sync_data()?;
        Ok(())
    }

    async fn length(&mut self, _: Length) -> Result<u64, BoxError> {
        Ok(self.0.metadata()?.len())
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let clerk = system.spawn::<Clerk>("clerk", ())?;

    let (writer, lines) = mpsc::channel();
    let sum = tokio::spawn({
        let clerk = clerk.clone();
        async move { clerk.ask(AddUp(lines)).await }
    });
    // The thread waits for lines; the clerk does not.
    while clerk.ask(Busy).await? == 0 {
        tokio::task::yield_now().await;
    }
    println!("a sum is being made, and the clerk answers");

    for number in 1..=100 {
        writer.send(number)?;
    }
    drop(writer);
    println!("1 + 2 + .. + 100 = {}", sum.await??);
    println!("sums that are being made: {}", clerk.ask(Busy).await?);

    let ledger = system.spawn::<Ledger>("ledger", ())?;
    for month in ["January", "February", "March"] {
        ledger.tell(Line(month.to_owned())).await?;
    }
    println!("the ledger has {} octets", ledger.ask(Length).await?);
    Ok(())
}
