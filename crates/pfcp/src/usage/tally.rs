//! What the control plane makes of usage reports.

use std::collections::BTreeMap;

use crate::ie::{
    DurationMeasurement, UrSeqn, UrrId, UsageReportDeletionResponse,
    UsageReportModificationResponse, UsageReportRequest, VolumeMeasurement,
};

/// The sums of a session's usage reports, each counted once.
///
/// ```
/// use strowger_pfcp::ie::{UsageReportRequest, UsageReportTrigger};
/// use strowger_pfcp::usage::{Arrival, Tally};
///
/// let mut tally = Tally::default();
/// let report = UsageReportRequest::new(1, 0, UsageReportTrigger::PERIO);
/// assert_eq!(tally.add(&report), Arrival::New);
/// assert_eq!(tally.add(&report), Arrival::Repeated);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    rules: BTreeMap<UrrId, Sum>,
}

/// What reports of a rule told so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum {
    /// The numbers that came, all below the first one left out.
    next: u32,
    /// Numbers that came before others that are still missing.
    early: Vec<u32>,
    /// Numbers that are not waited for any more.
    lost: u64,
    uplink: u64,
    downlink: u64,
    seconds: u64,
}

/// What the number of a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one.
    New,
    /// It is new, and others before it are missing.
    Early,
    /// It came before; its figures do not count again.
    Repeated,
}

/// What all three forms of usage reports have.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    urr: UrrId,
    number: UrSeqn,
    volume: Option<&'a VolumeMeasurement>,
    time: Option<DurationMeasurement>,
}

macro_rules! told {
    ($($name:ident)*) => { $(
        impl<'a> From<&'a $name> for Figures<'a> {
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

told! { UsageReportRequest UsageReportModificationResponse UsageReportDeletionResponse }

impl Tally {
    /// Counts a report, unless its number came before.
    pub fn add<'a>(&mut self, report: impl Into<Figures<'a>>) -> Arrival {
        let told = report.into();
        let sum = self.rules.entry(told.urr).or_default();
        let arrival = sum.number(told.number.0);
        if arrival == Arrival::Repeated {
            return arrival;
        }
        if let Some(volume) = told.volume {
            let (up, down) = (volume.uplink_volume, volume.downlink_volume);
            sum.uplink = sum.uplink.saturating_add(up.unwrap_or_default());
            sum.downlink = sum.downlink.saturating_add(down.unwrap_or_default());
        }
        let seconds = told.time.map_or(0, |time| time.0);
        sum.seconds = sum.seconds.saturating_add(seconds.into());
        arrival
    }

    /// Returns the octets that were reported for a rule, from the user and to the user.
    #[must_use]
    pub fn octets(&self, urr: UrrId) -> (u64, u64) {
        let sum = self.rules.get(&urr);
        sum.map_or((0, 0), |sum| (sum.uplink, sum.downlink))
    }

    /// Returns the seconds that were reported for a rule.
    #[must_use]
    pub fn seconds(&self, urr: UrrId) -> u64 {
        self.rules.get(&urr).map_or(0, |sum| sum.seconds)
    }

    /// Counts the reports of a rule that came.
    #[must_use]
    pub fn reports(&self, urr: UrrId) -> u64 {
        let count = |sum: &Sum| u64::from(sum.next) + sum.early.len() as u64 - sum.lost;
        self.rules.get(&urr).map_or(0, count)
    }

    /// Counts the numbers that are missing before others that came.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let missing = |sum: &Sum| {
            let last = sum.early.iter().max().copied().unwrap_or(sum.next);
            let after = u64::from(last - sum.next);
            sum.lost + after.saturating_sub(sum.early.len().saturating_sub(1) as u64)
        };
        self.rules.values().map(missing).sum()
    }

    /// Forgets a rule that is gone: another one of its number starts anew.
    pub fn forget(&mut self, urr: UrrId) {
        self.rules.remove(&urr);
    }
}

impl Sum {
    fn number(&mut self, number: u32) -> Arrival {
        if number < self.next || self.early.contains(&number) {
            return Arrival::Repeated;
        }
        if number > self.next {
            if self.early.len() >= EARLY {
                // What is missing for so long does not come any more.
                let first = self.early.iter().min().map_or(number, |first| *first);
                self.lost += u64::from(first - self.next);
                self.next = first;
                self.catch_up();
            }
            self.early.push(number);
            self.catch_up();
            return Arrival::Early;
        }
        self.next = self.next.wrapping_add(1);
        self.catch_up();
        Arrival::New
    }

    /// Joins what came early to what came in order.
    fn catch_up(&mut self) {
        while let Some(at) = self.early.iter().position(|early| *early == self.next) {
            self.early.swap_remove(at);
            self.next = self.next.wrapping_add(1);
        }
    }
}

/// Reports of a rule that are waited for by others.
const EARLY: usize = 256;
