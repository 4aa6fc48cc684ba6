//! Streams by name: pieces of text or octets from one producer to many readers, as an actor.
//!
//! ```text
//! producer ── put ──▶ stream "log" ── credit ──▶ reader 1
//!          ◀─ taken ─  last n pieces ─────────▶ reader 2, which came later
//! ```
//!
//! A piece is put when every reader has room for it, so a producer is as fast as its slowest
//! reader; one that takes nothing for [`stall`](StreamLimits::stall) is disconnected, and the rest
//! go on. A producer that ends, or is silent for [`idle`](StreamLimits::idle), ends its stream with
//! an error. A piece is sent whole or not at all: one whose producer gave up waiting is not sent.

mod door;
mod message;
mod spec;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strowger::{
    Ask, BoxError, Completion, Context, Lag, MonitorId, Reader, SendError, Signal, Source,
    SourceSpec, handlers,
};
use tokio::time::Instant;

pub use self::door::streams_door;
pub use self::message::{
    EndStream, FailStream, Follow, ListStreams, OpenStream, Piece, Put, StreamError, StreamInfo,
};
pub use self::spec::{StreamLimits, StreamsSpec, StreamsWatch};

/// An actor that passes pieces of streams on from producers to readers.
#[derive(Debug)]
pub struct Streams {
    limits: StreamLimits,
    by_name: BTreeMap<Arc<str>, u64>,
    streams: BTreeMap<u64, Live>,
    next: u64,
    watch: StreamsWatch,
    /// Which actor, for the audit.
    actor: String,
}

/// A stream that has not ended.
#[derive(Debug)]
struct Live {
    name: Arc<str>,
    source: Source<Piece>,
    /// Pieces for which a reader has no room yet, in order.
    waiting: VecDeque<Ask<Put>>,
    producer: Option<MonitorId>,
    /// When the producer did something last.
    heard: Instant,
    /// Since when the first one waits.
    blocked: Option<Instant>,
    /// It will be said when the readers have room; asking twice would be answered at once.
    is_asked: bool,
    octets: u64,
}

/// It is time to see whether a producer is silent, or a reader stands still.
#[derive(Debug)]
#[doc(hidden)]
pub struct Look(u64);

type Outcome<T> = Result<T, StreamError>;

#[handlers]
impl strowger::Actor for Streams {
    type Args = StreamsSpec;
    type Error = BoxError;

    async fn pre_start(spec: StreamsSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        spec.watch.begin();
        Ok(Self {
            limits: spec.limits,
            by_name: BTreeMap::new(),
            streams: BTreeMap::new(),
            next: 0,
            watch: spec.watch,
            actor: cx.path().to_string(),
        })
    }

    async fn open(&mut self, ask: Ask<OpenStream>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let name = request.stream.clone();
        let opened = self.begin(request, cx);
        self.audit("open", &name, &opened);
        reply.send(opened);
    }

    async fn put(&mut self, ask: Ask<Put>, cx: &mut Context<Self>) {
        match self.accepts(&ask.request) {
            Err(error) => {
                let refused: Outcome<usize> = Err(error);
                self.audit("put", &ask.request.stream, &refused);
                ask.reply.send(refused);
            }
            Ok(stream) => {
                let now = cx.now();
                if let Some(live) = self.streams.get_mut(&stream) {
                    live.heard = now;
                    live.waiting.push_back(ask);
                }
                self.go_on(stream, cx);
            }
        }
    }

    async fn end(&mut self, ask: Ask<EndStream>) {
        let Ask { request, reply } = ask;
        let ended = self.take(&request.stream).map(|live| live.source.finish());
        self.audit("end", &request.stream, &ended);
        reply.send(ended);
    }

    async fn fail(&mut self, ask: Ask<FailStream>) {
        let Ask { request, reply } = ask;
        let failed = self.take(&request.stream);
        let failed = failed.map(|live| live.source.fail(request.message));
        self.audit("fail", &request.stream, &failed);
        reply.send(failed);
    }

    async fn follow(&mut self, ask: Ask<Follow>) {
        let Ask { request, reply } = ask;
        let followed = self.reader(&request);
        self.audit("follow", &request.stream, &followed);
        reply.send(followed);
    }

    async fn list(&mut self, _: ListStreams) -> Vec<StreamInfo> {
        let info = |live: &Live| {
            let info = live.source.info();
            StreamInfo {
                name: live.name.to_string(),
                readers: info.readers,
                pieces: info.sent,
                octets: live.octets,
                disconnected: info.disconnected,
                waiting: live.waiting.len(),
            }
        };
        self.streams.values().map(info).collect()
    }

    /// Every reader of a stream has room again.
    async fn ready(&mut self, done: Completion<()>, cx: &mut Context<Self>) {
        if let Some(live) = self.streams.get_mut(&done.token) {
            live.is_asked = false;
        }
        self.go_on(done.token, cx);
    }

    async fn look(&mut self, Look(stream): Look, cx: &mut Context<Self>) {
        let now = cx.now();
        let limits = self.limits;
        let Some(live) = self.streams.get_mut(&stream) else {
            return;
        };
        if live
            .blocked
            .is_some_and(|since| now - since >= limits.stall)
        {
            let gone = live.source.disconnect_laggards();
            tracing::info!(
                target: "strowger::audit",
                actor = %self.actor,
                stream = &*live.name,
                readers = gone,
                "readers that stood still were disconnected"
            );
            self.go_on(stream, cx);
        }
        let Some(live) = self.streams.get(&stream) else {
            return;
        };
        if live.blocked.is_none() && now - live.heard >= limits.idle {
            let text = format!("its producer was silent for {:?}", limits.idle);
            self.lose(stream, text);
            return;
        }
        cx.send_after(limits.interval(), Look(stream));
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { id, exit, .. } = signal {
            let lost = |(_, live): &(&u64, &Live)| live.producer == Some(id);
            let lost = self.streams.iter().find(lost).map(|(stream, _)| *stream);
            if let Some(stream) = lost {
                self.lose(stream, format!("its producer ended: {exit}"));
            }
        }
        Ok(())
    }
}

impl Streams {
    fn begin(&mut self, open: OpenStream, cx: &mut Context<Self>) -> Outcome<()> {
        let OpenStream {
            stream: name,
            replay,
            producer,
        } = open;
        let limits = self.limits;
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/".contains(letter);
        if name.is_empty() || name.len() > limits.name || !name.chars().all(letter) {
            return Err(StreamError::Name);
        }
        if self.by_name.contains_key(name.as_str()) {
            return Err(StreamError::Exists { stream: name });
        }
        if self.streams.len() >= limits.streams {
            return Err(StreamError::TooMany {
                limit: limits.streams,
            });
        }
        let replay = replay.unwrap_or(limits.replay).min(limits.replay);
        let spec = SourceSpec::DEFAULT
            .lag(Lag::Wait)
            .max_window(limits.window)
            .window(limits.window.min(WINDOW))
            .readers(limits.readers)
            .replay(replay);
        let stream = self.next;
        self.next += 1;
        let name: Arc<str> = Arc::from(name);
        let live = Live {
            name: Arc::clone(&name),
            source: cx.source(spec),
            waiting: VecDeque::new(),
            producer: producer.map(|producer| cx.monitor(producer)),
            heard: cx.now(),
            blocked: None,
            is_asked: false,
            octets: 0,
        };
        self.by_name.insert(name, stream);
        self.streams.insert(stream, live);
        cx.send_after(limits.interval(), Look(stream));
        self.watch.live(self.streams.len());
        Ok(())
    }

    /// The stream of a piece that may be put there.
    fn accepts(&self, put: &Put) -> Outcome<u64> {
        let stream = self.number(&put.stream)?;
        let (octets, limit) = (put.piece.len(), self.limits.piece);
        if octets > limit {
            return Err(StreamError::TooLong { octets, limit });
        }
        let limit = self.limits.waiting;
        match self.streams.get(&stream) {
            Some(live) if live.waiting.len() >= limit => Err(StreamError::Full { limit }),
            _ => Ok(stream),
        }
    }

    fn number(&self, name: &str) -> Outcome<u64> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| StreamError::NotFound {
            stream: name.to_owned(),
        })
    }

    /// Sends what waits, as far as every reader has room.
    fn go_on(&mut self, stream: u64, cx: &Context<Self>) {
        let now = cx.now();
        let Some(live) = self.streams.get_mut(&stream) else {
            return;
        };
        while let Some(ask) = live.waiting.pop_front() {
            if !ask.reply.is_wanted() {
                // Whoever put it gave up: it was not sent, as they were told.
                continue;
            }
            let Ask { request, reply } = ask;
            let octets = request.piece.len() as u64;
            match live.source.try_send(request.piece) {
                Ok(readers) => {
                    live.octets += octets;
                    live.blocked = None;
                    self.watch.sent(octets);
                    reply.send(Ok(readers));
                }
                Err(SendError::Full(piece)) => {
                    let request = Put {
                        stream: request.stream,
                        piece,
                    };
                    live.waiting.push_front(Ask { request, reply });
                    live.blocked = live.blocked.or(Some(now));
                    if !live.is_asked {
                        live.is_asked = true;
                        live.source.when_ready(cx.lane().reply(stream));
                    }
                    return;
                }
                Err(_) => {
                    let stream = request.stream;
                    reply.send(Err(StreamError::NotFound { stream }));
                }
            }
        }
        live.blocked = None;
    }

    fn reader(&mut self, follow: &Follow) -> Outcome<Reader<Piece>> {
        let stream = self.number(&follow.stream)?;
        let limit = self.limits.readers;
        let live = self.streams.get_mut(&stream);
        let reader = live.and_then(|live| live.source.reader().ok());
        let reader = reader.ok_or(StreamError::TooManyReaders { limit })?;
        if let Some(window) = follow.window {
            reader.set_window(window);
        }
        Ok(reader)
    }

    /// Takes a stream out; what waits to be put there is refused.
    fn take(&mut self, name: &str) -> Outcome<Live> {
        let stream = self.number(name)?;
        self.by_name.remove(name);
        let live = self.streams.remove(&stream);
        self.watch.live(self.streams.len());
        let mut live = live.ok_or_else(|| StreamError::NotFound {
            stream: name.to_owned(),
        })?;
        for Ask { request, reply } in live.waiting.drain(..) {
            let stream = request.stream;
            reply.send(Err(StreamError::NotFound { stream }));
        }
        Ok(live)
    }

    /// Ends a stream whose producer has gone.
    fn lose(&mut self, stream: u64, why: String) {
        let name = self.streams.get(&stream).map(|live| Arc::clone(&live.name));
        let Some(live) = name.and_then(|name| self.take(&name).ok()) else {
            return;
        };
        let lost: Outcome<()> = Err(StreamError::Lost);
        self.audit("lose", &live.name, &lost);
        live.source.fail(why);
    }

    /// Counts a call, and writes it to the audit; each piece that is put is counted apart.
    fn audit<T>(&self, verb: &'static str, stream: &str, outcome: &Outcome<T>) {
        self.watch.called(verb, outcome.as_ref().err());
        let end = outcome.as_ref().err().map_or("done", StreamError::name);
        let cut = stream.floor_char_boundary(SHOWN);
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb,
            stream = &stream[..cut],
            end,
            "a stream was asked for"
        );
    }
}

/// The window of readers that ask for none.
const WINDOW: u32 = 16;

/// Octets of a name that are repeated in the audit.
const SHOWN: usize = 200;
