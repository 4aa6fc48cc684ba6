//! Counters of discarded messages, by kind and peer.

use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::Event;

/// The reason why a datagram, or a message in it, was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DiscardReason {
    /// The sender is not on the allow-list.
    UnknownPeer,
    /// The datagram is larger than the limit.
    Oversized,
    /// The bytes are not a valid message.
    Malformed,
    /// The message type is unknown.
    UnknownMessage,
    /// An answer that matches no request: it is late, repeated, or unsolicited.
    Unexpected,
    /// The maximum number of requests is already being processed.
    Busy,
    /// A setup of a previous incarnation of its sender, which arrived after that of a later one.
    Late,
}

impl DiscardReason {
    /// All reasons, in the order of the counters.
    pub const ALL: [Self; 7] = [
        Self::UnknownPeer,
        Self::Oversized,
        Self::Malformed,
        Self::UnknownMessage,
        Self::Unexpected,
        Self::Busy,
        Self::Late,
    ];

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownPeer => "unknown peer",
            Self::Oversized => "oversized",
            Self::Malformed => "malformed",
            Self::UnknownMessage => "unknown message",
            Self::Unexpected => "unexpected answer",
            Self::Busy => "busy",
            Self::Late => "late setup",
        }
    }
}

/// Counts what is discarded, and reports it at most once per interval for each kind and peer.
#[derive(Debug, Default)]
pub(super) struct DiscardCounters {
    totals: [u64; DiscardReason::ALL.len()],
    limiter: DiscardReportLimiter<(DiscardReason, IpAddr)>,
}

/// Limits reports to one per interval for each key, and counts the occurrences in between.
#[derive(Debug)]
pub struct DiscardReportLimiter<K>(FxHashMap<K, LastDiscardReport>);

#[derive(Debug)]
struct LastDiscardReport {
    at: Instant,
    since: u64,
}

/// Time during which nothing more is reported about the same key.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of distinct keys. Beyond it, new keys are not reported.
const MAX_KEYS: usize = 1024;

impl DiscardCounters {
    pub(super) fn total(&self, kind: DiscardReason) -> u64 {
        self.totals[kind as usize]
    }

    /// Counts an occurrence. Returns the event to report, if a report is due.
    pub(super) fn count(
        &mut self,
        now: Instant,
        kind: DiscardReason,
        peer: SocketAddr,
        detail: impl FnOnce() -> String,
    ) -> Option<Event> {
        self.totals[kind as usize] += 1;
        let count = self.limiter.count(now, (kind, peer.ip()))?;
        Some(Event::Discarded {
            kind,
            peer,
            count,
            detail: detail(),
        })
    }
}

impl<K> Default for DiscardReportLimiter<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Eq + Hash> DiscardReportLimiter<K> {
    /// Counts an occurrence. Returns the number of occurrences to report, if a report is due.
    pub fn count(&mut self, now: Instant, key: K) -> Option<u64> {
        match self.0.get_mut(&key) {
            Some(last) if now < last.at + REPORT_INTERVAL => {
                last.since += 1;
                None
            }
            Some(last) => {
                let count = last.since + 1;
                *last = LastDiscardReport { at: now, since: 0 };
                Some(count)
            }
            None => {
                if self.0.len() >= MAX_KEYS {
                    self.0.retain(|_, last| now < last.at + REPORT_INTERVAL);
                }
                if self.0.len() >= MAX_KEYS {
                    return None;
                }
                self.0.insert(key, LastDiscardReport { at: now, since: 0 });
                Some(1)
            }
        }
    }
}
