//! What a control plane does about a peer that it lost: when it looks for the peer, and how fast it
//! establishes sessions again, TS 23.527 clause 4.
//!
//! ```text
//!          no answer to heartbeats
//!      ┌───────────────────────────▶ Silent ── heartbeats, with backoff ──┐
//!  Up ─┤ ◀────────── answer, same Recovery Time Stamp ────────┘           │ later time stamp
//!      │                                                                  ▼
//!      └── restarted, or knows no association ──▶ Adrift ── setups, with backoff
//!          ◀────────────────────────── answer ────────┘
//! ```
//!
//! A silent peer is asked with heartbeats, not with setups: a setup would end the sessions of a
//! peer that was only out of reach, TS 29.244 §6.2.6.2.2.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use strowger_pfcp::endpoint::message;
use strowger_pfcp::ie::{Cause, FTeid, UeIpAddress};
use strowger_pfcp::session::{Allocator, NoAllocator, RuleSet, UeWish};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, Header, Ie as _, IeType, MessageType, Seid, Sequence};

use crate::planted::{Bug, planted};

/// The pace at which a lost peer is looked for and its sessions are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restoration {
    /// The time between the first two attempts to find a peer; it doubles with each that fails, and
    /// up to half of it is left out by chance, so that many peers do not ask at the same time.
    pub backoff: Duration,
    /// The longest time between two attempts.
    pub backoff_max: Duration,
    /// Sessions that are established again a second; at least one.
    pub rate: u32,
    /// Sessions that are established again at a time; at least one.
    pub in_flight: usize,
}

impl Default for Restoration {
    /// Half a second, doubled up to 30 s; 1000 sessions a second, 64 at a time.
    fn default() -> Self {
        Self {
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            rate: 1000,
            in_flight: 64,
        }
    }
}

/// What becomes of a session that its peer lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLoss {
    /// It is forgotten.
    #[default]
    Forget,
    /// It is established again as it was last acknowledged: with the same CP F-SEID, rules and UE
    /// IP addresses, and the same F-TEIDs but for those that the peer was asked to choose.
    Restore,
}

/// The reason for which a peer counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerLoss {
    /// It did not answer a heartbeat, however often that was sent. Its sessions stay until it says
    /// that it restarted.
    Silent,
    /// It restarted, and has this Recovery Time Stamp now, in seconds since 1900.
    Restarted(u32),
    /// It answered with Cause 72: it knows no association with us, and so no session of ours.
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

/// The attempts to find a peer again, without I/O.
#[derive(Debug)]
pub(crate) struct Search {
    plan: Restoration,
    stand: Stand,
    /// When the peer was found last, and after how many attempts.
    found: Option<(Instant, u32)>,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Up,
    Silent(Wait),
    Adrift(Wait),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    since: Instant,
    attempts: u32,
    /// When the next attempt is due; `None` while the outcome of one is awaited.
    next: Option<Instant>,
}

/// An attempt that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// A heartbeat.
    Enquire,
    /// An association setup; [`Search::found`] or [`Search::failed`] is to follow.
    Associate,
}

impl Search {
    pub(crate) const fn new(plan: Restoration, seed: u64) -> Self {
        Self {
            plan,
            stand: Stand::Up,
            found: None,
            seed,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.stand == Stand::Up
    }

    /// Notes that heartbeats are not answered; true if that is news.
    pub(crate) fn silent(&mut self, now: Instant) -> bool {
        if !self.is_up() {
            return false;
        }
        let next = now + self.delay(0);
        self.stand = Stand::Silent(Wait {
            since: now,
            attempts: 1,
            next: Some(next),
        });
        true
    }

    /// Notes that the peer knows no association; true if that is news.
    ///
    /// The first attempt is made at once, unless the peer was found only just before.
    pub(crate) fn adrift(&mut self, now: Instant) -> bool {
        let since = match self.stand {
            Stand::Adrift(_) => return false,
            Stand::Silent(wait) => wait.since,
            Stand::Up => now,
        };
        let recent = self
            .found
            .filter(|(at, _)| now < *at + self.plan.backoff_max);
        let (attempts, next) = match recent {
            None => (0, now),
            Some((_, attempts)) => (attempts, now + self.delay(attempts)),
        };
        self.stand = Stand::Adrift(Wait {
            since,
            attempts,
            next: Some(next),
        });
        true
    }

    /// Notes that a silent peer was heard; returns for how long it was lost.
    pub(crate) fn heard(&mut self, now: Instant) -> Option<Duration> {
        match self.stand {
            Stand::Silent(wait) => {
                self.stand = Stand::Up;
                Some(now.saturating_duration_since(wait.since))
            }
            Stand::Up | Stand::Adrift(_) => None,
        }
    }

    /// Notes that there is an association; returns for how long the peer was lost.
    pub(crate) fn found(&mut self, now: Instant) -> Option<Duration> {
        let (Stand::Silent(wait) | Stand::Adrift(wait)) = self.stand else {
            return None;
        };
        self.found = Some((now, wait.attempts));
        self.stand = Stand::Up;
        Some(now.saturating_duration_since(wait.since))
    }

    /// Notes that a setup was refused or not answered; returns when the next one is made.
    pub(crate) fn failed(&mut self, now: Instant) -> Option<Duration> {
        let Stand::Adrift(mut wait) = self.stand else {
            return None;
        };
        let delay = self.delay(wait.attempts.saturating_sub(1));
        wait.next = Some(now + delay);
        self.stand = Stand::Adrift(wait);
        Some(delay)
    }

    /// Returns the attempt that is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Attempt> {
        let is_due = |wait: &Wait| wait.next.is_some_and(|next| next <= now);
        match self.stand {
            Stand::Silent(mut wait) if is_due(&wait) => {
                wait.next = Some(now + self.delay(wait.attempts));
                wait.attempts = wait.attempts.saturating_add(1);
                self.stand = Stand::Silent(wait);
                Some(Attempt::Enquire)
            }
            Stand::Adrift(mut wait) if is_due(&wait) => {
                wait.next = None;
                wait.attempts = wait.attempts.saturating_add(1);
                self.stand = Stand::Adrift(wait);
                Some(Attempt::Associate)
            }
            _ => None,
        }
    }

    /// Returns when the next attempt is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.stand {
            Stand::Up => None,
            Stand::Silent(wait) | Stand::Adrift(wait) => wait.next,
        }
    }

    /// Half of the time that is doubled with each attempt, and a part of the other half.
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
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.seed;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let part = u32::try_from((value ^ (value >> 31)) & 0xff).unwrap_or_default();
        whole / 2 + whole / 2 * part / 255
    }
}

/// The sessions that wait to be established again, and the pace at which that is done.
#[derive(Debug)]
pub(crate) struct Backlog {
    interval: Duration,
    room: usize,
    waiting: VecDeque<Seid>,
    working: usize,
    /// When the next one may begin.
    next: Option<Instant>,
}

/// By how much a session may begin late without slowing the others down: timers are that coarse.
const SLACK: Duration = Duration::from_millis(20);

impl Backlog {
    pub(crate) fn new(plan: &Restoration) -> Self {
        Self {
            interval: Duration::from_secs(1) / plan.rate.max(1),
            room: plan.in_flight.max(1),
            waiting: VecDeque::new(),
            working: 0,
            next: None,
        }
    }

    /// Lets a session wait, behind all others.
    pub(crate) fn push(&mut self, seid: Seid) {
        self.waiting.push_back(seid);
    }

    /// Returns true if no session waits and none is being established again.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.working == 0
    }

    /// Sessions that wait or are being established again.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.working
    }

    /// Takes the next session that may begin; [`Backlog::done`] is to follow.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Seid> {
        let next = self.next.unwrap_or(now);
        if now < next || self.working >= self.room {
            return None;
        }
        let seid = self.waiting.pop_front()?;
        self.working += 1;
        let due = now.checked_sub(SLACK).map_or(next, |slack| next.max(slack));
        self.next = Some(due + self.interval);
        Some(seid)
    }

    /// Notes the outcome of one that began.
    pub(crate) fn done(&mut self) {
        self.working = self.working.saturating_sub(1);
    }

    /// Returns when the next session may begin.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let is_due = !self.waiting.is_empty() && self.working < self.room;
        is_due.then(|| self.next.unwrap_or(now))
    }
}

/// The rules of a session as the control plane asked for them and the peer acknowledged them.
///
/// Ends of tunnels that the peer chooses are left to be chosen once more: a user plane that
/// restarted gives new ones. UE IP addresses that it chose are asked for as they are, since the
/// user has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged(RuleSet);

impl Acknowledged {
    /// Reads an establishment that was accepted with this answer. `None` if it cannot be merged
    /// with what follows, which a request that this crate does not read as sound cannot.
    pub(crate) fn establish(body: &[u8], answer: &[u8]) -> Option<Self> {
        Self::fold(
            &RuleSet::default(),
            MessageType::SESSION_ESTABLISHMENT_REQUEST,
            body,
            answer,
        )
    }

    /// Merges a modification that was accepted with this answer.
    pub(crate) fn modify(&self, body: &[u8], answer: &[u8]) -> Option<Self> {
        if planted(Bug::RestoredAsEstablished) {
            return Some(self.clone());
        }
        Self::fold(
            &self.0,
            MessageType::SESSION_MODIFICATION_REQUEST,
            body,
            answer,
        )
    }

    fn fold(rules: &RuleSet, kind: MessageType, body: &[u8], answer: &[u8]) -> Option<Self> {
        let octets = message(&Header::session(kind, Seid(0), Sequence::default()), body).ok()?;
        let frame = Frame::decode(&octets).ok()?;
        let mut told = Told::of(answer);
        let change = match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => RuleSet::establish(&frame, &mut told),
            _ => rules.modify(&frame, &mut told),
        };
        change.ok().map(|change| Self(change.rules))
    }

    /// The body of the establishment that makes the session what it was: Node ID, CP F-SEID and
    /// rules, and the indication that it is a restoration (RESTI), TS 29.244 §8.2.136.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = self.0.octets().to_vec();
        body.extend_from_slice(&IeType::PFCPSEREQ_FLAGS.0.to_be_bytes());
        body.extend_from_slice(&[0, 1, 1]);
        body
    }
}

/// Leaves ends of tunnels to be chosen, and takes UE IP addresses from the peer's answer.
struct Told(VecDeque<UeIpAddress>);

impl Told {
    fn of(answer: &[u8]) -> Self {
        let mut told = VecDeque::new();
        let Ok(frame) = Frame::decode(answer) else {
            return Self(told);
        };
        let created = Tlvs::new(frame.body).map_while(Result::ok);
        for tlv in created.filter(|tlv| tlv.ie == IeType::CREATED_PDR) {
            for one in Tlvs::new(tlv.value).map_while(Result::ok) {
                if one.ie == IeType::UE_IP_ADDRESS
                    && let Ok(address) = UeIpAddress::decode(one.value)
                    && !told.contains(&address)
                {
                    told.push_back(address);
                }
            }
        }
        Self(told)
    }
}

impl Allocator for Told {
    fn f_teid(&mut self, wish: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        Ok(*wish)
    }

    fn ue_address(
        &mut self,
        wish: UeWish,
        network: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        // Equal wishes are asked for once: one address for each that follows.
        let told = match self.0.len() {
            0 => return NoAllocator.ue_address(wish, network),
            1 => self.0[0],
            _ => self.0.pop_front().unwrap_or_default(),
        };
        Ok((
            told.ipv4.filter(|_| wish.ipv4),
            told.ipv6.filter(|_| wish.ipv6),
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

    /// Lets all setups fail until `count` were made; when each was.
    fn setups(search: &mut Search, mut now: Instant, count: usize) -> Vec<Instant> {
        let mut all = Vec::new();
        while all.len() < count {
            now = now.max(search.poll_timeout().expect("one is due"));
            assert_eq!(search.poll(now), Some(Attempt::Associate));
            assert_eq!(search.poll(now), None, "its outcome is awaited");
            all.push(now);
            assert!(search.failed(now).is_some());
        }
        all
    }

    #[test]
    fn setups_begin_at_once_and_come_ever_more_rarely() {
        let (now, mut search) = (start(), Search::new(plan(), 7));
        assert!(search.adrift(now) && !search.adrift(now));
        let all = setups(&mut search, now, 40);
        assert_eq!(all[0], now);
        for (turn, pair) in all.windows(2).enumerate() {
            let whole = Duration::from_millis(100 << turn.min(20)).min(plan().backoff_max);
            let waited = pair[1] - pair[0];
            assert!(waited >= whole / 2 && waited <= whole, "{turn}: {waited:?}");
        }
    }

    #[test]
    fn a_peer_that_is_lost_again_as_soon_as_it_is_found_is_asked_no_faster() {
        let (mut now, mut search) = (start(), Search::new(plan(), 7));
        let begun = now;
        for _ in 0..100 {
            assert!(search.adrift(now));
            now = now.max(search.poll_timeout().expect("one is due"));
            assert_eq!(search.poll(now), Some(Attempt::Associate));
            assert!(search.found(now).is_some());
        }
        assert!(
            now - begun > 80 * plan().backoff_max / 2,
            "{:?}",
            now - begun
        );
    }

    #[test]
    fn two_seeds_do_not_ask_at_the_same_time() {
        let now = start();
        let times = |seed| {
            let mut search = Search::new(plan(), seed);
            search.adrift(now);
            setups(&mut search, now, 5)
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1)[1..], times(2)[1..]);
    }

    #[test]
    fn a_silent_peer_is_asked_by_heartbeats_and_one_adrift_by_setups() {
        let (now, mut search) = (start(), Search::new(plan(), 7));
        assert!(search.silent(now) && !search.silent(now));
        let at = search.poll_timeout().expect("one is due");
        assert_eq!(search.poll(now), None);
        assert_eq!(search.poll(at), Some(Attempt::Enquire));
        assert!(search.adrift(at), "it restarted");
        assert_eq!(search.heard(at), None, "that is no association");
        assert_eq!(search.found(at), Some(at - now));
        assert!(search.is_up());
    }

    #[test]
    fn a_backlog_keeps_to_its_rate_and_to_its_room() {
        let (now, mut backlog) = (start(), Backlog::new(&plan()));
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
