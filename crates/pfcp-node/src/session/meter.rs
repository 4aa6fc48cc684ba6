//! The counting of a session, and its reports on their way.
//!
//! It is kept beside the actor, so that a panic loses nothing that was counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use strowger::{Context, TimerKey};
use strowger_pfcp::session::RuleSet;
use strowger_pfcp::usage::{Detector, Epoch, Finals, Usage, UsageLimits, Verdict};
use strowger_pfcp::{Frame, Seid};

use super::{Session, SessionMsg};
use crate::config::NodeConfig;
use crate::data_path::Span;
use crate::endpoint::Outgoing;
use crate::shared::{Shared, add, add_many};
use crate::store::{SessionRecord, milliseconds_now};

/// What one session has counted, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    usage: Usage,
    /// Until when traffic was counted.
    seen: Instant,
    detectors: Vec<Detector>,
}

/// Whether a session was there before its counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumed {
    Yes,
    No,
}

/// A meter, shared by the incarnations of a session.
pub(crate) type Kept = Arc<Mutex<Meter>>;

/// What an actor has of its meter.
#[derive(Debug)]
pub(super) struct Metered {
    kept: Kept,
    timer: Option<(Instant, TimerKey)>,
}

impl Meter {
    /// Starts to count; `resumed` says that the session was there before, in another process.
    fn new(now: Instant, shared: &Shared, rules: &RuleSet, resumed: Resumed) -> Self {
        let since_1970 = Duration::from_millis(milliseconds_now());
        let epoch = Epoch::new(now, since_1970 + SINCE_1900);
        let limits = usage_limits(&shared.config);
        let usage = match resumed {
            Resumed::No => Usage::new(now, epoch, limits, rules),
            Resumed::Yes => Usage::resumed(now, epoch, limits, rules),
        };
        Self {
            detectors: usage.detectors(),
            usage,
            seen: now,
        }
    }

    /// Counts the traffic until `now`; says whether that was all of it.
    fn advance(&mut self, now: Instant, seid: Seid, shared: &Shared) -> bool {
        let until = now.min(self.seen + AT_ONCE);
        let after = std::mem::replace(&mut self.seen, until);
        let span = Span { after, until };
        for (at, traffic) in shared.data_path.traffic(seid, &self.detectors, span) {
            let verdict = self.usage.handle_traffic(at.clamp(after, until), traffic);
            let counter = match verdict {
                Verdict::Forwarded => &shared.counters.forwarded,
                Verdict::Buffered => &shared.counters.buffered,
                Verdict::Dropped => &shared.counters.dropped_octets,
            };
            add_many(counter, traffic.octets);
        }
        self.usage.handle_timeout(until);
        until == now
    }

    /// Notes that the report that is on its way will have no answer.
    pub(crate) fn unanswered(&mut self, now: Instant) {
        self.usage.handle_no_answer(now.max(self.seen));
    }

    /// When to look again.
    fn next(&self, seid: Seid, shared: &Shared) -> Option<Instant> {
        let due = self.usage.poll_timeout();
        let traffic = shared.data_path.next(seid, &self.detectors, self.seen);
        due.into_iter().chain(traffic).min()
    }
}

/// The bounds and times of usage reporting.
fn usage_limits(config: &NodeConfig) -> UsageLimits {
    let span = config.timers.t1.saturating_mul(config.timers.n1);
    UsageLimits {
        waiting: config.limits.usage_reports,
        // The transactions say what became of a request; this is for when nobody says it.
        patience: span * 2 + Duration::from_secs(1),
        retry: config.timers.t1,
        buffer: config.limits.buffered_packets as u64,
        ..UsageLimits::default()
    }
}

impl Session {
    /// Finds the meter of an earlier incarnation, or makes one if the rules need it.
    pub(super) fn meter_for(
        shared: &Arc<Shared>,
        seid: Seid,
        live: Option<&Arc<SessionRecord>>,
        now: Instant,
        resumed: Resumed,
    ) -> Option<Box<Metered>> {
        let rules = &live?.rules;
        if !Usage::concerns(rules) {
            return None;
        }
        let mut meters = shared.meters.lock();
        let new = || Arc::new(Mutex::new(Meter::new(now, shared, rules, resumed)));
        let kept = Arc::clone(meters.entry(seid).or_insert_with(new));
        Some(Box::new(Metered { kept, timer: None }))
    }

    /// Counts what passed until now.
    pub(super) fn advance(&self, now: Instant) {
        let Some(metered) = &self.metered else {
            return;
        };
        let mut meter = metered.kept.lock();
        while !meter.advance(now, self.seid, &self.shared) {}
    }

    /// Works out what a change of the rules does to the counting, without doing it.
    pub(super) fn metered_change(
        &self,
        now: Instant,
        rules: &RuleSet,
        requests: &[&Frame<'_>],
    ) -> Option<(Meter, Finals)> {
        let metered = self.metered.as_ref()?;
        let mut meter = metered.kept.lock().clone();
        let finals = meter.usage.modify(now, rules, requests);
        meter.detectors = meter.usage.detectors();
        Some((meter, finals))
    }

    /// Takes over what the counting is after a change of the rules that was accepted.
    pub(super) fn metered_commit(&mut self, now: Instant, change: Option<(Meter, Finals)>) {
        let Some(((meter, finals), metered)) = change.zip(self.metered.as_ref()) else {
            let live = self.live.as_ref();
            self.metered = Self::meter_for(&self.shared, self.seid, live, now, Resumed::No);
            return;
        };
        add_many(&self.shared.counters.usage_reports, finals.reports as u64);
        if let Some(live) = &self.live {
            self.shared.bulletin.usage(live, &finals.elements);
        }
        let over = meter.usage.is_over();
        *metered.kept.lock() = meter;
        if over {
            self.metered = None;
            self.shared.meters.lock().remove(&self.seid);
        }
    }

    /// Notes that the peer calls the session otherwise: what is on its way is told again under the
    /// new name.
    pub(super) fn metered_renamed(&self, now: Instant) {
        if let Some(metered) = &self.metered {
            metered.kept.lock().unanswered(now);
        }
    }

    /// The last reports of a session that is deleted.
    pub(super) fn finals(&self, now: Instant) -> Finals {
        let metered = self.metered.as_ref();
        metered.map_or_else(Finals::default, |metered| {
            let meter = metered.kept.lock().clone();
            meter.usage.finish(now)
        })
    }

    /// Forgets the counting of a session that was deleted; returns the reports that its answer had
    /// no room for and announces.
    pub(super) fn metered_end(
        &mut self,
        record: &SessionRecord,
        finals: Finals,
    ) -> Box<[Outgoing]> {
        if self.metered.take().is_none() {
            return Box::default();
        }
        self.shared.meters.lock().remove(&self.seid);
        add_many(&self.shared.counters.usage_reports, finals.reports as u64);
        self.shared.bulletin.usage(record, &finals.elements);
        let more = finals.more.into_iter();
        more.map(|body| self.outgoing(record, body)).collect()
    }

    /// Takes the outcome of a report: the answer, if there was one.
    pub(super) fn reported(&self, now: Instant, answer: Option<&[u8]>) {
        let Some(metered) = &self.metered else {
            return;
        };
        let counters = &self.shared.counters;
        let frame = answer.and_then(|octets| Frame::decode(octets).ok());
        let mut meter = metered.kept.lock();
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

    /// Sends what is to be told, and sees to it that the session is called when something is due.
    pub(super) async fn settle(&mut self, now: Instant, cx: &mut Context<Self>) {
        let Some(live) = self.live.clone() else {
            return;
        };
        let request = self.metered.as_ref().and_then(|metered| {
            let mut meter = metered.kept.lock();
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
        let next = metered.kept.lock().next(self.seid, &self.shared);
        let Some(wanted) = next else {
            return;
        };
        match metered.timer {
            Some((at, _)) if at <= wanted => return,
            Some((_, timer)) => _ = cx.cancel(timer),
            None => {}
        }
        let timer = cx.send_after(wanted.saturating_duration_since(now), SessionMsg::Due);
        metered.timer = Some((wanted, timer));
    }

    /// Notes that the timer ended.
    pub(super) fn timer_ended(&mut self) {
        if let Some(metered) = &mut self.metered {
            metered.timer = None;
        }
    }

    /// Gives a report to the endpoint; false if there is none.
    async fn send_report(&self, record: &SessionRecord, body: Vec<u8>) -> bool {
        let endpoint = self.shared.endpoint.lock().clone();
        let Some(endpoint) = endpoint else {
            return false;
        };
        let outgoing = self.outgoing(record, body);
        endpoint.tell(outgoing).await.is_ok()
    }

    /// Makes a report that is to be sent, and tells of it.
    fn outgoing(&self, record: &SessionRecord, body: Vec<u8>) -> Outgoing {
        add(&self.shared.counters.reports_sent);
        self.shared.bulletin.usage(record, &body);
        Outgoing {
            seid: self.seid,
            peer_seid: record.peer_seid,
            body,
        }
    }
}

/// From 1900 to 1970.
const SINCE_1900: Duration = Duration::from_secs(2_208_988_800);
/// How much time is counted in one step, so that a step is short.
const AT_ONCE: Duration = Duration::from_secs(10);
