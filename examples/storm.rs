//! A storm of panics: ten workers, a thousand jobs, and every tenth job kills its worker.
//!
//! Each restart creates fresh state at the same address. The job that killed a worker is lost, the
//! jobs behind it are not. If workers fail too often, their supervisor escalates, and the
//! supervisor above decides.
//!
//! `cargo run -p strowger-examples storm`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use strowger::{
    Actor, ActorRef, ActorSystem, BoxError, ChildSpec, Context, Event, Request, Strategy,
    Supervisor, handlers,
};

/// Number of jobs done, kept outside the workers so that it survives restarts.
type Ledger = Arc<AtomicU32>;

struct Job(u32);

/// Sent last, and therefore answered when all jobs before it are done.
struct Finished;
impl Request for Finished {
    type Reply = ();
}

struct Worker(Ledger);

#[handlers]
impl Actor for Worker {
    type Args = Ledger;
    type Error = Infallible;

    async fn pre_start(ledger: Ledger, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(ledger))
    }

    async fn job(&mut self, Job(number): Job) {
        assert!(number % 10 != 9, "job {number} is too much");
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    #[ask]
    async fn finished(&mut self, _: Finished) {}
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    std::panic::set_hook(Box::new(|_| {})); // A hundred panics would fill the screen.
    let system = ActorSystem::new("example")?;
    let ledger = Ledger::default();

    // A hundred panics within an hour are tolerated here.
    let mut pool = Supervisor::new(Strategy::OneForOne).intensity(100, Duration::from_secs(3600));
    for number in 0..10 {
        let key = format!("worker-{number}");
        pool = pool.child(ChildSpec::new::<Worker>(key, ledger.clone()));
    }
    let office = Supervisor::new(Strategy::OneForOne).supervisor("pool", pool);
    let mut events = system.events();
    let office = system.supervise("office", office).await?;

    let workers = workers(&system);
    for number in 0..1000_u32 {
        workers[number as usize % 10].tell(Job(number / 10)).await?;
    }
    for worker in &workers {
        worker.ask(Finished).await?;
    }
    println!("1000 jobs, {} done", ledger.load(Ordering::Relaxed));
    let restarts: u32 = workers
        .iter()
        .map(|worker| worker.erase().info().restarts)
        .sum();
    println!("{restarts} panics, {restarts} restarts, the same ten addresses");

    // One more panic exceeds the intensity: the pool escalates, and the office restarts it.
    workers[3].tell(Job(9)).await?;
    while let Some(event) = events.next().await {
        if let Event::Escalated { path, exit } = event {
            println!("{path} gives up: {exit}");
            break;
        }
    }
    let worker: ActorRef<WorkerMessage> = loop {
        let pool = system.find("/office/pool/worker-3");
        match pool.filter(|found| found.id() != workers[3].id()) {
            Some(fresh) => break fresh.downcast().ok_or("it is a worker")?,
            None => tokio::task::yield_now().await,
        }
    };
    worker.tell(Job(0)).await?;
    worker.ask(Finished).await?;
    println!("{} done, in a new pool", ledger.load(Ordering::Relaxed));
    println!("the office is up: {}", office.erase().is_alive());
    let report = system.shutdown(Duration::from_secs(5)).await;
    println!("all ended in order: {}", report.not_stopped.is_empty());
    Ok(())
}

fn workers(system: &ActorSystem) -> Vec<ActorRef<WorkerMessage>> {
    let paths = (0..10).map(|number| format!("/office/pool/worker-{number}"));
    let found = paths.filter_map(|path| system.find(&*path)?.downcast());
    found.collect()
}
