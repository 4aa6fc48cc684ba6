//! What a load has measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use strowger_pfcp::ie::Cause;

/// Figures of a load.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadFigures {
    /// Establishments, modifications and deletions sent, without repetitions.
    pub sent: u64,
    /// Answers to them.
    pub answered: u64,
    /// Answers that accepted.
    pub accepted: u64,
    /// Answers that refused.
    pub rejected: u64,
    /// Sessions that were acknowledged and are gone, and requests that were never answered.
    pub lost: u64,
    /// The part of `lost` that is requests without an answer.
    pub unanswered: u64,
    /// Establishments accepted.
    pub established: u64,
    /// Modifications accepted.
    pub modified: u64,
    /// Deletions accepted.
    pub deleted: u64,
    /// Sessions held; at the end, those held when new work ended.
    pub held: u64,
    /// Requests that had to be sent again.
    pub retransmitted: u64,
    /// Datagrams that the load itself lost.
    pub dropped: u64,
    /// Datagrams that the load itself let another one overtake.
    pub overtaken: u64,
    /// Panics made in sessions.
    pub panics: u64,
    /// Modifications sent that name a PDR of their session.
    pub probes: u64,
    /// How many of them were accepted.
    pub survived: u64,
    /// Usage reports of the node that were accepted, and those in answers to deletions.
    pub usage_reports: u64,
    /// The octets that they tell, both ways.
    pub usage_octets: u64,
    /// Times that the node was lost, and that it was found again.
    pub peers_lost: u64,
    /// See [`LoadFigures::peers_lost`].
    pub peers_found: u64,
    /// The part of `lost` that is sessions which the node acknowledged and did not have any more.
    pub sessions_lost: u64,
    /// Of those, sessions that were established again.
    pub sessions_restored: u64,
    /// Of those, sessions that the node refused to establish again.
    pub sessions_refused: u64,
    /// Requests of the schedule that were left out while the node was lost.
    pub skipped: u64,
    /// Answers by cause.
    pub causes: BTreeMap<u8, u64>,
    /// From the time a request was to be sent to its answer, in nanoseconds.
    pub latency: Histogram<u64>,
    /// How long new work was begun.
    pub elapsed: Duration,
    pub(super) began: Option<Instant>,
}

impl LoadFigures {
    pub(super) fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, LONGEST, 3);
        Self {
            sent: 0,
            answered: 0,
            accepted: 0,
            rejected: 0,
            lost: 0,
            unanswered: 0,
            established: 0,
            modified: 0,
            deleted: 0,
            usage_reports: 0,
            usage_octets: 0,
            held: 0,
            retransmitted: 0,
            dropped: 0,
            overtaken: 0,
            panics: 0,
            probes: 0,
            survived: 0,
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

    /// The latency below which this part of the requests was answered, in microseconds.
    #[must_use]
    pub fn quantile_us(&self, part: f64) -> f64 {
        Duration::from_nanos(self.latency.value_at_quantile(part)).as_secs_f64() * 1e6
    }

    /// Establishments accepted a second.
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
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST);
        self.latency.saturating_record(nanoseconds.max(1));
    }
}

/// Two minutes.
const LONGEST: u64 = 120_000_000_000;
