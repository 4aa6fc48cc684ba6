//! Where traffic comes from.
//!
//! This node has no user plane: it forwards no packet. What it counts comes from a [`DataPath`]:
//! none, or a model that says at which times packets of which size would have come.

mod simulated;

use std::fmt;
use std::time::Instant;

use strowger_pfcp::Seid;
use strowger_pfcp::usage::{Detector, Traffic};

pub use simulated::{SimulatedTraffic, TrafficModel};

/// A user plane, as far as the counting of sessions needs one.
///
/// It is asked about spans of time that follow one another without a gap, and has to answer the
/// same for the same span: a session that was restarted asks again where it stopped.
pub trait DataPath: fmt::Debug + Send + Sync + 'static {
    /// Returns the packets that a session's rules detected after `span.after` and until
    /// `span.until`, in the order of time.
    fn traffic(&self, seid: Seid, detectors: &[Detector], span: Span) -> Vec<(Instant, Traffic)>;

    /// Returns when to ask next, after a time; `None` when nothing will come.
    fn next(&self, seid: Seid, detectors: &[Detector], after: Instant) -> Option<Instant>;
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its start, which belongs to the span before.
    pub after: Instant,
    /// Its end, which belongs to it.
    pub until: Instant,
}

/// No traffic at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraffic;

impl DataPath for NoTraffic {
    fn traffic(&self, _: Seid, _: &[Detector], _: Span) -> Vec<(Instant, Traffic)> {
        Vec::new()
    }

    fn next(&self, _: Seid, _: &[Detector], _: Instant) -> Option<Instant> {
        None
    }
}
