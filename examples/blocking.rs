//! Work that blocks a thread, in the two ways that do not hold up anything else.
//!
//! A handler that computes for long, or waits for a disk without `.await`, would hold up its worker
//! and all actors that the worker runs. Such work belongs on a thread that may block:
//!
//! - A thread of tokio's pool, for an occasional piece of work. A pipe returns the result as a
//!   message, and drops it if the incarnation ends first; the actor keeps handling messages
//!   meanwhile.
//! - The actor's own thread (`BLOCKING`), if blocking is all it does, or if the blocking work must
//!   stay on one thread. Its messages are handled one by one as always; the cost is a thread for
//!   each such actor.
//!
//! `cargo run -p strowger-examples blocking`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;

use strowger::{Actor, ActorSystem, Ask, BoxError, Context, Reply, Request, handlers};
use tokio::task::{JoinError, spawn_blocking};

/// Asks for the sum of the numbers that a writer sends, until the writer is dropped.
struct AddUp(mpsc::Receiver<u64>);
impl Request for AddUp {
    type Reply = u64;
}

/// Asks for the number of sums in progress.
struct Busy;
impl Request for Busy {
    type Reply = usize;
}

/// The result of a sum, or the panic of its thread, together with the reply to send it to.
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
        // Receives without `.await`, which blocks a thread of the pool and not the worker.
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

/// Writes each line to a file, one after the other.
struct Ledger(File);

/// A line to write.
struct Line(String);

/// Asks for the length of the ledger in bytes.
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
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let clerk = system.spawn::<Clerk>("clerk", ())?;

    let (writer, lines) = mpsc::channel();
    let sum = tokio::spawn({
        let clerk = clerk.clone();
        async move { clerk.ask(AddUp(lines)).await }
    });
    // The thread of the pool waits for numbers; the clerk does not.
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
    println!("the ledger has {} bytes", ledger.ask(Length).await?);
    Ok(())
}
