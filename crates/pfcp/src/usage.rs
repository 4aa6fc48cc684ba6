//! Usage measurement and reporting for a session, TS 29.244 §5.2.2.
//!
//! A [`UsageMeter`] measures one session. It takes traffic and time as input, and returns reports
//! and the next time at which something is due:
//!
//! ```text
//!  traffic ──▶ PDR ─▶ gates, quotas, FAR ─▶ URRs ──── limits and periods ────▶ reports
//!                          │                                                     │
//!                      buffer ── first packet ──▶ downlink data report ──▶ poll_request
//! ```
//!
//! Measured usage is reported exactly once, and the sequence numbers of a rule's reports have no
//! gaps. While the maximum number of reports is waiting, a threshold that is reached is remembered
//! and measurement continues, so that the next report covers more usage and nothing is lost.
//!
//! Measurements that require packet inspection are not supported: envelopes, credit pools (Sxb),
//! Ethernet addresses, and multicast groups. Rules that ask for them are kept, and their other
//! usage is measured.

mod buffer;
mod count;
mod inactivity;
mod meter_rule;
mod modification;
mod parameters;
mod path;
mod report_queue;
mod tally;
mod traffic;
mod urr;

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
pub use report_queue::ReportRequestOutcome;
pub use tally::{ReportArrival, UsageReportFields, UsageTotals};
pub use traffic::{DetectionRule, PacketBurst, PacketOutcome};

use buffer::{BufferOutcome, Buffers};
use count::Volume;
use inactivity::{InactivityTimer, inactivity_after};
use meter_rule::MeterRule;
use modification::UsageModification;
use parameters::UrrParameters;
use path::{FarAction, PdrPath, SessionForwarding};
use report_queue::ReportQueue;
use urr::UrrState;

/// Limits and timers of usage reporting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLimits {
    /// Maximum number of waiting usage reports of a session. Beyond it, further usage is added to
    /// the next report instead of creating another.
    pub waiting: usize,
    /// Maximum number of bytes of reports in a message.
    pub message: usize,
    /// The time after which a request without an outcome counts as unanswered.
    pub outcome_timeout: Duration,
    /// The pause after an unanswered request. It doubles with each further one.
    pub retry: Duration,
    /// The time without packets after which traffic counts as stopped, if a rule does not specify
    /// it.
    pub idle_timeout: Duration,
    /// Maximum number of packets buffered for a session.
    pub buffer: u64,
}

impl Default for UsageLimits {
    fn default() -> Self {
        Self {
            waiting: 64,
            message: 8 * 1024,
            outcome_timeout: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            buffer: 1024,
        }
    }
}

/// The usage reports that accompany an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinalReports {
    /// The elements for the answer: usage reports, and the number of reports that follow.
    pub elements: Vec<u8>,
    /// Number of usage reports in `elements`.
    pub reports: usize,
    /// The bodies of Session Report Requests with the reports that did not fit into the answer.
    pub more: Vec<Vec<u8>>,
}

/// The usage measurement of one session.
///
/// Time never goes backwards: every `now` is at or after the previous one.
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
/// use strowger_pfcp::usage::{Epoch, PacketBurst, PacketOutcome, UsageLimits, UsageMeter};
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
/// let bytes = Message::session(Seid(0), Sequence::new(1), body).encode()?;
/// # let frame = Frame::decode(&bytes)?;
/// # let rules = RuleSet::establish(&frame, &mut NoAllocator);
/// # let Ok(change) = rules else { return Ok(()) };
///
/// let now = Instant::now();
/// let epoch = Epoch::new(now, Duration::from_secs(4_000_000_000));
/// let mut usage = UsageMeter::new(now, epoch, UsageLimits::default(), &change.rules);
/// let traffic = PacketBurst { pdr: PdrId(1), packets: 1, bytes: 600, events: 0 };
/// assert_eq!(usage.handle_traffic(now, traffic), PacketOutcome::Forwarded);
/// assert_eq!(usage.poll_request(now), None);
/// usage.handle_traffic(now, traffic);
/// assert!(usage.poll_request(now).is_some());
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageMeter {
    epoch: Epoch,
    limits: UsageLimits,
    rules: LiteMap<u32, MeterRule>,
    paths: SessionForwarding,
    buffers: Buffers,
    queue: ReportQueue,
    inactivity: Option<InactivityTimer>,
}

impl UsageMeter {
    /// Returns `true` if the rules require measuring, buffering or inactivity detection.
    #[must_use]
    pub fn concerns(rules: &RuleSet) -> bool {
        let buffers = |tlv: Tlv<'_>| {
            let action = ApplyAction::decode(tlv.value).unwrap_or_default();
            tlv.ie == IeType::APPLY_ACTION && action.contains(ApplyAction::BUFF)
        };
        // A session without any of these needs no meter, which saves its memory and its timers.
        rules.rules(RuleKind::Urr).next().is_some()
            || inactivity_after(rules).is_some()
            || rules
                .rules(RuleKind::Far)
                .any(|rule| rule.tlvs().map_while(Result::ok).any(buffers))
    }

    /// Starts the measurement of a session.
    #[must_use]
    pub fn new(now: Instant, epoch: Epoch, limits: UsageLimits, rules: &RuleSet) -> Self {
        Self::numbered(now, epoch, limits, rules, 0)
    }

    fn numbered(
        now: Instant,
        epoch: Epoch,
        limits: UsageLimits,
        rules: &RuleSet,
        number: u32,
    ) -> Self {
        // Not more than are there: the vector in the map would reserve space for four.
        let mut metered = LiteMap::with_capacity(rules.rules(RuleKind::Urr).count());
        for urr in rules.urrs().filter_map(Result::ok) {
            let like = metered.last().map(|(_, rule)| rule);
            let rule = MeterRule::new(now, epoch, UrrParameters::of(&urr), number, like);
            metered.insert(urr.urr_id.0, rule);
        }
        Self {
            epoch,
            limits,
            rules: metered,
            paths: SessionForwarding::of(rules),
            buffers: Buffers::default(),
            queue: ReportQueue::default(),
            inactivity: InactivityTimer::of(now, rules, None),
        }
    }

    /// Starts the measurement of an existing session whose previous measurements are lost.
    ///
    /// Reports are numbered from the number of seconds since 2020. No number is reused as long as a
    /// rule made less than one report per second, and the gap in the numbers tells the peer of the
    /// loss.
    #[must_use]
    pub fn resumed(now: Instant, epoch: Epoch, limits: UsageLimits, rules: &RuleSet) -> Self {
        // Counted from 2020, because the seconds since 1900 wrap in 2036 and would then be lower
        // than the numbers in use.
        let number = epoch.seconds(now).wrapping_sub(YEAR_2020);
        Self::numbered(now, epoch, limits, rules, number)
    }

    /// Measures packets that were detected at `at`, and returns the decision about them.
    ///
    /// The packets are treated as a unit: those that exhaust a quota still pass, the next ones do
    /// not.
    pub fn handle_traffic(&mut self, at: Instant, traffic: PacketBurst) -> PacketOutcome {
        // The packets come after everything that was due before them: a monitoring time divides the
        // usage there, and a report covers the usage up to its time.
        self.handle_timeout(at);
        if let Some(timer) = &mut self.inactivity {
            // Any packet of the session is activity (§5.11.3), also one that a rule drops.
            timer.since = at;
            timer.reported = false;
        }
        // The rule may have been removed while the packets were on their way. The copy is a counted
        // reference; it ends the borrow of `self.paths`.
        let Some(path) = self.paths.pdrs.get(&traffic.pdr.0).cloned() else {
            return PacketOutcome::Dropped;
        };
        let action = self.quota_action(&path);
        let verdict = self.pass(at, &path, action, traffic);
        self.flush(at);
        verdict
    }

    /// Returns the action for packets of which a quota is exhausted, or `None` if none is.
    fn quota_action(&self, path: &PdrPath) -> Option<FarAction> {
        let named = path.urrs.iter().filter_map(|urr| self.rules.get(urr));
        // One exhausted quota is enough, whatever the other rules of the path still have
        // (§5.2.2.2).
        let blocked = named.into_iter().find(|rule| rule.is_blocked())?;
        let far = blocked
            .parameters()
            .quota_far
            .and_then(|far| self.paths.fars.get(&far));
        // FAR ID for Quota Action (Table 7.5.2.4-1). Without one, or without that FAR, packets are
        // dropped.
        Some(far.copied().unwrap_or(DROP))
    }

    fn pass(
        &mut self,
        at: Instant,
        path: &PdrPath,
        instead: Option<FarAction>,
        traffic: PacketBurst,
    ) -> PacketOutcome {
        let action = instead.unwrap_or_else(|| self.paths.action(path));
        // Gates act before the FAR (§5.4, §8.2.7): packets behind a closed one are neither
        // forwarded nor buffered.
        let gate_closed = self.paths.is_gate_closed(path);
        let forwards = action.has_action(ApplyAction::FORW) && !gate_closed;
        // Buffering is for a UE that is idle, so for downlink packets alone (§5.2.4). A quota
        // action does not buffer, because nothing would measure the packets later.
        let buffers = action.has_action(ApplyAction::BUFF)
            && !gate_closed
            && !path.uplink
            && instead.is_none();
        // Packets diverted because of an exhausted quota are not measured by any rule.
        if instead.is_none() {
            for urr in &path.urrs {
                if let Some(rule) = self.rules.get_mut(urr)
                    // MBQE measures before QoS enforcement (§8.2.68), so also packets that are
                    // dropped. Buffered ones come through here again when they are released, and
                    // count only then.
                    && (forwards || rule.parameters().has(MeasurementInformation::MBQE) && !buffers)
                {
                    let rule = rule.start(self.epoch);
                    rule.count(at, self.epoch, volume(path, traffic), traffic.events);
                }
            }
        }
        if forwards {
            return PacketOutcome::Forwarded;
        }
        let outcome = buffers
            .then(|| {
                self.buffers
                    .buffer(at, &self.paths, traffic, self.limits.buffer)
            })
            .flatten();
        if outcome == Some(BufferOutcome::Buffered) {
            self.queue_downlink_reports(at);
            return PacketOutcome::Buffered;
        }
        // A full buffer may be reported as well (DDPN, §8.2.26).
        self.queue_downlink_reports(at);
        self.drop(path, traffic);
        PacketOutcome::Dropped
    }

    /// Measures dropped packets. Only downlink packets count.
    fn drop(&mut self, path: &PdrPath, traffic: PacketBurst) {
        // Only downlink packets count towards the Dropped DL Traffic Threshold (§8.2.49).
        if path.uplink {
            return;
        }
        for urr in &path.urrs {
            if let Some(rule) = self.rules.get_mut(urr)
                && rule.parameters().wants(ReportingTriggers::DROTH)
            {
                let rule = rule.start(self.epoch);
                rule.count_dropped(traffic.packets, traffic.bytes);
            }
        }
    }

    /// Drops buffered packets.
    fn drop_all(&mut self, dropped: Vec<PacketBurst>) {
        for traffic in dropped {
            if let Some(path) = self.paths.pdrs.get(&traffic.pdr.0).cloned() {
                self.drop(&path, traffic);
            }
        }
    }

    /// Queues the downlink data reports that are due, and drops packets whose buffering time is
    /// over.
    fn queue_downlink_reports(&mut self, now: Instant) {
        let dropped = self.buffers.due(now, &self.paths);
        self.drop_all(dropped);
        while let Some(report) = self.buffers.report() {
            self.queue.push_downlink(report);
        }
    }

    /// Advances time: handles everything that is due until `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        // One deadline after the other, each at its own time: a late call gives the same reports as
        // calls in time would. It ends because each rule moves the deadlines that it handles; a
        // period lasts a second at least.
        while let Some(at) = self.due_at().filter(|at| *at <= now) {
            let at = at.min(now);
            for rule in states(&mut self.rules) {
                rule.due(at, self.limits.idle_timeout);
            }
            self.queue_downlink_reports(at);
            if let Some(timer) = &mut self.inactivity
                && !timer.reported
                && timer.since + timer.after <= at
            {
                // Once for each silence; the next packet clears it (§5.11.3).
                timer.reported = true;
                self.queue.push_inactive();
            }
            self.flush(at);
        }
    }

    /// Returns the time at which something other than sending is due.
    fn due_at(&self) -> Option<Instant> {
        let idle_timeout = self.limits.idle_timeout;
        let rules = self
            .rules
            .values()
            .filter_map(|rule| rule.deadline(idle_timeout));
        // A timer that has been reported waits for traffic, and not for time.
        let timer = self.inactivity.filter(|timer| !timer.reported);
        rules
            .chain(self.buffers.deadline())
            .chain(timer.map(|timer| timer.since + timer.after))
            .min()
    }

    /// Returns the time at which [`UsageMeter::handle_timeout`] and [`UsageMeter::poll_request`]
    /// are to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let queue = self.queue.deadline();
        self.due_at().into_iter().chain(queue).min()
    }

    /// Creates the pending reports, as far as the limit on waiting reports allows.
    fn flush(&mut self, now: Instant) {
        let mut made = BTreeSet::new();
        for (&id, rule) in &mut self.rules {
            // The triggers stay in the rules, which go on counting. Only the separation of the
            // usage into reports is lost.
            if self.queue.len() >= self.limits.waiting {
                break;
            }
            // A rule without a state has nothing to report.
            let Some(rule) = rule.state_mut() else {
                continue;
            };
            for mut note in rule.take_unmeasured_reports(UrrId(id)) {
                // Start and stop of traffic are reported with the address of the UE (Table
                // 7.5.8.3-1).
                note.ue_ip_address.clone_from(&self.paths.user);
                self.queue.push(&note);
            }
            if !rule.pending_triggers.is_empty() {
                let trigger = rule.pending_triggers;
                for report in rule.report(UrrId(id), now, self.epoch, trigger) {
                    self.queue.push(&report);
                }
                made.insert(id);
            }
        }
        if made.is_empty() {
            return;
        }
        // A linked report does not trigger further linked reports.
        for (&id, rule) in &mut self.rules {
            let parameters = rule.parameters();
            if !made.contains(&id)
                && parameters.wants(ReportingTriggers::LIUSA)
                && parameters.links.iter().any(|link| made.contains(link))
            {
                let rule = rule.start(self.epoch);
                if !rule.may_report() {
                    continue;
                }
                // Beyond the limit, if need be: a linked report belongs to one that is queued
                // already (§8.2.55).
                let trigger = rule.pending_triggers | UsageReportTrigger::LIUSA;
                for report in rule.report(UrrId(id), now, self.epoch, trigger) {
                    self.queue.push(&report);
                }
            }
        }
    }

    /// Returns the body of a Session Report Request to send, if one is due.
    ///
    /// Report its outcome through [`UsageMeter::handle_answer`] or
    /// [`UsageMeter::handle_no_answer`].
    pub fn poll_request(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.queue.poll(now, &self.limits)
    }

    /// Handles the answer to the outstanding request.
    pub fn handle_answer(&mut self, now: Instant, answer: &Frame<'_>) -> ReportRequestOutcome {
        self.handle_timeout(now);
        let (settled, instructions) = self.queue.answered(now, &self.limits, answer);
        if let Some(update) = &instructions.bar {
            self.buffers.instruct(now, update);
        }
        if instructions.drop_buffered {
            let dropped = self.buffers.empty();
            self.drop_all(dropped);
        }
        self.flush(now);
        settled
    }

    /// Records that the outstanding request was not answered, including its retransmissions.
    pub fn handle_no_answer(&mut self, now: Instant) -> ReportRequestOutcome {
        self.handle_timeout(now);
        self.queue.failed(now, &self.limits)
    }

    /// Applies the rules of a modification, and returns the reports for its answer: those of the
    /// URRs that it queries, removes, or detaches from all PDRs.
    ///
    /// `requests` are the messages that led from the previous rules to `rules`. If the modification
    /// may still fail, call this on a copy.
    pub fn modify(
        &mut self,
        now: Instant,
        rules: &RuleSet,
        requests: &[&Frame<'_>],
    ) -> FinalReports {
        self.handle_timeout(now);
        let modification = UsageModification::of(requests);
        let paths = SessionForwarding::of(rules);
        let mut urrs = LiteMap::new_vec();
        for urr in rules.urrs().filter_map(Result::ok) {
            urrs.insert(urr.urr_id.0, UrrParameters::of(&urr));
        }
        let mut reports = Vec::new();
        for (&id, rule) in &mut self.rules {
            let stays = urrs.contains_key(&id) && !modification.removed.contains(&id);
            // A rule that is removed and created again under the same ID is another rule, so the
            // old one ends. One without a PDR measures nothing, so the loss of its last PDR is
            // reported too (§5.2.2.3).
            let ends = !stays || self.paths.counts(id) && !paths.counts(id);
            let queried = modification.all || modification.queried.contains(&id);
            let trigger = match (ends, queried) {
                // A final report answers a query as well.
                (true, _) => UsageReportTrigger::TERMR,
                (false, true) => UsageReportTrigger::IMMER,
                (false, false) => continue,
            };
            let rule = rule.start(self.epoch);
            reports.extend(rule.take_unmeasured_reports(UrrId(id)));
            // Reports that are pending would cover the same usage, so they become part of this one.
            let trigger = trigger | rule.pending_triggers;
            reports.extend(rule.report(UrrId(id), now, self.epoch, trigger));
        }
        self.rules
            // After the reports, and before new rules of the same IDs are added.
            .retain(|id, _| urrs.contains_key(id) && !modification.removed.contains(id));
        for (id, parameters) in urrs {
            match self.rules.get_mut(&id) {
                None => {
                    let like = self.rules.last().map(|(_, rule)| rule);
                    let rule = MeterRule::new(now, self.epoch, parameters, 0, like);
                    self.rules.insert(id, rule);
                }
                Some(rule) => {
                    // A rule that the request does not name keeps its counters and deadlines.
                    if let Some(given) = modification.updated.get(&id) {
                        let rule = rule.start(self.epoch);
                        rule.update(now, self.epoch, parameters, given);
                    }
                }
            }
        }
        self.inactivity = InactivityTimer::of(now, rules, self.inactivity);
        // Last, because released packets are measured: by the new rules, on the new paths.
        self.change_paths(now, paths, modification.flags);
        self.flush(now);
        let (count, mut finals) = (reports.len(), FinalReports::default());
        let room = self.limits.message;
        let rest =
            report_queue::modified(reports, modification.reference, room, &mut finals.elements);
        finals.reports = count - rest.len();
        // The reference (§8.2.90) lets the control plane match them with its query. They may exceed
        // the limit of the queue, because the answer has announced them.
        for mut report in rest {
            report.query_urr_reference = modification.reference;
            self.queue.push(&report);
        }
        finals
    }

    /// Replaces the paths, and handles the packets that the old ones buffered.
    fn change_paths(&mut self, now: Instant, paths: SessionForwarding, flags: PfcpsmreqFlags) {
        // Before the paths change, or a FAR that now forwards would release the packets (§8.2.31).
        if flags.contains(PfcpsmreqFlags::DROBU) {
            let dropped = self.buffers.empty();
            self.drop_all(dropped);
        }
        for (_, rule) in &mut self.rules {
            // Only rules with ASPOC take part in a pause of charging (§8.2.31). RUMUC also resumes
            // a rule that lost ASPOC during the pause, because nothing else would.
            let pausable = rule.parameters().has(MeasurementInformation::ASPOC);
            if pausable && flags.contains(PfcpsmreqFlags::SUMPC) {
                rule.start(self.epoch).pause(now, true);
            } else if flags.contains(PfcpsmreqFlags::RUMUC)
                && let Some(rule) = rule.state_mut()
            {
                rule.pause(now, false);
            }
        }
        let released = self.buffers.released(&self.paths, &paths);
        self.paths = paths;
        for traffic in released {
            if let Some(path) = self.paths.pdrs.get(&traffic.pdr.0).cloned() {
                // For each burst anew: the one before may have exhausted a quota.
                let action = self.quota_action(&path);
                self.pass(now, &path, action, traffic);
            }
        }
    }

    /// Ends the measurement, and returns the reports for the answer to the deletion: those that the
    /// peer has not acknowledged, and a final one for each rule.
    ///
    /// The outstanding request is to be withdrawn with that answer. TS 29.244 §7.5.7.1 wants the
    /// available usage in the answer, and lets a user plane that keeps retransmitting a request
    /// afterwards announce that (PURU). Retransmission is not safe: once the answer is sent, the
    /// SEID in the request is free, and may identify another session when the retransmission
    /// arrives. The usage therefore moves into the answer, which is repeated until the peer has it,
    /// so that nothing is lost. The report keeps its sequence number, by which a peer that also
    /// received the request recognizes the same report (§8.2.71), so that nothing counts twice. As
    /// nothing stays pending, PURU is not set.
    #[must_use]
    pub fn finish(mut self, now: Instant) -> FinalReports {
        self.handle_timeout(now);
        // Older reports first, so that the numbers of each rule ascend.
        let mut reports = self.queue.take_all();
        for (&id, rule) in &mut self.rules {
            let rule = rule.start(self.epoch);
            reports.extend(rule.take_unmeasured_reports(UrrId(id)));
            let trigger = UsageReportTrigger::TERMR | rule.pending_triggers;
            reports.extend(rule.report(UrrId(id), now, self.epoch, trigger));
        }
        let (count, mut elements) = (reports.len(), Vec::new());
        let rest = report_queue::deleted(reports, self.limits.message, &mut elements);
        FinalReports {
            elements,
            reports: count - rest.len(),
            more: report_queue::requests(&rest, self.limits.message),
        }
    }

    /// Returns the memory that a meter of these rules takes once each of them counts, in bytes, as
    /// an estimate from above.
    #[must_use]
    pub fn memory(rules: &RuleSet) -> usize {
        let entry = size_of::<(u32, MeterRule)>();
        let urrs = rules.rules(RuleKind::Urr);
        let urrs = urrs.map(|rule| entry + UrrState::memory(rule.tlvs()));
        // The state of all other rules is not larger than their elements.
        let pdrs = rules.rules(RuleKind::Pdr);
        let pdr = size_of::<(u16, Arc<PdrPath>)>() + size_of::<PdrPath>();
        urrs.sum::<usize>() + pdrs.count() * pdr
    }

    /// Returns the packet detection rules.
    #[must_use]
    pub fn detectors(&self) -> Vec<DetectionRule> {
        let detector = |(&pdr, path): (&u16, &Arc<PdrPath>)| DetectionRule {
            pdr: PdrId(pdr),
            uplink: path.uplink,
        };
        self.paths.pdrs.iter().map(detector).collect()
    }

    /// Returns `true` if nothing is measured, buffered or waiting to be reported, so that this
    /// value can be dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // A FAR that buffers may receive a packet at any time, even if nothing is buffered now.
        let buffers = |action: &FarAction| action.has_action(ApplyAction::BUFF);
        self.rules.is_empty()
            && self.queue.is_over()
            && !self.buffers.has_pending()
            && self.inactivity.is_none()
            && !self.paths.fars.values().any(buffers)
    }

    /// Returns the number of waiting usage reports, including those in the outstanding request.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
}

/// Returns the states of the rules that have one.
fn states(rules: &mut LiteMap<u32, MeterRule>) -> impl Iterator<Item = &mut UrrState> {
    rules.iter_mut().filter_map(|(_, rule)| rule.state_mut())
}

fn volume(path: &PdrPath, traffic: PacketBurst) -> Volume {
    let PacketBurst { bytes, packets, .. } = traffic;
    match path.uplink {
        true => Volume {
            uplink: bytes,
            uplink_packets: packets,
            ..Volume::default()
        },
        false => Volume {
            downlink: bytes,
            downlink_packets: packets,
            ..Volume::default()
        },
    }
}

/// Number of seconds from 1900 to 2020.
const YEAR_2020: u32 = 3_786_825_600;

/// The action for packets when a quota is exhausted and the rule does not specify one.
const DROP: FarAction = FarAction {
    apply: ApplyAction::DROP,
    bar: None,
};
