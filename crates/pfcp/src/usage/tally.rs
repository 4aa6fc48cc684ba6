//! Evaluation of usage reports by the control plane.
//!
//! A report that is sent again has the same UR-SEQN (TS 29.244 §8.2.71), so each number is counted
//! once and a gap means that reports are missing. Reports may overtake each other, because some
//! come in answers and others in requests.

use std::collections::BTreeMap;

use crate::ie::{
    DurationMeasurement, UrSeqn, UrrId, UsageReportDeletionResponse,
    UsageReportModificationResponse, UsageReportRequest, VolumeMeasurement,
};

/// The sums over the usage reports of a session, with each report counted once.
///
/// ```
/// use strowger_pfcp::ie::{UsageReportRequest, UsageReportTrigger};
/// use strowger_pfcp::usage::{ReportArrival, UsageTotals};
///
/// let mut tally = UsageTotals::default();
/// let report = UsageReportRequest::new(1, 0, UsageReportTrigger::PERIO);
/// assert_eq!(tally.add(&report), ReportArrival::New);
/// assert_eq!(tally.add(&report), ReportArrival::Repeated);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals {
    rules: BTreeMap<UrrId, UrrSums>,
}

/// The sums over the reports of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UrrSums {
    /// The next number in sequence. All lower numbers have arrived or count as lost.
    next: u32,
    /// Numbers that arrived while lower ones are still missing.
    early: Vec<u32>,
    /// Number of reports that are no longer expected to arrive.
    lost: u64,
    uplink: u64,
    downlink: u64,
    seconds: u64,
}

/// The position of a report in the sequence of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportArrival {
    /// The report is the next one.
    New,
    /// The report is new, but reports before it are missing.
    Early,
    /// The report arrived before. Its measurements are not counted again.
    Repeated,
}

/// The common content of the three forms of usage reports.
#[derive(Clone, Copy, Debug)]
pub struct UsageReportFields<'a> {
    urr: UrrId,
    number: UrSeqn,
    volume: Option<&'a VolumeMeasurement>,
    time: Option<DurationMeasurement>,
}

macro_rules! figures_from {
    ($($name:ident)*) => { $(
        impl<'a> From<&'a $name> for UsageReportFields<'a> {
            fn from(report: &'a $name) -> Self {
                Self {
                    urr: report.urr_id,
                    number: report.ur_seqn,
                    volume: report.volume_measurement.as_ref(),
                    time: report.duration_measurement,
                }
            }
        }
    )* };
}

figures_from! { UsageReportRequest UsageReportModificationResponse UsageReportDeletionResponse }

impl UsageTotals {
    /// Adds a report, unless its number has arrived before.
    pub fn add<'a>(&mut self, report: impl Into<UsageReportFields<'a>>) -> ReportArrival {
        let report = report.into();
        let sum = self.rules.entry(report.urr).or_default();
        let arrival = sum.number(report.number.0);
        if arrival == ReportArrival::Repeated {
            return arrival;
        }
        if let Some(volume) = report.volume {
            let (up, down) = (volume.uplink_volume, volume.downlink_volume);
            sum.uplink = sum.uplink.saturating_add(up.unwrap_or_default());
            sum.downlink = sum.downlink.saturating_add(down.unwrap_or_default());
        }
        let seconds = report.time.map_or(0, |time| time.0);
        sum.seconds = sum.seconds.saturating_add(seconds.into());
        arrival
    }

    /// Returns the bytes reported for a rule, as uplink and downlink.
    #[must_use]
    pub fn bytes(&self, urr: UrrId) -> (u64, u64) {
        let sum = self.rules.get(&urr);
        sum.map_or((0, 0), |sum| (sum.uplink, sum.downlink))
    }

    /// Returns the seconds reported for a rule.
    #[must_use]
    pub fn seconds(&self, urr: UrrId) -> u64 {
        self.rules.get(&urr).map_or(0, |sum| sum.seconds)
    }

    /// Returns the number of reports of a rule that arrived.
    #[must_use]
    pub fn reports(&self, urr: UrrId) -> u64 {
        let count = |sum: &UrrSums| u64::from(sum.next) + sum.early.len() as u64 - sum.lost;
        self.rules.get(&urr).map_or(0, count)
    }

    /// Returns the number of reports that are missing before others that arrived.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let missing = |sum: &UrrSums| {
            // Missing are the numbers from `next` up to the highest early one that did not come.
            let last = sum.early.iter().max().copied().unwrap_or(sum.next);
            let after = u64::from(last - sum.next);
            sum.lost + after.saturating_sub(sum.early.len().saturating_sub(1) as u64)
        };
        self.rules.values().map(missing).sum()
    }

    /// Removes a rule that was deleted. Another rule with the same URR ID starts from zero.
    pub fn forget(&mut self, urr: UrrId) {
        self.rules.remove(&urr);
    }
}

impl UrrSums {
    fn number(&mut self, number: u32) -> ReportArrival {
        // No comparison across the wrap: a rule would have to make 2^32 reports.
        if number < self.next || self.early.contains(&number) {
            return ReportArrival::Repeated;
        }
        if number > self.next {
            // Bounded, because a gap that never closes would otherwise keep every later number. A
            // restart of the user plane leaves such a gap (see `UsageMeter::resumed`).
            if self.early.len() >= MAX_EARLY {
                // A report that has been missing for so long is not expected any more.
                let first = self.early.iter().min().map_or(number, |first| *first);
                self.lost += u64::from(first - self.next);
                self.next = first;
                self.absorb_early_reports();
            }
            self.early.push(number);
            self.absorb_early_reports();
            return ReportArrival::Early;
        }
        self.next = self.next.wrapping_add(1);
        self.absorb_early_reports();
        ReportArrival::New
    }

    /// Advances `next` over the numbers that arrived early.
    fn absorb_early_reports(&mut self) {
        while let Some(at) = self.early.iter().position(|early| *early == self.next) {
            self.early.swap_remove(at);
            self.next = self.next.wrapping_add(1);
        }
    }
}

/// Maximum number of early reports of a rule that are remembered.
const MAX_EARLY: usize = 256;
