//! Events of streams over HTTP, kept so that an agent that was cut off fetches what it missed.
//!
//! rmcp forgets the answer of a call when it is sent, whether or not anybody received it, and
//! repeats the last event that was. This log keeps each stream for a while and replays what follows
//! an event. Its ids contain the identifier of the stream, which rmcp draws at random, so no agent
//! guesses those of another.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Stream;
use parking_lot::Mutex;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::store::{
    EventId, EventStore, EventStoreError, EventStream,
};
use tokio::sync::mpsc;

/// Bytes of messages that are kept in all.
const MAX_BYTES: usize = 16 << 20;

/// Streams that are kept.
const MAX_STREAMS: usize = 4096;

/// Events of one stream that are kept: the last ones, such as an answer after much progress.
const MAX_EVENTS: usize = 64;

/// The kept events of all streams.
pub(super) struct EventLog {
    inner: Mutex<Inner>,
    /// Time for which a stream is kept after its last event.
    kept_for: Duration,
}

#[derive(Default)]
struct Inner {
    streams: HashMap<String, KeptStream>,
    bytes: usize,
    next: u64,
}

struct KeptStream {
    events: VecDeque<KeptEvent>,
    listeners: Vec<mpsc::UnboundedSender<ServerSseMessage>>,
    /// Set by the answer, after which nothing follows.
    is_complete: bool,
    last: Instant,
}

struct KeptEvent {
    number: u64,
    message: ServerSseMessage,
    size: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("the event is not known any more")]
struct UnknownEvent;

impl EventLog {
    pub(super) fn new(kept_for: Duration) -> Self {
        Self {
            inner: Mutex::default(),
            kept_for,
        }
    }

    fn store(&self, stream: &str, event: &ServerSseMessage) -> EventId {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.forget_older_than(self.kept_for);
        inner.next += 1;
        let (number, size) = (inner.next, size(event));
        let id = format!("{stream}/{number}");
        let mut message = event.clone();
        message.event_id = Some(id.clone());
        let kept = inner
            .streams
            .entry(stream.to_owned())
            .or_insert_with(|| KeptStream {
                events: VecDeque::new(),
                listeners: Vec::new(),
                is_complete: false,
                last: Instant::now(),
            });
        kept.last = Instant::now();
        kept.listeners
            .retain(|listener| listener.send(message.clone()).is_ok());
        // The stream of a request ends with its answer; that of a session does not.
        let is_answer = event.message.as_deref().is_some_and(|message| {
            matches!(
                message,
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
            )
        });
        if is_answer && !stream.ends_with(COMMON) {
            kept.is_complete = true;
            kept.listeners.clear();
        }
        kept.events.push_back(KeptEvent {
            number,
            message,
            size,
        });
        inner.bytes += size;
        if kept.events.len() > MAX_EVENTS
            && let Some(oldest) = kept.events.pop_front()
        {
            inner.bytes -= oldest.size;
        }
        while inner.bytes > MAX_BYTES || inner.streams.len() > MAX_STREAMS {
            let oldest = inner.streams.iter().min_by_key(|(_, kept)| kept.last);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                break;
            };
            inner.forget(&oldest);
        }
        id
    }

    fn replay_after(&self, id: &str) -> Result<Replay, UnknownEvent> {
        let (stream, number) = id.rsplit_once('/').ok_or(UnknownEvent)?;
        let number: u64 = number.parse().map_err(|_| UnknownEvent)?;
        let mut inner = self.inner.lock();
        inner.forget_older_than(self.kept_for);
        let kept = inner.streams.get_mut(stream).ok_or(UnknownEvent)?;
        let (listener, events) = mpsc::unbounded_channel();
        for event in kept.events.iter().filter(|event| event.number > number) {
            let _ = listener.send(event.message.clone());
        }
        if !kept.is_complete {
            kept.listeners.push(listener);
        }
        Ok(Replay(events))
    }
}

/// The end of the identifier of the stream that a session has for everything but answers.
const COMMON: &str = ":common";

impl Inner {
    fn forget(&mut self, stream: &str) {
        if let Some(kept) = self.streams.remove(stream) {
            self.bytes -= kept.events.iter().map(|event| event.size).sum::<usize>();
        }
    }

    fn forget_older_than(&mut self, age: Duration) {
        let old = self
            .streams
            .iter()
            .filter(|(_, kept)| kept.last.elapsed() > age);
        let old: Vec<String> = old.map(|(id, _)| id.clone()).collect();
        old.iter().for_each(|stream| self.forget(stream));
    }
}

/// The length of a message as JSON.
fn size(event: &ServerSseMessage) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(64);
    if let Some(message) = &event.message {
        // Counting does not fail.
        let _ = serde_json::to_writer(&mut count, &**message);
    }
    count.0
}

/// The events that follow another one.
struct Replay(mpsc::UnboundedReceiver<ServerSseMessage>);

impl Stream for Replay {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.0.poll_recv(cx)
    }
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, EventStoreError>> + Send + 'a>>;

// What `async_trait` makes of the methods, without a dependency on it.
impl EventStore for EventLog {
    fn store_event<'a, 'b, 'c, 'd>(
        &'a self,
        stream_id: &'b str,
        event: &'c ServerSseMessage,
    ) -> BoxFuture<'d, EventId>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        Box::pin(std::future::ready(Ok(self.store(stream_id, event))))
    }

    fn replay_events_after<'a, 'b, 'd>(
        &'a self,
        last_event_id: &'b str,
    ) -> BoxFuture<'d, EventStream>
    where
        'a: 'd,
        'b: 'd,
        Self: 'd,
    {
        let replay = match self.replay_after(last_event_id) {
            Ok(replay) => Ok(Box::pin(replay) as EventStream),
            Err(error) => Err(EventStoreError::from(error)),
        };
        Box::pin(std::future::ready(replay))
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{EmptyResult, RequestId, ServerJsonRpcMessage, ServerResult};

    use super::*;

    fn answer(id: i64) -> ServerSseMessage {
        let result = ServerResult::EmptyResult(EmptyResult {});
        ServerSseMessage::from_message(ServerJsonRpcMessage::response(
            result,
            RequestId::Number(id),
        ))
    }

    async fn ids(mut replay: Replay) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(event) = replay.0.recv().await {
            ids.extend(event.event_id);
        }
        ids
    }

    #[tokio::test]
    async fn what_follows_an_event_is_replayed_once() {
        let log = EventLog::new(Duration::from_secs(60));
        let priming = log.store("a", &ServerSseMessage::retry(Duration::from_secs(3)));
        let other = log.store("b", &ServerSseMessage::retry(Duration::from_secs(3)));
        let early = log.replay_after(&priming).expect("it is known");
        let last = log.store("a", &answer(1));
        let late = log.replay_after(&priming).expect("it is known");
        for replay in [early, late] {
            assert_eq!(ids(replay).await, std::slice::from_ref(&last));
        }
        let none = log.replay_after(&last).expect("it is known");
        assert_eq!(ids(none).await, [""; 0]);
        for unknown in ["", "c/1", "a", "a/x", &other.replace('b', "c")] {
            assert!(log.replay_after(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let log = EventLog::new(Duration::ZERO);
        let old = log.store("a", &answer(1));
        while log.replay_after(&old).is_ok() {
            // It is too old once the clock has moved.
            std::thread::yield_now();
        }
        let log = EventLog::new(Duration::from_secs(60));
        let first = log.store("0", &answer(1));
        for stream in 1..=MAX_STREAMS {
            log.store(&stream.to_string(), &answer(1));
        }
        assert!(log.replay_after(&first).is_err());
        for _ in 0..2 * MAX_EVENTS {
            log.store("many", &answer(1));
        }
        let inner = log.inner.lock();
        assert_eq!(inner.streams["many"].events.len(), MAX_EVENTS);
        let events = inner.streams.values().flat_map(|kept| &kept.events);
        assert_eq!(inner.bytes, events.map(|event| event.size).sum::<usize>());
    }
}
