//! One usage reporting rule: what it has counted, and when it has to report.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::count::{Counts, Epoch, Marks, Volume};
use super::setting::{Moment, Setting};
use crate::ie::{
    EndTime, IeType, MeasurementInformation, MeasurementMethod, ReportingTriggers, StartTime,
    TimeOfFirstPacket, TimeOfLastPacket, TimeStamp, UrSeqn, UrrId, UsageInformation,
    UsageReportRequest, UsageReportTrigger, VolumeMeasurement,
};

/// The state of a rule.
///
/// Everything is counted three times: since the last report, towards the thresholds, and towards
/// the quotas. A report starts the first two again; a quota is spent over many reports, until
/// another one is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) setting: Setting,
    /// Since the last report, or since the last monitoring time.
    counts: Counts,
    /// What was counted up to monitoring times, to be told with the next report.
    parts: Vec<Part>,
    thresholds: Marks,
    toward: Counts,
    quotas: Marks,
    spent: Counts,
    /// Says that a quota is used up, or given back: no traffic passes.
    pub(super) blocked: bool,
    /// Until when time was counted; `None` while it is not.
    clock: Option<Instant>,
    /// Since when the counts count.
    started: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
    /// When the last packet came, or what waits for packets began to wait.
    active: Instant,
    /// Packets come; their end is to be told.
    flowing: bool,
    /// That no packet comes was told.
    idle_told: bool,
    /// Dropped downlink packets and octets since the last report.
    dropped: (u64, u64),
    /// When events happened.
    events: Vec<TimeStamp>,
    period: Option<Instant>,
    validity: Option<Instant>,
    /// The monitoring times to come, and what holds after them.
    moments: VecDeque<(Instant, Moment)>,
    /// What the next report is made for.
    pub(super) owed: UsageReportTrigger,
    /// What is told without figures: that packets begin or cease to come.
    pub(super) noted: UsageReportTrigger,
    number: u32,
    reports_left: Option<u16>,
    /// Counting is paused by the control plane.
    paused: bool,
}

/// What was counted up to a monitoring time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    counts: Counts,
    started: Instant,
    ended: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// How many times of events a report tells.
const EVENTS: usize = 256;

impl Rule {
    pub(super) fn new(now: Instant, epoch: Epoch, setting: Setting) -> Self {
        let mut rule = Self {
            counts: Counts::default(),
            parts: Vec::new(),
            thresholds: setting.thresholds,
            toward: Counts::default(),
            quotas: setting.quotas,
            spent: Counts::default(),
            blocked: false,
            clock: None,
            started: now,
            first: None,
            last: None,
            active: now,
            flowing: false,
            idle_told: false,
            dropped: (0, 0),
            events: Vec::new(),
            period: setting.period.map(|period| now + period),
            validity: setting.validity.map(|validity| now + validity),
            owed: UsageReportTrigger::NONE,
            noted: UsageReportTrigger::NONE,
            number: 0,
            reports_left: setting.reports,
            paused: false,
            moments: VecDeque::new(),
            setting,
        };
        rule.look_ahead(now, epoch);
        // A quota of nothing blocks from the start, and there is nothing to report.
        rule.blocked = rule.quotas.reached(&rule.spent);
        rule.meter_at_once(now);
        rule
    }

    /// Goes on after a restart that forgot which numbers were used: none of those comes again.
    pub(super) fn resume(&mut self, number: u32) {
        self.number = number;
    }

    /// Takes over what an update says; `given` are the types of its elements.
    ///
    /// A quota that is given again is a new one, even of the same size: what was used since the
    /// last report counts towards it, because nobody who gave it knew of that.
    pub(super) fn update(
        &mut self,
        now: Instant,
        epoch: Epoch,
        setting: Setting,
        given: &[IeType],
    ) {
        let has = |ie| given.contains(&ie);
        self.accrue(now);
        self.setting = setting;
        if has(IeType::MONITORING_TIME) || has(IeType::ADDITIONAL_MONITORING_TIME) {
            self.look_ahead(now, epoch);
        }
        if has(IeType::VOLUME_THRESHOLD) {
            self.thresholds.volume = self.setting.thresholds.volume;
        }
        if has(IeType::TIME_THRESHOLD) {
            self.thresholds.time = self.setting.thresholds.time;
        }
        if has(IeType::EVENT_THRESHOLD) {
            self.thresholds.events = self.setting.thresholds.events;
        }
        if has(IeType::MEASUREMENT_PERIOD) || self.period.is_some() != self.setting.period.is_some()
        {
            self.period = self.setting.period.map(|period| now + period);
        }
        if has(IeType::NUMBER_OF_REPORTS) {
            self.reports_left = self.setting.reports;
        }
        if has(IeType::QUOTA_VALIDITY_TIME) {
            self.validity = self.setting.validity.map(|validity| now + validity);
        }
        self.grant(now, given);
        self.meter_at_once(now);
        self.check();
    }

    /// Takes over the quotas that were given.
    fn grant(&mut self, now: Instant, given: &[IeType]) {
        let unreported = self.unreported();
        let quotas = self.setting.quotas;
        let mut granted = false;
        for ie in given {
            match *ie {
                IeType::VOLUME_QUOTA => {
                    self.quotas.volume = quotas.volume;
                    self.spent.volume = unreported.volume;
                }
                IeType::TIME_QUOTA => {
                    self.quotas.time = quotas.time;
                    self.spent.time = unreported.time;
                }
                IeType::EVENT_QUOTA => {
                    self.quotas.events = quotas.events;
                    self.spent.events = unreported.events;
                }
                _ => continue,
            }
            granted = true;
        }
        if granted {
            self.active = now;
            self.validity = self.setting.validity.map(|validity| now + validity);
            // What is used up at once and without use was a quota of nothing: no report.
            let unused = unreported.volume.total() == 0 && unreported.events == 0;
            self.blocked = unused && self.quotas.reached(&self.spent);
        }
    }

    /// What no report has told yet.
    fn unreported(&self) -> Counts {
        let mut sum = self.counts;
        for part in &self.parts {
            sum.add(part.counts.volume, part.counts.events);
            sum.time += part.counts.time;
        }
        sum
    }

    /// Works out when the monitoring times are; those that have passed do not matter.
    fn look_ahead(&mut self, now: Instant, epoch: Epoch) {
        let moments = self.setting.moments.iter();
        self.moments = moments
            .filter_map(|moment| Some((epoch.instant(now, moment.at)?, moment.clone())))
            .collect();
    }

    /// Starts to count time without waiting for a packet, if the rule says so.
    fn meter_at_once(&mut self, now: Instant) {
        if self.setting.says(MeasurementInformation::ISTM) && self.counts_now() && !self.blocked {
            self.active = now;
            self.run_clock(now);
        }
    }

    fn run_clock(&mut self, now: Instant) {
        if self.setting.measures(MeasurementMethod::DURAT) {
            self.clock.get_or_insert(now);
        }
    }

    /// Says that traffic is counted at present.
    pub(super) fn counts_now(&self) -> bool {
        !self.paused
            && self.reports_left != Some(0)
            && !self.setting.says(MeasurementInformation::INAM)
    }

    /// Pauses counting, or goes on with it.
    pub(super) fn pause(&mut self, now: Instant, pause: bool) {
        self.accrue(now);
        self.clock = None;
        self.paused = pause;
    }

    /// Counts the time up to `now`.
    fn accrue(&mut self, now: Instant) {
        let Some(since) = self.clock else {
            return;
        };
        let end = match self.setting.inactivity {
            Some(silence) => now.min(self.active + silence),
            None => now,
        };
        let passed = end.saturating_duration_since(since);
        self.counts.time += passed;
        self.toward.time += passed;
        self.spent.time += passed;
        let silent = self
            .setting
            .inactivity
            .is_some_and(|silence| now >= self.active + silence);
        self.clock = (!silent && self.counts_now()).then_some(now.max(since));
    }

    /// Counts traffic that passed.
    pub(super) fn count(&mut self, at: Instant, epoch: Epoch, volume: Volume, events: u64) {
        if !self.counts_now() {
            return;
        }
        self.accrue(at);
        self.run_clock(at);
        self.active = at;
        self.idle_told = false;
        self.first.get_or_insert(at);
        self.last = Some(at);
        if !std::mem::replace(&mut self.flowing, true)
            && self.setting.wants(ReportingTriggers::START)
        {
            self.noted = self.noted | UsageReportTrigger::START;
        }
        let volume = match self.setting.measures(MeasurementMethod::VOLUM) {
            true => volume,
            false => Volume::default(),
        };
        let events = match self.setting.measures(MeasurementMethod::EVENT) {
            true => events,
            false => 0,
        };
        let stamps = usize::try_from(events).unwrap_or(EVENTS);
        let stamps = stamps.min(EVENTS.saturating_sub(self.events.len()));
        let stamp = TimeStamp(epoch.seconds(at));
        self.events.extend(std::iter::repeat_n(stamp, stamps));
        for counts in [&mut self.counts, &mut self.toward, &mut self.spent] {
            counts.add(volume, events);
        }
        self.check();
    }

    /// Counts traffic to the user that was dropped.
    pub(super) fn count_dropped(&mut self, packets: u64, octets: u64) {
        if !self.setting.wants(ReportingTriggers::DROTH) || !self.counts_now() {
            return;
        }
        self.dropped.0 = self.dropped.0.saturating_add(packets);
        self.dropped.1 = self.dropped.1.saturating_add(octets);
        let over = |mark: Option<u64>, count| mark.is_some_and(|mark| count >= mark);
        let (packets, octets) = self.setting.dropped;
        if over(packets, self.dropped.0) || over(octets, self.dropped.1) {
            self.owe(UsageReportTrigger::DROTH);
        }
    }

    fn owe(&mut self, trigger: UsageReportTrigger) {
        self.owed = self.owed | trigger;
    }

    /// Finds out which marks are reached.
    fn check(&mut self) {
        use {ReportingTriggers as On, UsageReportTrigger as Now};
        let (marks, counts) = (self.thresholds, self.toward);
        for (reached, on, now) in [
            (marks.volume_reached(&counts), On::VOLTH, Now::VOLTH),
            (marks.time_reached(&counts), On::TIMTH, Now::TIMTH),
            (marks.events_reached(&counts), On::EVETH, Now::EVETH),
        ] {
            if reached && self.setting.wants(on) {
                self.owe(now);
            }
        }
        let (marks, counts) = (self.quotas, self.spent);
        if self.blocked || !marks.reached(&counts) {
            return;
        }
        self.blocked = true;
        self.clock = None;
        for (reached, on, now) in [
            (marks.volume_reached(&counts), On::VOLQU, Now::VOLQU),
            (marks.time_reached(&counts), On::TIMQU, Now::TIMQU),
            (marks.events_reached(&counts), On::EVEQU, Now::EVEQU),
        ] {
            if reached && self.setting.wants(on) {
                self.owe(now);
            }
        }
    }

    /// Does what is due at `now`; to be called at each [`Rule::deadline`].
    pub(super) fn due(&mut self, now: Instant, stop_after: Duration) {
        use {ReportingTriggers as On, UsageReportTrigger as Now};
        self.accrue(now);
        self.check();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let owe_if = |rule: &mut Self, on, trigger| {
            if rule.setting.wants(on) {
                rule.owe(trigger);
            }
        };
        if is_due(self.period) {
            self.period = self.setting.period.map(|period| now + period);
            owe_if(self, On::PERIO, Now::PERIO);
        }
        if is_due(self.validity) {
            self.validity = None;
            owe_if(self, On::QUVTI, Now::QUVTI);
        }
        if is_due(self.holding_ends()) {
            self.blocked = true;
            self.clock = None;
            owe_if(self, On::QUHTI, Now::QUHTI);
        }
        if is_due(self.idle_from()) {
            self.idle_told = true;
            owe_if(self, On::UPINT, Now::UPINT);
        }
        if is_due(self.stops_at(stop_after)) {
            self.flowing = false;
            if self.setting.wants(On::STOPT) {
                self.noted = self.noted | Now::STOPT;
            }
        }
        while is_due(self.moment_at()) {
            self.pass_moment(now);
        }
    }

    /// Sets aside what was counted before a monitoring time.
    fn pass_moment(&mut self, now: Instant) {
        let Some((_, moment)) = self.moments.pop_front() else {
            return;
        };
        self.parts.push(Part {
            counts: self.counts,
            started: self.started,
            ended: now,
            first: self.first.take(),
            last: self.last.take(),
        });
        self.counts = Counts {
            time: fraction(self.counts.time),
            ..Counts::default()
        };
        self.started = now;
        // Without a mark for the time after it, what is left of the old one holds.
        if moment.thresholds.volume.is_some() {
            self.thresholds.volume = moment.thresholds.volume;
            self.toward.volume = Volume::default();
        }
        if moment.thresholds.time.is_some() {
            self.thresholds.time = moment.thresholds.time;
            self.toward.time = Duration::ZERO;
        }
        if moment.thresholds.events.is_some() {
            self.thresholds.events = moment.thresholds.events;
            self.toward.events = 0;
        }
        if moment.quotas.volume.is_some() {
            self.quotas.volume = moment.quotas.volume;
            self.spent.volume = Volume::default();
        }
        if moment.quotas.time.is_some() {
            self.quotas.time = moment.quotas.time;
            self.spent.time = Duration::ZERO;
        }
        if moment.quotas.events.is_some() {
            self.quotas.events = moment.quotas.events;
            self.spent.events = 0;
        }
        if !moment.quotas.is_empty() {
            self.active = now;
            self.blocked = self.quotas.reached(&self.spent);
        }
    }

    /// Returns when something is due, if no packet comes before.
    pub(super) fn deadline(&self, stop_after: Duration) -> Option<Instant> {
        [
            self.period,
            self.validity,
            self.holding_ends(),
            self.idle_from(),
            self.stops_at(stop_after),
            self.moment_at(),
            self.time_reached_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn holding_ends(&self) -> Option<Instant> {
        let holding = self.setting.holding?;
        (!self.blocked && !self.quotas.is_empty()).then(|| self.active + holding)
    }

    fn idle_from(&self) -> Option<Instant> {
        let idle = self.setting.idle?;
        (!self.idle_told).then(|| self.active + idle)
    }

    fn stops_at(&self, stop_after: Duration) -> Option<Instant> {
        let told = self.setting.wants(ReportingTriggers::START)
            || self.setting.wants(ReportingTriggers::STOPT);
        let after = self.setting.inactivity.unwrap_or(stop_after);
        (self.flowing && told).then(|| self.active + after)
    }

    fn moment_at(&self) -> Option<Instant> {
        self.moments.front().map(|(at, _)| *at)
    }

    /// When the time that is counted reaches a mark.
    fn time_reached_at(&self) -> Option<Instant> {
        let since = self.clock?;
        let left = |mark: Option<Duration>, count: Duration| {
            // A mark that is reached already is owed a report already.
            mark.and_then(|mark| mark.checked_sub(count))
                .filter(|left| !left.is_zero())
        };
        let threshold = left(self.thresholds.time, self.toward.time)
            .filter(|_| self.setting.wants(ReportingTriggers::TIMTH));
        let quota = left(self.quotas.time, self.spent.time);
        let at = since + threshold.into_iter().chain(quota).min()?;
        let silent_at = self.setting.inactivity.map(|silence| self.active + silence);
        silent_at.is_none_or(|silent| at <= silent).then_some(at)
    }

    /// Makes the report that is owed, after those of what was set aside, and starts to count
    /// again.
    pub(super) fn report(
        &mut self,
        id: UrrId,
        now: Instant,
        epoch: Epoch,
        trigger: UsageReportTrigger,
    ) -> Vec<UsageReportRequest> {
        self.accrue(now);
        self.owed = UsageReportTrigger::NONE;
        let mut information = match self.setting.says(MeasurementInformation::MBQE) {
            true => UsageInformation::UBE,
            false => UsageInformation::NONE,
        };
        let mut reports = Vec::with_capacity(1 + self.parts.len());
        for part in std::mem::take(&mut self.parts) {
            let before = information | UsageInformation::BEF;
            let monitored = UsageReportTrigger::MONIT;
            reports.push(self.written(id, epoch, monitored, &part, before));
        }
        if !reports.is_empty() {
            information = information | UsageInformation::AFT;
        }
        let rest = Part {
            counts: self.counts,
            started: self.started,
            ended: now,
            first: self.first.take(),
            last: self.last.take(),
        };
        let mut report = self.written(id, epoch, trigger, &rest, information);
        report.event_time_stamps = std::mem::take(&mut self.events).into();
        reports.push(report);
        self.counts = Counts {
            time: fraction(self.counts.time),
            ..Counts::default()
        };
        self.toward = Counts::default();
        self.dropped = (0, 0);
        self.started = now;
        if let Some(left) = &mut self.reports_left
            && trigger != UsageReportTrigger::IMMER
        {
            *left = left.saturating_sub(1);
        }
        reports
    }

    /// Makes the reports without figures that are due.
    pub(super) fn notes(&mut self, id: UrrId) -> Vec<UsageReportRequest> {
        let noted = std::mem::take(&mut self.noted);
        let mut notes = Vec::new();
        for trigger in [UsageReportTrigger::START, UsageReportTrigger::STOPT] {
            if noted.contains(trigger) {
                notes.push(UsageReportRequest::new(id, self.next_number(), trigger));
            }
        }
        notes
    }

    fn next_number(&mut self) -> UrSeqn {
        let number = UrSeqn(self.number);
        self.number = self.number.wrapping_add(1);
        number
    }

    fn written(
        &mut self,
        id: UrrId,
        epoch: Epoch,
        trigger: UsageReportTrigger,
        part: &Part,
        information: UsageInformation,
    ) -> UsageReportRequest {
        let mut report = UsageReportRequest::new(id, self.next_number(), trigger)
            .start_time(StartTime(epoch.seconds(part.started)))
            .end_time(EndTime(epoch.seconds(part.ended)));
        if self.setting.measures(MeasurementMethod::VOLUM) {
            let volume = part.counts.volume;
            let packets = self.setting.says(MeasurementInformation::MNOP);
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
        if self.setting.measures(MeasurementMethod::DURAT) {
            let whole = u32::try_from(part.counts.time.as_secs()).unwrap_or(u32::MAX);
            report = report.duration_measurement(whole);
        }
        let stamp = |at: Option<Instant>| at.map(|at| epoch.seconds(at));
        report.time_of_first_packet = stamp(part.first).map(TimeOfFirstPacket);
        report.time_of_last_packet = stamp(part.last).map(TimeOfLastPacket);
        report.usage_information = (!information.is_empty()).then_some(information);
        report
    }
}

/// What is less than a second is told with a later report, so that no time is lost.
fn fraction(time: Duration) -> Duration {
    Duration::from_nanos(time.subsec_nanos().into())
}
