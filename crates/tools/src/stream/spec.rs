//! Limits and stats of a streams actor.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::message::StreamError;
use crate::files::VerbUsage;

/// The configuration of a [`Streams`](super::Streams) actor.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StreamsSpec {
    /// The limits.
    pub limits: StreamLimits,
    /// The handle that observes the stats of the actor.
    pub watch: StreamsWatch,
}

impl StreamsSpec {
    /// Creates a spec with these limits.
    #[must_use]
    pub fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            watch: StreamsWatch::default(),
        }
    }
}

/// The limits of a streams actor, with their defaults in parentheses. A stream holds at most
/// `replay + window * readers + waiting` pieces; a piece that several readers share is held once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamLimits {
    /// Maximum number of streams (256).
    pub streams: usize,
    /// Maximum number of readers per stream (128).
    pub readers: usize,
    /// Maximum size of a piece, in bytes (256 KiB).
    pub piece: usize,
    /// Maximum number of pieces buffered for a reader (64).
    pub window: u32,
    /// Maximum number of pieces to replay to readers that join later (16).
    pub replay: usize,
    /// Maximum number of pieces that wait until the readers have room (16).
    pub waiting: usize,
    /// Maximum length of a name, in bytes (128).
    pub name: usize,
    /// Time after which a reader that blocks the others is disconnected (10 s); it may take up to
    /// twice as long.
    pub stall: Duration,
    /// Time after which the stream of a silent producer fails (5 minutes); it may take up to twice
    /// as long.
    pub idle: Duration,
}

impl StreamLimits {
    /// Interval at which each stream is checked.
    pub(super) fn interval(&self) -> Duration {
        self.stall.min(self.idle)
    }
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            streams: 256,
            readers: 128,
            piece: 256 << 10,
            window: 64,
            replay: 16,
            waiting: 16,
            name: 128,
            stall: Duration::from_secs(10),
            idle: Duration::from_secs(300),
        }
    }
}

/// A handle that observes the stats of a streams actor. Clones share the same stats, which continue
/// across restarts of the actor.
#[derive(Clone, Default)]
pub struct StreamsWatch(Arc<StreamsCounters>);

#[derive(Default)]
struct StreamsCounters {
    live: AtomicUsize,
    pieces: AtomicU64,
    bytes: AtomicU64,
    verbs: Mutex<BTreeMap<&'static str, VerbUsage>>,
}

impl StreamsWatch {
    /// Number of streams that have not ended.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Returns the calls by verb; `put` has the bytes of all pieces.
    #[must_use]
    pub fn verbs(&self) -> BTreeMap<&'static str, VerbUsage> {
        let mut verbs = self.0.verbs.lock().clone();
        let pieces = self.0.pieces.load(Ordering::Relaxed);
        if pieces > 0 {
            let put = verbs.entry("put").or_default();
            put.calls += pieces;
            put.bytes = self.0.bytes.load(Ordering::Relaxed);
        }
        verbs
    }

    /// Starts an incarnation, without streams.
    pub(super) fn reset(&self) {
        self.set_live(0);
    }

    pub(super) fn set_live(&self, streams: usize) {
        self.0.live.store(streams, Ordering::Relaxed);
    }

    pub(super) fn record_piece(&self, bytes: u64) {
        self.0.pieces.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn record_call(&self, verb: &'static str, error: Option<&StreamError>) {
        let mut verbs = self.0.verbs.lock();
        let usage = verbs.entry(verb).or_default();
        usage.calls += 1;
        match error {
            Some(error) if error.is_refusal() => usage.refused += 1,
            Some(_) => usage.failed += 1,
            None => {}
        }
    }
}

impl fmt::Debug for StreamsWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamsWatch").field(&self.verbs()).finish()
    }
}
