//! A pool of workers: an idle worker gets the next job, and a job that kills its worker costs only
//! that job.
//!
//! The pool never waits. It keeps the callers' replies and asks the workers through a `ReplyLane`:
//! their answers come back as messages.
//!
//! `cargo run -p strowger-examples workers`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use strowger::{
    Actor, ActorRef, ActorSystem, Ask, BoxError, Completion, Context, Dynamic, Event, Reply,
    ReplyLane, Request, Restart, StartError, handlers,
};

/// Asks for the number of primes below this number.
#[derive(Clone, Copy)]
struct Primes(u32);
impl Request for Primes {
    type Reply = usize;
}

struct Worker;

#[handlers]
impl Actor for Worker {
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn primes(&mut self, Primes(below): Primes) -> usize {
        assert!(below > 0, "there is nothing below 0");
        let is_prime = |n: &u32| {
            (2..*n)
                .take_while(|d| d * d <= *n)
                .all(|d| !n.is_multiple_of(d))
        };
        (2..below).filter(is_prime).count()
    }
}

struct Pool {
    workers: Vec<ActorRef<WorkerMessage>>,
    /// For each worker, the reply of the caller that it works for.
    asking: Vec<Option<Reply<usize>>>,
    queue: VecDeque<Ask<Primes>>,
    answers: ReplyLane<usize>,
}

#[handlers]
impl Actor for Pool {
    type Args = usize;
    type Error = StartError;

    async fn pre_start(size: usize, cx: &mut Context<Self>) -> Result<Self, StartError> {
        // Children of a dynamic supervisor are temporary by default.
        let team = Dynamic::new().restart(Restart::Permanent);
        let team = cx.dynamic::<Worker>("team", team)?;
        let workers = (0..size).map(|number| team.start_child(number.to_string(), ()));
        Ok(Self {
            workers: workers.collect::<Result<_, _>>()?,
            asking: (0..size).map(|_| None).collect(),
            queue: VecDeque::new(),
            answers: cx.lane(),
        })
    }

    async fn job(&mut self, ask: Ask<Primes>) {
        self.queue.push_back(ask);
        self.hand_out();
    }

    /// Called when a worker is idle again, with its answer, or without one if it panicked: then the
    /// reply is dropped, which tells the caller.
    async fn done(&mut self, done: Completion<usize>) {
        let worker = usize::try_from(done.token).unwrap_or(usize::MAX);
        let reply = self.asking.get_mut(worker).and_then(Option::take);
        if let (Some(reply), Ok(answer)) = (reply, done.result) {
            reply.send(answer);
        }
        self.hand_out();
    }
}

impl Pool {
    fn hand_out(&mut self) {
        for (number, asking) in self.asking.iter_mut().enumerate() {
            if asking.is_some() {
                continue;
            }
            let Some(Ask { request, reply }) = self.queue.pop_front() else {
                return;
            };
            *asking = Some(reply);
            let reply = self.answers.reply(number as u64);
            // If the worker is gone, the reply is dropped, which also comes back as a completion.
            let _ = self.workers[number].try_tell(Ask { request, reply });
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    std::panic::set_hook(Box::new(|_| {})); // The answer reports the panic.
    let system = ActorSystem::new("example")?;
    let mut events = system.events();
    let pool = system.spawn::<Pool>("pool", 4)?;

    let jobs = (0..=20).map(|number| {
        let pool = pool.clone();
        async move { (number * 1000, pool.ask(Primes(number * 1000)).await) }
    });
    // All asks are sent at once; the pool keeps four of them running.
    let jobs: Vec<_> = jobs.map(tokio::spawn).collect();
    for job in jobs {
        match job.await? {
            (below, Ok(primes)) if below.is_multiple_of(5000) => {
                println!("{primes} primes below {below}")
            }
            (_, Ok(_)) => {}
            (below, Err(error)) => println!("none below {below}: {error}"),
        }
    }
    while let Some(event) = events.next().await {
        if let Event::Restarted { exit, .. } = event {
            println!("the worker was started again: {exit}");
            break;
        }
    }
    system.shutdown(SECOND).await;
    Ok(())
}
