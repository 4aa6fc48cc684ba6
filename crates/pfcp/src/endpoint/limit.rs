//! Limits on the requests of each peer: a token bucket and a counter for each host.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::BodyBuilder;
use crate::ie::IeType;

/// The limits of a single peer. A peer is a host, which may send from any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// Maximum number of associations.
    pub associations: usize,
    /// Maximum number of requests that are processed at a time.
    pub transactions: usize,
    /// Maximum sustained number of requests per second, or 0 for no limit. Repetitions and
    /// heartbeats do not count.
    pub rate: u32,
    /// Maximum number of requests in a burst after a period of silence.
    pub burst: u32,
}

impl Default for PeerLimits {
    /// Returns limits of 64 associations, 16 384 requests at a time, 200 000 per second, and bursts
    /// of 50 000.
    fn default() -> Self {
        Self {
            associations: 64,
            transactions: 16_384,
            rate: 200_000,
            burst: 50_000,
        }
    }
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitDecision {
    Accepted,
    /// The request is refused, and the peer is asked to send fewer.
    Exceeded(OverloadInfo),
}

/// The overload information that tells a peer to reduce its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OverloadInfo {
    /// Increases with each new metric.
    sequence: u32,
    /// The percentage of requests by which the peer should reduce its load.
    metric: u8,
}

#[derive(Debug)]
pub(super) struct Limiter {
    limits: PeerLimits,
    peers: FxHashMap<IpAddr, TokenBucket>,
    /// Number of refused requests of all peers.
    refused: u64,
}

/// The state of one host.
#[derive(Debug)]
struct TokenBucket {
    /// The available credit in nanoseconds. A request costs one second divided by the rate.
    credit: u64,
    at: Instant,
    working: usize,
    since: Instant,
    taken: u32,
    over: u32,
    sequence: u32,
}

/// Maximum number of hosts to track. When it is reached, idle hosts are dropped.
const HOSTS: usize = 65_536;
/// The period over which an overload metric is measured, and for which it is valid.
const WINDOW: Duration = Duration::from_secs(2);
/// The same as a Timer: one unit of two seconds.
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

    /// Decides about a new request.
    pub(super) fn admit(&mut self, now: Instant, peer: IpAddr) -> LimitDecision {
        let limits = self.limits;
        if self.peers.len() >= HOSTS && !self.peers.contains_key(&peer) {
            self.peers
                .retain(|_, one| one.working > 0 || now < one.at + WINDOW);
            if self.peers.len() >= HOSTS {
                self.refused += 1;
                let (sequence, metric) = (0, 100);
                return LimitDecision::Exceeded(OverloadInfo { sequence, metric });
            }
        }
        let bucket = self
            .peers
            .entry(peer)
            .or_insert_with(|| TokenBucket::full(now, &limits));
        let decision = bucket.admit(now, &limits);
        self.refused += u64::from(decision != LimitDecision::Accepted);
        decision
    }

    /// Records that an accepted request is no longer being processed.
    pub(super) fn done(&mut self, peer: IpAddr) {
        if let Some(bucket) = self.peers.get_mut(&peer) {
            bucket.working = bucket.working.saturating_sub(1);
        }
    }
}

impl TokenBucket {
    fn full(now: Instant, limits: &PeerLimits) -> Self {
        Self {
            credit: limits.max_credit(),
            at: now,
            working: 0,
            since: now,
            taken: 0,
            over: 0,
            sequence: 0,
        }
    }

    fn admit(&mut self, now: Instant, limits: &PeerLimits) -> LimitDecision {
        let elapsed = now.saturating_duration_since(self.at).as_nanos();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.at = now;
        self.credit = self.credit.saturating_add(elapsed).min(limits.max_credit());
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
            return LimitDecision::Accepted;
        }
        self.over = self.over.saturating_add(1);
        let (taken, over) = (u64::from(self.taken), u64::from(self.over));
        let share = (over * 100).div_ceil(taken + over);
        LimitDecision::Exceeded(OverloadInfo {
            sequence: self.sequence,
            metric: u8::try_from(share).unwrap_or(100),
        })
    }
}

impl PeerLimits {
    /// Returns the credit in nanoseconds that one request costs.
    fn cost(&self) -> u64 {
        1_000_000_000_u64
            .checked_div(self.rate.into())
            .unwrap_or_default()
    }

    /// Returns the maximum credit that can accumulate.
    fn max_credit(&self) -> u64 {
        self.cost().saturating_mul(self.burst.max(1).into())
    }
}

impl OverloadInfo {
    /// Returns the Overload Control Information, TS 29.244 §7.5.3.4.
    pub(super) fn element(self) -> BodyBuilder {
        let inner = BodyBuilder::new()
            .with(IeType::SEQUENCE_NUMBER, &self.sequence.to_be_bytes())
            .with(IeType::METRIC, &[self.metric])
            .with(IeType::TIMER, &[VALIDITY]);
        BodyBuilder::new().with(IeType::OVERLOAD_CONTROL_INFORMATION, inner.as_slice())
    }
}
