//! What was not worth an answer, counted by kind and peer.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::Event;

/// Why a datagram, or a message in it, was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Discard {
    /// The sender is not on the allow-list.
    UnknownPeer,
    /// The datagram is larger than the limit.
    Oversized,
    /// The octets are no message.
    Malformed,
    /// The message type is unknown.
    UnknownMessage,
    /// An answer that fits no request: late, repeated, or never asked for.
    Unexpected,
    /// As many requests are being worked on as may be.
    Busy,
    /// A setup of an earlier life of its sender, overtaken by that of a later one.
    Late,
}

impl Discard {
    /// Every kind.
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

/// Counts what is discarded, and says it once for each kind and peer in an interval.
#[derive(Debug, Default)]
pub(super) struct Discards {
    totals: [u64; Discard::ALL.len()],
    said: FxHashMap<(Discard, IpAddr), Said>,
}

#[derive(Debug)]
struct Said {
    at: Instant,
    since: u64,
}

/// How long nothing more is said about the same kind and peer.
const QUIET: Duration = Duration::from_secs(10);
/// How many pairs of kind and peer are told apart; beyond them only the totals grow.
const PAIRS: usize = 1024;

impl Discards {
    pub(super) fn total(&self, kind: Discard) -> u64 {
        self.totals[kind as usize]
    }

    /// Counts one; returns what to say about it, if it is time to.
    pub(super) fn count(
        &mut self,
        now: Instant,
        kind: Discard,
        peer: SocketAddr,
        detail: impl FnOnce() -> String,
    ) -> Option<Event> {
        self.totals[kind as usize] += 1;
        let key = (kind, peer.ip());
        let count = match self.said.get_mut(&key) {
            Some(said) if now < said.at + QUIET => {
                said.since += 1;
                return None;
            }
            Some(said) => {
                let count = said.since + 1;
                *said = Said { at: now, since: 0 };
                count
            }
            None => {
                if self.said.len() >= PAIRS {
                    self.said.retain(|_, said| now < said.at + QUIET);
                }
                if self.said.len() >= PAIRS {
                    return None;
                }
                self.said.insert(key, Said { at: now, since: 0 });
                1
            }
        };
        Some(Event::Discarded {
            kind,
            peer,
            count,
            detail: detail(),
        })
    }
}
