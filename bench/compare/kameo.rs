//! The code that `docs/compare.md` shows for kameo.

use std::ops::ControlFlow;
use std::time::Duration;

use kameo::Actor;
use kameo::actor::{ActorId, ActorRef, Spawn, WeakActorRef};
use kameo::error::{ActorStopReason, Infallible, PanicError, SendError};
use kameo::mailbox;
use kameo::message::{Context, Message};
use kameo::supervision::{RestartPolicy, SupervisionStrategy};

#[derive(Clone)]
pub struct Counter(u64);

impl Actor for Counter {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(counter: Self, _me: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(counter)
    }
}

pub struct Add(pub u64);
pub struct Get;

impl Message<Add> for Counter {
    type Reply = ();

    async fn handle(&mut self, Add(more): Add, _cx: &mut Context<Self, ()>) {
        self.0 += more;
    }
}

impl Message<Get> for Counter {
    type Reply = u64;

    async fn handle(&mut self, _: Get, _cx: &mut Context<Self, u64>) -> u64 {
        self.0
    }
}

pub async fn ask(counter: &ActorRef<Counter>) -> Result<u64, SendError<Get>> {
    counter
        .ask(Get)
        .reply_timeout(Duration::from_secs(1))
        .send()
        .await
}

pub fn mailboxes() {
    let _bounded = Counter::spawn_with_mailbox(Counter(0), mailbox::bounded(64));
    let _unbounded = Counter::spawn_with_mailbox(Counter(0), mailbox::unbounded());
}

pub fn full(counter: &ActorRef<Counter>) {
    if let Err(SendError::MailboxFull(Add(more))) = counter.tell(Add(1)).try_send() {
        let _kept = more; // The message comes back.
    }
}

pub struct Office;

impl Actor for Office {
    type Args = ();
    type Error = Infallible;

    fn supervision_strategy() -> SupervisionStrategy {
        SupervisionStrategy::RestForOne
    }

    async fn on_start((): (), me: ActorRef<Self>) -> Result<Self, Infallible> {
        let _counter = Counter::supervise(&me, Counter(0))
            .restart_policy(RestartPolicy::Permanent)
            .restart_limit(3, Duration::from_secs(5))
            .spawn()
            .await;
        Ok(Self)
    }
}

pub struct Watcher;

impl Actor for Watcher {
    type Args = ActorRef<Counter>;
    type Error = Infallible;

    async fn on_start(counter: Self::Args, me: ActorRef<Self>) -> Result<Self, Infallible> {
        me.link(&counter).await;
        Ok(Self)
    }

    async fn on_link_died(
        &mut self,
        _me: WeakActorRef<Self>,
        _counter: ActorId,
        _reason: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        Ok(ControlFlow::Continue(())) // It is told of the end, and goes on.
    }

    async fn on_panic(
        &mut self,
        _me: WeakActorRef<Self>,
        _panic: PanicError,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        Ok(ControlFlow::Continue(())) // The same value goes on after a panic.
    }
}

pub fn timers(counter: &ActorRef<Counter>) {
    let _once = counter.tell(Add(1)).send_after(Duration::from_secs(1));
}

pub fn blocking() {
    let _own_thread = Counter::spawn_in_thread(Counter(0));
}

pub fn observe(counter: &ActorRef<Counter>) {
    let _ = (counter.id(), counter.is_alive(), counter.strong_count());
}

pub async fn end(counter: &ActorRef<Counter>) {
    // Handles what waits before the stop, and nothing behind it.
    let _ = counter.stop_gracefully().await;
    counter.wait_for_shutdown().await;
}

pub async fn program() -> Result<(), SendError<Add>> {
    let counter = Counter::spawn(Counter(40));
    counter.tell(Add(2)).send().await?;
    assert_eq!(counter.ask(Get).send().await.ok(), Some(42));
    Ok(())
}
