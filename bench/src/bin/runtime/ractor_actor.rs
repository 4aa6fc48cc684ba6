//! The counter on ractor.

use std::future::Future;

use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::mpsc;

use crate::counter::{Computation, Counter, Failure, Token, Wiring};
use crate::subject::{
    Capacity, Placement, Running, Subject, Supervised, WorkerHandles, ask_repeatedly,
};
use crate::work::Workload;

/// The ractor subject; its mailboxes are unbounded.
#[derive(Debug, Clone)]
pub struct Ractor(WorkerHandles);

/// The messages of the actor.
pub enum Msg {
    Add(u64),
    Get(u64, RpcReplyPort<u64>),
    Pass(Token),
    Fan(u64),
    Compute(Computation, RpcReplyPort<u64>),
    Churn(Computation),
    Query(u64, RpcReplyPort<u64>),
    Fail(Failure),
    Wire(Box<Wiring<ActorRef<Msg>>>),
}

struct CounterActor;

impl Actor for CounterActor {
    type Msg = Msg;
    type State = Counter<ActorRef<Msg>>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _myself: ActorRef<Msg>,
        (): (),
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(Counter::default())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Msg>,
        msg: Msg,
        counter: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Add(value) => counter.add(value),
            Msg::Get(value, reply) => {
                let _ = reply.send(counter.add_and_get(value));
            }
            Msg::Pass(token) => {
                if let Some((next, token)) = counter.take(token) {
                    next.send_message(Msg::Pass(token))?;
                }
            }
            Msg::Fan(value) => {
                for peer in counter.peers() {
                    peer.send_message(Msg::Add(value))?;
                }
            }
            Msg::Compute(computation, reply) => {
                let _ = reply.send(computation.compute());
            }
            Msg::Churn(computation) => {
                if let Some(me) = counter.churn(computation) {
                    me.send_message(Msg::Churn(computation))?;
                }
            }
            Msg::Query(count, reply) => {
                let _ = reply.send(ask_repeatedly::<Ractor>(&counter.peers()[0], count).await);
            }
            Msg::Fail(failure) => return Err(failure.fail().into()),
            Msg::Wire(wiring) => counter.wire(*wiring),
        }
        Ok(())
    }
}

/// Starts a new counter when the one it supervises fails, and reports the new address.
struct Watcher;

impl Actor for Watcher {
    type Msg = ();
    type State = mpsc::UnboundedSender<ActorRef<Msg>>;
    type Arguments = mpsc::UnboundedSender<ActorRef<Msg>>;

    async fn pre_start(
        &self,
        myself: ActorRef<()>,
        successors: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let (first, _) = Actor::spawn_linked(None, CounterActor, (), myself.get_cell()).await?;
        successors.send(first)?;
        Ok(successors)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<()>,
        event: SupervisionEvent,
        successors: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(..) = event {
            let (next, _) = Actor::spawn_linked(None, CounterActor, (), myself.get_cell()).await?;
            successors.send(next)?;
        }
        Ok(())
    }
}

fn send(to: &ActorRef<Msg>, msg: Msg) {
    assert!(to.send_message(msg).is_ok(), "the actor is running");
}

async fn call(to: &ActorRef<Msg>, msg: impl FnOnce(RpcReplyPort<u64>) -> Msg) -> u64 {
    match to.call(msg, None).await {
        Ok(CallResult::Success(answer)) => answer,
        _ => panic!("the actor answers"),
    }
}

impl Subject for Ractor {
    const NAME: &'static str = "ractor";
    type Ref = ActorRef<Msg>;
    type End = ();

    fn start(handles: WorkerHandles) -> Self {
        Self(handles)
    }

    fn unsupported(_work: Workload, capacity: Capacity) -> Option<&'static str> {
        (capacity == Capacity::Bounded).then_some("its mailboxes have no bound")
    }

    fn run(&self, placement: Placement, task: impl Future<Output = ()> + Send + 'static) {
        self.0.run(placement, task);
    }

    async fn spawn(&self, _capacity: Capacity) -> Running<Self> {
        let started = Actor::spawn(None, CounterActor, ()).await;
        let (actor, _task) = started.expect("the actor starts");
        Running { actor, end: () }
    }

    async fn tell(to: &ActorRef<Msg>, value: u64) {
        send(to, Msg::Add(value));
    }

    async fn ask(to: &ActorRef<Msg>, value: u64) -> u64 {
        call(to, |reply| Msg::Get(value, reply)).await
    }

    async fn pass(to: &ActorRef<Msg>, token: Token) {
        send(to, Msg::Pass(token));
    }

    async fn fan(to: &ActorRef<Msg>, value: u64) {
        send(to, Msg::Fan(value));
    }

    async fn compute(to: &ActorRef<Msg>, computation: Computation) -> u64 {
        call(to, |reply| Msg::Compute(computation, reply)).await
    }

    async fn churn(to: &ActorRef<Msg>, computation: Computation) {
        send(to, Msg::Churn(computation));
    }

    async fn query(to: &ActorRef<Msg>, count: u64) -> u64 {
        call(to, |reply| Msg::Query(count, reply)).await
    }

    async fn wire(to: &ActorRef<Msg>, wiring: Wiring<ActorRef<Msg>>) {
        send(to, Msg::Wire(Box::new(wiring)));
    }

    async fn stop(&self, running: Running<Self>) {
        let stopped = running.actor.stop_and_wait(None, None).await;
        stopped.expect("the actor stops");
    }

    async fn supervise(&self, _capacity: Capacity) -> Supervised<Self> {
        let (sender, mut successors) = mpsc::unbounded_channel();
        let started = Actor::spawn(None, Watcher, sender).await;
        let (watcher, _task) = started.expect("the watcher starts");
        Supervised {
            actor: successors.recv().await.expect("the first counter starts"),
            successors: Some(successors),
            end: Box::pin(async move {
                let stopped = watcher.stop_and_wait(None, None).await;
                stopped.expect("the watcher stops");
            }),
        }
    }

    async fn fail(to: &ActorRef<Msg>, failure: Failure) {
        send(to, Msg::Fail(failure));
    }
}
