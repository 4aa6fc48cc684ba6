//! The measurements of a usage reporting rule, and the times at which it reports.
//!
//! Data: three counters. `counts` is the usage since the last report or monitoring time and is what
//! a report says; `threshold_usage` is compared with the thresholds, `quota_usage` with the quotas.
//! They differ because they restart at different times: a report restarts the first two, a
//! monitoring time the first, and a subsequent threshold or quota the one that it applies to.
//!
//! States:
//!
//! ```text
//!             first packet, ISTM               silence, blocked, paused
//! not timed ───────────────────────▶ timed ─────────────────────────────▶ not timed
//!
//!          quota reached, holding time over              quota granted
//! open ──────────────────────────────────────▶ blocked ───────────────────▶ open
//! ```
//!
//! A report is made in two steps: a trigger is added to `pending_triggers`, and `report` takes all
//! of them at once when there is space in the queue. Usage that is counted in between is in the
//! same report.
//!
//! Invariants:
//!
//! - Each byte, event and whole second is in exactly one report (TS 29.244 §5.2.2.2). Fractions of
//!   a second stay for the next one.
//! - Each report has the next UR-SEQN of the rule (§8.2.71), also one without measurements.
//! - Methods are called in the order of time, and at each `deadline`, so that usage belongs to the
//!   right side of each limit.
//! - Time is added before anything that its amount depends on changes: the last activity, the
//!   clock, the parameters.
//!
//! Cost: constant for each burst of packets; a few comparisons for each deadline. `spans`, `events`
//! and `monitoring_points` are the only allocations.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::count::{Counts, Epoch, UrrLimits, Volume};
use super::parameters::{MonitoringPoint, UrrParameters};
use crate::ie::{
    EndTime, Ie, IeType, MeasurementInformation, MeasurementMethod, ReportingTriggers, StartTime,
    TimeOfFirstPacket, TimeOfLastPacket, TimeStamp, UrSeqn, UrrId, UsageInformation,
    UsageReportRequest, UsageReportTrigger, VolumeMeasurement,
};
use crate::wire::{Tlv, Tlvs};

/// The state of a usage reporting rule.
///
/// Usage is counted three times: since the last report, towards the thresholds, and towards the
/// quotas. A report restarts the first two. A quota spans many reports, until another one is
/// granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrrState {
    pub(super) parameters: Arc<UrrParameters>,
    /// Usage since the last report or the last monitoring time.
    counts: Counts,
    /// Usage up to monitoring times, to be included in the next report.
    spans: Vec<MeasuredSpan>,
    thresholds: UrrLimits,
    threshold_usage: Counts,
    quotas: UrrLimits,
    quota_usage: Counts,
    /// `true` if a quota is exhausted or its holding time is over, so that no traffic passes.
    pub(super) blocked: bool,
    /// The time up to which usage time has been counted, or `None` while it is not being counted.
    clock: Option<Instant>,
    /// The time at which `counts` started.
    started: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
    /// The time from which inactivity is measured: that of the last packet, or of a later event
    /// that restarted the measurement.
    active: Instant,
    /// `true` while traffic flows. Its stop is to be reported.
    flowing: bool,
    /// `true` once inactivity has been reported.
    inactivity_reported: bool,
    /// Dropped downlink packets and bytes since the last report.
    dropped: (u64, u64),
    /// The times of events.
    events: Vec<TimeStamp>,
    period: Option<Instant>,
    validity: Option<Instant>,
    /// Future monitoring times, with the thresholds and quotas that apply after them.
    monitoring_points: VecDeque<(Instant, MonitoringPoint)>,
    /// The triggers of the pending report.
    pub(super) pending_triggers: UsageReportTrigger,
    /// The triggers of reports without measurements: start and stop of traffic.
    pub(super) pending_notes: UsageReportTrigger,
    number: u32,
    reports_left: Option<u16>,
    /// `true` while the control plane pauses the measurement.
    paused: bool,
}

/// Usage up to a monitoring time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MeasuredSpan {
    counts: Counts,
    started: Instant,
    ended: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// Maximum number of event times in a report.
// Bounds the memory of a rule, and keeps a report within the 16-bit length of its element.
const EVENTS: usize = 256;

impl UrrState {
    /// Starts a rule. Its reports are numbered from `number`.
    pub(super) fn new(
        now: Instant,
        epoch: Epoch,
        parameters: Arc<UrrParameters>,
        number: u32,
    ) -> Self {
        let mut rule = Self {
            counts: Counts::default(),
            spans: Vec::new(),
            thresholds: parameters.thresholds,
            threshold_usage: Counts::default(),
            quotas: parameters.quotas,
            quota_usage: Counts::default(),
            blocked: false,
            clock: None,
            started: now,
            first: None,
            last: None,
            active: now,
            flowing: false,
            inactivity_reported: false,
            dropped: (0, 0),
            events: Vec::new(),
            period: parameters.period.map(|period| now + period),
            validity: parameters.validity.map(|validity| now + validity),
            pending_triggers: UsageReportTrigger::NONE,
            pending_notes: UsageReportTrigger::NONE,
            number,
            reports_left: parameters.reports,
            paused: false,
            monitoring_points: VecDeque::new(),
            parameters,
        };
        rule.schedule_monitoring_times(now, epoch);
        // A quota of zero blocks traffic from the start, without any usage to report.
        rule.blocked = rule.quotas.reached(&rule.quota_usage);
        rule.meter_at_once(now);
        rule
    }

    /// Returns the memory that a rule with these members takes once it counts, in bytes, as an
    /// estimate from above.
    pub(super) fn memory(members: Tlvs<'_>) -> usize {
        let member = |tlv: Tlv<'_>| match tlv.ie {
            IeType::MONITORING_TIME | IeType::ADDITIONAL_MONITORING_TIME => {
                size_of::<MonitoringPoint>()
                    + size_of::<(Instant, MonitoringPoint)>()
                    + size_of::<MeasuredSpan>()
            }
            IeType::MEASUREMENT_METHOD
                if MeasurementMethod::decode(tlv.value)
                    .is_ok_and(|method| method.contains(MeasurementMethod::EVENT)) =>
            {
                EVENTS * size_of::<TimeStamp>()
            }
            IeType::LINKED_URR_ID => size_of::<u32>(),
            _ => 0,
        };
        let members: usize = members.map_while(Result::ok).map(member).sum();
        size_of::<Self>() + size_of::<UrrParameters>() + members
    }

    /// Returns `true` if a new rule stays as it is until traffic or the control plane changes it.
    pub(super) fn is_static(&self) -> bool {
        // Traffic does not flow yet, so the idle timeout is of no importance.
        !self.blocked && self.clock.is_none() && self.deadline(Duration::ZERO).is_none()
    }

    /// Applies an update. `given` are the types of its elements.
    ///
    /// A quota that is given again is a new quota, even if it has the same size. The usage since
    /// the last report counts towards it, because the control plane did not know of that usage when
    /// it granted the quota.
    pub(super) fn update(
        &mut self,
        now: Instant,
        epoch: Epoch,
        parameters: UrrParameters,
        given: &[IeType],
    ) {
        // An update has only the elements that change (TS 29.244 §7.5.4.4). `parameters` is the
        // whole rule after it, but the limits in force may be subsequent ones, so only those that
        // are given are taken.
        let has = |ie| given.contains(&ie);
        self.accrue_time(now);
        // The time until now was measured under the old parameters, hence the line before.
        self.parameters = parameters.into();
        if has(IeType::MONITORING_TIME) || has(IeType::ADDITIONAL_MONITORING_TIME) {
            self.schedule_monitoring_times(now, epoch);
        }
        if has(IeType::VOLUME_THRESHOLD) {
            self.thresholds.volume = self.parameters.thresholds.volume;
        }
        if has(IeType::TIME_THRESHOLD) {
            self.thresholds.time = self.parameters.thresholds.time;
        }
        if has(IeType::EVENT_THRESHOLD) {
            self.thresholds.events = self.parameters.thresholds.events;
        }
        if has(IeType::MEASUREMENT_PERIOD)
            || self.period.is_some() != self.parameters.period.is_some()
        {
            // A period that is given starts anew. One that stays keeps its phase, whatever else is
            // updated.
            self.period = self.parameters.period.map(|period| now + period);
        }
        if has(IeType::NUMBER_OF_REPORTS) {
            self.reports_left = self.parameters.reports;
        }
        if has(IeType::QUOTA_VALIDITY_TIME) {
            self.validity = self.parameters.validity.map(|validity| now + validity);
        }
        self.grant(now, given);
        self.meter_at_once(now);
        self.check();
    }

    /// Applies the quotas of an update.
    fn grant(&mut self, now: Instant, given: &[IeType]) {
        let unreported = self.unreported();
        let quotas = self.parameters.quotas;
        let mut granted = false;
        for ie in given {
            match *ie {
                IeType::VOLUME_QUOTA => {
                    self.quotas.volume = quotas.volume;
                    self.quota_usage.volume = unreported.volume;
                }
                IeType::TIME_QUOTA => {
                    self.quotas.time = quotas.time;
                    self.quota_usage.time = unreported.time;
                }
                IeType::EVENT_QUOTA => {
                    self.quotas.events = quotas.events;
                    self.quota_usage.events = unreported.events;
                }
                _ => continue,
            }
            granted = true;
        }
        if granted {
            // The holding time (§8.2.48) and the validity time (§8.2.132) belong to the quota, so
            // they start again with it.
            self.active = now;
            self.validity = self.parameters.validity.map(|validity| now + validity);
            // A quota that is exhausted at once and without usage is zero: it blocks without a
            // report.
            // A fraction of a second is not reported, and cannot exhaust any other time quota.
            let unused = unreported.volume.total() == 0
                && unreported.events == 0
                && unreported.time < Duration::from_secs(1);
            // With usage that already exceeds the quota, `check` blocks and triggers the report.
            self.blocked = unused && self.quotas.reached(&self.quota_usage);
        }
    }

    /// Returns the usage that has not been reported yet.
    fn unreported(&self) -> Counts {
        let mut sum = self.counts;
        for span in &self.spans {
            sum.add(span.counts.volume, span.counts.events);
            sum.time += span.counts.time;
        }
        sum
    }

    /// Computes the monitoring times, and skips those in the past.
    fn schedule_monitoring_times(&mut self, now: Instant, epoch: Epoch) {
        let monitoring_points = self.parameters.monitoring_points.iter();
        self.monitoring_points = monitoring_points
            // A time that is over has nothing left to divide.
            .filter_map(|moment| Some((epoch.instant(now, moment.at)?, moment.clone())))
            .collect();
    }

    /// Starts to count time without waiting for a packet, if the rule says so.
    fn meter_at_once(&mut self, now: Instant) {
        // ISTM starts the time measurement with the rule instead of with the first packet
        // (§8.2.68).
        if self.parameters.has(MeasurementInformation::ISTM) && self.counts_now() && !self.blocked {
            self.active = now;
            self.run_clock(now);
        }
    }

    fn run_clock(&mut self, now: Instant) {
        if self.parameters.measures(MeasurementMethod::DURAT) {
            // A clock that runs keeps the time up to which it has counted.
            self.clock.get_or_insert(now);
        }
    }

    /// Returns `true` unless the rule has made the last of its Number of Reports (§8.2.133).
    pub(super) fn may_report(&self) -> bool {
        self.reports_left != Some(0)
    }

    /// Returns `true` if usage is being measured.
    pub(super) fn counts_now(&self) -> bool {
        // Paused by SUMPC (§8.2.31), at the end of the Number of Reports (§8.2.133), or inactive by
        // INAM (§8.2.68). Traffic passes nevertheless.
        !self.paused && self.may_report() && !self.parameters.has(MeasurementInformation::INAM)
    }

    /// Pauses or resumes the measurement.
    pub(super) fn pause(&mut self, now: Instant, pause: bool) {
        // A rule that is not paused goes on: to resume it must not stop its clock.
        if self.paused == pause {
            return;
        }
        self.accrue_time(now);
        // After the pause the next packet starts the clock again, or ISTM does.
        self.clock = None;
        self.paused = pause;
        self.meter_at_once(now);
    }

    /// Counts the time up to `now`.
    fn accrue_time(&mut self, now: Instant) {
        let Some(since) = self.clock else {
            return;
        };
        // With an inactivity detection time, silence counts only up to that time.
        let end = match self.parameters.inactivity {
            Some(silence) => now.min(self.active + silence),
            None => now,
        };
        // `end` is before `since` after an update to a shorter detection time; nothing is counted
        // then.
        let passed = end.saturating_duration_since(since);
        self.counts.time += passed;
        self.threshold_usage.time += passed;
        self.quota_usage.time += passed;
        let silent = self
            .parameters
            .inactivity
            .is_some_and(|silence| now >= self.active + silence);
        // `max`, because a clock that went back would count the same time twice.
        self.clock = (!silent && self.counts_now()).then_some(now.max(since));
    }

    /// Counts traffic that the rule measures.
    pub(super) fn count(&mut self, at: Instant, epoch: Epoch, volume: Volume, events: u64) {
        if !self.counts_now() {
            return;
        }
        // The order matters: the silence before this packet is measured from the packet before it,
        // and only then does this packet become the last one and restart a clock that silence
        // stopped.
        self.accrue_time(at);
        self.run_clock(at);
        self.active = at;
        self.inactivity_reported = false;
        self.first.get_or_insert(at);
        self.last = Some(at);
        // START is due for the first packet, and for the first one after a stop (§8.2.41).
        if !std::mem::replace(&mut self.flowing, true)
            && self.parameters.wants(ReportingTriggers::START)
        {
            self.pending_notes = self.pending_notes | UsageReportTrigger::START;
        }
        // Only what the Measurement Method names is measured (§8.2.40), even if a limit names more.
        let volume = match self.parameters.measures(MeasurementMethod::VOLUM) {
            true => volume,
            false => Volume::default(),
        };
        let events = match self.parameters.measures(MeasurementMethod::EVENT) {
            true => events,
            false => 0,
        };
        // The number of events is exact; only their times are limited.
        let stamps = usize::try_from(events).unwrap_or(EVENTS);
        let stamps = stamps.min(EVENTS.saturating_sub(self.events.len()));
        let stamp = TimeStamp(epoch.seconds(at));
        self.events.extend(std::iter::repeat_n(stamp, stamps));
        for counts in [
            &mut self.counts,
            &mut self.threshold_usage,
            &mut self.quota_usage,
        ] {
            counts.add(volume, events);
        }
        self.check();
    }

    /// Counts dropped downlink traffic.
    pub(super) fn count_dropped(&mut self, packets: u64, bytes: u64) {
        // Dropped traffic is not usage. It is counted for the Dropped DL Traffic Threshold alone
        // (§8.2.49).
        if !self.parameters.wants(ReportingTriggers::DROTH) || !self.counts_now() {
            return;
        }
        self.dropped.0 = self.dropped.0.saturating_add(packets);
        self.dropped.1 = self.dropped.1.saturating_add(bytes);
        let over = |limit: Option<u64>, count| limit.is_some_and(|limit| count >= limit);
        let (packets, bytes) = self.parameters.dropped;
        if over(packets, self.dropped.0) || over(bytes, self.dropped.1) {
            // Triggered again with each further packet until the report is made, which changes
            // nothing.
            self.trigger(UsageReportTrigger::DROTH);
        }
    }

    fn trigger(&mut self, trigger: UsageReportTrigger) {
        if self.may_report() {
            self.pending_triggers = self.pending_triggers | trigger;
        }
    }

    /// Triggers reports for the thresholds and quotas that are reached.
    fn check(&mut self) {
        use {ReportingTriggers as On, UsageReportTrigger as Now};
        let (limits, counts) = (self.thresholds, self.threshold_usage);
        for (reached, on, now) in [
            (limits.volume_reached(&counts), On::VOLTH, Now::VOLTH),
            (limits.time_reached(&counts), On::TIMTH, Now::TIMTH),
            (limits.events_reached(&counts), On::EVETH, Now::EVETH),
        ] {
            // A threshold without its trigger has no effect (§8.2.19).
            if reached && self.parameters.wants(on) {
                self.trigger(now);
            }
        }
        let (limits, counts) = (self.quotas, self.quota_usage);
        // A quota is reported once. Traffic is diverted until the next grant, and not counted.
        if self.blocked || !limits.reached(&counts) {
            return;
        }
        // A quota stops the traffic whether or not a report about it is wanted (§5.2.2.2).
        self.blocked = true;
        self.clock = None;
        for (reached, on, now) in [
            (limits.volume_reached(&counts), On::VOLQU, Now::VOLQU),
            (limits.time_reached(&counts), On::TIMQU, Now::TIMQU),
            (limits.events_reached(&counts), On::EVEQU, Now::EVEQU),
        ] {
            if reached && self.parameters.wants(on) {
                self.trigger(now);
            }
        }
    }

    /// Handles everything that is due at `now`. Must be called at each [`UrrState::deadline`].
    pub(super) fn due(&mut self, now: Instant, idle_timeout: Duration) {
        use {ReportingTriggers as On, UsageReportTrigger as Now};
        self.accrue_time(now);
        self.check();
        // Each branch moves or removes its own deadline; the loop in `UsageMeter::handle_timeout`
        // would not end otherwise.
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let trigger_if = |rule: &mut Self, on, trigger| {
            if rule.parameters.wants(on) {
                rule.trigger(trigger);
            }
        };
        if is_due(self.period) {
            // From the deadline and not from the call, since the caller steps through deadlines; no
            // drift.
            self.period = self.parameters.period.map(|period| now + period);
            trigger_if(self, On::PERIO, Now::PERIO);
        }
        if is_due(self.validity) {
            // Reported once (QUVTI, §8.2.41). A new quota starts a new validity time.
            self.validity = None;
            trigger_if(self, On::QUVTI, Now::QUVTI);
        }
        if is_due(self.quota_holding_ends()) {
            // The rest of the quota is returned with this report, so no traffic may use it
            // (§8.2.48).
            self.blocked = true;
            self.clock = None;
            trigger_if(self, On::QUHTI, Now::QUHTI);
        }
        if is_due(self.inactive_at()) {
            // Once for each silence (UPINT, §8.2.41); the next packet clears it.
            self.inactivity_reported = true;
            trigger_if(self, On::UPINT, Now::UPINT);
        }
        if is_due(self.stops_at(idle_timeout)) {
            // Even if STOPT is not requested: the next packet is a start (§8.2.41).
            self.flowing = false;
            if self.parameters.wants(On::STOPT) && self.may_report() {
                self.pending_notes = self.pending_notes | Now::STOPT;
            }
        }
        // Several may have the same time.
        while is_due(self.next_monitoring_time()) {
            self.pass_monitoring_time(now);
        }
    }

    /// Sets aside the usage before a monitoring time.
    fn pass_monitoring_time(&mut self, now: Instant) {
        let Some((_, moment)) = self.monitoring_points.pop_front() else {
            return;
        };
        // The usage before a monitoring time is reported apart, but not until something triggers a
        // report (§8.2.15).
        // The span is reported in whole seconds; the fraction goes on counting.
        let fraction = subsecond_part(self.counts.time);
        self.counts.time -= fraction;
        self.spans.push(MeasuredSpan {
            counts: self.counts,
            started: self.started,
            ended: now,
            first: self.first.take(),
            last: self.last.take(),
        });
        self.counts = Counts {
            time: fraction,
            ..Counts::default()
        };
        self.started = now;
        // Without a subsequent threshold or quota, the remainder of the previous one stays in
        // effect.
        if moment.thresholds.volume.is_some() {
            self.thresholds.volume = moment.thresholds.volume;
            self.threshold_usage.volume = Volume::default();
        }
        if moment.thresholds.time.is_some() {
            self.thresholds.time = moment.thresholds.time;
            self.threshold_usage.time = Duration::ZERO;
        }
        if moment.thresholds.events.is_some() {
            self.thresholds.events = moment.thresholds.events;
            self.threshold_usage.events = 0;
        }
        if moment.quotas.volume.is_some() {
            self.quotas.volume = moment.quotas.volume;
            self.quota_usage.volume = Volume::default();
        }
        if moment.quotas.time.is_some() {
            self.quotas.time = moment.quotas.time;
            self.quota_usage.time = Duration::ZERO;
        }
        if moment.quotas.events.is_some() {
            self.quotas.events = moment.quotas.events;
            self.quota_usage.events = 0;
        }
        // A subsequent quota is a grant: traffic passes again, unless the quota is zero.
        if !moment.quotas.is_empty() {
            self.active = now;
            self.blocked = self.quotas.reached(&self.quota_usage);
        }
    }

    /// Returns the time at which something is due if no packet arrives before.
    pub(super) fn deadline(&self, idle_timeout: Duration) -> Option<Instant> {
        [
            self.period,
            self.validity,
            self.quota_holding_ends(),
            self.inactive_at(),
            self.stops_at(idle_timeout),
            self.next_monitoring_time(),
            self.time_reached_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn quota_holding_ends(&self) -> Option<Instant> {
        let holding = self.parameters.holding?;
        // Without a quota there is nothing to return, and a blocked rule has returned it.
        (!self.blocked && !self.quotas.is_empty()).then(|| self.active + holding)
    }

    fn inactive_at(&self) -> Option<Instant> {
        let idle = self.parameters.idle?;
        (!self.inactivity_reported).then(|| self.active + idle)
    }

    fn stops_at(&self, idle_timeout: Duration) -> Option<Instant> {
        let wanted = self.parameters.wants(ReportingTriggers::START)
            || self.parameters.wants(ReportingTriggers::STOPT);
        // The Inactivity Detection Time (§8.2.18), if given, is the control plane's own measure of
        // silence.
        let after = self.parameters.inactivity.unwrap_or(idle_timeout);
        // No deadline for rules without these triggers, which are most: a timer for nothing costs a
        // wake-up.
        (self.flowing && wanted).then(|| self.active + after)
    }

    fn next_monitoring_time(&self) -> Option<Instant> {
        self.monitoring_points.front().map(|(at, _)| *at)
    }

    /// Returns the time at which the counted time reaches a threshold or quota.
    fn time_reached_at(&self) -> Option<Instant> {
        let since = self.clock?;
        let left = |limit: Option<Duration>, count: Duration| {
            // The report for a value that has been reached is pending already.
            limit
                .and_then(|limit| limit.checked_sub(count))
                .filter(|left| !left.is_zero())
        };
        // A quota counts without its trigger, a threshold does not.
        let threshold = left(self.thresholds.time, self.threshold_usage.time)
            .filter(|_| self.parameters.wants(ReportingTriggers::TIMTH));
        let quota = left(self.quotas.time, self.quota_usage.time);
        let at = since + threshold.into_iter().chain(quota).min()?;
        // If the traffic falls silent before, the clock stops first.
        let silent_at = self
            .parameters
            .inactivity
            .map(|silence| self.active + silence);
        silent_at.is_none_or(|silent| at <= silent).then_some(at)
    }

    /// Returns the pending report, preceded by those of the usage that was set aside, and restarts
    /// the counters.
    pub(super) fn report(
        &mut self,
        id: UrrId,
        now: Instant,
        epoch: Epoch,
        trigger: UsageReportTrigger,
    ) -> Vec<UsageReportRequest> {
        self.accrue_time(now);
        // The caller has put the pending triggers into `trigger`.
        self.pending_triggers = UsageReportTrigger::NONE;
        // UBE says that the usage was measured before QoS enforcement, BEF and AFT on which side of
        // a monitoring time it was (§8.2.59).
        let mut information = match self.parameters.has(MeasurementInformation::MBQE) {
            true => UsageInformation::UBE,
            false => UsageInformation::NONE,
        };
        let mut reports = Vec::with_capacity(1 + self.spans.len());
        for span in std::mem::take(&mut self.spans) {
            // One report for each span, with MONIT (§8.2.41), and numbers before that of the last
            // one.
            let before = information | UsageInformation::BEF;
            let monitored = UsageReportTrigger::MONIT;
            reports.push(self.written(id, epoch, monitored, &span, before));
        }
        if !reports.is_empty() {
            information = information | UsageInformation::AFT;
        }
        let rest = MeasuredSpan {
            counts: self.counts,
            started: self.started,
            ended: now,
            first: self.first.take(),
            last: self.last.take(),
        };
        let mut report = self.written(id, epoch, trigger, &rest, information);
        // The events of all spans: their times tell them apart.
        report.event_time_stamps = std::mem::take(&mut self.events).into();
        reports.push(report);
        self.counts = Counts {
            time: subsecond_part(self.counts.time),
            ..Counts::default()
        };
        // Thresholds start again with each report, whatever triggered it (§5.2.2.2). Quotas do not.
        self.threshold_usage = Counts::default();
        self.dropped = (0, 0);
        self.started = now;
        // A queried report answers the control plane, and is not one that the rule made by itself.
        if trigger != UsageReportTrigger::IMMER {
            self.count_report();
        }
        reports
    }

    fn count_report(&mut self) {
        if let Some(left) = &mut self.reports_left {
            *left = left.saturating_sub(1);
        }
    }

    /// Returns the pending reports without measurements.
    pub(super) fn take_unmeasured_reports(&mut self, id: UrrId) -> Vec<UsageReportRequest> {
        let pending_notes = std::mem::take(&mut self.pending_notes);
        let mut notes = Vec::new();
        // In this order, although a stop may have come first: both became due since the last flush.
        // Each is a report of its own and has its own number.
        for trigger in [UsageReportTrigger::START, UsageReportTrigger::STOPT] {
            if pending_notes.contains(trigger) && self.may_report() {
                self.count_report();
                notes.push(UsageReportRequest::new(id, self.next_number(), trigger));
            }
        }
        notes
    }

    fn next_number(&mut self) -> UrSeqn {
        let number = UrSeqn(self.number);
        // UR-SEQN counts the reports of one rule from zero (§8.2.71).
        self.number = self.number.wrapping_add(1);
        number
    }

    fn written(
        &mut self,
        id: UrrId,
        epoch: Epoch,
        trigger: UsageReportTrigger,
        span: &MeasuredSpan,
        information: UsageInformation,
    ) -> UsageReportRequest {
        let mut report = UsageReportRequest::new(id, self.next_number(), trigger)
            .start_time(StartTime(epoch.seconds(span.started)))
            .end_time(EndTime(epoch.seconds(span.ended)));
        // Zero is reported as well: no usage is a measurement, no element is none.
        if self.parameters.measures(MeasurementMethod::VOLUM) {
            let volume = span.counts.volume;
            // Numbers of packets only on request (MNOP, §8.2.68).
            let packets = self.parameters.has(MeasurementInformation::MNOP);
            let packets = |count: u64| packets.then_some(count);
            report.volume_measurement = Some(VolumeMeasurement {
                total_volume: Some(volume.total()),
                uplink_volume: Some(volume.uplink),
                downlink_volume: Some(volume.downlink),
                total_packets: packets(volume.uplink_packets + volume.downlink_packets),
                uplink_packets: packets(volume.uplink_packets),
                downlink_packets: packets(volume.downlink_packets),
            });
        }
        if self.parameters.measures(MeasurementMethod::DURAT) {
            // Rounded down; see `subsecond_part` for the rest.
            let seconds = u32::try_from(span.counts.time.as_secs()).unwrap_or(u32::MAX);
            report = report.duration_measurement(seconds);
        }
        let stamp = |at: Option<Instant>| at.map(|at| epoch.seconds(at));
        report.time_of_first_packet = stamp(span.first).map(TimeOfFirstPacket);
        report.time_of_last_packet = stamp(span.last).map(TimeOfLastPacket);
        report.usage_information = (!information.is_empty()).then_some(information);
        report
    }
}

/// Returns the fraction of a second. It is included in a later report, so that no time is lost.
fn subsecond_part(time: Duration) -> Duration {
    Duration::from_nanos(time.subsec_nanos().into())
}
