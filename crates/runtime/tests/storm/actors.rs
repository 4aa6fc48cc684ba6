//! The actors of a storm in a `TestSystem`: workers with letters, their leaves, a clock, its
//! partner, and senders.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, BoxError, Context, Exit, MonitorId, Recipient, Reply,
    Request, SendError, Signal, TimerKey,
};
use tokio::time::Instant;

use crate::accounting::{Shared, note};
use crate::rng::Numbers;
use crate::{CLOCK, LETTERS, MS, WORKERS};

thread_local! {
    /// `true` while this thread polls an ask.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

pub(crate) struct StormMessage {
    sender: u32,
    number: u64,
    deed: WorkerCommand,
    /// Present if the letter is an ask.
    reply: Option<Reply<u64>>,
}

/// A letter whose sender waits for its number to come back.
struct Question(StormMessage);

impl Request for Question {
    type Reply = u64;
}

impl Accepts<Ask<Question>> for StormMessage {
    fn wrap(
        Ask {
            request: Question(letter),
            reply,
        }: Ask<Question>,
    ) -> Self {
        Self {
            reply: Some(reply),
            ..letter
        }
    }
}

/// The outcome of handling a letter.
enum WorkerCommand {
    Nothing,
    Sleep(Duration),
    Panic,
    Fail,
    /// Starts a child that ends after a while, and monitors it, or cancels the monitor soon.
    Leaf(Duration, MonitorOp),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MonitorOp {
    Kept,
    GivenUp,
}

/// Takes letters; the main subject of the storm.
pub(crate) struct Worker {
    books: Shared,
    path: String,
    serial: u64,
    orderly: bool,
    watched: BTreeSet<MonitorId>,
    leaves: u64,
}

impl Worker {
    async fn act(&mut self, deed: WorkerCommand, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match deed {
            WorkerCommand::Nothing => {}
            WorkerCommand::Sleep(time) => tokio::time::sleep(time).await,
            WorkerCommand::Panic => std::panic::resume_unwind(Box::new("in the storm")),
            WorkerCommand::Fail => return Err("in the storm".into()),
            WorkerCommand::Leaf(time, watch) => {
                self.leaves += 1;
                let leaf = cx.spawn::<Leaf>(format!("leaf-{}", self.leaves), time)?;
                let monitor = cx.monitor(&leaf);
                if watch == MonitorOp::Kept {
                    self.watched.insert(monitor);
                } else {
                    cx.demonitor(monitor);
                }
            }
        }
        Ok(())
    }
}

impl Actor for Worker {
    type Msg = StormMessage;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        let serial = note(&books, |books| books.incarnation_started(&path));
        Ok(Self {
            books,
            path,
            serial,
            orderly: false,
            watched: BTreeSet::new(),
            leaves: 0,
        })
    }

    async fn handle(
        &mut self,
        letter: StormMessage,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        let StormMessage {
            sender,
            number,
            deed,
            reply,
        } = letter;
        note(&self.books, |books| {
            books.begin(&self.path, sender, number);
            if ASKING.get() {
                books.note_violation(format!("{} runs on the stack of an asker", self.path));
            }
        });
        self.act(deed, cx).await?;
        note(&self.books, |books| books.finish(&self.path));
        if let Some(reply) = reply {
            reply.send(number);
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { id, path, .. } = signal {
            let known = self.watched.remove(&id);
            note(&self.books, |books| {
                books.count("down");
                if !known {
                    books.note_violation(format!("{} got a Down of {path} too many", self.path));
                }
            });
        }
        Ok(())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        self.orderly = exit.is_orderly();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.incarnation_ended(&self.path, self.serial, self.orderly);
        });
    }
}

/// A child that ends after a while.
struct Leaf;

impl Actor for Leaf {
    type Msg = ();
    type Args = Duration;
    type Error = BoxError;

    async fn pre_start(time: Duration, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.send_after(time, ());
        Ok(Self)
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), BoxError> {
        cx.stop();
        Ok(())
    }
}

/// Depends on its timers, and checks each one that fires.
pub(crate) struct Clock {
    books: Shared,
    path: String,
    serial: u64,
    orderly: bool,
    /// A timer that may be cancelled, and its number.
    doomed: Option<(TimerKey, u64)>,
    cancelled: BTreeSet<u64>,
    next: u64,
}

pub(crate) enum Tick {
    Due { serial: u64, at: Instant },
    Doomed(u64),
}

impl Clock {
    fn wind(&mut self, cx: &mut Context<Self>) {
        let serial = self.serial;
        let after = MS * (1 + u32::try_from(self.next % 5).expect("small"));
        let at = Instant::now() + after;
        cx.send_after(after, Tick::Due { serial, at });
        if let Some((key, number)) = self.doomed.take()
            && cx.cancel(key)
        {
            note(&self.books, |books| books.count("timer cancelled"));
            self.cancelled.insert(number);
        }
        let number = self.next;
        self.next += 1;
        self.doomed = Some((cx.send_after(MS * 3, Tick::Doomed(number)), number));
    }
}

impl Actor for Clock {
    type Msg = Tick;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        let serial = note(&books, |books| books.incarnation_started(&path));
        let mut clock = Self {
            books,
            path,
            serial,
            orderly: false,
            doomed: None,
            cancelled: BTreeSet::new(),
            next: 0,
        };
        clock.wind(cx);
        Ok(clock)
    }

    async fn handle(&mut self, tick: Tick, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match tick {
            Tick::Due { serial, at } => {
                let early = Instant::now() < at;
                note(&self.books, |books| {
                    books.count("timer");
                    if early {
                        books.note_violation(format!("a timer of {} came early", self.path));
                    }
                    if serial != self.serial {
                        books.note_violation(format!("{} got a timer of another life", self.path));
                    }
                });
                self.wind(cx);
            }
            Tick::Doomed(number) if self.cancelled.contains(&number) => {
                note(&self.books, |books| {
                    books.note_violation(format!("{} got a cancelled timer", self.path));
                });
            }
            Tick::Doomed(_) => {}
        }
        Ok(())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        self.orderly = exit.is_orderly();
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        note(&self.books, |books| {
            // The timer was set, or else the clock would not have been running.
            books.count("timer that its actor did not live to see");
            books.incarnation_ended(&self.path, self.serial, self.orderly);
        });
    }
}

/// Linked to the clock: it must not outlive an incarnation of it that ended abnormally.
pub(crate) struct Partner {
    books: Shared,
    path: String,
    serial: u64,
    linked: Option<u64>,
}

impl Actor for Partner {
    type Msg = ();
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        cx.send_every(MS, || ());
        let mut linked = None;
        if let Some(clock) = cx.system().find(CLOCK) {
            linked = note(&books, |books| books.incarnation(CLOCK));
            cx.link(clock);
        }
        let serial = note(&books, |books| books.incarnation_started(&path));
        Ok(Self {
            books,
            path,
            serial,
            linked,
        })
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        note(&self.books, |books| {
            if self.linked.is_some_and(|clock| books.has_ended(clock)) {
                books.note_violation(format!("{} outlived what it was linked to", self.path));
            }
        });
        Ok(())
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.incarnation_ended(&self.path, self.serial, true);
        });
    }
}

/// Sends numbered letters to random workers, one per tick, and then stops.
pub(crate) struct Sender {
    name: u32,
    numbers: Numbers,
    next: u64,
    books: Shared,
    end: Recipient<u32>,
}

impl Sender {
    fn letter(&mut self) -> StormMessage {
        let number = self.next;
        self.next += 1;
        let below =
            |numbers: &mut Numbers, bound| u32::try_from(numbers.below(bound)).expect("small");
        let deed = match self.numbers.below(14) {
            0 => WorkerCommand::Panic,
            1 => WorkerCommand::Fail,
            2..=5 => WorkerCommand::Sleep(MS * below(&mut self.numbers, 20)),
            6..=8 => {
                let time = MS * below(&mut self.numbers, 12);
                match self.numbers.below(4) {
                    0 => WorkerCommand::Leaf(time, MonitorOp::GivenUp),
                    _ => WorkerCommand::Leaf(time, MonitorOp::Kept),
                }
            }
            _ => WorkerCommand::Nothing,
        };
        StormMessage {
            sender: self.name,
            number,
            deed,
            reply: None,
        }
    }

    async fn tell(
        &self,
        path: &str,
        worker: &ActorRef<StormMessage>,
        letter: StormMessage,
        ttl: Option<Duration>,
    ) -> bool {
        let before = Instant::now();
        let sent = match ttl {
            Some(ttl) => worker.tell_within(letter, ttl).await,
            None => worker.tell(letter).await,
        };
        self.refused(&sent);
        let accepted = sent.is_ok();
        if accepted && Instant::now() > before {
            note(&self.books, |books| {
                books.count("overflow: waited for room")
            });
        }
        if matches!(sent, Err(SendError::Full(_))) && path.ends_with("/fail") {
            note(&self.books, |books| books.count("overflow: refused"));
        }
        accepted
    }

    fn try_tell(
        &self,
        path: &str,
        worker: &ActorRef<StormMessage>,
        letter: StormMessage,
        ttl: Option<Duration>,
    ) -> bool {
        let sent = match ttl {
            Some(ttl) => worker.try_tell_within(letter, ttl),
            None => worker.try_tell(letter),
        };
        self.refused(&sent);
        if matches!(sent, Err(SendError::Full(_))) && path.ends_with("/fail") {
            note(&self.books, |books| books.count("overflow: refused"));
        }
        sent.is_ok()
    }

    fn refused(&self, sent: &Result<(), SendError<StormMessage>>) {
        if matches!(sent, Err(SendError::Draining(_))) {
            note(&self.books, |books| books.count("draining refused"));
        }
    }

    /// Asks, and drops the ask after this time; returns `true` if the letter was accepted.
    async fn ask_and_leave(
        &self,
        path: &str,
        worker: &ActorRef<StormMessage>,
        letter: StormMessage,
        after: Duration,
    ) -> bool {
        let number = letter.number;
        let asking = self.ask(path, worker, letter, MS * 5000);
        if let Ok(accepted) = tokio::time::timeout(after, asking).await {
            return accepted;
        }
        note(&self.books, |books| {
            books.count("ask dropped half way");
            books.note_unknown_outcome(path, self.name, number);
        });
        false
    }

    /// Asks; returns `true` if the letter was accepted. There is an outcome in time in every case.
    async fn ask(
        &self,
        path: &str,
        worker: &ActorRef<StormMessage>,
        letter: StormMessage,
        within: Duration,
    ) -> bool {
        let (number, before) = (letter.number, Instant::now());
        let mut asking = pin!(worker.ask_within(Question(letter), within));
        let answer = poll_fn(|cx| {
            ASKING.set(true);
            let answer = asking.as_mut().poll(cx);
            ASKING.set(false);
            answer
        });
        let answer = answer.await;
        let took = Instant::now() - before;
        note(&self.books, |books| {
            if took > within + MS {
                books.note_violation(format!("an answer took {took:?}, not {within:?}"));
            }
            match answer {
                Ok(answer) => {
                    if answer != number {
                        books.note_violation(format!("the answer to {number} was {answer}"));
                    }
                    true
                }
                Err(AskError::Dropped | AskError::Panicked) => {
                    books.count("ask whose reply was dropped");
                    true
                }
                Err(AskError::TimedOut) => {
                    books.count("ask past its deadline");
                    books.note_unknown_outcome(path, self.name, number);
                    false
                }
                Err(AskError::Draining) => {
                    books.count("draining refused");
                    false
                }
                Err(AskError::Closed | AskError::Full) => false,
                Err(error) => {
                    books.note_violation(format!("an ask ended with: {error}"));
                    false
                }
            }
        })
    }
}

impl Actor for Sender {
    type Msg = ();
    type Args = (u32, u64, Shared, Recipient<u32>);
    type Error = BoxError;

    async fn pre_start(args: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let (name, seed, books, end) = args;
        cx.send_every(MS * 2, || ());
        let numbers = Numbers::new(seed ^ u64::from(name) << 32);
        Ok(Self {
            name,
            numbers,
            next: 0,
            books,
            end,
        })
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), BoxError> {
        if self.next == LETTERS {
            let _sent = self.end.try_tell(self.name);
            cx.stop();
            return Ok(());
        }
        let path = *self.numbers.pick(&WORKERS);
        let manner = self.numbers.below(8);
        let within = MS * u32::try_from(2 + self.numbers.below(12)).expect("small");
        let wanted_for = MS * u32::try_from(self.numbers.below(30)).expect("small");
        let ttl = (wanted_for < MS * 9).then_some(wanted_for);
        let letter = self.letter();
        // Between two incarnations of its supervisor a worker has no address.
        let Some(worker) = cx.system().find(path) else {
            return Ok(());
        };
        let worker: ActorRef<StormMessage> = worker.downcast().expect("workers take letters");
        let accepted = match manner {
            0..=2 => self.tell(path, &worker, letter, ttl).await,
            3 | 4 => self.try_tell(path, &worker, letter, ttl),
            5 => self.ask(path, &worker, letter, MS * 5000).await,
            6 => self.ask_and_leave(path, &worker, letter, within).await,
            _ => self.ask(path, &worker, letter, within).await,
        };
        if accepted {
            note(&self.books, |books| books.accept(path));
        }
        Ok(())
    }
}
