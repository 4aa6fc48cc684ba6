//! The measurements of a load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use strowger_pfcp::ie::Cause;

use super::change::SessionChange;

/// The counters and latencies of a load.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadStats {
    /// Number of establishments, modifications and deletions sent, without retransmissions.
    pub sent: u64,
    /// Number of responses to these requests.
    pub answered: u64,
    /// Number of responses that accepted.
    pub accepted: u64,
    /// Number of responses that rejected.
    pub rejected: u64,
    /// Number of acknowledged sessions that were lost, plus number of requests that were never
    /// answered.
    pub lost: u64,
    /// Number of requests without a response, which are included in `lost`.
    pub unanswered: u64,
    /// Number of establishments that were accepted without a usable UP F-SEID (TS 29.244 §7.5.3):
    /// the load can neither change nor delete such a session.
    pub invalid: u64,
    /// Number of accepted establishments.
    pub established: u64,
    /// Number of accepted modifications.
    pub modified: u64,
    /// Accepted modifications of the configured mix, by kind.
    pub changes: ChangeStats,
    /// Number of reports of downlink data for idle sessions.
    pub downlink_reports: u64,
    /// Number of accepted deletions.
    pub deleted: u64,
    /// Number of sessions held; at the end, the number held when the load stopped sending new
    /// requests.
    pub held: u64,
    /// Number of retransmitted requests.
    pub retransmitted: u64,
    /// Number of datagrams that the load dropped on purpose.
    pub dropped: u64,
    /// Number of datagrams that the load let another one overtake.
    pub datagrams_reordered: u64,
    /// Number of panics injected into sessions.
    pub panics: u64,
    /// Number of modifications sent that name a PDR of their session.
    pub probes: u64,
    /// Number of those modifications that were accepted.
    pub probes_accepted: u64,
    /// Number of usage reports of the node: in accepted session reports, and in its responses.
    pub usage_reports: u64,
    /// The reported volume in both directions, in bytes.
    pub usage_bytes: u64,
    /// Number of times that the node was lost.
    pub peers_lost: u64,
    /// Number of times that the node was found again.
    pub peers_found: u64,
    /// Number of sessions that the node acknowledged and lost, which are included in `lost`.
    pub sessions_lost: u64,
    /// Number of lost sessions that were established again.
    pub sessions_restored: u64,
    /// Number of lost sessions that the node refused to establish again.
    pub sessions_refused: u64,
    /// Number of scheduled requests that were omitted while the node was lost.
    pub skipped: u64,
    /// Number of responses by cause.
    pub causes: BTreeMap<u8, u64>,
    /// The time from the scheduled start of a request to its response, in nanoseconds.
    pub latency: Histogram<u64>,
    /// The time during which new requests were sent.
    pub elapsed: Duration,
    pub(super) began: Option<Instant>,
}

/// Numbers of accepted modifications, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeStats {
    /// Number of handovers.
    pub handover: u64,
    /// Number of sessions that became idle.
    pub idle: u64,
    /// Number of idle sessions that were connected again.
    pub resume: u64,
    /// Number of rate changes.
    pub qos: u64,
    /// Number of usage queries.
    pub report: u64,
    /// Number of precedence changes.
    pub precedence: u64,
}

impl ChangeStats {
    pub(super) fn count(&mut self, change: SessionChange) {
        *match change {
            SessionChange::Handover(_) => &mut self.handover,
            SessionChange::Idle => &mut self.idle,
            SessionChange::Resume(_) => &mut self.resume,
            SessionChange::Qos(_) => &mut self.qos,
            SessionChange::Query => &mut self.report,
            SessionChange::Precedence(_) => &mut self.precedence,
        } += 1;
    }
}

impl LoadStats {
    pub(super) fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, MAX_LATENCY, 3);
        Self {
            sent: 0,
            answered: 0,
            accepted: 0,
            rejected: 0,
            lost: 0,
            unanswered: 0,
            invalid: 0,
            established: 0,
            modified: 0,
            changes: ChangeStats::default(),
            downlink_reports: 0,
            deleted: 0,
            usage_reports: 0,
            usage_bytes: 0,
            held: 0,
            retransmitted: 0,
            dropped: 0,
            datagrams_reordered: 0,
            panics: 0,
            probes: 0,
            probes_accepted: 0,
            peers_lost: 0,
            peers_found: 0,
            sessions_lost: 0,
            sessions_restored: 0,
            sessions_refused: 0,
            skipped: 0,
            causes: BTreeMap::new(),
            latency: latency.expect("one nanosecond to two minutes are bounds of a histogram"),
            elapsed: Duration::ZERO,
            began: None,
        }
    }

    /// Returns the latency in microseconds within which the given fraction of requests was
    /// answered.
    #[must_use]
    pub fn quantile_us(&self, part: f64) -> f64 {
        Duration::from_nanos(self.latency.value_at_quantile(part)).as_secs_f64() * 1e6
    }

    /// Returns the number of accepted establishments per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        Duration::from_secs(self.established).as_secs_f64() / seconds
    }

    pub(super) fn answer(&mut self, cause: Cause, latency: Duration) {
        self.answered += 1;
        if cause.is_acceptance() {
            self.accepted += 1;
        } else {
            self.rejected += 1;
        }
        *self.causes.entry(cause.0).or_default() += 1;
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(MAX_LATENCY);
        self.latency.saturating_record(nanoseconds.max(1));
    }
}

/// Two minutes, in nanoseconds.
const MAX_LATENCY: u64 = 120_000_000_000;
