//! Askers that are watched from a thread of their own, and actors that answer them from other
//! threads: an asker whose answer was sent must go on, whatever the moment in which it was sent.
//!
//! An answer that wakes nothing is found by the asker at its deadline, and then it is `Ok`. So the
//! watching thread compares the time at which an answer was sent with the progress of its asker.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, AskError, BoxError, Context, Reply, Request,
};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::support::MAX_WAIT;

/// A deadline beyond the end of every test.
pub(crate) const FAR: Duration = Duration::from_secs(24 * 3600);
/// The time after which an asker that was answered must have gone on, on a busy machine too.
const ASLEEP: Duration = Duration::from_secs(2);

/// The progress of one asker, and the answer that is on its way to it.
struct Progress {
    name: String,
    begun: Instant,
    /// The time of the answer to the current ask, in microseconds since `begun`; 0 before it.
    answered: AtomicU64,
    asked: AtomicU64,
    /// The number of asks that were answered and took their whole deadline.
    whole: AtomicU64,
    /// Set when the asker is to stop after its current ask.
    is_over: AtomicBool,
    is_done: AtomicBool,
}

impl Progress {
    fn mark_answered(&self) {
        let time = u64::try_from(self.begun.elapsed().as_micros()).expect("a test is short");
        self.answered.store(time.max(1), Ordering::SeqCst);
    }

    /// Returns the time for which the asker has been asleep beside its answer.
    fn asleep(&self) -> Option<Duration> {
        let answered = self.answered.load(Ordering::SeqCst);
        let since = Duration::from_micros(answered);
        (answered > 0).then(|| self.begun.elapsed().saturating_sub(since))
    }
}

/// A request that is answered with nothing; whoever answers marks it.
pub(crate) struct Query(Arc<Progress>);

impl Request for Query {
    type Reply = ();
}

fn answer(ask: Ask<Query>) {
    let reply: Reply<()> = ask.reply;
    ask.request.0.mark_answered();
    reply.send(());
}

/// The place from which an [`Answerer`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerFrom {
    /// The thread that runs the actor.
    Handler,
    /// A thread that may block, for which the handler waits.
    Blocking,
    /// A thread that may block, in a pipe.
    Pipe,
    /// A pipe that waits for up to three milliseconds, so for a few looks of the monitor.
    Delayed,
}

/// Answers each query. With `OWN`, the actor has a thread of its own and always something to do, so
/// it answers within about a microsecond.
pub(crate) struct Answerer<const OWN: bool> {
    from: AnswerFrom,
    random: u64,
}

pub(crate) enum AnswererMsg {
    Query(Ask<Query>),
    /// A pipe is done, or the actor is to go on.
    Next,
}

impl Accepts<Ask<Query>> for AnswererMsg {
    fn wrap(ask: Ask<Query>) -> Self {
        Self::Query(ask)
    }
}

impl<const OWN: bool> Actor for Answerer<OWN> {
    type Msg = AnswererMsg;
    type Args = AnswerFrom;
    type Error = BoxError;
    const BLOCKING: bool = OWN;
    const PIPES: usize = 8;

    async fn pre_start(from: AnswerFrom, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        if OWN {
            cx.actor_ref().try_tell(AnswererMsg::Next)?;
        }
        Ok(Self { from, random: 1 })
    }

    async fn handle(
        &mut self,
        message: AnswererMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        let random = next_random(&mut self.random);
        if OWN {
            for _ in 0..random % 64 {
                spin_loop();
            }
        }
        let AnswererMsg::Query(ask) = message else {
            if OWN {
                cx.actor_ref().try_tell(AnswererMsg::Next)?;
            }
            return Ok(());
        };
        let is_free = cx.pipes() < Self::PIPES;
        let blocking = |ask| spawn_blocking(move || answer(ask));
        match self.from {
            AnswerFrom::Handler => answer(ask),
            AnswerFrom::Pipe if is_free => {
                cx.pipe(blocking(ask), |_| AnswererMsg::Next)?;
            }
            AnswerFrom::Delayed if is_free => {
                let delayed = async move {
                    sleep(Duration::from_micros(random % 3000)).await;
                    answer(ask);
                };
                cx.pipe(delayed, |()| AnswererMsg::Next)?;
            }
            _ => blocking(ask).await?,
        }
        Ok(())
    }
}

fn next_random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// The asks of one asker, one after the other.
#[derive(Clone)]
struct Asks {
    of: ActorRef<AnswererMsg>,
    within: Duration,
    count: u64,
    /// The number of asks after which the asker sleeps for some milliseconds, as the monitor does.
    batch: u64,
    progress: Arc<Progress>,
}

impl Asks {
    async fn run(&self) {
        let progress = &self.progress;
        let mut random = self.count;
        for number in 0..self.count {
            if progress.is_over.load(Ordering::SeqCst) {
                break;
            }
            let begun = Instant::now();
            let query = Query(Arc::clone(progress));
            let asked = self.of.ask_within(query, self.within).await;
            progress.answered.store(0, Ordering::SeqCst);
            match asked {
                Ok(()) => {}
                // The machine was slow, and the answer did not come in time.
                Err(AskError::TimedOut) if self.within < FAR => continue,
                // The test is over.
                Err(_) => return,
            }
            if begun.elapsed() >= self.within {
                progress.whole.fetch_add(1, Ordering::SeqCst);
            }
            progress.asked.fetch_add(1, Ordering::SeqCst);
            if number % self.batch == self.batch - 1 {
                sleep(Duration::from_micros(next_random(&mut random) % 5000)).await;
            }
        }
        progress.is_done.store(true, Ordering::SeqCst);
    }
}

/// Asks from its hook.
struct Asker;

impl Actor for Asker {
    type Msg = Asks;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(&mut self, asks: Asks, _: &mut Context<Self>) -> Result<(), BoxError> {
        asks.run().await;
        Ok(())
    }
}

/// Askers and answerers in one system.
pub(crate) struct Askers {
    system: ActorSystem,
    answerers: Vec<ActorRef<AnswererMsg>>,
    progress: Vec<Arc<Progress>>,
}

impl Askers {
    pub(crate) fn answerer<const OWN: bool>(&mut self, from: AnswerFrom) -> ActorRef<AnswererMsg> {
        let key = format!("answerer-{}", self.answerers.len());
        let answerer = self.system.spawn::<Answerer<OWN>>(key, from);
        let answerer = answerer.expect("the name is free");
        self.answerers.push(answerer.clone());
        answerer
    }

    /// Starts an asker: an actor if `in_hook`, otherwise a task.
    pub(crate) fn ask(
        &mut self,
        of: &ActorRef<AnswererMsg>,
        in_hook: bool,
        within: Duration,
        (count, batch): (u64, u64),
    ) {
        let place = if in_hook { "hook" } else { "task" };
        let name = format!("{}-{place}-of-{}", self.progress.len(), of.path().key());
        let progress = Arc::new(Progress {
            name: name.clone(),
            begun: Instant::now(),
            answered: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            whole: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
        });
        self.progress.push(Arc::clone(&progress));
        let of = of.clone();
        let asks = Asks {
            of,
            within,
            count,
            batch,
            progress,
        };
        if in_hook {
            let asker = self.system.spawn::<Asker>(name, ());
            let told = asker.expect("the name is free").try_tell(asks);
            assert!(told.is_ok(), "there is room");
        } else {
            drop(tokio::spawn(async move { asks.run().await }));
        }
    }
}

/// Runs askers until they are done or `time` is over, and each has the answer to its last ask;
/// returns the number of their asks. Panics if one sleeps on beside its answer, or if an ask that
/// was answered took its whole deadline.
pub(crate) fn watch(
    runtime: Runtime,
    time: Duration,
    start: impl FnOnce(&mut Askers) + Send + 'static,
) -> u64 {
    let (started, starting) = std::sync::mpsc::channel();
    let (stop, stopping) = oneshot::channel::<()>();
    let running = thread::spawn(move || {
        runtime.block_on(async move {
            // In a task, since what `block_on` runs is polled for other reasons as well.
            let started = tokio::spawn(async move {
                let mut askers = Askers {
                    system: ActorSystem::new("askers").expect("within tokio"),
                    answerers: Vec::new(),
                    progress: Vec::new(),
                };
                start(&mut askers);
                started
                    .send(askers.progress.clone())
                    .expect("it is watched");
                askers
            });
            let askers = started.await.expect("no panic");
            let _stop = stopping.await;
            askers.answerers.iter().for_each(ActorRef::kill);
        });
        // Nothing that failed is waited for.
        runtime.shutdown_background();
    });
    let progress = starting.recv_timeout(MAX_WAIT).expect("they start");
    let watched = observe(&progress, time);
    drop(stop);
    running.join().expect("no panic");
    let asked = progress.iter().map(|one| one.asked.load(Ordering::SeqCst));
    match watched {
        Ok(()) => asked.sum(),
        Err(why) => panic!("{why}"),
    }
}

/// Watches askers until they are done. When the time is over, they stop after their current asks.
fn observe(askers: &[Arc<Progress>], time: Duration) -> Result<(), String> {
    let begun = Instant::now();
    let mut counts = vec![(0, begun); askers.len()];
    loop {
        thread::sleep(Duration::from_millis(20));
        let mut done = true;
        for (asker, (before, since)) in askers.iter().zip(&mut counts) {
            let asked = asker.asked.load(Ordering::SeqCst);
            let name = &asker.name;
            if let Some(asleep) = asker.asleep().filter(|asleep| *asleep > ASLEEP) {
                // It may have gone on since, and been answered anew.
                if asker.asked.load(Ordering::SeqCst) == asked {
                    return Err(format!(
                        "{name}: ask {asked} answered {asleep:?} ago, not woken"
                    ));
                }
            }
            if asker.whole.load(Ordering::SeqCst) > 0 {
                return Err(format!("{name}: an answered ask took its whole deadline"));
            }
            if asked != *before {
                (*before, *since) = (asked, Instant::now());
            }
            let is_done = asker.is_done.load(Ordering::SeqCst);
            done &= is_done;
            if !is_done && since.elapsed() > MAX_WAIT {
                return Err(format!("{name}: ask {asked} is not answered"));
            }
        }
        if done {
            return Ok(());
        }
        if begun.elapsed() > time {
            for asker in askers {
                asker.is_over.store(true, Ordering::SeqCst);
            }
        }
    }
}
