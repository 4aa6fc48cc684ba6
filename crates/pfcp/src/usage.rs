//! Usage reporting: what passes a session, counted and told, TS 29.244 §5.2.2.
//!
//! A [`Usage`] is the counting of one session. Traffic and time go in; reports come out, and the
//! next time at which something is due:
//!
//! ```text
//!  traffic ──▶ PDR ─▶ gates, quotas, FAR ─▶ URRs ── marks, periods, quotas ──▶ reports
//!                          │                                                     │
//!                      buffer ── first packet ──▶ downlink data report ──▶ poll_request
//! ```
//!
//! What was counted is told exactly once, and the numbers of a rule's reports have no gap: while
//! as many reports wait as may, a mark that is reached is remembered and counting goes on, so
//! that the next report tells more instead of being lost.
//!
//! Not measured, because nothing here looks into packets: envelopes, credit pools (Sxb), Ethernet
//! addresses, multicast groups. Rules that ask for them are kept and count the rest.

mod asked;
mod buffer;
mod count;
mod idle;
mod path;
mod rule;
mod sending;
mod setting;
mod tally;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use litemap::LiteMap;

use crate::ie::{
    ApplyAction, Ie, IeType, MeasurementInformation, PdrId, PfcpsmreqFlags, ReportingTriggers,
    UrrId, UsageReportTrigger,
};
use crate::session::{RuleKind, RuleSet};
use crate::wire::{Frame, Tlv};

pub use count::Epoch;
pub use sending::Settled;
pub use tally::{Arrival, Figures, Tally};

use asked::Asked;
use buffer::{Buffers, Kept};
use count::Volume;
use idle::{Idle, idle_after};
use path::{Action, Path, Paths};
use rule::Rule;
use sending::Sending;
use setting::Setting;

/// Packets that were detected at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The rule that detected them.
    pub pdr: PdrId,
    /// How many packets.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// How many events of an application happened in them.
    pub events: u64,
}

impl Traffic {
    fn join(&mut self, other: Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.octets = self.octets.saturating_add(other.octets);
        self.events = self.events.saturating_add(other.events);
    }
}

/// A rule that detects packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detector {
    /// Its name.
    pub pdr: PdrId,
    /// Whether the packets come from the user.
    pub uplink: bool,
}

/// What becomes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They go where they want to.
    Forwarded,
    /// They wait until the control plane says what to do.
    Buffered,
    /// They are gone.
    Dropped,
}

/// Bounds and times of usage reporting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLimits {
    /// How many usage reports of a session may wait. Beyond it they grow instead of becoming more.
    pub waiting: usize,
    /// How many octets of reports a message has.
    pub message: usize,
    /// How long a request may be without an outcome.
    pub patience: Duration,
    /// The pause after a request that was not answered; it doubles from one to the next.
    pub retry: Duration,
    /// How long no packet comes before traffic has stopped, where a rule does not say.
    pub stop_after: Duration,
    /// How many packets of a forwarding rule are buffered at most.
    pub buffer: u64,
}

impl Default for UsageLimits {
    fn default() -> Self {
        Self {
            waiting: 64,
            message: 8 * 1024,
            patience: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            stop_after: Duration::from_secs(60),
            buffer: 1024,
        }
    }
}

/// The usage reports that go with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finals {
    /// The elements for the answer: usage reports, and how many follow.
    pub elements: Vec<u8>,
    /// How many reports those are.
    pub reports: usize,
    /// Bodies of session reports with what did not fit.
    pub more: Vec<Vec<u8>>,
}

/// The counting of one session.
///
/// Time never goes backwards: every `now` is at or after the one before.
///
/// ```
/// use std::net::IpAddr;
/// use std::time::{Duration, Instant};
///
/// use strowger_pfcp::ie::{
///     ApplyAction, CreateFar, CreatePdr, CreateUrr, FSeid, MeasurementMethod, NodeId, Pdi, PdrId,
///     ReportingTriggers, SourceInterface, UrrId, VolumeThreshold,
/// };
/// use strowger_pfcp::message::SessionEstablishmentRequest;
/// use strowger_pfcp::session::{NoAllocator, RuleSet};
/// use strowger_pfcp::usage::{Epoch, Traffic, Usage, UsageLimits, Verdict};
/// use strowger_pfcp::{Frame, Message, Seid, Sequence};
///
/// let address = IpAddr::from([127, 0, 0, 7]);
/// let urr = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
///     .volume_threshold(VolumeThreshold::total(1000));
/// let pdr = CreatePdr::new(1, Pdi::new(SourceInterface::ACCESS)).far_id(1).urr_ids([UrrId(1)]);
/// let body = SessionEstablishmentRequest::new(NodeId::fqdn("smf"), FSeid::new(Seid(1), address))
///     .create_pdrs([pdr])
///     .create_fars([CreateFar::new(1, ApplyAction::FORW)])
///     .create_urrs([urr]);
/// let octets = Message::session(Seid(0), Sequence::new(1), body).encode()?;
/// # let frame = Frame::decode(&octets)?;
/// # let rules = RuleSet::establish(&frame, &mut NoAllocator);
/// # let Ok(change) = rules else { return Ok(()) };
///
/// let now = Instant::now();
/// let epoch = Epoch::new(now, Duration::from_secs(4_000_000_000));
/// let mut usage = Usage::new(now, epoch, UsageLimits::default(), &change.rules);
/// let traffic = Traffic { pdr: PdrId(1), packets: 1, octets: 600, events: 0 };
/// assert_eq!(usage.handle_traffic(now, traffic), Verdict::Forwarded);
/// assert_eq!(usage.poll_request(now), None);
/// usage.handle_traffic(now, traffic);
/// assert!(usage.poll_request(now).is_some());
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    epoch: Epoch,
    limits: UsageLimits,
    // Boxed, or one rule has room for four.
    rules: LiteMap<u32, Box<Rule>>,
    paths: Paths,
    buffers: Buffers,
    sending: Sending,
    idle: Option<Idle>,
}

impl Usage {
    /// Says that rules have something to count, to buffer or to watch.
    #[must_use]
    pub fn concerns(rules: &RuleSet) -> bool {
        let buffers = |tlv: Tlv<'_>| {
            let action = ApplyAction::decode(tlv.value).unwrap_or_default();
            tlv.ie == IeType::APPLY_ACTION && action.contains(ApplyAction::BUFF)
        };
        rules.rules(RuleKind::Urr).next().is_some()
            || idle_after(rules).is_some()
            || rules
                .rules(RuleKind::Far)
                .any(|rule| rule.tlvs().map_while(Result::ok).any(buffers))
    }

    /// Starts to count for a session.
    #[must_use]
    pub fn new(now: Instant, epoch: Epoch, limits: UsageLimits, rules: &RuleSet) -> Self {
        let mut counted = LiteMap::new();
        for urr in rules.urrs().filter_map(Result::ok) {
            let rule = Rule::new(now, epoch, Setting::of(&urr));
            counted.insert(urr.urr_id.0, rule.into());
        }
        Self {
            epoch,
            limits,
            rules: counted,
            paths: Paths::of(rules),
            buffers: Buffers::default(),
            sending: Sending::default(),
            idle: Idle::of(now, rules, None),
        }
    }

    /// Starts to count for a session that there was before, when what it had counted is lost.
    ///
    /// Reports are numbered from the seconds since 2020 on, so that no number comes twice (as long
    /// as a rule made less than a report a second), and the gap tells the peer of the loss.
    #[must_use]
    pub fn resumed(now: Instant, epoch: Epoch, limits: UsageLimits, rules: &RuleSet) -> Self {
        let mut usage = Self::new(now, epoch, limits, rules);
        let number = epoch.seconds(now).wrapping_sub(YEAR_2020);
        for (_, rule) in &mut usage.rules {
            rule.resume(number);
        }
        usage
    }

    /// Counts packets that were detected at `at`, and says what becomes of them.
    ///
    /// Packets are taken as a whole: those that reach a quota still pass, the next ones do not.
    pub fn handle_traffic(&mut self, at: Instant, traffic: Traffic) -> Verdict {
        self.handle_timeout(at);
        if let Some(idle) = &mut self.idle {
            idle.since = at;
            idle.told = false;
        }
        let Some(path) = self.paths.pdrs.get(&traffic.pdr.0).cloned() else {
            return Verdict::Dropped;
        };
        let action = self.quota_action(&path);
        let verdict = self.pass(at, &path, action, traffic);
        self.flush(at);
        verdict
    }

    /// What is done with packets of which a quota is used up; `None` if none is.
    fn quota_action(&self, path: &Path) -> Option<Action> {
        let named = path.urrs.iter().filter_map(|urr| self.rules.get(urr));
        let blocked = named.into_iter().find(|rule| rule.blocked)?;
        let far = blocked
            .setting
            .quota_far
            .and_then(|far| self.paths.fars.get(&far));
        Some(far.copied().unwrap_or(DROP))
    }

    fn pass(
        &mut self,
        at: Instant,
        path: &Path,
        instead: Option<Action>,
        traffic: Traffic,
    ) -> Verdict {
        let action = instead.unwrap_or_else(|| self.paths.action(path));
        let shut = self.paths.is_shut(path);
        let forwards = action.does(ApplyAction::FORW) && !shut;
        let buffers = action.does(ApplyAction::BUFF) && !shut && !path.uplink && instead.is_none();
        // What goes elsewhere because a quota is used up counts for nobody.
        if instead.is_none() {
            for urr in &path.urrs {
                if let Some(rule) = self.rules.get_mut(urr)
                    && (forwards || rule.setting.says(MeasurementInformation::MBQE) && !buffers)
                {
                    rule.count(at, self.epoch, volume(path, traffic), traffic.events);
                }
            }
        }
        if forwards {
            return Verdict::Forwarded;
        }
        let kept = buffers
            .then(|| {
                self.buffers
                    .keep(at, &self.paths, traffic, self.limits.buffer)
            })
            .flatten();
        if kept == Some(Kept::Yes) {
            self.tell_downlink(at);
            return Verdict::Buffered;
        }
        self.tell_downlink(at);
        self.drop(path, traffic);
        Verdict::Dropped
    }

    /// Counts what was dropped.
    fn drop(&mut self, path: &Path, traffic: Traffic) {
        if path.uplink {
            return;
        }
        for urr in &path.urrs {
            if let Some(rule) = self.rules.get_mut(urr) {
                rule.count_dropped(traffic.packets, traffic.octets);
            }
        }
    }

    /// Drops packets that had waited.
    fn drop_all(&mut self, dropped: Vec<Traffic>) {
        for traffic in dropped {
            if let Some(path) = self.paths.pdrs.get(&traffic.pdr.0).cloned() {
                self.drop(&path, traffic);
            }
        }
    }

    /// Tells of packets that wait, as far as it is time to.
    fn tell_downlink(&mut self, now: Instant) {
        let dropped = self.buffers.due(now, &self.paths);
        self.drop_all(dropped);
        while let Some(report) = self.buffers.report() {
            self.sending.push_downlink(report);
        }
    }

    /// Lets time pass: does in its order what was due until `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.due_at().filter(|at| *at <= now) {
            let at = at.min(now);
            for (_, rule) in &mut self.rules {
                rule.due(at, self.limits.stop_after);
            }
            self.tell_downlink(at);
            if let Some(idle) = &mut self.idle
                && !idle.told
                && idle.since + idle.after <= at
            {
                idle.told = true;
                self.sending.push_inactive();
            }
            self.flush(at);
        }
    }

    /// When something is due, sending apart.
    fn due_at(&self) -> Option<Instant> {
        let stop_after = self.limits.stop_after;
        let rules = self
            .rules
            .values()
            .filter_map(|rule| rule.deadline(stop_after));
        let idle = self.idle.filter(|idle| !idle.told);
        rules
            .chain(self.buffers.deadline())
            .chain(idle.map(|idle| idle.since + idle.after))
            .min()
    }

    /// Returns when to call [`Usage::handle_timeout`] and [`Usage::poll_request`] next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let sending = self.sending.deadline();
        self.due_at().into_iter().chain(sending).min()
    }

    /// Makes the reports that are owed, as long as there is room for them.
    fn flush(&mut self, now: Instant) {
        let mut made = BTreeSet::new();
        for (&id, rule) in &mut self.rules {
            if self.sending.len() >= self.limits.waiting {
                break;
            }
            for mut note in rule.notes(UrrId(id)) {
                note.ue_ip_address.clone_from(&self.paths.user);
                self.sending.push(&note);
            }
            if !rule.owed.is_empty() {
                let trigger = rule.owed;
                for report in rule.report(UrrId(id), now, self.epoch, trigger) {
                    self.sending.push(&report);
                }
                made.insert(id);
            }
        }
        if made.is_empty() {
            return;
        }
        // A report for the sake of another one makes no further ones.
        let linked = |rule: &Rule| rule.setting.links.iter().any(|link| made.contains(link));
        for (&id, rule) in &mut self.rules {
            if !made.contains(&id) && rule.setting.wants(ReportingTriggers::LIUSA) && linked(rule) {
                let trigger = rule.owed | UsageReportTrigger::LIUSA;
                for report in rule.report(UrrId(id), now, self.epoch, trigger) {
                    self.sending.push(&report);
                }
            }
        }
    }

    /// Returns the body of a Session Report Request that is to be sent, if it is time for one.
    ///
    /// Its outcome comes back through [`Usage::handle_answer`] or [`Usage::handle_no_answer`].
    pub fn poll_request(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.sending.poll(now, &self.limits)
    }

    /// Takes the answer to the request that is on its way.
    pub fn handle_answer(&mut self, now: Instant, answer: &Frame<'_>) -> Settled {
        self.handle_timeout(now);
        let (settled, wishes) = self.sending.answered(now, &self.limits, answer);
        if let Some(update) = &wishes.bar {
            self.buffers.wish(now, update);
        }
        if wishes.drop_buffered {
            let dropped = self.buffers.empty();
            self.drop_all(dropped);
        }
        self.flush(now);
        settled
    }

    /// Notes that the request that is on its way was not answered, however often it was sent.
    pub fn handle_no_answer(&mut self, now: Instant) -> Settled {
        self.handle_timeout(now);
        self.sending.failed(now, &self.limits)
    }

    /// Takes over the rules that a modification made, and returns the reports that go with its
    /// answer: what it queries, and what it removes.
    ///
    /// `requests` are the messages that made `rules` of those before. To be called on a copy, if
    /// the modification may still fail.
    pub fn modify(&mut self, now: Instant, rules: &RuleSet, requests: &[&Frame<'_>]) -> Finals {
        self.handle_timeout(now);
        let asked = Asked::of(requests);
        let paths = Paths::of(rules);
        let mut urrs = LiteMap::new_vec();
        for urr in rules.urrs().filter_map(Result::ok) {
            urrs.insert(urr.urr_id.0, Setting::of(&urr));
        }
        let mut reports = Vec::new();
        for (&id, rule) in &mut self.rules {
            let stays = urrs.contains_key(&id) && !asked.removed.contains(&id);
            let ends = !stays || self.paths.counts(id) && !paths.counts(id);
            let queried = asked.all || asked.queried.contains(&id);
            let trigger = match (ends, queried) {
                (true, _) => UsageReportTrigger::TERMR,
                (false, true) => UsageReportTrigger::IMMER,
                (false, false) => continue,
            };
            reports.extend(rule.notes(UrrId(id)));
            let trigger = trigger | rule.owed;
            reports.extend(rule.report(UrrId(id), now, self.epoch, trigger));
        }
        self.rules
            .retain(|id, _| urrs.contains_key(id) && !asked.removed.contains(id));
        for (id, setting) in urrs {
            match self.rules.get_mut(&id) {
                None => {
                    _ = self
                        .rules
                        .insert(id, Rule::new(now, self.epoch, setting).into())
                }
                Some(rule) => {
                    if let Some(given) = asked.updated.get(&id) {
                        rule.update(now, self.epoch, setting, given);
                    }
                }
            }
        }
        self.idle = Idle::of(now, rules, self.idle);
        self.change_paths(now, paths, asked.flags);
        self.flush(now);
        let (count, mut finals) = (reports.len(), Finals::default());
        let room = self.limits.message;
        let rest = sending::modified(reports, asked.reference, room, &mut finals.elements);
        finals.reports = count - rest.len();
        for mut report in rest {
            report.query_urr_reference = asked.reference;
            self.sending.push(&report);
        }
        finals
    }

    /// Takes over paths, and lets go what waits for the old ones.
    fn change_paths(&mut self, now: Instant, paths: Paths, flags: PfcpsmreqFlags) {
        if flags.contains(PfcpsmreqFlags::DROBU) {
            let dropped = self.buffers.empty();
            self.drop_all(dropped);
        }
        for (_, rule) in &mut self.rules {
            let pausable = rule.setting.says(MeasurementInformation::ASPOC);
            if pausable && flags.contains(PfcpsmreqFlags::SUMPC) {
                rule.pause(now, true);
            } else if flags.contains(PfcpsmreqFlags::RUMUC) {
                rule.pause(now, false);
            }
        }
        let released = self.buffers.released(&self.paths, &paths);
        self.paths = paths;
        for traffic in released {
            if let Some(path) = self.paths.pdrs.get(&traffic.pdr.0).cloned() {
                let action = self.quota_action(&path);
                self.pass(now, &path, action, traffic);
            }
        }
    }

    /// Ends the counting, and returns the reports that go with the answer to the deletion: what
    /// the peer has not acknowledged, and a last one of each rule.
    ///
    /// A request that is on its way is to be withdrawn with that answer. TS 29.244 §7.5.7.1 wants
    /// the usage that is available in the answer, and lets a user plane that goes on repeating a
    /// request after it say so (PURU). Repeating is not safe: the SEID in the request is free with
    /// the answer, and may name another session when the repetition arrives. So the usage moves
    /// into the answer, which is repeated until the peer has it, and nothing is lost; and it keeps
    /// its number, by which a peer that had the request as well knows the same report (§8.2.71), so
    /// that nothing counts twice. Nothing is pending any more, and PURU is not set.
    #[must_use]
    pub fn finish(mut self, now: Instant) -> Finals {
        self.handle_timeout(now);
        let mut reports = self.sending.take_all();
        for (&id, rule) in &mut self.rules {
            reports.extend(rule.notes(UrrId(id)));
            let trigger = UsageReportTrigger::TERMR | rule.owed;
            reports.extend(rule.report(UrrId(id), now, self.epoch, trigger));
        }
        let (count, mut elements) = (reports.len(), Vec::new());
        let rest = sending::deleted(reports, self.limits.message, &mut elements);
        Finals {
            elements,
            reports: count - rest.len(),
            more: sending::requests(&rest, self.limits.message),
        }
    }

    /// Returns the rules that detect packets.
    #[must_use]
    pub fn detectors(&self) -> Vec<Detector> {
        let detector = |(&pdr, path): (&u16, &Arc<Path>)| Detector {
            pdr: PdrId(pdr),
            uplink: path.uplink,
        };
        self.paths.pdrs.iter().map(detector).collect()
    }

    /// Says that nothing is counted, buffered or told, so that this can be forgotten.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let buffers = |action: &Action| action.does(ApplyAction::BUFF);
        self.rules.is_empty()
            && self.sending.is_empty()
            && !self.buffers.has_news()
            && self.idle.is_none()
            && !self.paths.fars.values().any(buffers)
    }

    /// How many usage reports wait, those on their way included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.sending.len()
    }
}

fn volume(path: &Path, traffic: Traffic) -> Volume {
    let Traffic {
        octets, packets, ..
    } = traffic;
    match path.uplink {
        true => Volume {
            uplink: octets,
            uplink_packets: packets,
            ..Volume::default()
        },
        false => Volume {
            downlink: octets,
            downlink_packets: packets,
            ..Volume::default()
        },
    }
}

/// Seconds from 1900 to 2020.
const YEAR_2020: u32 = 3_786_912_000;

/// What is done with packets when a quota is used up and nobody says otherwise.
const DROP: Action = Action {
    apply: ApplyAction::DROP,
    bar: None,
};
