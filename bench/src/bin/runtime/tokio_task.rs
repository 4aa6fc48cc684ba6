//! A hand-written task and a channel: what a program uses without an actor library.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::counter::{Computation, Counter, Failure, InjectedFailure, Token, Wiring};
use crate::subject::{
    Capacity, Placement, Running, Subject, Supervised, WorkerHandles, ask_repeatedly,
};
use crate::work::Workload;

/// The tokio subject: tasks and channels by hand.
#[derive(Debug, Clone)]
pub struct Tokio(WorkerHandles);

/// The sending half of a channel.
#[derive(Clone)]
pub enum Sender {
    Unbounded(mpsc::UnboundedSender<Msg>),
    Bounded(mpsc::Sender<Msg>),
}

/// The messages of the task.
pub enum Msg {
    Add(u64),
    Get(u64, oneshot::Sender<u64>),
    Pass(Token),
    Fan(u64),
    Compute(Computation, oneshot::Sender<u64>),
    Churn(Computation),
    Query(u64, oneshot::Sender<u64>),
    Fail(Failure),
    Wire(Box<Wiring<Sender>>),
}

/// Sends in the caller's own future: an `async fn` around it would copy the message once more.
macro_rules! send {
    ($to:expr, $msg:expr) => {
        let sent = match $to {
            Sender::Unbounded(sender) => sender.send($msg).is_ok(),
            Sender::Bounded(sender) => sender.send($msg).await.is_ok(),
        };
        assert!(sent, "the task is running");
    };
}

/// The receiving half of a channel.
trait Receive: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Option<Msg>> + Send;
}

impl Receive for mpsc::UnboundedReceiver<Msg> {
    fn next(&mut self) -> impl Future<Output = Option<Msg>> + Send {
        self.recv()
    }
}

impl Receive for mpsc::Receiver<Msg> {
    fn next(&mut self) -> impl Future<Output = Option<Msg>> + Send {
        self.recv()
    }
}

async fn handle(counter: &mut Counter<Sender>, msg: Msg) -> Result<(), InjectedFailure> {
    match msg {
        Msg::Add(value) => counter.add(value),
        Msg::Get(value, reply) => {
            let _ = reply.send(counter.add_and_get(value));
        }
        Msg::Pass(token) => {
            if let Some((next, token)) = counter.take(token) {
                send!(next, Msg::Pass(token));
            }
        }
        Msg::Fan(value) => {
            for peer in counter.peers() {
                send!(peer, Msg::Add(value));
            }
        }
        Msg::Compute(computation, reply) => {
            let _ = reply.send(computation.compute());
        }
        Msg::Churn(computation) => {
            if let Some(me) = counter.churn(computation) {
                send!(me, Msg::Churn(computation));
            }
        }
        Msg::Query(count, reply) => {
            let _ = reply.send(ask_repeatedly::<Tokio>(&counter.peers()[0], count).await);
        }
        Msg::Fail(failure) => return Err(failure.fail()),
        Msg::Wire(wiring) => counter.wire(*wiring),
    }
    Ok(())
}

/// Counts until the last sender is dropped.
async fn count(receiver: &mut impl Receive) -> Result<(), InjectedFailure> {
    let mut counter = Counter::default();
    while let Some(msg) = receiver.next().await {
        handle(&mut counter, msg).await?;
    }
    Ok(())
}

fn spawn(mut receiver: impl Receive) -> JoinHandle<()> {
    tokio::spawn(async move {
        assert!(count(&mut receiver).await.is_ok(), "no failure was planted");
    })
}

/// Starts the task again whenever it fails; messages that wait in the channel stay there.
fn supervise(receiver: impl Receive) -> JoinHandle<()> {
    let receiver = Arc::new(Mutex::new(receiver));
    tokio::spawn(async move {
        loop {
            let receiver = Arc::clone(&receiver);
            let life = tokio::spawn(async move { count(&mut *receiver.lock().await).await });
            if let Ok(Ok(())) = life.await {
                return;
            }
        }
    })
}

/// Creates a channel, and a task for its receiving half by calling `start`.
macro_rules! channel {
    ($capacity:expr, $start:ident) => {
        match $capacity {
            Capacity::Unbounded => {
                let (sender, receiver) = mpsc::unbounded_channel();
                (Sender::Unbounded(sender), $start(receiver))
            }
            Capacity::Bounded => {
                let (sender, receiver) = mpsc::channel(Capacity::BOUND);
                (Sender::Bounded(sender), $start(receiver))
            }
        }
    };
}

impl Subject for Tokio {
    const NAME: &'static str = "tokio";
    type Ref = Sender;
    type End = JoinHandle<()>;

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
        let (actor, end) = channel!(capacity, spawn);
        Running { actor, end }
    }

    async fn tell(to: &Sender, value: u64) {
        send!(to, Msg::Add(value));
    }

    async fn ask(to: &Sender, value: u64) -> u64 {
        let (reply, answer) = oneshot::channel();
        send!(to, Msg::Get(value, reply));
        answer.await.expect("the task answers")
    }

    async fn pass(to: &Sender, token: Token) {
        send!(to, Msg::Pass(token));
    }

    async fn fan(to: &Sender, value: u64) {
        send!(to, Msg::Fan(value));
    }

    async fn compute(to: &Sender, computation: Computation) -> u64 {
        let (reply, answer) = oneshot::channel();
        send!(to, Msg::Compute(computation, reply));
        answer.await.expect("the task answers")
    }

    async fn churn(to: &Sender, computation: Computation) {
        send!(to, Msg::Churn(computation));
    }

    async fn query(to: &Sender, count: u64) -> u64 {
        let (reply, answer) = oneshot::channel();
        send!(to, Msg::Query(count, reply));
        answer.await.expect("the task answers")
    }

    async fn wire(to: &Sender, wiring: Wiring<Sender>) {
        send!(to, Msg::Wire(Box::new(wiring)));
    }

    async fn stop(&self, running: Running<Self>) {
        // The task ends when its last sender is dropped.
        drop(running.actor);
        running.end.await.expect("the task ends");
    }

    async fn supervise(&self, capacity: Capacity) -> Supervised<Self> {
        let (actor, end) = channel!(capacity, supervise);
        Supervised {
            actor,
            successors: None,
            // The supervisor ends with the last sender, which the driver holds.
            end: Box::pin(async move { end.await.expect("the supervisor ends") }),
        }
    }

    async fn fail(to: &Sender, failure: Failure) {
        send!(to, Msg::Fail(failure));
    }
}
