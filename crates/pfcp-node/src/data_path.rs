//! The source of traffic.
//!
//! This node has no user plane and forwards no packets. Its measurements come from a [`DataPath`]:
//! either no traffic, or a model of when packets of which size would arrive.

mod simulated;

use std::fmt;
use std::time::Instant;

use strowger_pfcp::Seid;
use strowger_pfcp::usage::{DetectionRule, PacketBurst};

pub use simulated::{SimulatedTraffic, TrafficModel};

/// A user plane, as far as usage measurement requires one.
///
/// It is queried for consecutive time spans, and must return the same traffic for the same span,
/// since a restarted session repeats its last query.
pub trait DataPath: fmt::Debug + Send + Sync + 'static {
    /// Returns the packets that the rules of a session detected after `span.after` and up to
    /// `span.until`, in order of time.
    fn traffic(
        &self,
        seid: Seid,
        detectors: &[DetectionRule],
        span: TimeSpan,
    ) -> Vec<(Instant, PacketBurst)>;

    /// Returns the time of the next query after `after`; `None` if no more traffic will arrive.
    fn next(&self, seid: Seid, detectors: &[DetectionRule], after: Instant) -> Option<Instant>;
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// The start of the span, exclusive.
    pub after: Instant,
    /// The end of the span, inclusive.
    pub until: Instant,
}

/// A [`DataPath`] without traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraffic;

impl DataPath for NoTraffic {
    fn traffic(&self, _: Seid, _: &[DetectionRule], _: TimeSpan) -> Vec<(Instant, PacketBurst)> {
        Vec::new()
    }

    fn next(&self, _: Seid, _: &[DetectionRule], _: Instant) -> Option<Instant> {
        None
    }
}
