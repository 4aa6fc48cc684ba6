//! Actors inside an existing tokio program.

use std::convert::Infallible;
use std::time::Duration;

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, BuildError, ChildSpec, Context, Reply, Request,
    Strategy, Supervisor,
};
use tokio::sync::{mpsc, oneshot};

const LONG: Duration = Duration::from_secs(120);

struct Square(u64);

impl Request for Square {
    type Reply = u64;
}

enum SquarerMsg {
    Square(u64, Reply<u64>),
    Panic,
}

impl Accepts<Ask<Square>> for SquarerMsg {
    fn wrap(Ask { request, reply }: Ask<Square>) -> Self {
        Self::Square(request.0, reply)
    }
}

/// An actor that hands its work to one of the program's own tasks.
struct Squarer(mpsc::Sender<(u64, Reply<u64>)>);

impl Actor for Squarer {
    type Msg = SquarerMsg;
    type Args = mpsc::Sender<(u64, Reply<u64>)>;
    type Error = Infallible;

    async fn pre_start(work: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(work))
    }

    async fn handle(&mut self, msg: SquarerMsg, _: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            SquarerMsg::Square(number, reply) => {
                // A reply that nobody receives is dropped, which also answers the ask.
                let _ = self.0.send((number, reply)).await;
            }
            SquarerMsg::Panic => std::panic::resume_unwind(Box::new("as ordered")),
        }
        Ok(())
    }
}

async fn program() {
    let (work, mut orders) = mpsc::channel::<(u64, Reply<u64>)>(4);
    let worker = tokio::spawn(async move {
        while let Some((number, reply)) = orders.recv().await {
            reply.send(number * number);
        }
    });
    let system = ActorSystem::new("guest").expect("inside tokio");
    let children = Supervisor::new(Strategy::OneForOne)
        .intensity(100, LONG)
        .child(ChildSpec::new::<Squarer>("squarer", work));
    let supervisor = system.supervise("s", children).await.expect("it starts");
    let squarer: ActorRef<SquarerMsg> = supervisor.child("squarer").expect("it runs");
    // Tasks of the program ask across restarts, on any thread.
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..100 {
        let squarer = squarer.clone();
        asking.spawn(async move {
            if number % 10 == 0 {
                let _sent = squarer.tell(SquarerMsg::Panic).await;
            }
            let answer = squarer.ask_within(Square(number), LONG).await;
            assert_eq!(answer, Ok(number * number));
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("every question is answered");
    }
    assert_eq!(squarer.erase().info().restarts, 10);
    let report = system.shutdown(LONG).await;
    assert!(report.not_stopped.is_empty(), "{report:?}");
    // The actor held the other end of the program's channel, which sees its exit.
    drop((squarer, supervisor));
    tokio::time::timeout(LONG, worker)
        .await
        .expect("the channel closes")
        .expect("no panic");
}

#[tokio::test(flavor = "current_thread")]
async fn actors_run_on_a_current_thread_runtime() {
    program().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actors_run_on_a_multi_thread_runtime() {
    program().await;
}

#[tokio::test]
async fn actors_run_inside_a_local_set() {
    tokio::task::LocalSet::new().run_until(program()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_systems_share_a_runtime() {
    tokio::join!(program(), program());
}

#[test]
fn build_fails_without_a_runtime() {
    assert_eq!(
        ActorSystem::new("lost").map(drop),
        Err(BuildError::NoRuntime)
    );
}

/// Sends a signal when it is dropped.
struct Held(Option<oneshot::Sender<()>>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _sent = sender.send(());
        }
    }
}

#[derive(Clone)]
struct Hold(std::sync::Arc<std::sync::Mutex<Option<Held>>>);

struct Holder {
    _held: Option<Held>,
}

impl Actor for Holder {
    type Msg = ();
    type Args = Hold;
    type Error = Infallible;

    async fn pre_start(hold: Hold, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self {
            _held: hold.0.lock().expect("nobody panics with it").take(),
        })
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_system_that_is_dropped_ends_its_actors() {
    let (sender, dropped) = oneshot::channel();
    let hold = Hold(std::sync::Arc::new(std::sync::Mutex::new(Some(Held(
        Some(sender),
    )))));
    let system = ActorSystem::new("short").expect("inside tokio");
    let holder = system.spawn::<Holder>("holder", hold).expect("a new key");
    holder.try_tell(()).expect("there is room");
    drop(system);
    tokio::time::timeout(LONG, dropped)
        .await
        .expect("its value is dropped")
        .expect("by Drop");
    assert_eq!(holder.stopped().await.kind(), "killed");
}
