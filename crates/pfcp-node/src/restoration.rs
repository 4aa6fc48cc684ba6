//! Restoration after the loss of a peer: when a control plane function searches for the peer, and
//! how fast it establishes sessions again, TS 23.527 clause 4.
//!
//! ```text
//!          no answer to heartbeats
//!      ┌───────────────────────────▶ Silent ── heartbeats, with backoff ──┐
//!  Up ─┤ ◀────────── answer, same Recovery Time Stamp ────────┘           │ later time stamp
//!      │                                                                  ▼
//!      └── restarted, or knows no association ──▶ Unassociated ── setups, with backoff
//!          ◀────────────────────────── answer ────────┘
//! ```
//!
//! A silent peer is probed with heartbeats, not with association setups: a setup would end the
//! sessions of a peer that was merely unreachable, TS 29.244 §6.2.6.2.2.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger_pfcp::endpoint::message;
use strowger_pfcp::ie::{Cause, FTeid, UeIpAddress};
use strowger_pfcp::session::{Allocator, NoAllocator, RuleSet, UeAddressRequest};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, Header, Ie as _, IeType, MessageType, Seid, Sequence};

use crate::seeded_bug::{Bug, seeded};

/// The pace at which lost peers are searched for and their sessions are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restoration {
    /// The delay between the first two attempts to find a peer. It doubles with each failed
    /// attempt; up to half of it is subtracted at random, so that many peers are not contacted at
    /// the same time.
    pub backoff: Duration,
    /// The maximum delay between two attempts.
    pub backoff_max: Duration,
    /// Number of sessions established again per second; at least one.
    pub rate: u32,
    /// Number of sessions being established again at the same time; at least one.
    pub in_flight: usize,
}

impl Default for Restoration {
    /// Returns a delay of half a second, doubled up to 30 s, and 1000 sessions per second, 64 at a
    /// time.
    fn default() -> Self {
        Self {
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            rate: 1000,
            in_flight: 64,
        }
    }
}

/// The treatment of a session that its peer lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLoss {
    /// The session is forgotten.
    #[default]
    Forget,
    /// The session is established again as last acknowledged: with the same CP F-SEID, rules and UE
    /// IP addresses, and the same F-TEIDs except those that the peer was asked to choose.
    Restore,
}

/// The reason why a peer counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerLoss {
    /// The peer did not answer any transmission of a heartbeat. Its sessions are kept until it
    /// reports a restart.
    Silent,
    /// The peer restarted, and now has this Recovery Time Stamp, in seconds since 1900.
    Restarted(u32),
    /// The peer answered with Cause 72: it has no association with us, and therefore none of our
    /// sessions.
    NoAssociation,
}

impl fmt::Display for PeerLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("it does not answer heartbeats"),
            Self::Restarted(recovery) => write!(f, "it restarted, time stamp {recovery}"),
            Self::NoAssociation => f.write_str("it answers cause 72 (no established association)"),
        }
    }
}

/// The schedule of attempts to find a lost peer, without I/O.
#[derive(Debug)]
pub(crate) struct PeerSearch {
    plan: Restoration,
    phase: SearchPhase,
    /// The time when the peer was last found, and the number of attempts that it took.
    found: Option<(Instant, u32)>,
    random: SplitMix64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchPhase {
    Up,
    Silent(PendingAttempt),
    Unassociated(PendingAttempt),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingAttempt {
    since: Instant,
    attempts: u32,
    /// The time of the next attempt; `None` while the outcome of an attempt is pending.
    next: Option<Instant>,
}

/// An attempt that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchAttempt {
    /// A heartbeat to the peer that was lost.
    Heartbeat,
    /// An association setup; the caller reports the outcome with [`PeerSearch::found`] or
    /// [`PeerSearch::failed`].
    Associate,
}

impl PeerSearch {
    pub(crate) fn new(plan: Restoration, seed: u64) -> Self {
        Self {
            plan,
            phase: SearchPhase::Up,
            found: None,
            random: SplitMix64::seed_from_u64(seed),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.phase == SearchPhase::Up
    }

    /// Records that heartbeats are not answered. Returns `true` if the peer was not yet lost.
    pub(crate) fn silent(&mut self, now: Instant) -> bool {
        if !self.is_up() {
            return false;
        }
        let next = now + self.delay(0);
        self.phase = SearchPhase::Silent(PendingAttempt {
            since: now,
            attempts: 1,
            next: Some(next),
        });
        true
    }

    /// Records that the peer has no association. Returns `true` if this was not known yet.
    ///
    /// The first attempt is due at once, unless the peer was found only recently.
    pub(crate) fn unassociated(&mut self, now: Instant) -> bool {
        let since = match self.phase {
            SearchPhase::Unassociated(_) => return false,
            SearchPhase::Silent(wait) => wait.since,
            SearchPhase::Up => now,
        };
        let recent = self
            .found
            .filter(|(at, _)| now < *at + self.plan.backoff_max);
        let (attempts, next) = match recent {
            None => (0, now),
            Some((_, attempts)) => (attempts, now + self.delay(attempts)),
        };
        self.phase = SearchPhase::Unassociated(PendingAttempt {
            since,
            attempts,
            next: Some(next),
        });
        true
    }

    /// Records that a silent peer was heard. Returns the time for which it was lost.
    pub(crate) fn heard(&mut self, now: Instant) -> Option<Duration> {
        match self.phase {
            SearchPhase::Silent(wait) => {
                self.phase = SearchPhase::Up;
                Some(now.saturating_duration_since(wait.since))
            }
            SearchPhase::Up | SearchPhase::Unassociated(_) => None,
        }
    }

    /// Records that an association exists. Returns the time for which the peer was lost.
    pub(crate) fn found(&mut self, now: Instant) -> Option<Duration> {
        let (SearchPhase::Silent(wait) | SearchPhase::Unassociated(wait)) = self.phase else {
            return None;
        };
        self.found = Some((now, wait.attempts));
        self.phase = SearchPhase::Up;
        Some(now.saturating_duration_since(wait.since))
    }

    /// Records that a setup was refused or not answered. Returns the delay until the next one.
    pub(crate) fn failed(&mut self, now: Instant) -> Option<Duration> {
        let SearchPhase::Unassociated(mut wait) = self.phase else {
            return None;
        };
        let delay = self.delay(wait.attempts.saturating_sub(1));
        wait.next = Some(now + delay);
        self.phase = SearchPhase::Unassociated(wait);
        Some(delay)
    }

    /// Returns the attempt that is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<SearchAttempt> {
        let is_due = |wait: &PendingAttempt| wait.next.is_some_and(|next| next <= now);
        match self.phase {
            SearchPhase::Silent(mut wait) if is_due(&wait) => {
                wait.next = Some(now + self.delay(wait.attempts));
                wait.attempts = wait.attempts.saturating_add(1);
                self.phase = SearchPhase::Silent(wait);
                Some(SearchAttempt::Heartbeat)
            }
            SearchPhase::Unassociated(mut wait) if is_due(&wait) => {
                wait.next = None;
                wait.attempts = wait.attempts.saturating_add(1);
                self.phase = SearchPhase::Unassociated(wait);
                Some(SearchAttempt::Associate)
            }
            _ => None,
        }
    }

    /// Returns the time of the next attempt.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            SearchPhase::Up => None,
            SearchPhase::Silent(wait) | SearchPhase::Unassociated(wait) => wait.next,
        }
    }

    /// Returns half of the delay, which doubles with each attempt, plus a random part of the other
    /// half.
    fn delay(&mut self, attempts: u32) -> Duration {
        let least = Duration::from_millis(10);
        let most = self.plan.backoff_max.max(least);
        let factor = 1_u32.checked_shl(attempts).unwrap_or(u32::MAX);
        let factor = if attempts > 30 { u32::MAX } else { factor };
        let whole = self
            .plan
            .backoff
            .max(least)
            .saturating_mul(factor)
            .min(most);
        let [part, ..] = self.random.next_u64().to_be_bytes();
        whole / 2 + whole / 2 * part.into() / 255
    }
}

/// The sessions that are queued to be established again, and the pace at which they are.
#[derive(Debug)]
pub(crate) struct RestorationQueue {
    interval: Duration,
    max_in_flight: usize,
    waiting: VecDeque<Seid>,
    working: usize,
    /// The earliest time at which the next session may start.
    next: Option<Instant>,
}

/// The delay that a session may accumulate without slowing down the others, which allows for the
/// coarse resolution of timers.
const MAX_SCHEDULE_LAG: Duration = Duration::from_millis(20);

impl RestorationQueue {
    pub(crate) fn new(plan: &Restoration) -> Self {
        Self {
            interval: Duration::from_secs(1) / plan.rate.max(1),
            max_in_flight: plan.in_flight.max(1),
            waiting: VecDeque::new(),
            working: 0,
            next: None,
        }
    }

    /// Queues a session behind all others.
    pub(crate) fn push(&mut self, seid: Seid) {
        self.waiting.push_back(seid);
    }

    /// Returns `true` if no session is queued and none is being established again.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.working == 0
    }

    /// Returns the number of sessions that are queued or being established again.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.working
    }

    /// Returns the next session that may start; the caller reports its completion with
    /// [`RestorationQueue::done`].
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Seid> {
        let next = self.next.unwrap_or(now);
        if now < next || self.working >= self.max_in_flight {
            return None;
        }
        let seid = self.waiting.pop_front()?;
        self.working += 1;
        let due = now
            .checked_sub(MAX_SCHEDULE_LAG)
            .map_or(next, |slack| next.max(slack));
        self.next = Some(due + self.interval);
        Some(seid)
    }

    /// Records the completion of a session that started.
    pub(crate) fn done(&mut self) {
        self.working = self.working.saturating_sub(1);
    }

    /// Returns the time at which the next session may start.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let is_due = !self.waiting.is_empty() && self.working < self.max_in_flight;
        is_due.then(|| self.next.unwrap_or(now))
    }
}

/// The rules of a session, as requested by the control plane and acknowledged by the peer.
///
/// F-TEIDs that the peer chose are left for it to choose again, since a restarted user plane
/// assigns new ones. UE IP addresses that the peer chose are requested as they are, since the UE
/// already uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedRules(RuleSet);

impl AcknowledgedRules {
    /// Decodes an establishment that was accepted with this response. Returns `None` if the request
    /// is not valid according to this crate, so that later modifications could not be merged into
    /// it.
    pub(crate) fn establish(body: &[u8], answer: &[u8]) -> Option<Self> {
        Self::apply_acknowledged(
            &RuleSet::default(),
            MessageType::SESSION_ESTABLISHMENT_REQUEST,
            body,
            answer,
        )
    }

    /// Merges a modification that was accepted with this response.
    pub(crate) fn modify(&self, body: &[u8], answer: &[u8]) -> Option<Self> {
        if seeded(Bug::RestoredAsEstablished) {
            return Some(self.clone());
        }
        Self::apply_acknowledged(
            &self.0,
            MessageType::SESSION_MODIFICATION_REQUEST,
            body,
            answer,
        )
    }

    fn apply_acknowledged(
        rules: &RuleSet,
        kind: MessageType,
        body: &[u8],
        answer: &[u8],
    ) -> Option<Self> {
        let bytes = message(&Header::session(kind, Seid(0), Sequence::default()), body).ok()?;
        let frame = Frame::decode(&bytes).ok()?;
        let mut addresses = AcknowledgedAddresses::of(answer);
        let change = match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                RuleSet::establish(&frame, &mut addresses)
            }
            _ => rules.modify(&frame, &mut addresses),
        };
        change.ok().map(|change| Self(change.rules))
    }

    /// Returns the body of the request that establishes the session again: Node ID, CP F-SEID and
    /// rules, and the indication of a restoration (RESTI), TS 29.244 §8.2.136.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = self.0.bytes().to_vec();
        body.extend_from_slice(&IeType::PFCPSEREQ_FLAGS.0.to_be_bytes());
        body.extend_from_slice(&[0, 1, 1]);
        body
    }
}

/// An allocator that leaves F-TEIDs to be chosen, and takes UE IP addresses from the response of
/// the peer.
struct AcknowledgedAddresses(VecDeque<UeIpAddress>);

impl AcknowledgedAddresses {
    fn of(answer: &[u8]) -> Self {
        let mut addresses = VecDeque::new();
        let Ok(frame) = Frame::decode(answer) else {
            return Self(addresses);
        };
        let created = Tlvs::new(frame.body).map_while(Result::ok);
        for tlv in created.filter(|tlv| tlv.ie == IeType::CREATED_PDR) {
            for one in Tlvs::new(tlv.value).map_while(Result::ok) {
                if one.ie == IeType::UE_IP_ADDRESS
                    && let Ok(address) = UeIpAddress::decode(one.value)
                    && !addresses.contains(&address)
                {
                    addresses.push_back(address);
                }
            }
        }
        Self(addresses)
    }
}

impl Allocator for AcknowledgedAddresses {
    fn f_teid(&mut self, request: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        Ok(*request)
    }

    fn ue_address(
        &mut self,
        request: UeAddressRequest,
        network: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        // Identical requests for an address are made once, so the last address also serves those
        // that follow.
        let chosen = match self.0.len() {
            0 => return NoAllocator.ue_address(request, network),
            1 => self.0[0],
            _ => self.0.pop_front().unwrap_or_default(),
        };
        Ok((
            chosen.ipv4.filter(|_| request.ipv4),
            chosen.ipv6.filter(|_| request.ipv6),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        Instant::now()
    }

    fn plan() -> Restoration {
        Restoration {
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            rate: 100,
            in_flight: 2,
        }
    }

    /// Lets all setups fail until `count` were made, and returns the time of each.
    fn setups(search: &mut PeerSearch, mut now: Instant, count: usize) -> Vec<Instant> {
        let mut all = Vec::new();
        while all.len() < count {
            now = now.max(search.poll_timeout().expect("one is due"));
            assert_eq!(search.poll(now), Some(SearchAttempt::Associate));
            assert_eq!(search.poll(now), None, "its outcome is awaited");
            all.push(now);
            assert!(search.failed(now).is_some());
        }
        all
    }

    #[test]
    fn setup_attempts_start_at_once_and_back_off() {
        let (now, mut search) = (start(), PeerSearch::new(plan(), 7));
        assert!(search.unassociated(now) && !search.unassociated(now));
        let all = setups(&mut search, now, 40);
        assert_eq!(all[0], now);
        for (turn, pair) in all.windows(2).enumerate() {
            let whole = Duration::from_millis(100 << turn.min(20)).min(plan().backoff_max);
            let waited = pair[1] - pair[0];
            assert!(waited >= whole / 2 && waited <= whole, "{turn}: {waited:?}");
        }
    }

    #[test]
    fn flapping_peer_keeps_its_backoff() {
        let (mut now, mut search) = (start(), PeerSearch::new(plan(), 7));
        let begun = now;
        for _ in 0..100 {
            assert!(search.unassociated(now));
            now = now.max(search.poll_timeout().expect("one is due"));
            assert_eq!(search.poll(now), Some(SearchAttempt::Associate));
            assert!(search.found(now).is_some());
        }
        assert!(
            now - begun > 80 * plan().backoff_max / 2,
            "{:?}",
            now - begun
        );
    }

    #[test]
    fn backoff_jitter_depends_on_seed() {
        let now = start();
        let times = |seed| {
            let mut search = PeerSearch::new(plan(), seed);
            search.unassociated(now);
            setups(&mut search, now, 5)
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1)[1..], times(2)[1..]);
    }

    #[test]
    fn silent_peer_gets_heartbeats_and_unassociated_peer_gets_setups() {
        let (now, mut search) = (start(), PeerSearch::new(plan(), 7));
        assert!(search.silent(now) && !search.silent(now));
        let at = search.poll_timeout().expect("one is due");
        assert_eq!(search.poll(now), None);
        assert_eq!(search.poll(at), Some(SearchAttempt::Heartbeat));
        assert!(search.unassociated(at), "it restarted");
        assert_eq!(search.heard(at), None, "that is no association");
        assert_eq!(search.found(at), Some(at - now));
        assert!(search.is_up());
    }

    #[test]
    fn restoration_queue_respects_rate_and_in_flight_limit() {
        let (now, mut backlog) = (start(), RestorationQueue::new(&plan()));
        (1..=200).for_each(|seid| backlog.push(Seid(seid)));
        assert!(backlog.poll(now).is_some());
        assert_eq!(backlog.poll(now), None, "one in ten milliseconds");
        let later = now + Duration::from_secs(1);
        assert!(backlog.poll(later).is_some());
        assert_eq!(backlog.poll(later), None, "two are under way");
        backlog.done();
        backlog.done();
        // After a pause there is no burst.
        let mut begun = 0;
        while backlog.poll(later).is_some() {
            backlog.done();
            begun += 1;
        }
        assert!(begun <= 3, "{begun}");
    }
}
