//! Workers that are blocked, shared and left alone, on real threads. No test depends on timing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use strowger::{Accepts, Actor, ActorSystem, Ask, Context, Event, Reply, Request};
use tokio::runtime::Runtime;

const LONG: Duration = Duration::from_secs(60);

fn runtime(workers: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A door that opens once.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut open = self.0.0.lock();
        while !*open {
            self.0.1.wait(&mut open);
        }
    }
}

/// Does what its messages say; `BLOCKING` selects the kind of thread.
struct Worker<const BLOCKING: bool>;

enum Order {
    /// Blocks the thread until the door opens.
    Hold(Door),
    /// Waits for another tokio task.
    Wait,
    Where(Reply<Option<String>>),
    Answer(std::sync::mpsc::Sender<()>),
}

struct Where;

impl Request for Where {
    type Reply = Option<String>;
}

impl Accepts<Ask<Where>> for Order {
    fn wrap(ask: Ask<Where>) -> Self {
        Self::Where(ask.reply)
    }
}

impl<const BLOCKING: bool> Actor for Worker<BLOCKING> {
    type Msg = Order;
    type Args = ();
    type Error = Infallible;

    const BLOCKING: bool = BLOCKING;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, order: Order, _: &mut Context<Self>) -> Result<(), Infallible> {
        match order {
            Order::Hold(door) => door.wait(),
            Order::Wait => tokio::spawn(tokio::task::yield_now())
                .await
                .expect("no panic"),
            Order::Where(reply) => {
                reply.send(std::thread::current().name().map(str::to_owned));
            }
            Order::Answer(to) => {
                let _nobody_listens = to.send(());
            }
        }
        Ok(())
    }
}

#[test]
fn a_blocking_actor_has_a_thread_of_its_own() {
    // With a single worker: if it were blocked, the actor could not answer the others.
    runtime(1).block_on(async {
        let system = ActorSystem::new("test").expect("inside tokio");
        let blocking = system
            .spawn::<Worker<true>>("blocking", ())
            .expect("a new key");
        let other = system
            .spawn::<Worker<false>>("other", ())
            .expect("a new key");
        assert_eq!(blocking.ask(Where).await, Ok(Some("/blocking".to_owned())));
        let door = Door::default();
        blocking.try_tell(Order::Wait).expect("room");
        blocking.try_tell(Order::Hold(door.clone())).expect("room");
        assert_ne!(
            other.ask_within(Where, LONG).await,
            Ok(Some("/blocking".to_owned()))
        );
        door.open();
        assert_eq!(
            blocking.ask_within(Where, LONG).await,
            Ok(Some("/blocking".to_owned()))
        );
        let report = system.shutdown(LONG).await;
        assert!(report.not_stopped.is_empty(), "{report:?}");
    });
}

#[test]
fn blocking_actor_ends_with_its_runtime() {
    let runtime = runtime(1);
    let (_system, actor) = runtime.block_on(async {
        let system = ActorSystem::new("test").expect("inside tokio");
        let actor = system
            .spawn::<Worker<true>>("blocking", ())
            .expect("a new key");
        assert!(actor.ask_within(Where, LONG).await.is_ok());
        (system, actor)
    });
    drop(runtime);
    let waiting = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let waiting = waiting.expect("a runtime");
    let exit = waiting.block_on(async { tokio::time::timeout(LONG, actor.stopped()).await });
    assert_eq!(exit.expect("it ends").kind(), "killed");
}

#[test]
fn blocking_handler_is_reported_once_while_running() {
    runtime(2).block_on(async {
        let limit = Duration::from_millis(5);
        let system = ActorSystem::builder("test").handler_limit(limit).build();
        let system = system.expect("inside tokio");
        let mut events = system.events();
        let worker = system
            .spawn::<Worker<false>>("worker", ())
            .expect("a new key");
        for _ in 0..2 {
            let door = Door::default();
            worker.try_tell(Order::Hold(door.clone())).expect("room");
            let (path, held) = loop {
                match tokio::time::timeout(LONG, events.next())
                    .await
                    .expect("it is told")
                {
                    Some(Event::LongHandler { path, held }) => break (path, held),
                    Some(_) => {}
                    None => panic!("the system is up"),
                }
            };
            assert_eq!(path.as_str(), "/worker");
            assert!(held >= limit);
            door.open();
            assert!(worker.ask_within(Where, LONG).await.is_ok());
        }
        while let Some(event) = events.try_next() {
            assert!(!matches!(event, Event::LongHandler { .. }), "told twice");
        }
        system.shutdown(LONG).await;
    });
}

/// Wakes other actors, and then blocks its worker until all of them have answered.
struct Greedy;

impl Actor for Greedy {
    type Msg = (
        Vec<strowger::ActorRef<Order>>,
        Door,
        std::sync::mpsc::Sender<()>,
    );
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, msg: Self::Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
        let (others, door, answered) = msg;
        for other in others {
            // The actor is in the run queue of this very dispatcher.
            other.try_tell(Order::Answer(answered.clone())).ok();
        }
        door.wait();
        Ok(())
    }
}

#[test]
fn queue_of_a_blocked_worker_is_taken_over() {
    let runtime = runtime(2);
    let door = Door::default();
    let (answered, answers) = std::sync::mpsc::channel();
    let system = {
        let _inside = runtime.enter();
        ActorSystem::new("test").expect("inside tokio")
    };
    let others = (0..20).map(|n| system.spawn::<Worker<false>>(format!("{n}"), ()));
    let others: Vec<_> = others.map(|other| other.expect("a new key")).collect();
    let count = others.len();
    let greedy = system.spawn::<Greedy>("greedy", ()).expect("a new key");
    greedy
        .try_tell((others, door.clone(), answered))
        .map_err(drop)
        .expect("room");
    for _ in 0..count {
        answers
            .recv_timeout(LONG)
            .expect("nobody waits for the one that holds");
    }
    door.open();
    runtime.block_on(system.shutdown(LONG));
}
