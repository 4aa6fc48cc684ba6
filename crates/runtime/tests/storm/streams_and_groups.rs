//! One-to-many communication on the virtual time of a `TestSystem`: listeners of a topic, which
//! start in batches and form a group; a stream and its followers; and an actor that works through
//! pipes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use strowger::{
    Accepts, Actor, Ask, BoxError, Context, Exit, PipeId, ReadError, Reader, Request, SendError,
    Signal, Source, SourceSpec,
};
use tokio::time::Instant;

use crate::accounting::{Shared, note};
use crate::rng::Numbers;
use crate::{GROUP, MS, STREAMER, TOPIC};

pub(crate) enum ListenerMessage {
    /// A number that was published.
    Number(u64),
    Call(Call),
}

/// A message to members of the group. For a call to one member: its key, and the number of changes
/// of the group so far.
#[derive(Clone)]
pub(crate) struct Call(pub(crate) Option<(u64, u64)>);

impl Accepts<Call> for ListenerMessage {
    fn wrap(call: Call) -> Self {
        Self::Call(call)
    }
}

/// Subscribes and joins at each start, and checks what it receives.
pub(crate) struct Listener {
    books: Shared,
    path: String,
    serial: u64,
    orderly: bool,
    last: Option<u64>,
}

impl Actor for Listener {
    type Msg = ListenerMessage;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        let heard = cx.actor_ref().recipient::<ListenerMessage>();
        let number = |number: Arc<u64>| ListenerMessage::Number(*number);
        cx.system()
            .subscribe::<u64>(TOPIC, heard.contramap(number))?;
        cx.system()
            .group::<Call>(GROUP)
            .join(cx.actor_ref().recipient::<Call>())?;
        let serial = note(&books, |books| books.incarnation_started(&path));
        Ok(Self {
            books,
            path,
            serial,
            orderly: false,
            last: None,
        })
    }

    async fn handle(
        &mut self,
        heard: ListenerMessage,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        note(&self.books, |books| {
            books.heard += 1;
            match heard {
                ListenerMessage::Number(number) => {
                    let before = self.last.replace(number);
                    if before.is_some_and(|before| before >= number) {
                        books.note_violation(format!(
                            "{} heard {number} after {before:?}",
                            self.path
                        ));
                    }
                }
                ListenerMessage::Call(Call(Some((key, changes)))) => {
                    books.call(key, changes, &self.path)
                }
                ListenerMessage::Call(Call(None)) => {}
            }
        });
        Ok(())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        self.orderly = exit.is_orderly();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.count("end of a subscriber");
            books.incarnation_ended(&self.path, self.serial, self.orderly);
        });
    }
}

/// Asks for a reader.
pub(crate) struct Read;

impl Request for Read {
    type Reply = Reader<u64>;
}

pub(crate) enum StreamerMessage {
    Tick,
    Read(Ask<Read>),
}

impl Accepts<Ask<Read>> for StreamerMessage {
    fn wrap(ask: Ask<Read>) -> Self {
        Self::Read(ask)
    }
}

/// Sends numbers to all readers, as fast as the slowest of them reads.
pub(crate) struct Streamer {
    books: Shared,
    path: String,
    serial: u64,
    source: Source<u64>,
    next: u64,
}

impl Actor for Streamer {
    type Msg = StreamerMessage;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        let source = cx.source(SourceSpec::DEFAULT.window(3).readers(8));
        cx.send_every(MS * 2, || StreamerMessage::Tick);
        let serial = note(&books, |books| books.incarnation_started(&path));
        Ok(Self {
            books,
            path,
            serial,
            source,
            next: 0,
        })
    }

    async fn handle(
        &mut self,
        tide: StreamerMessage,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        match tide {
            StreamerMessage::Tick => match self.source.try_send(self.next) {
                Ok(_) => self.next += 1,
                Err(SendError::Full(_)) => {
                    note(&self.books, |books| books.count("stream held by a reader"));
                }
                Err(error) => {
                    note(&self.books, |books| {
                        books.note_violation(format!("a stream: {error}"))
                    });
                }
            },
            StreamerMessage::Read(ask) => {
                if let Ok(reader) = self.source.reader() {
                    ask.reply.send(reader);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Streamer {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.incarnation_ended(&self.path, self.serial, true);
        });
    }
}

/// Reads a stream to its end, or until the follower itself ends.
pub(crate) struct Follower;

impl Actor for Follower {
    type Msg = ();
    type Args = (Shared, Duration);
    type Error = BoxError;

    async fn pre_start(args: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let streamer = cx.system().find(STREAMER).ok_or("there is no stream now")?;
        let streamer = streamer.downcast::<StreamerMessage>().ok_or("it streams")?;
        let reader = streamer.ask_within(Read, MS * 9).await?;
        let (books, pace) = args;
        let log = Log {
            books,
            expected: None,
            over: false,
        };
        cx.task("read", read(reader, pace, log));
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::TaskEnded { .. } = signal {
            cx.stop();
        }
        Ok(())
    }
}

/// The observations of a reader.
struct Log {
    books: Shared,
    expected: Option<u64>,
    over: bool,
}

impl Log {
    fn wrong(&self, what: String) {
        note(&self.books, |books| books.note_violation(what));
    }
}

async fn read(mut reader: Reader<u64>, pace: Duration, mut log: Log) {
    while let Some(item) = reader.recv().await {
        if log.over {
            log.wrong("a stream went on after its end".to_owned());
        }
        match item {
            Ok(number) => {
                if log.expected.is_some_and(|expected| expected != number) {
                    log.wrong(format!("read {number}, not {:?}", log.expected));
                }
                log.expected = Some(number + 1);
                tokio::time::sleep(pace).await;
            }
            Err(ReadError::Ended { .. }) => {
                log.over = true;
                note(&log.books, |books| {
                    books.count("stream cut off by its source")
                });
            }
            Err(error) => log.wrong(format!("a stream ended with: {error}")),
        }
    }
    if !log.over {
        log.wrong("a stream ended without a reason".to_owned());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !self.over {
            note(&self.books, |books| books.count("end of a reader"));
        }
    }
}

pub(crate) enum Work {
    Tick,
    Done { serial: u64, number: u64 },
}

/// Does its work in pipes, and checks their outputs.
pub(crate) struct PipeWorker {
    books: Shared,
    path: String,
    serial: u64,
    numbers: Numbers,
    next: u64,
    /// The deadlines of the pipes in flight.
    due: BTreeMap<u64, (Instant, PipeId)>,
    /// The pipes whose outputs were ready at the last tick.
    ready: BTreeSet<u64>,
    /// The time when it finished the previous message.
    free: Instant,
}

impl PipeWorker {
    fn begin(&mut self, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let (serial, number) = (self.serial, self.next);
        self.next += 1;
        let time = MS * u32::try_from(self.numbers.below(9)).expect("small");
        let panics = self.numbers.below(6) == 0;
        let work = async move {
            tokio::time::sleep(time).await;
            if panics {
                std::panic::resume_unwind(Box::new("in a pipe"));
            }
        };
        let pipe = cx.pipe(work, move |()| Work::Done { serial, number })?;
        self.due.insert(number, (Instant::now() + time, pipe));
        Ok(())
    }

    fn cancel(&mut self, cx: &mut Context<Self>) {
        if let Some((_, (_, pipe))) = self.due.pop_first()
            && cx.cancel_pipe(pipe)
        {
            note(&self.books, |books| books.count("pipe cancelled"));
        }
    }

    fn wrong(&self, what: &str) {
        note(&self.books, |books| {
            books.note_violation(format!("{}: {what}", self.path))
        });
    }
}

impl Actor for PipeWorker {
    type Msg = Work;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        cx.send_every(MS * 3, || Work::Tick);
        let serial = note(&books, |books| books.incarnation_started(&path));
        Ok(Self {
            books,
            path,
            serial,
            numbers: Numbers::new(serial),
            next: 0,
            due: BTreeMap::new(),
            ready: BTreeSet::new(),
            free: Instant::now(),
        })
    }

    async fn handle(&mut self, work: Work, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match work {
            Work::Tick => {
                // Outputs of pipes and timers take turns, so an output that was ready at the last
                // tick came before this one.
                let ready = self.due.iter().filter(|(_, (due, _))| *due < self.free);
                let ready: BTreeSet<u64> = ready.map(|(number, _)| *number).collect();
                if !self.ready.is_disjoint(&ready) {
                    self.wrong("a pipe is late");
                }
                self.ready = ready;
                if self.numbers.below(5) == 0 {
                    self.cancel(cx);
                }
                self.begin(cx)?;
            }
            Work::Done { serial, .. } if serial != self.serial => {
                self.wrong("a pipe of another life");
            }
            Work::Done { number, .. } => match self.due.remove(&number) {
                Some((due, _)) if due <= Instant::now() => {
                    note(&self.books, |books| books.count("pipe"));
                }
                Some(_) => self.wrong("a pipe came early"),
                None => self.wrong("a pipe that was cancelled, or came before"),
            },
        }
        self.free = Instant::now();
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::PipePanicked { pipe, .. } = signal {
            let before = self.due.len();
            self.due.retain(|_, (_, one)| *one != pipe);
            if self.due.len() + 1 != before {
                self.wrong("a panic of a pipe that was cancelled, or came before");
            }
            note(&self.books, |books| books.count("panic in a pipe"));
        }
        Ok(())
    }
}

impl Drop for PipeWorker {
    fn drop(&mut self) {
        note(&self.books, |books| {
            if !self.due.is_empty() {
                books.count("end with pipes in flight");
            }
            books.incarnation_ended(&self.path, self.serial, true);
        });
    }
}
