//! A storm on the real clock: hogs, floods, handlers that block their worker, asks in loops, asks
//! dropped half way, and kills, all at the same time. Deadlines and timers hold, nothing is lost or
//! duplicated, and the storm ends. The seeded storm (`tests/storm`) runs on virtual time, where
//! nothing can be late; here something could be.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strowger::{
    Actor, ActorRef, ActorSystem, AskError, ChildSpec, Context, Event, EventStream, MailboxSpec,
    Strategy, Supervisor, SupervisorRef,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::asking::{AnswerFrom, FAR, watch};
use crate::support::{
    Job, MAX_WAIT, Work, Worker, compute, current_thread, exclusive_machine, on_worker, runtime,
};

const WORKERS: usize = 4;
/// The duration of the storm.
const STORM: Duration = Duration::from_secs(3);
/// The limit beyond which a deadline is late, on a machine that also does other work.
const LATE: Duration = Duration::from_millis(350);
const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// Sends itself the next message, computes, and repeats this forever.
struct Hog(Duration);

impl Actor for Hog {
    type Msg = ();
    /// The time that a message takes, and the number of messages that wait.
    type Args = (Duration, u32);
    type Error = Infallible;

    async fn pre_start(
        (work, ahead): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        for _ in 0..ahead {
            cx.actor_ref().try_tell(()).expect("there is room");
        }
        Ok(Self(work))
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        compute(self.0);
        cx.actor_ref().try_tell(()).expect("there is room");
        Ok(())
    }
}

/// The letters that the clerk has handled, by sender, and those out of order.
#[derive(Default)]
struct Ledger {
    last: BTreeMap<u32, u64>,
    done: u64,
    wrong: Vec<String>,
}

/// Enters letters into the ledger.
struct Clerk(Arc<Mutex<Ledger>>);

struct Letter {
    sender: u32,
    number: u64,
}

impl Actor for Clerk {
    type Msg = Letter;
    type Args = Arc<Mutex<Ledger>>;
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(16);

    async fn pre_start(ledger: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(ledger))
    }

    async fn handle(&mut self, letter: Letter, _: &mut Context<Self>) -> Result<(), Infallible> {
        let Letter { sender, number } = letter;
        if number.is_multiple_of(5) {
            tokio::task::yield_now().await;
        }
        let mut ledger = self.0.lock().expect("nobody panics with it");
        let before = ledger.last.insert(sender, number);
        if before.is_some_and(|before| before >= number) {
            let wrong = format!("{number} of {sender} came after {before:?}");
            ledger.wrong.push(wrong);
        }
        ledger.done += 1;
        Ok(())
    }
}

/// The observations of the askers.
#[derive(Default)]
struct Log {
    over: AtomicBool,
    answered: AtomicU64,
    timed_out: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    late: Mutex<Vec<String>>,
}

impl Log {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Notes an operation that took longer than it may.
    fn took(&self, what: &str, due: Duration, begun: Instant) {
        let took = begun.elapsed();
        if took > due + LATE {
            let mut late = self.late.lock().expect("nobody panics with it");
            late.push(format!("{what}: {took:?} instead of {due:?}"));
        }
    }
}

/// Asks in a loop, each time within this deadline.
async fn ask(whom: ActorRef<Job>, work: fn(u64) -> Work, within: Duration, log: Arc<Log>) {
    let mut number = 0;
    while !log.is_over() {
        number += 1;
        let begun = Instant::now();
        let count = match whom.ask_within(work(number), within).await {
            Ok(()) => &log.answered,
            Err(AskError::TimedOut) => &log.timed_out,
            Err(_) => &log.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        log.took("an ask", within, begun);
    }
}

/// Asks in a loop, and drops each ask before it is answered.
async fn ask_and_go(whom: ActorRef<Job>, log: Arc<Log>) {
    let mut patience = US;
    while !log.is_over() {
        let begun = Instant::now();
        patience = if patience > MS { US } else { patience * 3 };
        if timeout(patience, whom.ask(Work::Wait(MS))).await.is_err() {
            log.dropped.fetch_add(1, Ordering::Relaxed);
        }
        log.took("a timeout around an ask", patience, begun);
    }
}

async fn tick(log: Arc<Log>) {
    while !log.is_over() {
        let begun = Instant::now();
        sleep(MS).await;
        log.took("a timer", MS, begun);
    }
}

/// Sends letters to the clerk; returns the number of accepted ones.
async fn send(sender: u32, clerk: ActorRef<Letter>, log: Arc<Log>) -> u64 {
    let mut number = 0;
    while !log.is_over() {
        let letter = Letter { sender, number };
        assert!(clerk.tell(letter).await.is_ok(), "it is always restarted");
        number += 1;
        if number.is_multiple_of(50) {
            sleep(MS).await;
        }
    }
    number
}

/// Kills the children of a supervisor in turn; returns the number of kills.
async fn kill(supervisor: SupervisorRef, log: Arc<Log>) -> u64 {
    let mut kills = 0;
    while !log.is_over() {
        for key in ["clerk", "blocking", "quick"] {
            supervisor.any_child(key).expect("it has a cell").kill();
            kills += 1;
            sleep(7 * MS).await;
        }
    }
    kills
}

/// Counts letters that are reported as lost until the system is down.
async fn count_lost(mut events: EventStream) -> u64 {
    let mut lost = 0;
    while let Some(event) = events.next().await {
        if let Event::DeadLetter { path, count, .. } = event
            && path.as_str() == "/s/clerk"
        {
            lost += count;
        }
    }
    assert_eq!(events.lost(), 0, "the books need all events");
    lost
}

#[test]
fn deadlines_timers_and_accounting_hold_under_stress() {
    let _alone = exclusive_machine();
    on_worker(&runtime(WORKERS), async {
        let system = ActorSystem::new("weather").expect("within tokio");
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let lost = tokio::spawn(count_lost(system.events()));
        let children = Supervisor::new(Strategy::OneForOne)
            .intensity(u32::MAX, MS)
            .child(ChildSpec::new::<Clerk>("clerk", Arc::clone(&ledger)))
            .child(ChildSpec::new::<Worker>("blocking", ()))
            .child(ChildSpec::new::<Worker>("quick", ()));
        let supervisor = system.supervise("s", children).await.expect("it starts");
        let hogs = [(500 * US, 1), (100 * US, 10), (US, 500), (10 * MS, 1)];
        let mut all = Vec::new();
        for (number, hog) in hogs.into_iter().enumerate() {
            let hog = system.spawn::<Hog>(format!("hog-{number}"), hog);
            all.push(hog.expect("the name is free"));
        }

        let log = Arc::new(Log::default());
        let job = |key| -> ActorRef<Job> { supervisor.child(key).expect("it does jobs") };
        let (blocking, quick) = (job("blocking"), job("quick"));
        let mut tasks = JoinSet::new();
        let block = |number| match number % 8 {
            0 => Work::Block(40 * MS),
            _ => Work::Compute(200 * US),
        };
        for _ in 0..2 {
            tasks.spawn(ask(blocking.clone(), block, 10 * MS, Arc::clone(&log)));
            let nothing = |_| Work::Wait(Duration::ZERO);
            tasks.spawn(ask(quick.clone(), nothing, 250 * MS, Arc::clone(&log)));
            tasks.spawn(ask_and_go(quick.clone(), Arc::clone(&log)));
            tasks.spawn(tick(Arc::clone(&log)));
        }
        let clerk: ActorRef<Letter> = supervisor.child("clerk").expect("it takes letters");
        let mut senders = JoinSet::new();
        for sender in 0..3 {
            senders.spawn(send(sender, clerk.clone(), Arc::clone(&log)));
        }
        let killing = tokio::spawn(kill(supervisor.clone(), Arc::clone(&log)));

        sleep(STORM).await;
        log.over.store(true, Ordering::Relaxed);
        tasks.join_all().await;
        let accepted: u64 = senders.join_all().await.into_iter().sum();
        let kills = killing.await.expect("no panic");
        all.iter().for_each(ActorRef::kill);
        let report = system.shutdown(MAX_WAIT).await;
        assert!(report.not_stopped.is_empty(), "{report:?}");
        let lost = lost.await.expect("no panic");

        let ledger = ledger.lock().expect("nobody panics with it");
        assert_eq!(ledger.wrong, [""; 0]);
        let done = ledger.done;
        assert_eq!(accepted, done + lost, "{done} done, {lost} lost");
        let late = log.late.lock().expect("nobody panics with it");
        assert_eq!(*late, [""; 0]);
        // Otherwise it was no storm.
        let counts = [&log.answered, &log.timed_out, &log.failed, &log.dropped];
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        assert!(
            counts.iter().all(|&count| count > 5) && kills > 50 && accepted > 100,
            "{counts:?} answered, timed out, failed and dropped, {kills} kills, {accepted} letters"
        );
    });
}

/// Asks from hooks and from tasks, with far deadlines and near ones, actors that answer from other
/// threads, from blocking threads, from pipes and after a delay.
#[test]
fn answered_askers_always_resume_under_stress() {
    for runtime in [current_thread(), runtime(1), runtime(WORKERS)] {
        let asked = watch(runtime, STORM / 2, |askers| {
            let answerers = [
                askers.answerer::<true>(AnswerFrom::Handler),
                askers.answerer::<false>(AnswerFrom::Handler),
                askers.answerer::<false>(AnswerFrom::Blocking),
                askers.answerer::<false>(AnswerFrom::Pipe),
                askers.answerer::<false>(AnswerFrom::Delayed),
            ];
            for of in &answerers {
                for in_hook in [true, false] {
                    askers.ask(of, in_hook, FAR, (u64::MAX, 50));
                    askers.ask(of, in_hook, Duration::from_secs(3), (u64::MAX, u64::MAX));
                }
            }
        });
        // Otherwise it was no storm.
        assert!(asked > 1000, "{asked} asks");
    }
}
