//! Reports on their way to the control plane, TS 29.244 §5.2.2 and §7.5.8.
//!
//! One request at a time is on its way. What it tells is kept until it is answered: a peer that
//! does not answer is told again later, with the same numbers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::UsageLimits;
use crate::endpoint::Elements;
use crate::ie::{
    AdditionalUsageReportsInformation, Cause, DownlinkDataReport, Ie, IeType, PfcpsrrspFlags,
    QueryUrrReference, ReportType, UpdateBarReportResponse, UsageReportDeletionResponse,
    UsageReportModificationResponse, UsageReportRequest,
};
use crate::planted::{Bug, planted};
use crate::wire::{Frame, Tlvs};

/// What is to be told, and where the telling stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sending {
    /// Usage reports, each as the element of a session report; the first of them may be on their
    /// way.
    reports: VecDeque<Box<[u8]>>,
    downlink: VecDeque<DownlinkDataReport>,
    inactive: bool,
    state: State,
    /// Requests in a row that were not answered.
    failures: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// A request is on its way.
    Waiting {
        until: Instant,
        reports: usize,
        downlink: usize,
        inactive: bool,
    },
    /// The next attempt.
    Later(Instant),
}

/// What an answer to a report said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) bar: Option<UpdateBarReportResponse>,
    pub(super) drop_buffered: bool,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Usage reports that the peer has now.
    pub delivered: usize,
    /// Usage reports that the peer does not want: it refused the request for good.
    pub refused: usize,
    /// Says that the peer did not answer, or asks for patience: it is told again.
    pub again: bool,
}

impl Sending {
    pub(super) fn push(&mut self, report: &UsageReportRequest) {
        let mut octets = Vec::with_capacity(96);
        // A report is far below 65535 octets: times of events are bounded.
        if report.encode_into(&mut octets).is_ok() {
            self.reports.push_back(octets.into());
        }
    }

    pub(super) fn push_downlink(&mut self, report: DownlinkDataReport) {
        // One that waits already tells enough.
        if self.downlink.len() < DOWNLINK && !self.downlink.contains(&report) {
            self.downlink.push_back(report);
        }
    }

    pub(super) fn push_inactive(&mut self) {
        self.inactive = true;
    }

    /// How many usage reports wait.
    pub(super) fn len(&self) -> usize {
        self.reports.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.downlink.is_empty() && !self.inactive
    }

    /// Returns the body of the next request, if it is time for one.
    pub(super) fn poll(&mut self, now: Instant, limits: &UsageLimits) -> Option<Vec<u8>> {
        match self.state {
            State::Idle => {}
            State::Later(at) if at <= now => {}
            State::Waiting { until, .. } if until <= now => {
                // Nobody will say what became of it.
                self.failed(now, limits);
                return None;
            }
            State::Later(_) | State::Waiting { .. } => return None,
        }
        if self.is_empty() {
            self.state = State::Idle;
            return None;
        }
        let mut kind = ReportType::NONE;
        let mut body = Vec::new();
        let downlink = self.downlink.front();
        if let Some(report) = downlink {
            kind = kind | ReportType::DLDR;
            // A few rules and flags always fit.
            let _ = report.encode_into(&mut body);
        }
        let reports = self.fitting(limits.message.saturating_sub(body.len()));
        if reports > 0 {
            kind = kind | ReportType::USAR;
        }
        if self.inactive {
            kind = kind | ReportType::UPIR;
        }
        for report in self.reports.iter().take(reports) {
            body.extend_from_slice(report);
        }
        let mut head = Vec::with_capacity(body.len() + 8);
        let _ = kind.encode_into(&mut head);
        head.extend_from_slice(&body);
        self.state = State::Waiting {
            until: now + limits.patience,
            reports,
            downlink: downlink.iter().len(),
            inactive: self.inactive,
        };
        Some(head)
    }

    /// How many reports fit into so many octets; at least one, if there is one.
    fn fitting(&self, room: usize) -> usize {
        let mut taken = 0;
        let lengths = self.reports.iter().map(|report| report.len());
        let fitting = lengths
            .take_while(|length| {
                taken += length;
                taken <= room
            })
            .count();
        fitting.max(self.reports.len().min(1))
    }

    /// Notes the answer to the request that is on its way.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        limits: &UsageLimits,
        answer: &Frame<'_>,
    ) -> (Settled, Wishes) {
        let State::Waiting {
            reports,
            downlink,
            inactive,
            ..
        } = self.state
        else {
            return (Settled::default(), Wishes::default());
        };
        let mut cause = Cause::REQUEST_ACCEPTED;
        let mut wishes = Wishes::default();
        for tlv in Tlvs::new(answer.body).map_while(Result::ok) {
            match tlv.ie {
                IeType::CAUSE => cause = Cause(tlv.value.first().copied().unwrap_or_default()),
                IeType::UPDATE_BAR_REPORT_RESPONSE => {
                    wishes.bar = UpdateBarReportResponse::decode(tlv.value).ok();
                }
                IeType::PFCPSRRSP_FLAGS => {
                    let flags = PfcpsrrspFlags::decode(tlv.value).unwrap_or_default();
                    wishes.drop_buffered = flags.contains(PfcpsrrspFlags::DROBU);
                }
                _ => {}
            }
        }
        if matches!(cause, Cause::CONGESTION | Cause::SYSTEM_FAILURE) {
            return (self.failed(now, limits), Wishes::default());
        }
        self.reports.drain(..reports.min(self.reports.len()));
        self.downlink.drain(..downlink.min(self.downlink.len()));
        self.inactive &= !inactive;
        self.state = State::Idle;
        self.failures = 0;
        let mut settled = Settled::default();
        if cause.is_acceptance() {
            settled.delivered = reports;
        } else {
            settled.refused = reports;
            wishes = Wishes::default();
        }
        (settled, wishes)
    }

    /// Notes that the request that is on its way was not answered.
    pub(super) fn failed(&mut self, now: Instant, limits: &UsageLimits) -> Settled {
        if matches!(self.state, State::Waiting { .. }) {
            let factor = 1 << self.failures.min(6);
            self.failures = self.failures.saturating_add(1);
            let pause = (limits.retry * factor).min(LONGEST_PAUSE.max(limits.retry));
            self.state = State::Later(now + pause);
        }
        Settled {
            again: true,
            ..Settled::default()
        }
    }

    /// Returns when [`Sending::poll`] may have something, if nothing new comes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Idle => None,
            State::Waiting { until, .. } => Some(until),
            State::Later(at) => Some(at),
        }
    }

    /// Takes the usage reports that the peer has not acknowledged.
    pub(super) fn take_all(&mut self) -> Vec<UsageReportRequest> {
        let kept = match self.state {
            State::Waiting { reports, .. } if planted(Bug::ReportDroppedAtTheEnd) => reports,
            State::Waiting { .. } | State::Idle | State::Later(_) => 0,
        };
        let unsent = self.reports.split_off(kept.min(self.reports.len()));
        unsent.iter().filter_map(|octets| typed(octets)).collect()
    }
}

/// Reads a whole element.
fn typed(octets: &[u8]) -> Option<UsageReportRequest> {
    UsageReportRequest::decode(octets.get(4..)?).ok()
}

/// Writes reports into the answer to a modification, as many as fit; returns those that do not.
pub(super) fn modified(
    reports: Vec<UsageReportRequest>,
    query: Option<QueryUrrReference>,
    room: usize,
    out: &mut Vec<u8>,
) -> Vec<UsageReportRequest> {
    fill(reports, room, out, |report, out| {
        let mut told = UsageReportModificationResponse::new(
            report.urr_id,
            report.ur_seqn,
            report.usage_report_trigger,
        );
        told.start_time = report.start_time;
        told.end_time = report.end_time;
        told.volume_measurement = report.volume_measurement;
        told.duration_measurement = report.duration_measurement;
        told.time_of_first_packet = report.time_of_first_packet;
        told.time_of_last_packet = report.time_of_last_packet;
        told.usage_information = report.usage_information;
        told.query_urr_reference = query;
        told.encode_into(out).is_ok()
    })
}

/// Writes reports into the answer to a deletion, as many as fit; returns those that do not.
pub(super) fn deleted(
    reports: Vec<UsageReportRequest>,
    room: usize,
    out: &mut Vec<u8>,
) -> Vec<UsageReportRequest> {
    fill(reports, room, out, |report, out| {
        let mut told = UsageReportDeletionResponse::new(
            report.urr_id,
            report.ur_seqn,
            report.usage_report_trigger,
        );
        told.start_time = report.start_time;
        told.end_time = report.end_time;
        told.volume_measurement = report.volume_measurement;
        told.duration_measurement = report.duration_measurement;
        told.time_of_first_packet = report.time_of_first_packet;
        told.time_of_last_packet = report.time_of_last_packet;
        told.usage_information = report.usage_information;
        told.encode_into(out).is_ok()
    })
}

fn fill(
    reports: Vec<UsageReportRequest>,
    room: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&UsageReportRequest, &mut Vec<u8>) -> bool,
) -> Vec<UsageReportRequest> {
    let mut rest = Vec::new();
    let start = out.len();
    for report in reports {
        let before = out.len();
        // What does not fit keeps its order.
        let fits = rest.is_empty() && write(&report, out) && out.len() - start <= room;
        if !fits {
            out.truncate(before);
            rest.push(report);
        }
    }
    if !rest.is_empty() {
        additional(rest.len(), out);
    }
    rest
}

/// Tells how many reports follow, TS 29.244 §8.2.91: their number, or that there are some (AURI)
/// where the field has no room for it.
fn additional(count: usize, out: &mut Vec<u8>) {
    let number = u16::try_from(count).ok().filter(|number| *number < 1 << 15);
    let told = AdditionalUsageReportsInformation {
        number: number.unwrap_or(0),
        auri: number.is_none(),
    };
    let _ = told.encode_into(out);
}

/// Writes reports of a session that is no more as requests, each as long as may be.
pub(super) fn requests(reports: &[UsageReportRequest], room: usize) -> Vec<Vec<u8>> {
    let kind = Elements::new().with(IeType::REPORT_TYPE, &[USAR]);
    let mut bodies = Vec::new();
    let mut body = Vec::new();
    for report in reports {
        let mut octets = Vec::new();
        if report.encode_into(&mut octets).is_err() {
            continue;
        }
        if !body.is_empty() && body.len() + octets.len() > room {
            bodies.push(std::mem::take(&mut body));
        }
        if body.is_empty() {
            body.extend_from_slice(kind.as_slice());
        }
        body.extend_from_slice(&octets);
    }
    bodies.extend((!body.is_empty()).then_some(body));
    bodies
}

/// The value of Report Type for usage reports.
const USAR: u8 = 0x02;
/// Downlink data reports that wait.
const DOWNLINK: usize = 16;
/// The longest pause before a peer that does not answer is told again.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
