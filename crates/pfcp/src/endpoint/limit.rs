//! How much each peer may ask for: a bucket of tokens and a count for each host.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::Elements;
use crate::ie::IeType;

/// What one peer may use. A peer is a host: it may send from any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// How many associations it may have.
    pub associations: usize,
    /// How many of its requests may be worked on at a time.
    pub transactions: usize,
    /// How many requests it may send a second, over any time; 0 for no limit. Repetitions and
    /// heartbeats do not count.
    pub rate: u32,
    /// How many requests it may send at once, after a silence.
    pub burst: u32,
}

impl Default for PeerLimits {
    /// 64 associations, 16 384 requests at a time, 200 000 a second, 50 000 at once.
    fn default() -> Self {
        Self {
            associations: 64,
            transactions: 16_384,
            rate: 200_000,
            burst: 50_000,
        }
    }
}

/// Whether a request is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// It is refused; the peer is asked for less.
    Over(Overload),
}

/// What a peer is told about how much less to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overload {
    /// Grows with each new figure.
    sequence: u32,
    /// How many of a hundred requests are not to be sent.
    metric: u8,
}

#[derive(Debug)]
pub(super) struct Limiter {
    limits: PeerLimits,
    peers: FxHashMap<IpAddr, Bucket>,
    /// Requests that were refused, of all peers.
    refused: u64,
}

/// The state of one host.
#[derive(Debug)]
struct Bucket {
    /// In nanoseconds of the rate: one request costs a second divided by the rate.
    credit: u64,
    at: Instant,
    working: usize,
    since: Instant,
    taken: u32,
    over: u32,
    sequence: u32,
}

/// Hosts that are told apart; beyond them, those that are at rest are forgotten.
const HOSTS: usize = 65_536;
/// For how long a figure of overload is counted, and holds.
const WINDOW: Duration = Duration::from_secs(2);
/// The same as a Timer: once two seconds.
const VALIDITY: u8 = 1;

impl Limiter {
    pub(super) fn new(limits: PeerLimits) -> Self {
        Self {
            limits,
            peers: FxHashMap::default(),
            refused: 0,
        }
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Judges a new request.
    pub(super) fn admit(&mut self, now: Instant, peer: IpAddr) -> Verdict {
        let limits = self.limits;
        if self.peers.len() >= HOSTS && !self.peers.contains_key(&peer) {
            self.peers
                .retain(|_, one| one.working > 0 || now < one.at + WINDOW);
            if self.peers.len() >= HOSTS {
                self.refused += 1;
                let (sequence, metric) = (0, 100);
                return Verdict::Over(Overload { sequence, metric });
            }
        }
        let bucket = self
            .peers
            .entry(peer)
            .or_insert_with(|| Bucket::full(now, &limits));
        let verdict = bucket.admit(now, &limits);
        self.refused += u64::from(verdict != Verdict::Taken);
        verdict
    }

    /// Notes that a request that was taken is no longer worked on.
    pub(super) fn done(&mut self, peer: IpAddr) {
        if let Some(bucket) = self.peers.get_mut(&peer) {
            bucket.working = bucket.working.saturating_sub(1);
        }
    }
}

impl Bucket {
    fn full(now: Instant, limits: &PeerLimits) -> Self {
        Self {
            credit: limits.most(),
            at: now,
            working: 0,
            since: now,
            taken: 0,
            over: 0,
            sequence: 0,
        }
    }

    fn admit(&mut self, now: Instant, limits: &PeerLimits) -> Verdict {
        let elapsed = now.saturating_duration_since(self.at).as_nanos();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.at = now;
        self.credit = self.credit.saturating_add(elapsed).min(limits.most());
        if now >= self.since + WINDOW {
            self.since = now;
            (self.taken, self.over) = (0, 0);
            self.sequence = self.sequence.wrapping_add(1);
        }
        let cost = limits.cost();
        if self.credit >= cost && self.working < limits.transactions {
            self.credit -= cost;
            self.working += 1;
            self.taken = self.taken.saturating_add(1);
            return Verdict::Taken;
        }
        self.over = self.over.saturating_add(1);
        let (taken, over) = (u64::from(self.taken), u64::from(self.over));
        let share = (over * 100).div_ceil(taken + over);
        Verdict::Over(Overload {
            sequence: self.sequence,
            metric: u8::try_from(share).unwrap_or(100),
        })
    }
}

impl PeerLimits {
    /// Nanoseconds of the rate that one request costs.
    fn cost(&self) -> u64 {
        1_000_000_000_u64
            .checked_div(self.rate.into())
            .unwrap_or_default()
    }

    /// The most that is saved up.
    fn most(&self) -> u64 {
        self.cost().saturating_mul(self.burst.max(1).into())
    }
}

impl Overload {
    /// Overload Control Information, TS 29.244 §7.5.3.4.
    pub(super) fn element(self) -> Elements {
        let inner = Elements::new()
            .with(IeType::SEQUENCE_NUMBER, &self.sequence.to_be_bytes())
            .with(IeType::METRIC, &[self.metric])
            .with(IeType::TIMER, &[VALIDITY]);
        Elements::new().with(IeType::OVERLOAD_CONTROL_INFORMATION, inner.as_slice())
    }
}
