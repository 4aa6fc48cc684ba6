//! The counter on actix, run as its authors intend: on arbiters, each a thread with its own event
//! loop.
//!
//! There are two arbiters, just as the other subjects have two workers. The driver and the actors
//! that it starts run on the first one; the tellers are spread over both.

use std::future::Future;
use std::sync::mpsc;

use actix::ActorContext;
use actix::{
    Actor, Addr, Arbiter, ArbiterHandle, AtomicResponse, Context, Handler, Message, Supervisor,
    System, WrapFuture,
};
use tokio::sync::oneshot;

use crate::counter::{Computation, Counter, Failure, Token, Wiring};
use crate::subject::{
    Capacity, Placement, Running, Subject, Supervised, WorkerHandles, ask_repeatedly,
};
use crate::work::Workload;

/// The actix subject.
#[derive(Debug, Clone)]
pub struct Actix([ArbiterHandle; 2]);

/// The counter as an actix actor.
#[derive(Default)]
pub struct CounterActor {
    counter: Counter<Addr<CounterActor>>,
    ended: Option<oneshot::Sender<()>>,
}

impl CounterActor {
    fn with_capacity(capacity: Capacity, cx: &mut Context<Self>) -> Self {
        if capacity == Capacity::Bounded {
            cx.set_mailbox_capacity(Capacity::BOUND);
        }
        Self::default()
    }
}

impl Actor for CounterActor {
    type Context = Context<Self>;

    fn stopped(&mut self, _cx: &mut Context<Self>) {
        if let Some(ended) = self.ended.take() {
            let _ = ended.send(());
        }
    }
}

impl actix::Supervised for CounterActor {
    fn restarting(&mut self, _cx: &mut Context<Self>) {
        self.counter = Counter::default();
    }
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
/// Makes the actor fail.
struct Fail;
/// Resets the counter and sets its wiring.
struct Wire(Box<Wiring<Addr<CounterActor>>>);
/// Makes the actor stop.
struct Stop(oneshot::Sender<()>);

impl Message for Add {
    type Result = ();
}

impl Message for Get {
    type Result = u64;
}

impl Message for Pass {
    type Result = ();
}

impl Message for Fan {
    type Result = ();
}

impl Message for Compute {
    type Result = u64;
}

impl Message for Churn {
    type Result = ();
}

impl Message for Query {
    type Result = u64;
}

impl Message for Fail {
    type Result = ();
}

impl Message for Wire {
    type Result = ();
}

impl Message for Stop {
    type Result = ();
}

impl Handler<Add> for CounterActor {
    type Result = ();

    fn handle(&mut self, msg: Add, _cx: &mut Context<Self>) {
        self.counter.add(msg.0);
    }
}

impl Handler<Get> for CounterActor {
    type Result = u64;

    fn handle(&mut self, msg: Get, _cx: &mut Context<Self>) -> u64 {
        self.counter.add_and_get(msg.0)
    }
}

impl Handler<Pass> for CounterActor {
    type Result = ();

    fn handle(&mut self, msg: Pass, _cx: &mut Context<Self>) {
        if let Some((next, token)) = self.counter.take(msg.0) {
            next.do_send(Pass(token));
        }
    }
}

impl Handler<Fan> for CounterActor {
    type Result = ();

    fn handle(&mut self, msg: Fan, _cx: &mut Context<Self>) {
        for peer in self.counter.peers() {
            peer.do_send(Add(msg.0));
        }
    }
}

impl Handler<Compute> for CounterActor {
    type Result = u64;

    fn handle(&mut self, msg: Compute, _cx: &mut Context<Self>) -> u64 {
        msg.0.compute()
    }
}

impl Handler<Churn> for CounterActor {
    type Result = ();

    fn handle(&mut self, msg: Churn, _cx: &mut Context<Self>) {
        if let Some(me) = self.counter.churn(msg.0) {
            me.do_send(msg);
        }
    }
}

impl Handler<Query> for CounterActor {
    type Result = AtomicResponse<Self, u64>;

    fn handle(&mut self, msg: Query, _cx: &mut Context<Self>) -> Self::Result {
        let peer = self.counter.peers()[0].clone();
        let answer = async move { ask_repeatedly::<Actix>(&peer, msg.0).await };
        // Like the other subjects, the actor handles nothing else until the answer arrives.
        AtomicResponse::new(Box::pin(answer.into_actor(self)))
    }
}

impl Handler<Fail> for CounterActor {
    type Result = ();

    fn handle(&mut self, _msg: Fail, cx: &mut Context<Self>) {
        // An actor that meets an error it cannot handle stops, and its supervisor restarts it.
        cx.stop();
    }
}

impl Handler<Wire> for CounterActor {
    type Result = ();

    fn handle(&mut self, msg: Wire, _cx: &mut Context<Self>) {
        self.counter.wire(*msg.0);
    }
}

impl Handler<Stop> for CounterActor {
    type Result = ();

    fn handle(&mut self, msg: Stop, cx: &mut Context<Self>) {
        self.ended = Some(msg.0);
        cx.stop();
    }
}

impl Subject for Actix {
    const NAME: &'static str = "actix";
    type Ref = Addr<CounterActor>;
    type End = ();

    fn start(_handles: WorkerHandles) -> Self {
        let (sender, arbiters) = mpsc::channel();
        std::thread::spawn(move || {
            let system = System::new();
            let both = system.block_on(async { [Arbiter::new(), Arbiter::new()] });
            for (processor, arbiter) in both.iter().enumerate() {
                arbiter.spawn_fn(move || strowger_bench::pin(processor));
            }
            sender
                .send(both.each_ref().map(Arbiter::handle))
                .expect("the program waits for the arbiters");
            // Runs until the program exits.
            system.run()
        });
        Self(arbiters.recv().expect("actix starts two arbiters"))
    }

    fn unsupported(work: Workload, capacity: Capacity) -> Option<&'static str> {
        let tells = matches!(
            work,
            Workload::Tell(_)
                | Workload::AskBusy
                | Workload::Hop
                | Workload::RingHop
                | Workload::FanOut(_)
        );
        if capacity == Capacity::Bounded && tells {
            return Some("a tell does not wait for room: `do_send` ignores the bound");
        }
        (work == Workload::Restart(Failure::Panic))
            .then_some("a panic ends the arbiter with its actors")
    }

    fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static) {
        let at = match placement {
            Placement::Here => 0,
            Placement::There => 1,
            Placement::Any(number) => number % 2,
        };
        assert!(self.0[at].spawn(task), "the arbiter runs");
    }

    async fn spawn(&self, capacity: Capacity) -> Running<Self> {
        Running {
            actor: CounterActor::create(|cx| CounterActor::with_capacity(capacity, cx)),
            end: (),
        }
    }

    async fn tell(to: &Self::Ref, value: u64) {
        to.do_send(Add(value));
    }

    async fn ask(to: &Self::Ref, value: u64) -> u64 {
        to.send(Get(value)).await.expect("the actor answers")
    }

    async fn pass(to: &Self::Ref, token: Token) {
        to.do_send(Pass(token));
    }

    async fn fan(to: &Self::Ref, value: u64) {
        to.do_send(Fan(value));
    }

    async fn compute(to: &Self::Ref, computation: Computation) -> u64 {
        to.send(Compute(computation))
            .await
            .expect("the actor answers")
    }

    async fn churn(to: &Self::Ref, computation: Computation) {
        to.do_send(Churn(computation));
    }

    async fn query(to: &Self::Ref, count: u64) -> u64 {
        to.send(Query(count)).await.expect("the actor answers")
    }

    async fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) {
        to.do_send(Wire(Box::new(wiring)));
    }

    async fn stop(&self, running: Running<Self>) {
        let (sender, ended) = oneshot::channel();
        running.actor.do_send(Stop(sender));
        ended.await.expect("the actor ends");
    }

    async fn supervise(&self, capacity: Capacity) -> Supervised<Self> {
        Supervised {
            actor: Supervisor::start(move |cx| CounterActor::with_capacity(capacity, cx)),
            successors: None,
            // The actor ends when its last address is dropped.
            end: Box::pin(std::future::ready(())),
        }
    }

    async fn fail(to: &Self::Ref, _failure: Failure) {
        to.do_send(Fail);
    }
}
