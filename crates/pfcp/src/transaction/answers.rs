//! Requests of peers, and the answers kept for repetitions.

use std::collections::VecDeque;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::association::{AssociationId, Recovery};
use crate::message::MessageType;
use crate::seeded_bug::{Bug, seeded};
use crate::wire::{Frame, Header, Sequence};

/// The identifier of a request that a peer sent and that waits for our answer. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

impl TransactionId {
    /// Returns the number, for use as a token.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Creates an identifier from the number returned by [`TransactionId::get`].
    #[must_use]
    pub const fn from_token(token: u64) -> Self {
        Self(token)
    }
}

/// The bounds of [`ResponseCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseCacheLimits {
    /// The time for which an answer is kept: as long as a peer may repeat its request.
    pub hold: Duration,
    /// Maximum number of requests, answered or being processed.
    pub entries: usize,
    /// Maximum number of bytes of the kept answers.
    pub bytes: usize,
    /// Number of times that the processing of a request may be abandoned before the request counts
    /// as failed.
    pub attempts: u32,
}

impl Default for ResponseCacheLimits {
    /// Returns limits of nine seconds, 65 536 requests, 64 MiB and three attempts.
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(9),
            entries: 65_536,
            bytes: 64 << 20,
            attempts: 3,
        }
    }
}

/// The decision about a received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request is new. Process it, then call [`ResponseCache::answer`] or
    /// [`ResponseCache::abandon`].
    New(TransactionId),
    /// The request was answered before. Send the same bytes again.
    Retransmitted(Arc<[u8]>),
    /// The request is being processed. Do nothing.
    Working,
    /// The maximum number of requests is already being processed.
    Full,
}

/// The key by which a repeated request is recognized: its sender, the fields of its header, and a
/// digest of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResponseKey {
    /// Address and port of the sender of the request.
    pub peer: SocketAddr,
    /// The sequence number.
    pub sequence: Sequence,
    /// The message type.
    pub message_type: MessageType,
    /// A digest of the bytes, seeded with the seed of the table. The same build and seed give the
    /// same digest.
    pub digest: u64,
}

/// The incarnation of a peer that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOrigin {
    /// The association that the request belongs to.
    pub association: AssociationId,
    /// The Recovery Time Stamp of the peer when the request arrived.
    pub recovery: Recovery,
}

#[derive(Debug)]
struct AnswerEntry {
    id: TransactionId,
    header: Header,
    /// `None` if the request belongs to no association.
    origin: Option<RequestOrigin>,
    abandoned: u32,
    state: AnswerState,
}

#[derive(Debug)]
enum AnswerState {
    Working,
    Abandoned,
    Answered(Arc<[u8]>),
}

/// The requests of peers, each with its answer once it has one.
///
/// A request is identified by peer, sequence number, type and a digest of its bytes: a sequence
/// number that is reused for other content is a new request.
#[derive(Debug)]
pub struct ResponseCache {
    limits: ResponseCacheLimits,
    /// The seed of the digests. Peers do not know it, so they cannot construct colliding requests.
    seed: u64,
    next_id: u64,
    entries: FxHashMap<ResponseKey, AnswerEntry>,
    working: FxHashMap<TransactionId, ResponseKey>,
    /// Entries that may be dropped and the time of their expiry, in order of that time.
    expiring: VecDeque<(Instant, ResponseKey, TransactionId)>,
    bytes: usize,
    repeated: u64,
    evicted: u64,
}

impl ResponseCache {
    /// Creates an empty table. Keep `seed` secret from peers.
    #[must_use]
    pub fn new(limits: ResponseCacheLimits, seed: u64) -> Self {
        Self {
            limits,
            seed,
            next_id: 0,
            entries: FxHashMap::default(),
            working: FxHashMap::default(),
            expiring: VecDeque::new(),
            bytes: 0,
            repeated: 0,
            evicted: 0,
        }
    }

    /// Admits a request.
    pub fn admit(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>) -> Admission {
        self.expire(now);
        let key = ResponseKey::of(peer, frame, self.seed);
        let full = self.working.len() >= self.limits.entries;
        let id = TransactionId(self.next_id);
        match self.entries.entry(key) {
            Entry::Occupied(mut entry) => {
                self.repeated += 1;
                let entry = entry.get_mut();
                match &entry.state {
                    AnswerState::Working if !seeded(Bug::WorkedOnTwice) => {
                        return Admission::Working;
                    }
                    AnswerState::Answered(bytes) => {
                        return Admission::Retransmitted(Arc::clone(bytes));
                    }
                    AnswerState::Abandoned if full => return Admission::Full,
                    AnswerState::Abandoned | AnswerState::Working => {}
                }
                entry.state = AnswerState::Working;
                entry.id = id;
                self.next_id += 1;
                self.working.insert(id, key);
                Admission::New(id)
            }
            Entry::Vacant(_) if full => Admission::Full,
            Entry::Vacant(entry) => {
                entry.insert(AnswerEntry {
                    id,
                    header: frame.header,
                    origin: None,
                    abandoned: 0,
                    state: AnswerState::Working,
                });
                self.next_id += 1;
                self.working.insert(id, key);
                self.evict_to_limits();
                Admission::New(id)
            }
        }
    }

    /// Stores the answer to a request and returns its destination. Returns `None` if the request is
    /// not being processed.
    pub fn answer(
        &mut self,
        now: Instant,
        id: TransactionId,
        bytes: Arc<[u8]>,
    ) -> Option<SocketAddr> {
        let key = self.working.remove(&id)?;
        let entry = self.entries.get_mut(&key)?;
        self.bytes += bytes.len();
        entry.state = AnswerState::Answered(bytes);
        let hold = match seeded(Bug::AnswerForgotten) {
            true => Duration::ZERO,
            false => self.limits.hold,
        };
        self.expiring.push_back((now + hold, key, id));
        self.evict_to_limits();
        Some(key.peer)
    }

    /// Records the incarnation of a peer that sent a request which is being processed.
    pub fn attribute(&mut self, id: TransactionId, origin: RequestOrigin) {
        let key = self.working.get(&id);
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(key)) {
            entry.origin = Some(origin);
        }
    }

    /// Drops the requests of ended incarnations of a peer, with their answers: the next
    /// incarnation may use the same sequence numbers for the same bytes. Returns the dropped
    /// requests that were being processed.
    pub fn forget_origins(
        &mut self,
        is_over: impl Fn(&ResponseKey, RequestOrigin) -> bool,
    ) -> Vec<(TransactionId, ResponseKey)> {
        if seeded(Bug::AnswersOutliveRestart) {
            return Vec::new();
        }
        let (working, bytes) = (&mut self.working, &mut self.bytes);
        let mut unfinished = Vec::new();
        self.entries.retain(|key, entry| {
            if !entry.origin.is_some_and(|origin| is_over(key, origin)) {
                return true;
            }
            match &entry.state {
                AnswerState::Working => {
                    working.remove(&entry.id);
                    unfinished.push((entry.id, *key));
                }
                AnswerState::Answered(answer) => *bytes -= answer.len(),
                AnswerState::Abandoned => {}
            }
            false
        });
        unfinished
    }

    /// Returns the key of a request that is being processed.
    #[must_use]
    pub fn key(&self, id: TransactionId) -> Option<ResponseKey> {
        self.working.get(&id).copied()
    }

    /// Restores an answer given by an earlier table with the same seed, for the remaining time for
    /// which it was to be kept. Answers must be restored in the order in which they were given.
    pub fn restore(
        &mut self,
        now: Instant,
        left: Duration,
        (key, origin): (ResponseKey, Option<RequestOrigin>),
        bytes: Arc<[u8]>,
    ) {
        let id = TransactionId(self.next_id);
        self.next_id += 1;
        self.bytes += bytes.len();
        let entry = AnswerEntry {
            id,
            header: Header::node(key.message_type, key.sequence),
            origin,
            abandoned: 0,
            state: AnswerState::Answered(bytes),
        };
        // An earlier answer was for the same bytes before a restart of the peer.
        if let Some(before) = self.entries.insert(key, entry)
            && let AnswerState::Answered(bytes) = before.state
        {
            self.bytes -= bytes.len();
        }
        let until = now + left.min(self.limits.hold);
        self.expiring.push_back((until, key, id));
        self.evict_to_limits();
    }

    /// Abandons the processing of a request: its next repetition is processed afresh.
    ///
    /// Once the limit of attempts is reached, the request stays pending and its header is returned:
    /// answer that the system failed, because the peer may not repeat the request again.
    pub fn abandon(&mut self, now: Instant, id: TransactionId) -> Option<Header> {
        let key = *self.working.get(&id)?;
        let entry = self.entries.get_mut(&key)?;
        entry.abandoned += 1;
        if entry.abandoned >= self.limits.attempts {
            return Some(entry.header);
        }
        if seeded(Bug::AbandonedForEver) {
            return None;
        }
        entry.state = AnswerState::Abandoned;
        self.working.remove(&id);
        self.expiring.push_back((now + self.limits.hold, key, id));
        None
    }

    /// Drops a request without an answer, as if it had not arrived.
    pub fn ignore(&mut self, id: TransactionId) {
        if let Some(key) = self.working.remove(&id) {
            self.entries.remove(&key);
        }
    }

    /// Returns the sender of a request that is being processed.
    #[must_use]
    pub fn peer(&self, id: TransactionId) -> Option<SocketAddr> {
        self.working.get(&id).map(|key| key.peer)
    }

    /// Drops expired entries.
    pub fn expire(&mut self, now: Instant) {
        while self
            .expiring
            .front()
            .is_some_and(|(until, ..)| *until <= now)
        {
            self.forget_oldest();
        }
    }

    fn evict_to_limits(&mut self) {
        let over = |answers: &Self| {
            answers.entries.len() > answers.limits.entries || answers.bytes > answers.limits.bytes
        };
        while over(self) && !self.expiring.is_empty() {
            self.evicted += u64::from(self.forget_oldest());
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((_, key, id)) = self.expiring.pop_front() else {
            return false;
        };
        // A request that was abandoned and repeated has a newer entry in the queue.
        let Entry::Occupied(entry) = self.entries.entry(key) else {
            return false;
        };
        if entry.get().id != id || matches!(entry.get().state, AnswerState::Working) {
            return false;
        }
        if let AnswerState::Answered(bytes) = entry.remove().state {
            self.bytes -= bytes.len();
        }
        true
    }

    /// Returns the number of requests in the table, answered or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of requests that are being processed.
    #[must_use]
    pub fn working(&self) -> usize {
        self.working.len()
    }

    /// Returns `true` if the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of bytes of the kept answers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of requests that were repetitions.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Returns the number of answers that were dropped early because of a limit.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

impl ResponseKey {
    /// Creates the key of a request. `seed` is the seed of the table.
    #[must_use]
    pub fn of(peer: SocketAddr, frame: &Frame<'_>, seed: u64) -> Self {
        let mut digest = DefaultHasher::new();
        seed.hash(&mut digest);
        frame.bytes.hash(&mut digest);
        Self {
            peer,
            sequence: frame.header.sequence,
            message_type: frame.header.message_type,
            digest: digest.finish(),
        }
    }
}
