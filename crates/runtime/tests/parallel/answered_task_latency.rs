//! The run queue of a dispatcher, and tasks that wait for the actors in it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strowger::{Accepts, Actor, ActorRef, ActorSystem, Ask, Context, Reply, Request};

/// Increments a shared counter, and replies when asked to.
struct Counter {
    all: Arc<AtomicU64>,
    asked: Vec<Reply<u64>>,
}

enum Msg {
    Count,
    Answer(Reply<u64>),
    Later(Reply<u64>),
    Now,
}

struct Counted;

impl Request for Counted {
    type Reply = u64;
}

impl Accepts<Ask<Counted>> for Msg {
    fn wrap(ask: Ask<Counted>) -> Self {
        Self::Answer(ask.reply)
    }
}

struct CountedLater;

impl Request for CountedLater {
    type Reply = u64;
}

impl Accepts<Ask<CountedLater>> for Msg {
    fn wrap(ask: Ask<CountedLater>) -> Self {
        Self::Later(ask.reply)
    }
}

impl Actor for Counter {
    type Msg = Msg;
    type Args = Arc<AtomicU64>;
    type Error = Infallible;

    async fn pre_start(all: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        let asked = Vec::new();
        Ok(Self { all, asked })
    }

    async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
        let count = || self.all.load(Ordering::Relaxed);
        match msg {
            Msg::Count => {
                self.all.fetch_add(1, Ordering::Relaxed);
            }
            Msg::Answer(reply) => reply.send(count()),
            Msg::Later(reply) => self.asked.push(reply),
            Msg::Now => self.asked.drain(..).for_each(|reply| reply.send(count())),
        }
        Ok(())
    }
}

/// Spawns `many` counters; returns them with the counter that they share.
async fn counters(system: &ActorSystem, many: usize) -> (Vec<ActorRef<Msg>>, Arc<AtomicU64>) {
    let all = Arc::new(AtomicU64::new(0));
    let spawn = |key: usize| system.spawn::<Counter>(key.to_string(), Arc::clone(&all));
    let actors: Vec<_> = (0..many)
        .map(|key| spawn(key).expect("a new key"))
        .collect();
    for actor in &actors {
        assert_eq!(actor.ask(Counted).await, Ok(0));
    }
    (actors, all)
}

fn tell(actor: &ActorRef<Msg>, msg: Msg) {
    assert!(actor.try_tell(msg).is_ok(), "there is room");
}

/// Runs a task on the only worker of a runtime.
fn on_one_worker(task: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let ran = runtime.block_on(runtime.spawn(task));
    ran.expect("the task does not panic");
}

/// Number of actors of a long run queue that run before a task that the first of them replies to.
async fn run_before_an_asker() -> u64 {
    let system = ActorSystem::new("test").expect("inside tokio");
    let (actors, all) = counters(&system, 1000).await;
    let first = actors[0].clone();
    let seen = Arc::clone(&all);
    let asker = tokio::spawn(async move {
        assert_eq!(first.ask(CountedLater).await, Ok(0));
        seen.load(Ordering::Relaxed)
    });
    tokio::task::yield_now().await;
    tell(&actors[0], Msg::Now);
    for actor in &actors[1..] {
        tell(actor, Msg::Count);
    }
    asker.await.expect("it is answered")
}

#[test]
fn answered_task_runs_before_the_whole_run_queue() {
    on_one_worker(async {
        // If another thread happens to poll the asker at that moment, tokio runs it at the next
        // pause: that may happen once, but not five times.
        let mut seen = Vec::new();
        while seen.len() < 5 && seen.iter().all(|seen| *seen >= 100) {
            seen.push(run_before_an_asker().await);
        }
        let least = seen.iter().min();
        assert!(
            least < Some(&100),
            "{seen:?} actors were run before the asker"
        );
    });
}
