//! Sending of reports to the control plane, TS 29.244 §5.2.2 and §7.5.8.
//!
//! At most one request is outstanding. Its reports are kept until it is answered. If the peer does
//! not answer, the same reports are sent again later with the same sequence numbers.
//!
//! Data: usage reports as encoded elements, oldest first, downlink data reports, and a flag for
//! user plane inactivity.
//!
//! States:
//!
//! ```text
//!           poll                accepted or refused
//! Idle ───────────▶ Waiting ────────────────────────▶ Idle
//!                   │     ▲
//!   no answer, busy │     │ poll, after the backoff
//!                   ▼     │
//!                   Backoff
//! ```
//!
//! Invariants:
//!
//! - While a request is outstanding, its reports are the first ones of each queue: others are added
//!   behind them, and only an answer removes them. So the state needs only their numbers.
//! - A report leaves the queue once: acknowledged, refused, or moved into the answer to a deletion.
//! - `deadline` is set in each state that time alone can end.
//!
//! Cost: an allocation for each report, and a copy of the bytes for each request. The number of
//! usage reports is bounded by the caller (`UsageLimits::waiting`), that of downlink data reports
//! here.

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
        // Encoded at once: the bytes are sent unchanged, perhaps several times, and take less
        // memory than the fields. 96 bytes hold a report of volume and time.
        let mut bytes = Vec::with_capacity(96);
        // A report is far below 65535 bytes, because the number of event times is limited.
        if report.encode_into(&mut bytes).is_ok() {
            self.reports.push_back(bytes.into());
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
                // The outcome of the request is unknown. If the peer has the reports already, it
                // recognizes them by their UR-SEQN (§8.2.71).
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
        // One at a time: the request has a single Downlink Data Report (Table 7.5.8.1-1). The next
        // one follows with the next request.
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
            // The flag is the entire report; there is no element for it (§8.2.21).
            kind = kind | ReportType::UPIR;
        }
        for report in self.reports.iter().take(reports) {
            body.extend_from_slice(report);
        }
        // Report Type comes first in the table, but is known only after the others have been
        // chosen.
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
        // A report longer than the limit would otherwise block those behind it for ever.
        fitting.max(self.reports.len().min(1))
    }

    /// Handles the answer to the outstanding request.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        limits: &UsageLimits,
        answer: &Frame<'_>,
    ) -> (ReportRequestOutcome, ReportInstructions) {
        // An answer that comes during the backoff is to a request that counts as failed. Its
        // reports will be sent again, which the peer notices by their numbers.
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
        // An element that cannot be read carries no instruction; the answer counts all the same.
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
        // Congestion and failures are temporary (§8.2.1); any other rejection would meet the same
        // reports again.
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
        // Inactivity that was noticed after the request stays, if the request did not report any.
        self.inactive &= !inactive;
        self.state = SendState::Idle;
        self.failures = 0;
        let mut settled = ReportRequestOutcome::default();
        if accepted {
            settled.delivered = reports;
        } else {
            settled.refused = reports;
            // Instructions belong to a report that was accepted.
            instructions = ReportInstructions::default();
        }
        (settled, instructions)
    }

    /// Records that the outstanding request was not answered.
    pub(super) fn failed(&mut self, now: Instant, limits: &UsageLimits) -> ReportRequestOutcome {
        // Both the timer here and the transaction of the request may find that it failed; only the
        // first one counts.
        if matches!(self.state, SendState::Waiting { .. }) {
            // Keeps the product finite: 64 times the default is more than `MAX_BACKOFF`
            // already.
            let factor = 1 << self.failures.min(6);
            self.failures = self.failures.saturating_add(1);
            // A configured backoff above `MAX_BACKOFF` is meant, and not cut.
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
            // A new report is sent by the next `poll`, without waiting.
            SendState::Idle => None,
            SendState::Waiting { until, .. } => Some(until),
            SendState::Backoff(at) => Some(at),
        }
    }

    /// Takes the usage reports that the peer has not acknowledged, refused ones first.
    pub(super) fn take_all(&mut self) -> Vec<UsageReportRequest> {
        // Reports of the outstanding request are taken too: the answer that ends the session
        // replaces it.
        let kept = match self.state {
            SendState::Waiting { reports, .. } if seeded(Bug::ReportDroppedAtTheEnd) => reports,
            SendState::Waiting { .. } | SendState::Idle | SendState::Backoff(_) => 0,
        };
        let unsent = self.reports.split_off(kept.min(self.reports.len()));
        let refused = std::mem::take(&mut self.refused);
        let all = refused.iter().chain(&unsent);
        all.filter_map(|bytes| typed(bytes)).collect()
    }
}

/// Decodes a complete element.
fn typed(bytes: &[u8]) -> Option<UsageReportRequest> {
    UsageReportRequest::decode(bytes.get(4..)?).ok()
}

/// Copies a report to an element of another type: each message has a type of its own.
macro_rules! usage_report {
    ($type:ident, $report:ident) => {{
        let mut element = $type::new(
            $report.urr_id,
            $report.ur_seqn,
            $report.usage_report_trigger,
        );
        // The tables of the responses have neither Event Time Stamp nor UE IP address (Tables
        // 7.5.5.2-1 and 7.5.7.2-1), so these are left behind.
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
        // The control plane matches the reports with its query (§8.2.90).
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
        // The control plane waits for as many reports before it takes the usage for complete
        // (§5.2.2.3.1).
        additional(rest.len(), out);
    }
    rest
}

/// Appends the number of reports that follow, TS 29.244 §8.2.91, or the flag AURI if the number
/// does not fit its field.
fn additional(count: usize, out: &mut Vec<u8>) {
    // Fifteen bits, beside the flag AURI.
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
        let mut bytes = Vec::new();
        if report.encode_into(&mut bytes).is_err() {
            continue;
        }
        // A body takes at least one report, for the same reason as in `fitting`.
        if !body.is_empty() && body.len() + bytes.len() > room {
            bodies.push(std::mem::take(&mut body));
        }
        if body.is_empty() {
            body.extend_from_slice(kind.as_slice());
        }
        body.extend_from_slice(&bytes);
    }
    bodies.extend((!body.is_empty()).then_some(body));
    bodies
}

/// The value of Report Type for usage reports.
const USAR: u8 = 0x02;
/// Maximum number of waiting downlink data reports.
// Bounds what accumulates for a peer that does not answer.
const MAX_DOWNLINK: usize = 16;
/// The longest pause before a report is sent again to a peer that does not answer.
const MAX_BACKOFF: Duration = Duration::from_secs(300);
