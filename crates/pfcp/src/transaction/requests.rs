//! Our requests that are waiting for answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::association::AssociationId;
use crate::message::MessageType;
use crate::seeded_bug::{Bug, seeded};
use crate::wire::{Seid, Sequence};

/// The identifier of a request that we sent. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// The retransmission timer and count of requests, TS 29.244 §6.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// The time after which an unanswered request is sent again.
    pub t1: Duration,
    /// Number of times that a request is sent in all; at least one.
    pub n1: u32,
}

impl Retransmission {
    /// Returns the time span in which a peer with the same settings may repeat a request.
    #[must_use]
    pub fn span(self) -> Duration {
        self.t1.saturating_mul(self.n1.max(1))
    }
}

impl Default for Retransmission {
    /// Returns a timer of three seconds and a count of three.
    fn default() -> Self {
        Self {
            t1: Duration::from_secs(3),
            n1: 3,
        }
    }
}

/// The error returned when the maximum number of requests is already waiting for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit of {limit} outstanding requests reached")]
pub struct RequestsFull {
    /// Maximum number of waiting requests.
    pub limit: usize,
}

/// The action for a request whose timer has expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerAction {
    /// The request is to be sent again.
    Retransmit {
        /// The request that is sent again.
        request: RequestId,
        /// Address and port to send to.
        peer: SocketAddr,
        /// The association that the request is about, if any.
        about: Option<AssociationId>,
        /// The same bytes as before.
        bytes: Arc<[u8]>,
    },
    /// The request was sent as often as allowed, and has been dropped.
    Failed {
        /// The request that got no answer.
        request: RequestId,
        /// Address and port that it was sent to.
        peer: SocketAddr,
    },
}

/// The table of requests that are waiting for answers.
///
/// All requests are retransmitted after the same time, so they expire in the order in which they
/// were sent, and a queue is sufficient.
///
/// A withdrawn request is not sent again and has no outcome. Its sequence number stays reserved
/// until its next deadline, so that a late answer is neither matched with another request nor
/// counted as unsolicited.
#[derive(Debug)]
pub struct Requests {
    retransmission: Retransmission,
    limit: usize,
    next_id: u64,
    next_sequence: Sequence,
    waiting: FxHashMap<(SocketAddr, Sequence), PendingRequest>,
    /// Number of withdrawn requests in `waiting`.
    withdrawn: usize,
    deadlines: VecDeque<Deadline>,
    unmatched: u64,
}

#[derive(Debug)]
struct PendingRequest {
    request: RequestId,
    /// The association that the request is about, if any.
    about: Option<AssociationId>,
    answer: MessageType,
    /// The contents that the answer must have, if the request is about a session.
    expected: Option<AnswerRequirement>,
    /// The encoded request, or `None` once it is withdrawn.
    bytes: Option<Arc<[u8]>>,
    sent: u32,
}

/// The contents that the answer to a request about a session must have. Any other answer is
/// discarded, and the request is sent again as if it had not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerRequirement {
    /// Our SEID of the session, which the answer carries, TS 29.244 §7.2.2.4.2.
    pub seid: Seid,
    /// `true` if the answer must have a valid Cause. Otherwise the owner of the request judges what
    /// the answer lacks.
    pub cause: bool,
}

/// A request that is waiting for its answer, and its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingRequest {
    /// The request that waits for its answer.
    pub request: RequestId,
    /// The address that the request was sent to.
    pub peer: SocketAddr,
    /// The sequence number of the request.
    pub sequence: Sequence,
}

#[derive(Debug)]
struct Deadline {
    at: Instant,
    key: (SocketAddr, Sequence),
    request: RequestId,
}

impl Requests {
    /// Creates an empty table for at most `limit` requests. Sequence numbers start with `first`.
    #[must_use]
    pub fn new(retransmission: Retransmission, limit: usize, first: Sequence) -> Self {
        Self {
            retransmission,
            limit,
            next_id: 0,
            next_sequence: first,
            waiting: FxHashMap::default(),
            withdrawn: 0,
            deadlines: VecDeque::new(),
            unmatched: 0,
        }
    }

    /// Reserves a sequence number that no current request to `peer` uses.
    ///
    /// # Errors
    /// Returns [`RequestsFull`] if the maximum number of requests is already waiting.
    pub fn sequence(&mut self, peer: SocketAddr) -> Result<Sequence, RequestsFull> {
        // The limit is below the number of sequence numbers, so a free one always exists.
        let limit = self.limit.min(Sequence::MAX.get() as usize);
        if self.waiting.len() >= limit {
            return Err(RequestsFull { limit });
        }
        loop {
            let sequence = self.next_sequence;
            self.next_sequence = sequence.next();
            if !self.waiting.contains_key(&(peer, sequence)) {
                if seeded(Bug::NumberUsedTwice) && self.next_id % 4 == 3 {
                    self.next_sequence = sequence;
                }
                return Ok(sequence);
            }
        }
    }

    /// Records that a request was sent with a sequence number from [`Requests::sequence`]. `about`
    /// is the association whose end withdraws the request.
    pub fn sent(
        &mut self,
        now: Instant,
        (peer, sequence): (SocketAddr, Sequence),
        about: Option<AssociationId>,
        answer: MessageType,
        bytes: Arc<[u8]>,
    ) -> RequestId {
        let request = RequestId(self.next_id);
        self.next_id += 1;
        let key = (peer, sequence);
        self.waiting.insert(
            key,
            PendingRequest {
                request,
                about,
                answer,
                expected: None,
                bytes: Some(bytes),
                sent: 1,
            },
        );
        self.deadlines.push_back(Deadline {
            at: now + self.retransmission.t1,
            key,
            request,
        });
        request
    }

    /// Records the contents that the answer to a request must have.
    pub fn expect(&mut self, outstanding: OutstandingRequest, expected: AnswerRequirement) {
        let key = (outstanding.peer, outstanding.sequence);
        let waiting = self.waiting.get_mut(&key);
        if let Some(waiting) = waiting.filter(|waiting| waiting.request == outstanding.request) {
            waiting.expected = Some(expected);
        }
    }

    /// Returns the contents that an answer of type `answer` must have, if they were recorded for a
    /// waiting request that is answered by this type.
    #[must_use]
    pub fn expected(
        &self,
        peer: SocketAddr,
        sequence: Sequence,
        answer: MessageType,
    ) -> Option<AnswerRequirement> {
        let waiting = self.waiting.get(&(peer, sequence))?;
        let fits = waiting.bytes.is_some() && waiting.answer == answer;
        waiting.expected.filter(|_| fits)
    }

    /// Matches an answer with its request. Returns `None` if the answer is late or repeated, comes
    /// from another address, or has the wrong type for the request.
    ///
    /// A Version Not Supported Response answers any request.
    pub fn answered(
        &mut self,
        peer: SocketAddr,
        sequence: Sequence,
        answer: MessageType,
    ) -> Option<RequestId> {
        let fits = |waiting: &PendingRequest| {
            let is_of_it = waiting.answer == answer;
            let is_any = answer == MessageType::VERSION_NOT_SUPPORTED_RESPONSE;
            waiting.bytes.is_some() && (is_of_it || is_any)
        };
        if !self.waiting.get(&(peer, sequence)).is_some_and(fits) {
            self.unmatched += 1;
            return None;
        }
        let answered = self.waiting.remove(&(peer, sequence));
        self.prune_deadlines();
        answered.map(|waiting| waiting.request)
    }

    /// Withdraws a request: it is not sent again, and its answer is ignored. Returns its bytes, in
    /// the same allocation that may still be queued for sending, or `None` if the request is not
    /// waiting.
    pub fn withdraw(&mut self, outstanding: OutstandingRequest) -> Option<Arc<[u8]>> {
        let key = (outstanding.peer, outstanding.sequence);
        let waiting = self.waiting.get_mut(&key);
        let waiting = waiting.filter(|waiting| waiting.request == outstanding.request)?;
        let bytes = waiting.bytes.take();
        self.withdrawn += usize::from(bytes.is_some());
        bytes
    }

    /// Returns `true` if the sequence number is that of a withdrawn request.
    #[must_use]
    pub fn is_withdrawn(&self, peer: SocketAddr, sequence: Sequence) -> bool {
        let waiting = self.waiting.get(&(peer, sequence));
        waiting.is_some_and(|waiting| waiting.bytes.is_none())
    }

    /// Returns the waiting requests about an association, oldest first.
    #[must_use]
    pub fn about(&self, association: AssociationId) -> Vec<OutstandingRequest> {
        let of_it = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.about == Some(association) && waiting.bytes.is_some());
        let mut found: Vec<_> = of_it
            .map(|(&(peer, sequence), waiting)| OutstandingRequest {
                request: waiting.request,
                peer,
                sequence,
            })
            .collect();
        found.sort_unstable_by_key(|one| one.request);
        found
    }

    /// Removes the deadlines of answered requests once they outnumber the others.
    fn prune_deadlines(&mut self) {
        if self.deadlines.len() > 64 + 2 * self.waiting.len() {
            let waiting = &self.waiting;
            self.deadlines.retain(|deadline| {
                let current = waiting.get(&deadline.key);
                current.is_some_and(|waiting| waiting.request == deadline.request)
            });
        }
    }

    /// Returns the next request that is due at `now`.
    pub fn poll_due(&mut self, now: Instant) -> Option<TimerAction> {
        while self
            .deadlines
            .front()
            .is_some_and(|deadline| deadline.at <= now)
        {
            let Deadline { key, request, .. } = self.deadlines.pop_front()?;
            let Some(waiting) = self.waiting.get_mut(&key) else {
                continue;
            };
            if waiting.request != request {
                continue;
            }
            let Some(bytes) = waiting.bytes.clone() else {
                self.waiting.remove(&key);
                self.withdrawn -= 1;
                continue;
            };
            if waiting.sent >= self.retransmission.n1.max(1) {
                self.waiting.remove(&key);
                return Some(TimerAction::Failed {
                    request,
                    peer: key.0,
                });
            }
            waiting.sent += 1;
            self.deadlines.push_back(Deadline {
                at: now + self.retransmission.t1,
                key,
                request,
            });
            return Some(TimerAction::Retransmit {
                request,
                peer: key.0,
                about: waiting.about,
                bytes,
            });
        }
        None
    }

    /// Returns the time at which [`Requests::poll_due`] may next return a request.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        while let Some(deadline) = self.deadlines.front() {
            let current = self.waiting.get(&deadline.key);
            if current.is_some_and(|waiting| waiting.request == deadline.request) {
                return Some(deadline.at);
            }
            self.deadlines.pop_front();
        }
        None
    }

    /// Returns the number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() - self.withdrawn
    }

    /// Returns `true` if no request is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of answers that matched no request.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.unmatched
    }
}
