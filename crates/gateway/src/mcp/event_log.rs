//! Events of streams over HTTP, kept so that an agent that was cut off fetches what it missed.
//!
//! rmcp forgets the answer of a call when it is sent, whether or not anybody received it, and
//! repeats the last event that was. This log keeps each stream for a while and replays what follows
//! an event. Its ids contain the identifier of the stream, which rmcp draws at random, so no agent
//! guesses those of another.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
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
    streams: HashMap<Arc<str>, KeptStream>,
    /// All streams by the numbers of their last events, so that the oldest is found without a walk
    /// through all of them.
    by_age: BTreeMap<u64, Arc<str>>,
    bytes: usize,
    /// The number of the last event of all streams.
    last: u64,
}

struct KeptStream {
    events: VecDeque<KeptEvent>,
    listeners: Vec<mpsc::UnboundedSender<ServerSseMessage>>,
    /// Set by the answer, after which nothing follows.
    is_complete: bool,
    /// The time of the last event.
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
        let now = Instant::now();
        inner.forget_older_than(self.kept_for, now);
        inner.last += 1;
        let (number, size) = (inner.last, size(event));
        let id = format!("{stream}/{number}");
        let mut message = event.clone();
        message.event_id = Some(id.clone());
        let (kept, key) = inner.stream(stream, now);
        kept.last = now;
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
        let dropped = match kept.events.len() > MAX_EVENTS {
            true => kept.events.pop_front(),
            false => None,
        };
        inner.bytes += size;
        inner.bytes -= dropped.map_or(0, |event| event.size);
        inner.by_age.insert(number, key);
        while inner.bytes > MAX_BYTES || inner.streams.len() > MAX_STREAMS {
            inner.forget_oldest();
        }
        id
    }

    fn replay_after(&self, id: &str) -> Result<Replay, UnknownEvent> {
        let (stream, number) = id.rsplit_once('/').ok_or(UnknownEvent)?;
        let number: u64 = number.parse().map_err(|_| UnknownEvent)?;
        let mut inner = self.inner.lock();
        inner.forget_older_than(self.kept_for, Instant::now());
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
    /// Returns a stream that is about to get an event, with its key. Until then it has no age.
    fn stream(&mut self, id: &str, now: Instant) -> (&mut KeptStream, Arc<str>) {
        let last = self.streams.get(id).and_then(|kept| kept.events.back());
        let last = last.map(|event| event.number);
        let known = last.and_then(|number| self.by_age.remove(&number));
        let key = known.unwrap_or_else(|| Arc::from(id));
        let kept = self.streams.entry(Arc::clone(&key));
        let kept = kept.or_insert_with(|| KeptStream {
            events: VecDeque::new(),
            listeners: Vec::new(),
            is_complete: false,
            last: now,
        });
        (kept, key)
    }

    fn forget_oldest(&mut self) {
        let oldest = self.by_age.pop_first();
        if let Some(kept) = oldest.and_then(|(_, id)| self.streams.remove(&id)) {
            self.bytes -= kept.events.iter().map(|event| event.size).sum::<usize>();
        }
    }

    fn forget_older_than(&mut self, age: Duration, now: Instant) {
        let oldest = |inner: &Self| {
            let (_, id) = inner.by_age.first_key_value()?;
            Some(inner.streams.get(id)?.last)
        };
        while oldest(self).is_some_and(|last| now.saturating_duration_since(last) > age) {
            self.forget_oldest();
        }
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
        assert_eq!(inner.by_age.len(), inner.streams.len());
    }

    /// Returns the shortest time to store a stream with an answer beside `others` streams.
    fn time_of_store(others: usize) -> Duration {
        let log = EventLog::new(Duration::from_secs(60));
        for stream in 0..others {
            log.store(&format!("other {stream}"), &answer(1));
        }
        let times = (0..200).map(|stream| {
            let stream = format!("measured {stream}");
            let began = Instant::now();
            log.store(&stream, &answer(1));
            began.elapsed()
        });
        times.min().expect("200 times")
    }

    #[test]
    fn event_is_stored_as_fast_beside_many_streams() {
        let (few, many) = (time_of_store(16), time_of_store(MAX_STREAMS));
        // A walk through all of them takes a hundred times as long.
        assert!(many < 10 * few, "{few:?} beside 16, {many:?} beside many");
    }
}
