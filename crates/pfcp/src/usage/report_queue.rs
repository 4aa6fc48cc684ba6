//! Sending of reports to the control plane, TS 29.244 §5.2.2 and §7.5.8.
//!
//! At most one request is outstanding. Its reports are kept until it is answered. If the peer does
//! not answer, the same reports are sent again later with the same sequence numbers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::UsageLimits;
use crate::endpoint::BodyBuilder;
use crate::ie::{
    AdditionalUsageReportsInformation, Cause, DownlinkDataReport, Ie, IeType, PfcpsrrspFlags,
    QueryUrrReference, ReportType, UpdateBarReportResponse, UsageReportDeletionResponse,
    UsageReportModificationResponse, UsageReportRequest,
};
use crate::seeded_bug::{Bug, seeded};
use crate::wire::{Frame, Tlvs};

/// The waiting reports and the state of their transmission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportQueue {
    /// Usage reports, each encoded as an element of a Session Report Request. The first of them may
    /// be part of the outstanding request.
    reports: VecDeque<Box<[u8]>>,
    /// Usage reports that the peer refused. They are not sent again before the session is deleted.
    refused: Vec<Box<[u8]>>,
    downlink: VecDeque<DownlinkDataReport>,
    inactive: bool,
    state: SendState,
    /// Number of consecutive unanswered requests.
    failures: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum SendState {
    #[default]
    Idle,
    /// A request is outstanding.
    Waiting {
        until: Instant,
        reports: usize,
        downlink: usize,
        inactive: bool,
    },
    /// The next attempt is due at this time.
    Backoff(Instant),
}

/// The instructions in the answer to a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportInstructions {
    pub(super) bar: Option<UpdateBarReportResponse>,
    pub(super) drop_buffered: bool,
}

/// The outcome of a Session Report Request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportRequestOutcome {
    /// Number of usage reports that the peer received.
    pub delivered: usize,
    /// Number of usage reports that the peer refused. They are kept for the answer to the deletion
    /// of the session.
    pub refused: usize,
    /// `true` if the peer did not answer, or did not know the session, or reported congestion or a
    /// system failure. The reports are sent again.
    pub again: bool,
}

impl ReportQueue {
    pub(super) fn push(&mut self, report: &UsageReportRequest) {
        let mut octets = Vec::with_capacity(96);
        // A report is far below 65535 bytes, because the number of event times is limited.
        if report.encode_into(&mut octets).is_ok() {
            self.reports.push_back(octets.into());
        }
    }

    pub(super) fn push_downlink(&mut self, report: DownlinkDataReport) {
        // A duplicate of a waiting report would add nothing.
        if self.downlink.len() < MAX_DOWNLINK && !self.downlink.contains(&report) {
            self.downlink.push_back(report);
        }
    }

    pub(super) fn push_inactive(&mut self) {
        self.inactive = true;
    }

    /// Returns the number of waiting usage reports.
    pub(super) fn len(&self) -> usize {
        self.reports.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.downlink.is_empty() && !self.inactive
    }

    /// Returns `true` if no report is waiting or kept.
    pub(super) fn is_over(&self) -> bool {
        self.is_empty() && self.refused.is_empty()
    }

    /// Returns the body of the next request, if one is due.
    pub(super) fn poll(&mut self, now: Instant, limits: &UsageLimits) -> Option<Vec<u8>> {
        match self.state {
            SendState::Idle => {}
            SendState::Backoff(at) if at <= now => {}
            SendState::Waiting { until, .. } if until <= now => {
                // The outcome of the request is unknown.
                self.failed(now, limits);
                return None;
            }
            SendState::Backoff(_) | SendState::Waiting { .. } => return None,
        }
        if self.is_empty() {
            self.state = SendState::Idle;
            return None;
        }
        let mut kind = ReportType::NONE;
        let mut body = Vec::new();
        let downlink = self.downlink.front();
        if let Some(report) = downlink {
            kind = kind | ReportType::DLDR;
            // A few PDR IDs and flags always fit.
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
        self.state = SendState::Waiting {
            until: now + limits.outcome_timeout,
            reports,
            downlink: downlink.iter().len(),
            inactive: self.inactive,
        };
        Some(head)
    }

    /// Returns the number of reports that fit into `room` bytes, but at least one if any is
    /// waiting.
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

    /// Handles the answer to the outstanding request.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        limits: &UsageLimits,
        answer: &Frame<'_>,
    ) -> (ReportRequestOutcome, ReportInstructions) {
        let SendState::Waiting {
            reports,
            downlink,
            inactive,
            ..
        } = self.state
        else {
            return (
                ReportRequestOutcome::default(),
                ReportInstructions::default(),
            );
        };
        // A missing Cause acknowledges nothing.
        let mut cause = None;
        let mut instructions = ReportInstructions::default();
        for tlv in Tlvs::new(answer.body).map_while(Result::ok) {
            match tlv.ie {
                IeType::CAUSE => cause = tlv.value.first().copied().map(Cause),
                IeType::UPDATE_BAR_REPORT_RESPONSE => {
                    instructions.bar = UpdateBarReportResponse::decode(tlv.value).ok();
                }
                IeType::PFCPSRRSP_FLAGS => {
                    let flags = PfcpsrrspFlags::decode(tlv.value).unwrap_or_default();
                    instructions.drop_buffered = flags.contains(PfcpsrrspFlags::DROBU);
                }
                _ => {}
            }
        }
        // A peer that does not know the session is asked again: it may have received the report
        // before the answer that established the session. The owner decides when to believe it.
        let again = matches!(
            cause,
            None | Some(
                Cause::CONGESTION | Cause::SYSTEM_FAILURE | Cause::SESSION_CONTEXT_NOT_FOUND
            )
        );
        let accepted = cause.is_some_and(Cause::is_acceptance);
        let reports = reports.min(self.reports.len());
        // Refused usage must not be lost, and must not fill the memory either.
        let is_full = !accepted && self.refused.len() + reports > limits.waiting;
        if again || is_full {
            return (self.failed(now, limits), ReportInstructions::default());
        }
        let settled_reports = self.reports.drain(..reports);
        if !accepted {
            self.refused.extend(settled_reports);
        } else {
            drop(settled_reports);
        }
        self.downlink.drain(..downlink.min(self.downlink.len()));
        self.inactive &= !inactive;
        self.state = SendState::Idle;
        self.failures = 0;
        let mut settled = ReportRequestOutcome::default();
        if accepted {
            settled.delivered = reports;
        } else {
            settled.refused = reports;
            instructions = ReportInstructions::default();
        }
        (settled, instructions)
    }

    /// Records that the outstanding request was not answered.
    pub(super) fn failed(&mut self, now: Instant, limits: &UsageLimits) -> ReportRequestOutcome {
        if matches!(self.state, SendState::Waiting { .. }) {
            let factor = 1 << self.failures.min(6);
            self.failures = self.failures.saturating_add(1);
            let backoff = (limits.retry * factor).min(MAX_BACKOFF.max(limits.retry));
            self.state = SendState::Backoff(now + backoff);
        }
        ReportRequestOutcome {
            again: true,
            ..ReportRequestOutcome::default()
        }
    }

    /// Returns the time at which [`ReportQueue::poll`] may return a request if nothing new is
    /// added.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            SendState::Idle => None,
            SendState::Waiting { until, .. } => Some(until),
            SendState::Backoff(at) => Some(at),
        }
    }

    /// Takes the usage reports that the peer has not acknowledged, refused ones first.
    pub(super) fn take_all(&mut self) -> Vec<UsageReportRequest> {
        let kept = match self.state {
            SendState::Waiting { reports, .. } if seeded(Bug::ReportDroppedAtTheEnd) => reports,
            SendState::Waiting { .. } | SendState::Idle | SendState::Backoff(_) => 0,
        };
        let unsent = self.reports.split_off(kept.min(self.reports.len()));
        let refused = std::mem::take(&mut self.refused);
        let all = refused.iter().chain(&unsent);
        all.filter_map(|octets| typed(octets)).collect()
    }
}

/// Decodes a complete element.
fn typed(octets: &[u8]) -> Option<UsageReportRequest> {
    UsageReportRequest::decode(octets.get(4..)?).ok()
}

/// Copies a report to an element of another type: each message has a type of its own.
macro_rules! usage_report {
    ($type:ident, $report:ident) => {{
        let mut element = $type::new(
            $report.urr_id,
            $report.ur_seqn,
            $report.usage_report_trigger,
        );
        element.start_time = $report.start_time;
        element.end_time = $report.end_time;
        element.volume_measurement = $report.volume_measurement;
        element.duration_measurement = $report.duration_measurement;
        element.time_of_first_packet = $report.time_of_first_packet;
        element.time_of_last_packet = $report.time_of_last_packet;
        element.usage_information = $report.usage_information;
        element
    }};
}

/// Appends as many reports as fit to the answer to a modification, and returns the others.
pub(super) fn modified(
    reports: Vec<UsageReportRequest>,
    query: Option<QueryUrrReference>,
    room: usize,
    out: &mut Vec<u8>,
) -> Vec<UsageReportRequest> {
    fill(reports, room, out, |report, out| {
        let mut element = usage_report!(UsageReportModificationResponse, report);
        element.query_urr_reference = query;
        element.encode_into(out).is_ok()
    })
}

/// Appends as many reports as fit to the answer to a deletion, and returns the others.
pub(super) fn deleted(
    reports: Vec<UsageReportRequest>,
    room: usize,
    out: &mut Vec<u8>,
) -> Vec<UsageReportRequest> {
    fill(reports, room, out, |report, out| {
        let element = usage_report!(UsageReportDeletionResponse, report);
        element.encode_into(out).is_ok()
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
        // After the first report that does not fit, the others are kept back too, to preserve the
        // order.
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

/// Appends the number of reports that follow, TS 29.244 §8.2.91, or the flag AURI if the number
/// does not fit its field.
fn additional(count: usize, out: &mut Vec<u8>) {
    let number = u16::try_from(count).ok().filter(|number| *number < 1 << 15);
    let element = AdditionalUsageReportsInformation {
        number: number.unwrap_or(0),
        auri: number.is_none(),
    };
    let _ = element.encode_into(out);
}

/// Encodes the reports of a deleted session as request bodies of limited size.
pub(super) fn requests(reports: &[UsageReportRequest], room: usize) -> Vec<Vec<u8>> {
    let kind = BodyBuilder::new().with(IeType::REPORT_TYPE, &[USAR]);
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
/// Maximum number of waiting downlink data reports.
const MAX_DOWNLINK: usize = 16;
/// The longest pause before a report is sent again to a peer that does not answer.
const MAX_BACKOFF: Duration = Duration::from_secs(300);
