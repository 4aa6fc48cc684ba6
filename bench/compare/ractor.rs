//! The code that `docs/compare.md` shows for ractor.

use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{
    Actor, ActorProcessingErr, ActorRef, OutputPort, RpcReplyPort, SpawnErr, SupervisionEvent, pg,
};

pub enum Message {
    Add(u64),
    Get(RpcReplyPort<u64>),
    Tick,
}

pub struct Counter;

impl Actor for Counter {
    type Msg = Message;
    type State = u64;
    type Arguments = u64;

    async fn pre_start(
        &self,
        _myself: ActorRef<Message>,
        first: u64,
    ) -> Result<u64, ActorProcessingErr> {
        Ok(first)
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        sum: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(more) => *sum = sum.checked_add(more).ok_or("counted too far")?,
            Message::Get(reply) => reply.send(*sum)?,
            Message::Tick => {}
        }
        Ok(())
    }
}

pub async fn ask(counter: &ActorRef<Message>) -> Option<u64> {
    match counter
        .call(Message::Get, Some(Duration::from_secs(1)))
        .await
    {
        Ok(CallResult::Success(sum)) => Some(sum),
        Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => None,
    }
}

/// Restarts its child when it fails; the restart strategy is whatever the code below does.
pub struct Office;

impl Actor for Office {
    type Msg = ();
    type State = ActorRef<Message>;
    type Arguments = ();

    async fn pre_start(
        &self,
        myself: ActorRef<()>,
        (): (),
    ) -> Result<Self::State, ActorProcessingErr> {
        let (counter, _) = Actor::spawn_linked(None, Counter, 0, myself.get_cell()).await?;
        Ok(counter)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<()>,
        event: SupervisionEvent,
        counter: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, _) = event {
            // A new actor, with a new address and an empty mailbox.
            (*counter, _) = Actor::spawn_linked(None, Counter, 0, myself.get_cell()).await?;
        }
        Ok(())
    }
}

pub fn timers(counter: &ActorRef<Message>) {
    let _every = counter.send_interval(Duration::from_secs(1), || Message::Tick);
    let _once = counter.send_after(Duration::from_secs(1), || Message::Tick);
}

pub fn publish(counter: ActorRef<Message>) {
    let port = OutputPort::<u64>::default();
    port.subscribe(counter, |number| Some(Message::Add(number)));
    port.send(1);
}

pub fn groups(counter: &ActorRef<Message>) {
    pg::join("counters".to_owned(), vec![counter.get_cell()]);
    for member in pg::get_members(&"counters".to_owned()) {
        let _ = member.send_message(Message::Add(1));
    }
}

pub async fn blocking(counter: &ActorRef<Message>) -> Result<(), ActorProcessingErr> {
    let sum = tokio::task::spawn_blocking(|| (0..1_000_000_u64).sum()).await?;
    counter.send_message(Message::Add(sum))?;
    Ok(())
}

pub fn observe(counter: &ActorRef<Message>) {
    let _ = (
        counter.get_name(),
        counter.get_status(),
        counter.get_children().len(),
    );
}

pub async fn end(counter: &ActorRef<Message>) {
    // Handles what waits, refuses what comes.
    let _ = counter.drain_and_wait(Some(Duration::from_secs(5))).await;
}

pub async fn program() -> Result<(), SpawnErr> {
    let (counter, task) = Actor::spawn(None, Counter, 40).await?;
    let _ = counter.send_message(Message::Add(2));
    assert_eq!(ask(&counter).await, Some(42));
    counter.stop(None);
    let _ = task.await;
    Ok(())
}
