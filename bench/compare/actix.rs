//! The code that `docs/compare.md` shows for actix.

use std::time::Duration;

use actix::dev::SendError;
use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, MailboxError, Message,
    MessageResult, Recipient, Supervised, Supervisor, SyncArbiter, SyncContext, System,
};

pub struct Add(pub u64);

impl Message for Add {
    type Result = ();
}

pub struct Get;

impl Message for Get {
    type Result = u64;
}

pub struct Counter(u64);

impl Actor for Counter {
    type Context = Context<Self>;

    fn started(&mut self, cx: &mut Context<Self>) {
        cx.set_mailbox_capacity(64);
    }
}

impl Handler<Add> for Counter {
    type Result = ();

    fn handle(&mut self, Add(more): Add, _: &mut Context<Self>) {
        self.0 += more;
    }
}

impl Handler<Get> for Counter {
    type Result = MessageResult<Get>;

    fn handle(&mut self, _: Get, _: &mut Context<Self>) -> MessageResult<Get> {
        MessageResult(self.0)
    }
}

pub async fn ask(counter: &Addr<Counter>) -> Result<u64, MailboxError> {
    counter.send(Get).timeout(Duration::from_secs(1)).await
}

pub fn full(counter: &Addr<Counter>) {
    if let Err(SendError::Full(Add(more))) = counter.try_send(Add(1)) {
        let _kept = more; // The message comes back.
    }
    counter.do_send(Add(1)); // Beyond the bound.
}

impl Supervised for Counter {
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.0 = 0; // The same value goes on; what must be fresh is made fresh here.
    }
}

pub fn supervise() -> Addr<Counter> {
    Supervisor::start(|_| Counter(0))
}

pub struct Ticker;

impl Actor for Ticker {
    type Context = Context<Self>;

    fn started(&mut self, cx: &mut Context<Self>) {
        cx.run_interval(Duration::from_secs(1), |_ticker, _cx| {});
        cx.run_later(Duration::from_secs(9), |_ticker, cx| cx.stop());
    }
}

pub fn publish(subscribers: &[Recipient<Add>]) {
    for subscriber in subscribers {
        subscriber.do_send(Add(1));
    }
}

pub struct Sums;

impl Actor for Sums {
    type Context = SyncContext<Self>;
}

pub fn blocking() -> Addr<Sums> {
    SyncArbiter::start(2, || Sums)
}

pub fn observe(counter: &Addr<Counter>) -> bool {
    counter.connected()
}

pub fn end() {
    System::current().stop();
}

pub async fn program() -> Result<(), MailboxError> {
    let counter = Counter(40).start();
    counter.send(Add(2)).await?;
    assert_eq!(counter.send(Get).await?, 42);
    Ok(())
}
