//! An actor that passes named streams of text or bytes from one producer to many readers.
//!
//! ```
//! use strowger::{ActorSystem, BoxError};
//! use strowger_tools::stream::{
//!     FollowStreamRequest, OpenStreamRequest, PutRequest, StreamPiece, Streams, StreamsSpec,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let system = ActorSystem::new("office")?;
//! let streams = system.spawn::<Streams>("streams", StreamsSpec::default())?;
//! streams.ask(OpenStreamRequest::new("log")).await??;
//! let mut reader = streams.ask(FollowStreamRequest::new("log")).await??;
//!
//! assert_eq!(streams.ask(PutRequest::text("log", "started")).await??, 1);
//! let piece = reader.recv().await.ok_or("the stream ended")??;
//! assert_eq!(piece, StreamPiece::Text("started".into()));
//! # Ok(())
//! # }
//! ```
//!
//! # Flow control
//!
//! ```text
//! producer ── put ──▶ stream "log" ── credit ──▶ reader 1
//!          ◀─ taken ─  last n pieces ─────────▶ reader 2, which joined later
//! ```
//!
//! A piece is sent when every reader has room for it, so a producer is as fast as its slowest
//! reader. A reader that takes nothing for [`stall`](StreamLimits::stall) is disconnected, and the
//! others continue. If the producer ends, or is silent for [`idle`](StreamLimits::idle), its stream
//! ends with an error. A piece is sent to all readers or to none: if its producer stops waiting, it
//! is not sent.

mod export;
mod message;
mod spec;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strowger::{
    Ask, BoxError, Completion, Context, MonitorId, Reader, SendError, Signal, SlowReader, Source,
    SourceSpec, handlers,
};
use tokio::time::Instant;

use self::message::StreamResult;
pub use self::message::{
    EndStreamRequest, FailStreamRequest, FollowStreamRequest, ListStreamsRequest,
    OpenStreamRequest, PutRequest, StreamError, StreamInfo, StreamPiece,
};
pub use self::spec::{StreamLimits, StreamsSpec, StreamsWatch};

/// An actor that passes pieces of streams from producers to readers.
#[derive(Debug)]
pub struct Streams {
    limits: StreamLimits,
    by_name: BTreeMap<Arc<str>, u64>,
    streams: BTreeMap<u64, LiveStream>,
    next_id: u64,
    watch: StreamsWatch,
    /// The path of the actor, for the audit log.
    actor: String,
}

/// A stream that has not ended.
#[derive(Debug)]
struct LiveStream {
    name: Arc<str>,
    source: Source<StreamPiece>,
    /// Pieces that wait because a reader has no room, in order.
    waiting: VecDeque<Ask<PutRequest>>,
    producer: Option<MonitorId>,
    /// Time of the last activity of the producer.
    last_heard: Instant,
    /// Time since which the first waiting piece has been blocked.
    blocked: Option<Instant>,
    /// `true` while a notification that the readers have room is pending. A second request would be
    /// completed at once.
    ready_requested: bool,
    bytes: u64,
}

/// The timer message that checks a stream for a silent producer and stalled readers.
#[derive(Debug)]
#[doc(hidden)]
pub struct CheckStream(u64);

#[handlers]
impl strowger::Actor for Streams {
    type Args = StreamsSpec;
    type Error = BoxError;

    async fn pre_start(spec: StreamsSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        spec.watch.reset();
        Ok(Self {
            limits: spec.limits,
            by_name: BTreeMap::new(),
            streams: BTreeMap::new(),
            next_id: 0,
            watch: spec.watch,
            actor: cx.path().to_string(),
        })
    }

    async fn open(&mut self, ask: Ask<OpenStreamRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let name = request.stream.clone();
        let opened = self.open_stream(request, cx);
        self.audit("open", &name, &opened);
        reply.send(opened);
    }

    async fn put(&mut self, ask: Ask<PutRequest>, cx: &mut Context<Self>) {
        match self.check_put(&ask.request) {
            Err(error) => {
                let refused: StreamResult<usize> = Err(error);
                self.audit("put", &ask.request.stream, &refused);
                ask.reply.send(refused);
            }
            Ok(stream) => {
                let now = cx.now();
                if let Some(live) = self.streams.get_mut(&stream) {
                    live.last_heard = now;
                    live.waiting.push_back(ask);
                }
                self.send_waiting(stream, cx);
            }
        }
    }

    async fn end(&mut self, ask: Ask<EndStreamRequest>) {
        let Ask { request, reply } = ask;
        let ended = self
            .remove_stream(&request.stream)
            .map(|live| live.source.finish());
        self.audit("end", &request.stream, &ended);
        reply.send(ended);
    }

    async fn fail(&mut self, ask: Ask<FailStreamRequest>) {
        let Ask { request, reply } = ask;
        let failed = self.remove_stream(&request.stream);
        let failed = failed.map(|live| live.source.fail(request.message));
        self.audit("fail", &request.stream, &failed);
        reply.send(failed);
    }

    async fn follow(&mut self, ask: Ask<FollowStreamRequest>) {
        let Ask { request, reply } = ask;
        let followed = self.add_reader(&request);
        self.audit("follow", &request.stream, &followed);
        reply.send(followed);
    }

    async fn list(&mut self, _: ListStreamsRequest) -> Vec<StreamInfo> {
        let info = |live: &LiveStream| {
            let info = live.source.info();
            StreamInfo {
                name: live.name.to_string(),
                readers: info.readers,
                pieces: info.sent,
                bytes: live.bytes,
                disconnected: info.disconnected,
                waiting: live.waiting.len(),
            }
        };
        self.streams.values().map(info).collect()
    }

    /// Resumes a stream once every reader has room.
    async fn ready(&mut self, done: Completion<()>, cx: &mut Context<Self>) {
        if let Some(live) = self.streams.get_mut(&done.token) {
            live.ready_requested = false;
        }
        self.send_waiting(done.token, cx);
    }

    async fn check_stream(&mut self, CheckStream(stream): CheckStream, cx: &mut Context<Self>) {
        let now = cx.now();
        let limits = self.limits;
        let Some(live) = self.streams.get_mut(&stream) else {
            return;
        };
        if live
            .blocked
            .is_some_and(|since| now - since >= limits.stall)
        {
            let gone = live.source.disconnect_slow_readers();
            tracing::info!(
                target: "strowger::audit",
                actor = %self.actor,
                stream = &*live.name,
                readers = gone,
                "slow readers disconnected"
            );
            self.send_waiting(stream, cx);
        }
        let Some(live) = self.streams.get(&stream) else {
            return;
        };
        if live.blocked.is_none() && now - live.last_heard >= limits.idle {
            let text = format!("the producer was silent for {:?}", limits.idle);
            self.fail_orphaned(stream, text);
            return;
        }
        cx.send_after(limits.interval(), CheckStream(stream));
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { id, exit, .. } = signal {
            let lost = |(_, live): &(&u64, &LiveStream)| live.producer == Some(id);
            let lost = self.streams.iter().find(lost).map(|(stream, _)| *stream);
            if let Some(stream) = lost {
                self.fail_orphaned(stream, format!("the producer exited: {exit}"));
            }
        }
        Ok(())
    }
}

impl Streams {
    fn open_stream(&mut self, open: OpenStreamRequest, cx: &mut Context<Self>) -> StreamResult<()> {
        let OpenStreamRequest {
            stream: name,
            replay,
            producer,
        } = open;
        let limits = self.limits;
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/".contains(letter);
        if name.is_empty() || name.len() > limits.name || !name.chars().all(letter) {
            return Err(StreamError::InvalidName);
        }
        if self.by_name.contains_key(name.as_str()) {
            return Err(StreamError::Exists { stream: name });
        }
        if self.streams.len() >= limits.streams {
            return Err(StreamError::TooManyStreams {
                limit: limits.streams,
            });
        }
        let replay = replay.unwrap_or(limits.replay).min(limits.replay);
        let spec = SourceSpec::DEFAULT
            .slow_reader(SlowReader::Wait)
            .max_window(limits.window)
            .window(limits.window.min(DEFAULT_WINDOW))
            .readers(limits.readers)
            .replay(replay);
        let stream = self.next_id;
        self.next_id += 1;
        let name: Arc<str> = Arc::from(name);
        let live = LiveStream {
            name: Arc::clone(&name),
            source: cx.source(spec),
            waiting: VecDeque::new(),
            producer: producer.map(|producer| cx.monitor(producer)),
            last_heard: cx.now(),
            blocked: None,
            ready_requested: false,
            bytes: 0,
        };
        self.by_name.insert(name, stream);
        self.streams.insert(stream, live);
        cx.send_after(limits.interval(), CheckStream(stream));
        self.watch.set_live(self.streams.len());
        Ok(())
    }

    /// Checks a piece, and returns the number of its stream.
    fn check_put(&self, put: &PutRequest) -> StreamResult<u64> {
        let stream = self.stream_id(&put.stream)?;
        let (bytes, limit) = (put.piece.len(), self.limits.piece);
        if bytes > limit {
            return Err(StreamError::PieceTooLong { bytes, limit });
        }
        let limit = self.limits.waiting;
        match self.streams.get(&stream) {
            Some(live) if live.waiting.len() >= limit => Err(StreamError::TooManyWaiting { limit }),
            _ => Ok(stream),
        }
    }

    fn stream_id(&self, name: &str) -> StreamResult<u64> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| StreamError::NotFound {
            stream: name.to_owned(),
        })
    }

    /// Sends waiting pieces as long as every reader has room.
    fn send_waiting(&mut self, stream: u64, cx: &Context<Self>) {
        let now = cx.now();
        let Some(live) = self.streams.get_mut(&stream) else {
            return;
        };
        while let Some(ask) = live.waiting.pop_front() {
            if !ask.reply.is_waiting() {
                // The producer stopped waiting, so its ask has failed and the piece is not sent.
                continue;
            }
            let Ask { request, reply } = ask;
            let bytes = request.piece.len() as u64;
            match live.source.try_send(request.piece) {
                Ok(readers) => {
                    live.bytes += bytes;
                    live.blocked = None;
                    self.watch.record_piece(bytes);
                    reply.send(Ok(readers));
                }
                Err(SendError::Full(piece)) => {
                    let request = PutRequest {
                        stream: request.stream,
                        piece,
                    };
                    live.waiting.push_front(Ask { request, reply });
                    live.blocked = live.blocked.or(Some(now));
                    if !live.ready_requested {
                        live.ready_requested = true;
                        live.source.notify_when_ready(cx.lane().reply(stream));
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

    fn add_reader(&mut self, follow: &FollowStreamRequest) -> StreamResult<Reader<StreamPiece>> {
        let stream = self.stream_id(&follow.stream)?;
        let limit = self.limits.readers;
        let live = self.streams.get_mut(&stream);
        let reader = live.and_then(|live| live.source.reader().ok());
        let reader = reader.ok_or(StreamError::TooManyReaders { limit })?;
        if let Some(window) = follow.window {
            reader.set_window(window);
        }
        Ok(reader)
    }

    /// Removes a stream and refuses its waiting pieces.
    fn remove_stream(&mut self, name: &str) -> StreamResult<LiveStream> {
        let stream = self.stream_id(name)?;
        self.by_name.remove(name);
        let live = self.streams.remove(&stream);
        self.watch.set_live(self.streams.len());
        let mut live = live.ok_or_else(|| StreamError::NotFound {
            stream: name.to_owned(),
        })?;
        for Ask { request, reply } in live.waiting.drain(..) {
            let stream = request.stream;
            reply.send(Err(StreamError::NotFound { stream }));
        }
        Ok(live)
    }

    /// Ends a stream with an error because its producer is gone.
    fn fail_orphaned(&mut self, stream: u64, why: String) {
        let name = self.streams.get(&stream).map(|live| Arc::clone(&live.name));
        let Some(live) = name.and_then(|name| self.remove_stream(&name).ok()) else {
            return;
        };
        let lost: StreamResult<()> = Err(StreamError::ProducerExited);
        self.audit("lose", &live.name, &lost);
        live.source.fail(why);
    }

    /// Counts a call and writes it to the audit log. Pieces that are sent are counted separately.
    fn audit<T>(&self, verb: &'static str, stream: &str, outcome: &StreamResult<T>) {
        self.watch.record_call(verb, outcome.as_ref().err());
        let outcome = outcome.as_ref().err().map_or("done", StreamError::name);
        let cut = stream.floor_char_boundary(MAX_SHOWN_NAME);
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb,
            stream = &stream[..cut],
            outcome,
            "stream call"
        );
    }
}

/// The window of readers that request none.
const DEFAULT_WINDOW: u32 = 16;

/// Maximum number of bytes of a name to repeat in the audit log.
const MAX_SHOWN_NAME: usize = 200;
