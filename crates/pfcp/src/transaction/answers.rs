//! Requests that a peer sent, and the answers that it may ask for again.

use std::collections::VecDeque;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::message::MessageType;
use crate::planted::{Bug, planted};
use crate::wire::{Frame, Header, Sequence};

/// Identifies a request that a peer sent and that waits for our answer; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

impl TransactionId {
    /// Returns the number, for use as a token.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Makes the identifier that [`TransactionId::get`] gave the number of.
    #[must_use]
    pub const fn from_token(token: u64) -> Self {
        Self(token)
    }
}

/// The bounds of [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// How long an answer is kept: as long as a peer may repeat its request.
    pub hold: Duration,
    /// How many requests are kept, answered or being worked on.
    pub entries: usize,
    /// How many octets the kept answers may have.
    pub octets: usize,
    /// How often work on a request may be abandoned before it counts as failed.
    pub attempts: u32,
}

impl Default for AnswerLimits {
    /// Nine seconds, 65 536 requests, 64 MiB, three attempts.
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(9),
            entries: 65_536,
            octets: 64 << 20,
            attempts: 3,
        }
    }
}

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is new: work on it, then call [`Answers::answer`] or [`Answers::abandon`].
    New(TransactionId),
    /// It was answered before: send the same octets.
    Again(Arc<[u8]>),
    /// It is being worked on: nothing is to be done.
    Working,
    /// As many requests are being worked on as may be.
    Full,
}

/// What makes a repetition of a request known: who sent it, what its header says, and a digest of
/// all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnswerKey {
    /// Who sent it.
    pub peer: SocketAddr,
    /// Its sequence number.
    pub sequence: Sequence,
    /// Its type.
    pub message_type: MessageType,
    /// A digest of its octets, which starts at the seed of the table. The same build and the same
    /// seed give the same digest.
    pub digest: u64,
}

#[derive(Debug)]
struct Kept {
    id: TransactionId,
    header: Header,
    abandoned: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Working,
    Abandoned,
    Answered(Arc<[u8]>),
}

/// The requests of peers, each with its answer once there is one.
///
/// A request is known by peer, sequence number, type and a digest of its octets: a sequence number
/// that is used again for something else is a new request.
#[derive(Debug)]
pub struct Answers {
    limits: AnswerLimits,
    /// Where digests start, unknown to peers: they cannot choose octets whose digests collide.
    seed: u64,
    next_id: u64,
    kept: FxHashMap<AnswerKey, Kept>,
    working: FxHashMap<TransactionId, AnswerKey>,
    /// What may be forgotten, and when; in the order of time.
    settled: VecDeque<(Instant, AnswerKey, TransactionId)>,
    octets: usize,
    repeated: u64,
    evicted: u64,
}

impl Answers {
    /// Makes an empty table; `seed` is best kept from peers.
    #[must_use]
    pub fn new(limits: AnswerLimits, seed: u64) -> Self {
        Self {
            limits,
            seed,
            next_id: 0,
            kept: FxHashMap::default(),
            working: FxHashMap::default(),
            settled: VecDeque::new(),
            octets: 0,
            repeated: 0,
            evicted: 0,
        }
    }

    /// Takes a request in.
    pub fn admit(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>) -> Admission {
        self.expire(now);
        let key = AnswerKey::of(peer, frame, self.seed);
        let full = self.working.len() >= self.limits.entries;
        let id = TransactionId(self.next_id);
        match self.kept.entry(key) {
            Entry::Occupied(mut entry) => {
                self.repeated += 1;
                let kept = entry.get_mut();
                match &kept.state {
                    State::Working if !planted(Bug::WorkedOnTwice) => return Admission::Working,
                    State::Answered(octets) => return Admission::Again(Arc::clone(octets)),
                    State::Abandoned if full => return Admission::Full,
                    State::Abandoned | State::Working => {}
                }
                kept.state = State::Working;
                kept.id = id;
                self.next_id += 1;
                self.working.insert(id, key);
                Admission::New(id)
            }
            Entry::Vacant(_) if full => Admission::Full,
            Entry::Vacant(entry) => {
                entry.insert(Kept {
                    id,
                    header: frame.header,
                    abandoned: 0,
                    state: State::Working,
                });
                self.next_id += 1;
                self.working.insert(id, key);
                self.shrink();
                Admission::New(id)
            }
        }
    }

    /// Keeps the answer; returns to whom it goes. `None` when nobody waits for it.
    pub fn answer(
        &mut self,
        now: Instant,
        id: TransactionId,
        octets: Arc<[u8]>,
    ) -> Option<SocketAddr> {
        let key = self.working.remove(&id)?;
        let kept = self.kept.get_mut(&key)?;
        self.octets += octets.len();
        kept.state = State::Answered(octets);
        let hold = match planted(Bug::AnswerForgotten) {
            true => Duration::ZERO,
            false => self.limits.hold,
        };
        self.settled.push_back((now + hold, key, id));
        self.shrink();
        Some(key.peer)
    }

    /// Returns by what a request that is being worked on is known.
    #[must_use]
    pub fn key(&self, id: TransactionId) -> Option<AnswerKey> {
        self.working.get(&id).copied()
    }

    /// Puts back an answer that an earlier table with the same seed gave, for as long as it was
    /// still to be kept. Answers are put back in the order in which they were given.
    pub fn restore(&mut self, now: Instant, left: Duration, key: AnswerKey, octets: Arc<[u8]>) {
        let Entry::Vacant(entry) = self.kept.entry(key) else {
            return;
        };
        let id = TransactionId(self.next_id);
        self.next_id += 1;
        self.octets += octets.len();
        entry.insert(Kept {
            id,
            header: Header::node(key.message_type, key.sequence),
            abandoned: 0,
            state: State::Answered(octets),
        });
        let until = now + left.min(self.limits.hold);
        self.settled.push_back((until, key, id));
        self.shrink();
    }

    /// Gives work on a request up: the next repetition is worked on afresh.
    ///
    /// After as many times as the limits say, the request still waits, and its header is returned:
    /// answer that the system failed. A peer may not repeat it once more.
    pub fn abandon(&mut self, now: Instant, id: TransactionId) -> Option<Header> {
        let key = *self.working.get(&id)?;
        let kept = self.kept.get_mut(&key)?;
        kept.abandoned += 1;
        if kept.abandoned >= self.limits.attempts {
            return Some(kept.header);
        }
        if planted(Bug::AbandonedForEver) {
            return None;
        }
        kept.state = State::Abandoned;
        self.working.remove(&id);
        self.settled.push_back((now + self.limits.hold, key, id));
        None
    }

    /// Forgets a request without an answer, as if it had not come.
    pub fn ignore(&mut self, id: TransactionId) {
        if let Some(key) = self.working.remove(&id) {
            self.kept.remove(&key);
        }
    }

    /// Returns who sent a request that is being worked on.
    #[must_use]
    pub fn peer(&self, id: TransactionId) -> Option<SocketAddr> {
        self.working.get(&id).map(|key| key.peer)
    }

    /// Forgets what need not be kept any longer.
    pub fn expire(&mut self, now: Instant) {
        while self
            .settled
            .front()
            .is_some_and(|(until, ..)| *until <= now)
        {
            self.forget_oldest();
        }
    }

    fn shrink(&mut self) {
        let over = |answers: &Self| {
            answers.kept.len() > answers.limits.entries || answers.octets > answers.limits.octets
        };
        while over(self) && !self.settled.is_empty() {
            self.evicted += u64::from(self.forget_oldest());
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((_, key, id)) = self.settled.pop_front() else {
            return false;
        };
        // A request that was abandoned and came again has a newer entry in the queue.
        let Entry::Occupied(entry) = self.kept.entry(key) else {
            return false;
        };
        if entry.get().id != id || matches!(entry.get().state, State::Working) {
            return false;
        }
        if let State::Answered(octets) = entry.remove().state {
            self.octets -= octets.len();
        }
        true
    }

    /// Returns how many requests are kept, answered or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns how many requests are being worked on.
    #[must_use]
    pub fn working(&self) -> usize {
        self.working.len()
    }

    /// Says that no request is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns how many octets the kept answers have.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Returns how many requests were repetitions.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Returns how many answers were forgotten before their time, because of a limit.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

impl AnswerKey {
    /// Makes the key of a request; `seed` is that of the table.
    #[must_use]
    pub fn of(peer: SocketAddr, frame: &Frame<'_>, seed: u64) -> Self {
        let mut digest = DefaultHasher::new();
        seed.hash(&mut digest);
        frame.octets.hash(&mut digest);
        Self {
            peer,
            sequence: frame.header.sequence,
            message_type: frame.header.message_type,
            digest: digest.finish(),
        }
    }
}
