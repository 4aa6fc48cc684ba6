//! Usage measurement of a session, and its pending reports.
//!
//! The state is kept outside the actor, so that a panic loses no measurements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use strowger::{Context, EarliestTimer};
use strowger_pfcp::session::RuleSet;
use strowger_pfcp::usage::{
    DetectionRule, Epoch, FinalReports, PacketOutcome, UsageLimits, UsageMeter,
};
use strowger_pfcp::{Frame, Seid};

use super::{SessionActor, SessionMsg};
use crate::config::NodeConfig;
use crate::data_path::TimeSpan;
use crate::endpoint::OutgoingReport;
use crate::shared::{Shared, add, add_many};
use crate::store::{SessionRecord, milliseconds_now};

/// The measurements of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionUsage {
    usage: UsageMeter,
    /// The time until which traffic has been measured.
    seen: Instant,
    detectors: Vec<DetectionRule>,
}

/// The origin of a measurement: a new session, or one that existed before in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeterOrigin {
    Resumed,
    New,
}

/// A meter that the incarnations of a session share.
pub(crate) type SharedMeter = Arc<Mutex<SessionUsage>>;

/// The actor's view of its meter.
#[derive(Debug)]
pub(super) struct SessionMeter {
    meter: SharedMeter,
    timer: EarliestTimer,
}

impl SessionUsage {
    /// Starts the measurement; `origin` states that the session existed before, in another
    /// process.
    fn new(now: Instant, shared: &Shared, rules: &RuleSet, origin: MeterOrigin) -> Self {
        let since_1970 = Duration::from_millis(milliseconds_now());
        let epoch = Epoch::new(now, since_1970 + SINCE_1900);
        let limits = usage_limits(&shared.config);
        let usage = match origin {
            MeterOrigin::New => UsageMeter::new(now, epoch, limits, rules),
            MeterOrigin::Resumed => UsageMeter::resumed(now, epoch, limits, rules),
        };
        Self {
            detectors: usage.detectors(),
            usage,
            seen: now,
        }
    }

    /// Measures the traffic until `now`, in steps. Returns `true` if `now` has been reached.
    fn advance(&mut self, now: Instant, seid: Seid, shared: &Shared) -> bool {
        let until = now.min(self.seen + MAX_STEP);
        let after = std::mem::replace(&mut self.seen, until);
        let span = TimeSpan { after, until };
        for (at, traffic) in shared.data_path.traffic(seid, &self.detectors, span) {
            let verdict = self.usage.handle_traffic(at.clamp(after, until), traffic);
            let counter = match verdict {
                PacketOutcome::Forwarded => &shared.counters.forwarded,
                PacketOutcome::Buffered => &shared.counters.buffered,
                PacketOutcome::Dropped => &shared.counters.dropped_bytes,
            };
            add_many(counter, traffic.bytes);
        }
        self.usage.handle_timeout(until);
        until == now
    }

    /// Records that the pending report will not be answered.
    pub(crate) fn unanswered(&mut self, now: Instant) {
        self.usage.handle_no_answer(now.max(self.seen));
    }

    /// Returns the time of the next call.
    fn next(&self, seid: Seid, shared: &Shared) -> Option<Instant> {
        let due = self.usage.poll_timeout();
        let traffic = shared.data_path.next(seid, &self.detectors, self.seen);
        due.into_iter().chain(traffic).min()
    }
}

/// Returns the limits and timers of usage reporting.
fn usage_limits(config: &NodeConfig) -> UsageLimits {
    let span = config.timers.t1.saturating_mul(config.timers.n1);
    UsageLimits {
        waiting: config.limits.usage_reports,
        // The transaction reports the outcome of a request; this time limit applies only if it does
        // not.
        outcome_timeout: span * 2 + Duration::from_secs(1),
        retry: config.timers.t1,
        buffer: config.limits.buffered_packets as u64,
        ..UsageLimits::default()
    }
}

impl SessionActor {
    /// Returns the meter of an earlier incarnation, or creates one if the rules require it.
    pub(super) fn meter_for(
        shared: &Arc<Shared>,
        seid: Seid,
        live: Option<&Arc<SessionRecord>>,
        now: Instant,
        origin: MeterOrigin,
    ) -> Option<Box<SessionMeter>> {
        let rules = &live?.rules;
        if !UsageMeter::concerns(rules) {
            return None;
        }
        let mut meters = shared.meters.lock();
        let new = || Arc::new(Mutex::new(SessionUsage::new(now, shared, rules, origin)));
        let meter = Arc::clone(meters.entry(seid).or_insert_with(new));
        Some(Box::new(SessionMeter {
            meter,
            timer: EarliestTimer::new(),
        }))
    }

    /// Measures the traffic until `now`.
    pub(super) fn advance(&self, now: Instant) {
        let Some(metered) = &self.metered else {
            return;
        };
        let mut meter = metered.meter.lock();
        while !meter.advance(now, self.seid, &self.shared) {}
    }

    /// Computes the effect of changed rules on the measurement, without adopting it.
    pub(super) fn plan_meter_change(
        &self,
        now: Instant,
        rules: &RuleSet,
        requests: &[&Frame<'_>],
    ) -> Option<(SessionUsage, FinalReports)> {
        let metered = self.metered.as_ref()?;
        let mut meter = metered.meter.lock().clone();
        let finals = meter.usage.modify(now, rules, requests);
        meter.detectors = meter.usage.detectors();
        Some((meter, finals))
    }

    /// Adopts the measurement state after a change of the rules was accepted.
    pub(super) fn commit_meter_change(
        &mut self,
        now: Instant,
        change: Option<(SessionUsage, FinalReports)>,
    ) {
        let Some(((meter, finals), metered)) = change.zip(self.metered.as_ref()) else {
            let live = self.live.as_ref();
            self.metered = Self::meter_for(&self.shared, self.seid, live, now, MeterOrigin::New);
            return;
        };
        add_many(&self.shared.counters.usage_reports, finals.reports as u64);
        if let Some(live) = &self.live {
            self.shared.topics.usage(live, &finals.elements);
        }
        let over = meter.usage.is_over();
        *metered.meter.lock() = meter;
        if over {
            self.metered = None;
            self.shared.meters.lock().remove(&self.seid);
        }
    }

    /// Handles a new peer SEID of the session: the pending report is sent again with the new SEID.
    pub(super) fn on_peer_seid_changed(&self, now: Instant) {
        if let Some(metered) = &self.metered {
            metered.meter.lock().unanswered(now);
        }
    }

    /// Returns the final usage reports of a session that is being deleted.
    pub(super) fn finals(&self, now: Instant) -> FinalReports {
        let metered = self.metered.as_ref();
        metered.map_or_else(FinalReports::default, |metered| {
            let meter = metered.meter.lock().clone();
            meter.usage.finish(now)
        })
    }

    /// Ends the measurement of a deleted session. Returns the reports that did not fit into the
    /// deletion response, which announces them.
    pub(super) fn end_metering(
        &mut self,
        record: &SessionRecord,
        finals: FinalReports,
    ) -> Box<[OutgoingReport]> {
        if self.metered.take().is_none() {
            return Box::default();
        }
        self.shared.meters.lock().remove(&self.seid);
        add_many(&self.shared.counters.usage_reports, finals.reports as u64);
        self.shared.topics.usage(record, &finals.elements);
        let more = finals.more.into_iter();
        more.map(|body| self.outgoing(record, body)).collect()
    }

    /// Handles the outcome of a report: the response, if there was one.
    pub(super) fn reported(&self, now: Instant, answer: Option<&[u8]>) {
        let Some(metered) = &self.metered else {
            return;
        };
        let counters = &self.shared.counters;
        let frame = answer.and_then(|bytes| Frame::decode(bytes).ok());
        let mut meter = metered.meter.lock();
        let settled = match &frame {
            Some(frame) => meter.usage.handle_answer(now, frame),
            None => meter.usage.handle_no_answer(now),
        };
        drop(meter);
        add_many(&counters.usage_reports, settled.delivered as u64);
        add_many(&counters.usage_refused, settled.refused as u64);
        if settled.again {
            add(&counters.reports_unanswered);
        }
    }

    /// Sends a due report, and sets a timer for the next action.
    pub(super) async fn process_reports(&mut self, now: Instant, cx: &mut Context<Self>) {
        let Some(live) = self.live.clone() else {
            return;
        };
        let request = self.metered.as_ref().and_then(|metered| {
            let mut meter = metered.meter.lock();
            meter.usage.poll_request(now)
        });
        if let Some(body) = request
            && !self.send_report(&live, body).await
        {
            self.reported(now, None);
        }
        let Some(metered) = &mut self.metered else {
            return;
        };
        let next = metered.meter.lock().next(self.seid, &self.shared);
        if let Some(at) = next {
            metered.timer.arm(at, SessionMsg::Due, cx);
        }
    }

    /// Records that the timer has expired.
    pub(super) fn timer_ended(&mut self) {
        if let Some(metered) = &mut self.metered {
            metered.timer.clear();
        }
    }

    /// Passes a report to the endpoint. Returns `false` if the endpoint is not available.
    async fn send_report(&self, record: &SessionRecord, body: Vec<u8>) -> bool {
        let endpoint = self.shared.endpoint.lock().clone();
        let Some(endpoint) = endpoint else {
            return false;
        };
        let outgoing = self.outgoing(record, body);
        endpoint.tell(outgoing).await.is_ok()
    }

    /// Creates a report to be sent, and publishes its usage.
    fn outgoing(&self, record: &SessionRecord, body: Vec<u8>) -> OutgoingReport {
        add(&self.shared.counters.reports_sent);
        self.shared.topics.usage(record, &body);
        OutgoingReport {
            seid: self.seid,
            peer_seid: record.peer_seid,
            body,
        }
    }
}

/// The time between 1900 and 1970.
const SINCE_1900: Duration = Duration::from_secs(2_208_988_800);
/// The maximum time span that is measured in one step, so that a step is short.
const MAX_STEP: Duration = Duration::from_secs(10);
