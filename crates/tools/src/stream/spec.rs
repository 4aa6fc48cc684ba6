//! What a streams actor may hold, and where it is seen what it did.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::message::StreamError;
use crate::files::VerbUsage;

/// What a streams actor is made from.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StreamsSpec {
    /// How much it holds.
    pub limits: StreamLimits,
    /// Where it is seen what it does.
    pub watch: StreamsWatch,
}

impl StreamsSpec {
    /// With these limits.
    #[must_use]
    pub fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            watch: StreamsWatch::default(),
        }
    }
}

/// How much a streams actor holds. Of one stream at most `replay + window * readers + waiting`
/// pieces are held, and those that several readers have are held once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamLimits {
    /// Streams at a time.
    pub streams: usize,
    /// Readers of one stream.
    pub readers: usize,
    /// Octets of one piece.
    pub piece: usize,
    /// Pieces that may wait for one reader.
    pub window: u32,
    /// Pieces that later readers get.
    pub replay: usize,
    /// Pieces that may wait until the readers have room.
    pub waiting: usize,
    /// Octets of a name.
    pub name: usize,
    /// How long a reader may stand still while others wait for it; at most twice as long.
    pub stall: Duration,
    /// How long a producer may be silent; at most twice as long.
    pub idle: Duration,
}

impl StreamLimits {
    /// How often a stream is looked at.
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

/// What a streams actor did, for those who watch it. A clone is the same; it outlives incarnations.
#[derive(Clone, Default)]
pub struct StreamsWatch(Arc<Watched>);

#[derive(Default)]
struct Watched {
    live: AtomicUsize,
    pieces: AtomicU64,
    octets: AtomicU64,
    verbs: Mutex<BTreeMap<&'static str, VerbUsage>>,
}

impl StreamsWatch {
    /// Streams that have not ended.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// What was asked by now, by verb; `put` has the octets of all pieces.
    #[must_use]
    pub fn verbs(&self) -> BTreeMap<&'static str, VerbUsage> {
        let mut verbs = self.0.verbs.lock().clone();
        let pieces = self.0.pieces.load(Ordering::Relaxed);
        if pieces > 0 {
            let put = verbs.entry("put").or_default();
            put.calls += pieces;
            put.octets = self.0.octets.load(Ordering::Relaxed);
        }
        verbs
    }

    /// An incarnation begins, without streams.
    pub(super) fn begin(&self) {
        self.live(0);
    }

    pub(super) fn live(&self, streams: usize) {
        self.0.live.store(streams, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, octets: u64) {
        self.0.pieces.fetch_add(1, Ordering::Relaxed);
        self.0.octets.fetch_add(octets, Ordering::Relaxed);
    }

    pub(super) fn called(&self, verb: &'static str, error: Option<&StreamError>) {
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
