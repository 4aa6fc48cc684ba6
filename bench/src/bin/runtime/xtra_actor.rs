//! The counter on xtra.

use std::future::Future;

use tokio::task::JoinHandle;
use xtra::{Actor, Address, Context, Handler, Mailbox};

use crate::counter::{Computation, Counter, Failure, Token, Wiring};
use crate::subject::{
    Capacity, Placement, Running, Subject, Supervised, WorkerHandles, ask_repeatedly,
};
use crate::work::Workload;

/// Sends in the caller's own future: an `async fn` around it would copy the message once more.
macro_rules! send {
    ($to:expr, $msg:expr) => {
        assert!(
            $to.send($msg).detach().await.is_ok(),
            "the actor is running"
        )
    };
}

/// The xtra subject.
#[derive(Debug, Clone)]
pub struct Xtra(WorkerHandles);

/// The counter as an xtra actor.
pub struct CounterActor(Counter<Address<CounterActor>>);

impl Actor for CounterActor {
    type Stop = ();

    async fn stopped(self) {}
}

/// Adds a number.
struct Add(u64);
/// Adds a number and asks for the sum.
struct Get(u64);
/// Passes a token on.
struct Pass(Token);
/// Tells all peers a number.
struct Fan(u64);
/// Runs a computation and asks for its result.
struct Compute(Computation);
/// Runs a computation, then sends itself the same message again.
struct Churn(Computation);
/// Asks its peer this number of times.
struct Query(u64);
/// Resets the counter and sets its wiring.
struct Wire(Box<Wiring<Address<CounterActor>>>);

impl Handler<Add> for CounterActor {
    type Return = ();

    async fn handle(&mut self, msg: Add, _cx: &mut Context<Self>) {
        self.0.add(msg.0);
    }
}

impl Handler<Get> for CounterActor {
    type Return = u64;

    async fn handle(&mut self, msg: Get, _cx: &mut Context<Self>) -> u64 {
        self.0.add_and_get(msg.0)
    }
}

impl Handler<Pass> for CounterActor {
    type Return = ();

    async fn handle(&mut self, msg: Pass, _cx: &mut Context<Self>) {
        if let Some((next, token)) = self.0.take(msg.0) {
            send!(next, Pass(token));
        }
    }
}

impl Handler<Fan> for CounterActor {
    type Return = ();

    async fn handle(&mut self, msg: Fan, _cx: &mut Context<Self>) {
        for peer in self.0.peers() {
            send!(peer, Add(msg.0));
        }
    }
}

impl Handler<Compute> for CounterActor {
    type Return = u64;

    async fn handle(&mut self, msg: Compute, _cx: &mut Context<Self>) -> u64 {
        msg.0.compute()
    }
}

impl Handler<Churn> for CounterActor {
    type Return = ();

    async fn handle(&mut self, msg: Churn, _cx: &mut Context<Self>) {
        if let Some(me) = self.0.churn(msg.0) {
            send!(me, msg);
        }
    }
}

impl Handler<Query> for CounterActor {
    type Return = u64;

    async fn handle(&mut self, msg: Query, _cx: &mut Context<Self>) -> u64 {
        ask_repeatedly::<Xtra>(&self.0.peers()[0], msg.0).await
    }
}

impl Handler<Wire> for CounterActor {
    type Return = ();

    async fn handle(&mut self, msg: Wire, _cx: &mut Context<Self>) {
        self.0.wire(*msg.0);
    }
}

impl Subject for Xtra {
    const NAME: &'static str = "xtra";
    type Ref = Address<CounterActor>;
    type End = JoinHandle<()>;

    fn start(handles: WorkerHandles) -> Self {
        Self(handles)
    }

    fn unsupported(work: Workload, _capacity: Capacity) -> Option<&'static str> {
        matches!(work, Workload::Restart(_)).then_some("it has no supervision")
    }

    fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static) {
        self.0.run(placement, task);
    }

    async fn spawn(&self, capacity: Capacity) -> Running<Self> {
        let (actor, mailbox) = match capacity {
            Capacity::Unbounded => Mailbox::unbounded(),
            Capacity::Bounded => Mailbox::bounded(Capacity::BOUND),
        };
        let counter = CounterActor(Counter::default());
        Running {
            actor,
            end: tokio::spawn(xtra::run(mailbox, counter)),
        }
    }

    async fn tell(to: &Self::Ref, value: u64) {
        send!(to, Add(value));
    }

    async fn ask(to: &Self::Ref, value: u64) -> u64 {
        to.send(Get(value)).await.expect("the actor answers")
    }

    async fn pass(to: &Self::Ref, token: Token) {
        send!(to, Pass(token));
    }

    async fn fan(to: &Self::Ref, value: u64) {
        send!(to, Fan(value));
    }

    async fn compute(to: &Self::Ref, computation: Computation) -> u64 {
        to.send(Compute(computation))
            .await
            .expect("the actor answers")
    }

    async fn churn(to: &Self::Ref, computation: Computation) {
        send!(to, Churn(computation));
    }

    async fn query(to: &Self::Ref, count: u64) -> u64 {
        to.send(Query(count)).await.expect("the actor answers")
    }

    async fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) {
        send!(to, Wire(Box::new(wiring)));
    }

    async fn stop(&self, running: Running<Self>) {
        // The actor ends when its last address is dropped.
        drop(running.actor);
        running.end.await.expect("the actor ends");
    }

    async fn supervise(&self, _capacity: Capacity) -> Supervised<Self> {
        unreachable!("`lacks` says so")
    }

    async fn fail(_to: &Self::Ref, _failure: Failure) {
        unreachable!("`lacks` says so")
    }
}
