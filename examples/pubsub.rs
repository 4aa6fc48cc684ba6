//! Publish and subscribe: a publisher knows no subscriber, and waits for none.
//!
//! `cargo run -p strowger-examples pubsub`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use strowger::{
    Actor, ActorSystem, BoxError, Context, MailboxSpec, Overflow, Request, TopicError, handlers,
};

/// The load of a line of an exchange. The topic names the line: `office/line`.
struct Load(u32);

/// Counts the publications of all offices and lines.
#[derive(Default)]
struct Log {
    entries: u32,
}

/// Asks for the number of publications seen; queued behind everything published before.
struct Seen;
impl Request for Seen {
    type Reply = u32;
}

#[handlers]
impl Actor for Log {
    type Args = ();
    type Error = TopicError;

    /// A subscription ends with its actor. Made here, it is renewed in every incarnation.
    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, TopicError> {
        cx.system()
            .subscribe::<Load>("**", cx.actor_ref().recipient())?;
        Ok(Self::default())
    }

    /// All subscribers get the same `Arc`; the payload is never cloned.
    async fn load(&mut self, _: Arc<Load>) {
        self.entries += 1;
    }

    async fn seen(&mut self, _: Seen) -> u32 {
        self.entries
    }
}

/// Shows the load of one line. Only the latest value matters, so the mailbox keeps only the latest.
struct Gauge;

#[handlers]
impl Actor for Gauge {
    type Args = ();
    type Error = TopicError;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1).overflow(Overflow::KeepLatest);

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, TopicError> {
        let line = cx.system().topic::<Load>("chicago/7")?;
        line.subscribe(cx.actor_ref().recipient())?;
        Ok(Self)
    }

    async fn load(&mut self, load: Arc<Load>, cx: &mut Context<Self>) {
        if load.0 == 100 {
            println!("line 7 is full");
            cx.stop();
        }
    }
}

/// Rings when a line of Chicago is nearly full. Publications that the filter rejects never arrive.
struct Alarm(u32);

#[handlers]
impl Actor for Alarm {
    type Args = ();
    type Error = TopicError;

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, TopicError> {
        let me = cx.actor_ref().recipient();
        cx.system()
            .subscribe_where("chicago/*", me, |load: &Load| load.0 > 97)?;
        Ok(Self(0))
    }

    async fn load(&mut self, _: Arc<Load>) {
        self.0 += 1;
    }

    async fn seen(&mut self, _: Seen) -> u32 {
        self.0
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let log = system.spawn::<Log>("log", ())?;
    let alarm = system.spawn::<Alarm>("alarm", ())?;
    let gauge = system.spawn::<Gauge>("gauge", ())?;

    let line = system.topic::<Load>("chicago/7")?;
    // An actor subscribes when it starts. Messages sent earlier wait in the mailbox; publications
    // do not.
    while line.info().subscribers < 3 {
        tokio::task::yield_now().await;
    }
    for percent in 1..=100 {
        line.publish(Load(percent));
    }
    gauge.stopped().await;
    println!("the log has {} entries", log.ask(Seen).await?);
    println!("the alarm rang {} times", alarm.ask(Seen).await?);

    // Nobody subscribed to this topic by name; the log subscribed to every name.
    let published = system.topic("elgin/1")?.publish(Load(99));
    println!("delivered to {}", published.delivered);
    println!("the log has {} entries", log.ask(Seen).await?);
    Ok(())
}
