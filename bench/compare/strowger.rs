//! The code that `docs/compare.md` and the guides show for Strowger.

use std::time::Duration;

use strowger::{
    Actor, ActorRef, ActorSystem, AskError, BoxError, ChildSpec, Context, MailboxSpec, Overflow,
    ReadError, Reader, Request, SendError, Signal, Strategy, Supervisor, TopicError, handlers,
};

pub struct Add(pub u64);
pub struct Get;

impl Request for Get {
    type Reply = u64;
}

pub struct Counter(u64);

#[handlers]
impl Actor for Counter {
    type Args = u64;
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(64).overflow(Overflow::DropOldest);

    async fn pre_start(first: u64, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(first))
    }

    async fn add(&mut self, Add(more): Add) -> Result<(), BoxError> {
        self.0 = self.0.checked_add(more).ok_or("counted too far")?;
        Ok(())
    }

    async fn get(&mut self, _: Get) -> u64 {
        self.0
    }
}

pub async fn ask(counter: &ActorRef<CounterMessage>) -> Result<u64, AskError> {
    counter.ask_within(Get, Duration::from_secs(1)).await
}

pub fn full(counter: &ActorRef<CounterMessage>) {
    if let Err(SendError::Full(Add(more))) = counter.try_tell(Add(1)) {
        let _kept = more; // The message comes back.
    }
}

pub async fn supervise(system: &ActorSystem) -> Result<(), BoxError> {
    let office = Supervisor::new(Strategy::RestForOne)
        .intensity(3, Duration::from_secs(5))
        .child(ChildSpec::new::<Counter>("first", 0))
        .child(ChildSpec::new::<Counter>("second", 0));
    let office = system.supervise("office", office).await?;
    let first: Option<ActorRef<CounterMessage>> = office.child("first");
    let _valid_over_restarts = first;
    Ok(())
}

pub struct Tick;
pub struct Fetched(pub String);

/// Monitors an actor, uses a timer, and works beside its mailbox.
pub struct Watcher;

#[handlers]
impl Actor for Watcher {
    type Args = ActorRef<CounterMessage>;
    type Error = BoxError;

    async fn pre_start(counter: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.monitor(&counter);
        cx.send_every(Duration::from_secs(1), || Tick);
        Ok(Self)
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { path, exit, .. } = signal {
            Err(format!("{path} is down: {exit}"))?;
        }
        Ok(())
    }

    async fn tick(&mut self, _: Tick, cx: &mut Context<Self>) -> Result<(), BoxError> {
        cx.pipe(fetch(), Fetched)?;
        Ok(())
    }

    async fn fetched(&mut self, Fetched(_text): Fetched) {}
}

async fn fetch() -> String {
    String::new()
}

pub fn publish(system: &ActorSystem) -> Result<(), TopicError> {
    let topic = system.topic::<String>("exchange/7/load")?;
    topic.publish("busy".to_owned());
    Ok(())
}

pub struct Gauge;

impl Actor for Gauge {
    type Msg = std::sync::Arc<String>;
    type Args = ();
    type Error = TopicError;

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, TopicError> {
        cx.system()
            .subscribe("exchange/*/load", cx.actor_ref().recipient())?;
        Ok(Self)
    }

    async fn handle(&mut self, _: Self::Msg, _: &mut Context<Self>) -> Result<(), TopicError> {
        Ok(())
    }
}

pub async fn read(mut lines: Reader<u64>) -> Result<u64, ReadError> {
    let mut sum = 0;
    while let Some(line) = lines.recv().await {
        sum += line?; // Each line that is read is credit for another.
    }
    Ok(sum)
}

pub async fn blocking(counter: ActorRef<CounterMessage>) -> Result<(), BoxError> {
    let sum = tokio::task::spawn_blocking(|| (0..1_000_000_u64).sum()).await?;
    counter.tell(Add(sum)).await?;
    Ok(())
}

pub fn observe(system: &ActorSystem) {
    for actor in system.actors() {
        let _ = (
            actor.path,
            actor.mailbox_len,
            actor.handled,
            actor.busy_time,
            actor.restarts,
        );
    }
}

pub async fn end(system: &ActorSystem, counter: &ActorRef<CounterMessage>) {
    let not_handled = counter.drain(Duration::from_secs(1)).await;
    let _ = not_handled.len();
    let report = system.shutdown(Duration::from_secs(5)).await;
    assert!(report.not_stopped.is_empty());
}

pub async fn program() -> Result<(), BoxError> {
    let system = ActorSystem::new("office")?;
    let counter = system.spawn::<Counter>("counter", 40)?;
    counter.tell(Add(2)).await?;
    assert_eq!(counter.ask(Get).await?, 42);
    Ok(())
}
