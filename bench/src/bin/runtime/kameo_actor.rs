//! The counter on kameo.

use std::future::Future;
use std::time::Duration;

use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::mailbox::{self, MailboxReceiver, MailboxSender};
use kameo::message::{Context, Message};

use crate::counter::{Computation, Counter, Failure, InjectedFailure, Token, Wiring};
use crate::subject::{
    Capacity, Placement, Running, Subject, Supervised, WorkerHandles, ask_repeatedly,
};
use crate::work::Workload;

/// Sends in the caller's own future: an `async fn` around it would copy the message once more.
macro_rules! send {
    ($to:expr, $msg:expr) => {
        // `send` does not box its future; awaiting the request itself would.
        assert!($to.tell($msg).send().await.is_ok(), "the actor is running")
    };
}

/// The kameo subject.
#[derive(Debug, Clone)]
pub struct Kameo(WorkerHandles);

/// The counter as a kameo actor.
pub struct CounterActor(Counter<ActorRef<CounterActor>>);

impl Actor for CounterActor {
    type Args = ();
    type Error = Infallible;

    async fn on_start((): (), _me: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self(Counter::default()))
    }
}

/// The parent of a counter that is restarted.
struct Parent;

impl Actor for Parent {
    type Args = ();
    type Error = Infallible;

    async fn on_start((): (), _me: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// Adds a number.
pub struct Add(u64);
/// Adds a number and asks for the sum.
pub struct Get(u64);
/// Passes a token on.
pub struct Pass(Token);
/// Tells all peers a number.
pub struct Fan(u64);
/// Runs a computation and asks for its result.
pub struct Compute(Computation);
/// Runs a computation, then sends itself the same message again.
pub struct Churn(Computation);
/// Asks its peer this number of times.
pub struct Query(u64);
/// Makes the actor fail.
pub struct Fail(Failure);
/// Resets the counter and sets its wiring.
pub struct Wire(Box<Wiring<ActorRef<CounterActor>>>);

impl Message<Add> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Add, _cx: &mut Context<Self, ()>) {
        self.0.add(msg.0);
    }
}

impl Message<Get> for CounterActor {
    type Reply = u64;

    async fn handle(&mut self, msg: Get, _cx: &mut Context<Self, u64>) -> u64 {
        self.0.add_and_get(msg.0)
    }
}

impl Message<Pass> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Pass, _cx: &mut Context<Self, ()>) {
        if let Some((next, token)) = self.0.take(msg.0) {
            send!(next, Pass(token));
        }
    }
}

impl Message<Fan> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Fan, _cx: &mut Context<Self, ()>) {
        for peer in self.0.peers() {
            send!(peer, Add(msg.0));
        }
    }
}

impl Message<Compute> for CounterActor {
    type Reply = u64;

    async fn handle(&mut self, msg: Compute, _cx: &mut Context<Self, u64>) -> u64 {
        msg.0.compute()
    }
}

impl Message<Churn> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Churn, _cx: &mut Context<Self, ()>) {
        if let Some(me) = self.0.churn(msg.0) {
            send!(me, msg);
        }
    }
}

impl Message<Query> for CounterActor {
    type Reply = u64;

    async fn handle(&mut self, msg: Query, _cx: &mut Context<Self, u64>) -> u64 {
        ask_repeatedly::<Kameo>(&self.0.peers()[0], msg.0).await
    }
}

impl Message<Fail> for CounterActor {
    type Reply = Result<(), InjectedFailure>;

    async fn handle(&mut self, msg: Fail, _cx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        Err(msg.0.fail())
    }
}

impl Message<Wire> for CounterActor {
    type Reply = ();

    async fn handle(&mut self, msg: Wire, _cx: &mut Context<Self, ()>) {
        self.0.wire(*msg.0);
    }
}

fn mailbox(capacity: Capacity) -> (MailboxSender<CounterActor>, MailboxReceiver<CounterActor>) {
    match capacity {
        Capacity::Unbounded => mailbox::unbounded(),
        Capacity::Bounded => mailbox::bounded(Capacity::BOUND),
    }
}

impl Subject for Kameo {
    const NAME: &'static str = "kameo";
    type Ref = ActorRef<CounterActor>;
    type End = ();

    fn start(handles: WorkerHandles) -> Self {
        Self(handles)
    }

    fn unsupported(_work: Workload, _capacity: Capacity) -> Option<&'static str> {
        None
    }

    fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static) {
        self.0.run(placement, task);
    }

    async fn spawn(&self, capacity: Capacity) -> Running<Self> {
        Running {
            actor: CounterActor::spawn_with_mailbox((), mailbox(capacity)),
            end: (),
        }
    }

    async fn tell(to: &Self::Ref, value: u64) {
        send!(to, Add(value));
    }

    async fn ask(to: &Self::Ref, value: u64) -> u64 {
        to.ask(Get(value)).send().await.expect("the actor answers")
    }

    async fn pass(to: &Self::Ref, token: Token) {
        send!(to, Pass(token));
    }

    async fn fan(to: &Self::Ref, value: u64) {
        send!(to, Fan(value));
    }

    async fn compute(to: &Self::Ref, computation: Computation) -> u64 {
        let answer = to.ask(Compute(computation)).send().await;
        answer.expect("the actor answers")
    }

    async fn churn(to: &Self::Ref, computation: Computation) {
        send!(to, Churn(computation));
    }

    async fn query(to: &Self::Ref, count: u64) -> u64 {
        let answer = to.ask(Query(count)).send().await;
        answer.expect("the actor answers")
    }

    async fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) {
        send!(to, Wire(Box::new(wiring)));
    }

    async fn stop(&self, running: Running<Self>) {
        let taken = running.actor.stop_gracefully().await;
        taken.expect("the actor takes the stop");
        running.actor.wait_for_shutdown().await;
    }

    async fn supervise(&self, capacity: Capacity) -> Supervised<Self> {
        let parent = Parent::spawn(());
        let actor = CounterActor::supervise(&parent, ())
            .restart_limit(u32::MAX, Duration::from_millis(1))
            .spawn_with_mailbox(mailbox(capacity))
            .await;
        Supervised {
            actor,
            successors: None,
            end: Box::pin(async move {
                let taken = parent.stop_gracefully().await;
                taken.expect("the parent takes the stop");
                parent.wait_for_shutdown().await;
            }),
        }
    }

    async fn fail(to: &Self::Ref, failure: Failure) {
        send!(to, Fail(failure));
    }
}
