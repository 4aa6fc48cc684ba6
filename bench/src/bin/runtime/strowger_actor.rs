//! The counter on Strowger, with everything that an actor gets by default: a place in the tree,
//! panic isolation, stats, and a deadline on every ask.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, ChildSpec, Context, MailboxSpec, Reply, Request,
    Strategy, Supervisor,
};

use crate::counter::{Computation, Counter, Failure, InjectedFailure, Token, Wiring};
use crate::subject::{
    Capacity, Placement, Running, Subject, Supervised, WorkerHandles, ask_repeatedly,
};
use crate::work::Workload;

/// Sends in the caller's own future: an `async fn` around it would copy the message once more.
macro_rules! send {
    ($to:expr, $msg:expr) => {
        assert!($to.tell($msg).await.is_ok(), "the actor is running")
    };
}

/// The Strowger subject: actors of one system.
#[derive(Clone)]
pub struct Strowger {
    system: ActorSystem,
    handles: WorkerHandles,
    spawned: Arc<AtomicU64>,
}

impl Strowger {
    /// A number as the key, as in a program with many actors of a kind.
    fn key(&self) -> u64 {
        self.spawned.fetch_add(1, Ordering::Relaxed)
    }
}

/// The messages of the actor.
pub enum Msg {
    Add(u64),
    Get(u64, Reply<u64>),
    Pass(Token),
    Fan(u64),
    Compute(Computation, Reply<u64>),
    Churn(Computation),
    Query(u64, Reply<u64>),
    Fail(Failure),
    Wire(Box<Wiring<ActorRef<Msg>>>),
}

/// Adds a number and asks for the sum.
#[derive(Debug, Clone, Copy)]
pub struct Get(u64);

impl Request for Get {
    type Reply = u64;
}

impl Accepts<Ask<Get>> for Msg {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask.request.0, ask.reply)
    }
}

/// Asks for the result of a computation.
struct Compute(Computation);

impl Request for Compute {
    type Reply = u64;
}

impl Accepts<Ask<Compute>> for Msg {
    fn wrap(ask: Ask<Compute>) -> Self {
        Self::Compute(ask.request.0, ask.reply)
    }
}

/// Asks for the last answer to this number of asks.
struct Query(u64);

impl Request for Query {
    type Reply = u64;
}

impl Accepts<Ask<Query>> for Msg {
    fn wrap(ask: Ask<Query>) -> Self {
        Self::Query(ask.request.0, ask.reply)
    }
}

struct CounterActor<const CAPACITY: usize>(Counter<ActorRef<Msg>>);

impl<const CAPACITY: usize> Actor for CounterActor<CAPACITY> {
    type Msg = Msg;
    type Args = ();
    type Error = InjectedFailure;

    const MAILBOX: MailboxSpec = if CAPACITY == 0 {
        MailboxSpec::unbounded()
    } else {
        MailboxSpec::bounded(CAPACITY)
    };

    async fn pre_start((): (), _cx: &mut Context<Self>) -> Result<Self, InjectedFailure> {
        Ok(Self(Counter::default()))
    }

    async fn handle(&mut self, msg: Msg, _cx: &mut Context<Self>) -> Result<(), InjectedFailure> {
        match msg {
            Msg::Add(value) => self.0.add(value),
            Msg::Get(value, reply) => reply.send(self.0.add_and_get(value)),
            Msg::Pass(token) => {
                if let Some((next, token)) = self.0.take(token) {
                    send!(next, Msg::Pass(token));
                }
            }
            Msg::Fan(value) => {
                for peer in self.0.peers() {
                    send!(peer, Msg::Add(value));
                }
            }
            Msg::Compute(computation, reply) => reply.send(computation.compute()),
            Msg::Churn(computation) => {
                if let Some(me) = self.0.churn(computation) {
                    send!(me, Msg::Churn(computation));
                }
            }
            Msg::Query(count, reply) => {
                reply.send(ask_repeatedly::<Strowger>(&self.0.peers()[0], count).await);
            }
            Msg::Fail(failure) => return Err(failure.fail()),
            Msg::Wire(wiring) => self.0.wire(*wiring),
        }
        Ok(())
    }
}

impl Subject for Strowger {
    const NAME: &'static str = "strowger";
    type Ref = ActorRef<Msg>;
    type End = ();

    fn start(handles: WorkerHandles) -> Self {
        let inside = handles.there.enter();
        let system = ActorSystem::new("bench").expect("panics unwind here");
        drop(inside);
        Self {
            system,
            handles,
            spawned: Arc::default(),
        }
    }

    fn unsupported(_work: Workload, _capacity: Capacity) -> Option<&'static str> {
        None
    }

    fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static) {
        self.handles.run(placement, task);
    }

    async fn spawn(&self, capacity: Capacity) -> Running<Self> {
        let key = self.key();
        let started = match capacity {
            Capacity::Unbounded => self.system.spawn::<CounterActor<0>>(key, ()),
            Capacity::Bounded => self
                .system
                .spawn::<CounterActor<{ Capacity::BOUND }>>(key, ()),
        };
        Running {
            actor: started.expect("the key is unused"),
            end: (),
        }
    }

    async fn tell(to: &ActorRef<Msg>, value: u64) {
        send!(to, Msg::Add(value));
    }

    async fn ask(to: &ActorRef<Msg>, value: u64) -> u64 {
        to.ask(Get(value)).await.expect("the actor answers")
    }

    async fn pass(to: &ActorRef<Msg>, token: Token) {
        send!(to, Msg::Pass(token));
    }

    async fn fan(to: &ActorRef<Msg>, value: u64) {
        send!(to, Msg::Fan(value));
    }

    async fn compute(to: &ActorRef<Msg>, computation: Computation) -> u64 {
        to.ask(Compute(computation))
            .await
            .expect("the actor answers")
    }

    async fn churn(to: &ActorRef<Msg>, computation: Computation) {
        send!(to, Msg::Churn(computation));
    }

    async fn query(to: &ActorRef<Msg>, count: u64) -> u64 {
        to.ask(Query(count)).await.expect("the actor answers")
    }

    async fn wire(to: &ActorRef<Msg>, wiring: Wiring<ActorRef<Msg>>) {
        send!(to, Msg::Wire(Box::new(wiring)));
    }

    async fn stop(&self, running: Running<Self>) {
        running.actor.stop();
        running.actor.stopped().await;
    }

    async fn supervise(&self, capacity: Capacity) -> Supervised<Self> {
        let child = match capacity {
            Capacity::Unbounded => ChildSpec::new::<CounterActor<0>>("counter", ()),
            Capacity::Bounded => ChildSpec::new::<CounterActor<{ Capacity::BOUND }>>("counter", ()),
        };
        let spec = Supervisor::new(Strategy::OneForOne)
            .intensity(u32::MAX, Duration::from_millis(1))
            .child(child);
        let started = self.system.supervise(self.key(), spec).await;
        let supervisor = started.expect("the counter starts");
        Supervised {
            actor: supervisor.child("counter").expect("it was started"),
            successors: None,
            end: Box::pin(async move {
                supervisor.stop();
                supervisor.stopped().await;
            }),
        }
    }

    async fn fail(to: &ActorRef<Msg>, failure: Failure) {
        send!(to, Msg::Fail(failure));
    }
}
