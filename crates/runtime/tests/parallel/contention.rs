//! Guarantees under contention: real threads, no virtual time.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, AskError, Backoff, ChildSpec, Context, Dynamic,
    Exit, MailboxSpec, Reply, Request, Restart, Shutdown, Signal, Strategy, Supervisor,
};

const LONG: Duration = Duration::from_secs(3600);

/// Counts the live incarnations; monitors the actors that it is told to.
struct Worker {
    alive: Arc<AtomicI64>,
}

enum WorkerMsg {
    Echo(u64, Reply<u64>),
    Watch(ActorRef<Self>),
    Panic,
    Yield,
}

struct Echo(u64);

impl Request for Echo {
    type Reply = u64;
}

impl Accepts<Ask<Echo>> for WorkerMsg {
    fn wrap(ask: Ask<Echo>) -> Self {
        Self::Echo(ask.request.0, ask.reply)
    }
}

impl Actor for Worker {
    type Msg = WorkerMsg;
    type Args = Arc<AtomicI64>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(8);

    async fn pre_start(alive: Self::Args, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        alive.fetch_add(1, Ordering::SeqCst);
        cx.task("idle", std::future::pending());
        Ok(Self { alive })
    }

    async fn handle(&mut self, msg: WorkerMsg, cx: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            WorkerMsg::Echo(n, reply) => reply.send(n),
            WorkerMsg::Watch(other) => {
                cx.monitor(&other);
            }
            WorkerMsg::Panic => std::panic::resume_unwind(Box::new("as told")),
            WorkerMsg::Yield => tokio::task::yield_now().await,
        }
        Ok(())
    }

    async fn signal(&mut self, _: Signal, _: &mut Context<Self>) -> Result<(), Infallible> {
        tokio::task::yield_now().await;
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The next number of a pseudorandom sequence; each task has its own.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

async fn disturb(mut state: u64, workers: Vec<ActorRef<WorkerMsg>>, rounds: u32) {
    for round in 0..rounds {
        let at = usize::try_from(next(&mut state)).expect("31 bits") % workers.len();
        let worker = &workers[at];
        match next(&mut state) % 16 {
            0 => worker.kill(),
            1 => worker.erase().inject_panic("as told"),
            2 => worker.stop(),
            3 => {
                let _full = worker.try_tell(WorkerMsg::Panic);
            }
            4 => {
                let other = workers[(at + 1) % workers.len()].clone();
                let _full = worker.try_tell(WorkerMsg::Watch(other));
            }
            5 => tokio::task::yield_now().await,
            6..10 => {
                let _closed = worker.tell(WorkerMsg::Yield).await;
            }
            _ => match worker.ask_within(Echo(u64::from(round)), LONG).await {
                Ok(answer) => assert_eq!(answer, u64::from(round)),
                Err(why) => assert_ne!(why, AskError::TimedOut, "an ask was forgotten"),
            },
        }
    }
}

async fn storm(strategy: Strategy, backoff: Backoff) {
    const WORKERS: u32 = 6;
    let alive = Arc::new(AtomicI64::new(0));
    let system = ActorSystem::new("storm").expect("a runtime is here");
    let mut supervisor = Supervisor::new(strategy)
        .intensity(u32::MAX, Duration::from_secs(1))
        .backoff(backoff);
    for n in 0..WORKERS {
        let child = ChildSpec::new::<Worker>(format!("{n}"), Arc::clone(&alive));
        supervisor = supervisor.child(child.shutdown(Shutdown::Infinity));
    }
    let supervisor = system.supervise("s", supervisor).await.expect("all start");
    let workers: Vec<_> = (0..WORKERS)
        .map(|n| {
            supervisor
                .child::<WorkerMsg>(&format!("{n}"))
                .expect("started")
        })
        .collect();
    let tasks: Vec<_> = (0..4)
        .map(|seed| tokio::spawn(disturb(seed, workers.clone(), 1_000)))
        .collect();
    for task in tasks {
        task.await.expect("no claim failed");
    }
    for worker in &workers {
        assert!(worker.is_alive(), "permanent children are always restarted");
        while worker.ask_within(Echo(1), LONG).await != Ok(1) {}
    }
    let report = system.shutdown(LONG).await;
    assert!(report.not_stopped.is_empty());
    assert_eq!(alive.load(Ordering::SeqCst), 0, "no incarnation is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_for_one_holds_under_contention() {
    storm(Strategy::OneForOne, Backoff::NONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_for_all_holds_under_contention() {
    storm(Strategy::OneForAll, Backoff::NONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rest_for_one_with_backoff_holds_under_contention() {
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
    storm(Strategy::RestForOne, backoff).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dynamic_children_hold_under_contention() {
    for restart in [Restart::Permanent, Restart::Transient, Restart::Temporary] {
        let alive = Arc::new(AtomicI64::new(0));
        let system = ActorSystem::new("storm").unwrap();
        let dynamic = Dynamic::<Worker>::new()
            .restart(restart)
            .intensity(u32::MAX, Duration::from_secs(1));
        let dynamic = system.dynamic("d", dynamic).unwrap();
        let tasks: Vec<_> = (0..4_u64)
            .map(|task| {
                let (dynamic, alive) = (dynamic.clone(), Arc::clone(&alive));
                tokio::spawn(async move {
                    for n in 0..500 {
                        let key = format!("{task}-{n}");
                        let worker = dynamic.start_child(&*key, Arc::clone(&alive)).unwrap();
                        match n % 5 {
                            0 => worker.kill(),
                            1 => worker.erase().inject_panic("as told"),
                            2 => worker.stop(),
                            _ => {}
                        }
                        let _any = worker.ask_within(Echo(n), LONG).await;
                        if n % 2 == 0 {
                            dynamic.terminate_child(&key).await;
                            assert!(!worker.is_alive());
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let report = system.shutdown(LONG).await;
        assert!(report.not_stopped.is_empty(), "{restart:?}");
        assert_eq!(
            alive.load(Ordering::SeqCst),
            0,
            "{restart:?}: no incarnation is left"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shutdown_races_with_child_starts() {
    for _ in 0..50 {
        let alive = Arc::new(AtomicI64::new(0));
        let system = ActorSystem::new("storm").unwrap();
        let dynamic = Dynamic::<Worker>::new().restart(Restart::Permanent);
        let dynamic = system.dynamic("d", dynamic).unwrap();
        let tasks: Vec<_> = (0..3)
            .map(|task| {
                let (dynamic, alive) = (dynamic.clone(), Arc::clone(&alive));
                tokio::spawn(async move {
                    for n in 0.. {
                        let key = format!("{task}-{n}");
                        if dynamic.start_child(key, Arc::clone(&alive)).is_err() {
                            return;
                        }
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        while dynamic.len() < 20 {
            tokio::task::yield_now().await;
        }
        let report = system.shutdown(LONG).await;
        assert!(report.not_stopped.is_empty());
        for task in tasks {
            task.await.unwrap();
        }
        assert!(matches!(dynamic.stopped().await, Exit::Shutdown));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}
