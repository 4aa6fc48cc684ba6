//! Requests that we sent and that wait for their answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::association::AssociationId;
use crate::message::MessageType;
use crate::planted::{Bug, planted};
use crate::wire::Sequence;

/// Identifies a request that we sent; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// How often, and for how long, a request is sent again, TS 29.244 §6.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// The time after which a request without an answer is sent again.
    pub t1: Duration,
    /// How many times a request is sent in all; at least once.
    pub n1: u32,
}

impl Retransmission {
    /// Returns how long a peer with the same settings may repeat a request.
    #[must_use]
    pub fn span(self) -> Duration {
        self.t1.saturating_mul(self.n1.max(1))
    }
}

impl Default for Retransmission {
    /// Three seconds, three times.
    fn default() -> Self {
        Self {
            t1: Duration::from_secs(3),
            n1: 3,
        }
    }
}

/// No more requests may wait for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} requests wait for answers already")]
pub struct RequestsFull {
    /// How many may wait.
    pub limit: usize,
}

/// What is to be done with a request whose time is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// It is to be sent again.
    Again {
        /// The request.
        request: RequestId,
        /// Where to.
        peer: SocketAddr,
        /// The same octets as before.
        octets: Arc<[u8]>,
    },
    /// It was sent as often as it may be, and is forgotten.
    Failed {
        /// The request.
        request: RequestId,
        /// To whom it was sent.
        peer: SocketAddr,
    },
}

/// The requests that wait for answers.
///
/// Every request is sent again after the same time, so the order of sending is the order of
/// deadlines, and a queue is enough.
///
/// A request that is withdrawn is not sent again and has no outcome. Its sequence number stays
/// taken until its next deadline, so that the answer that may be on its way is neither taken for
/// that of another request nor for one that nobody asked for.
#[derive(Debug)]
pub struct Requests {
    retransmission: Retransmission,
    limit: usize,
    next_id: u64,
    next_sequence: Sequence,
    waiting: FxHashMap<(SocketAddr, Sequence), Waiting>,
    /// Of those in `waiting`, the number of withdrawn ones.
    withdrawn: usize,
    deadlines: VecDeque<Deadline>,
    late: u64,
}

#[derive(Debug)]
struct Waiting {
    request: RequestId,
    /// The association that the request is about, if there is one.
    about: Option<AssociationId>,
    answer: MessageType,
    /// `None` once it is withdrawn.
    octets: Option<Arc<[u8]>>,
    sent: u32,
}

/// A request that waits for its answer, and where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The request.
    pub request: RequestId,
    /// The address that it was sent to.
    pub peer: SocketAddr,
    /// Its sequence number.
    pub sequence: Sequence,
}

#[derive(Debug)]
struct Deadline {
    at: Instant,
    key: (SocketAddr, Sequence),
    request: RequestId,
}

impl Requests {
    /// Makes an empty table for at most `limit` requests; numbering starts with `first`.
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
            late: 0,
        }
    }

    /// Reserves a sequence number that no request to `peer` uses at present.
    ///
    /// # Errors
    /// [`RequestsFull`] when as many requests wait as may.
    pub fn sequence(&mut self, peer: SocketAddr) -> Result<Sequence, RequestsFull> {
        // The limit is below the number of sequence numbers, so that one is always free.
        let limit = self.limit.min(Sequence::MAX.get() as usize);
        if self.waiting.len() >= limit {
            return Err(RequestsFull { limit });
        }
        loop {
            let sequence = self.next_sequence;
            self.next_sequence = sequence.next();
            if !self.waiting.contains_key(&(peer, sequence)) {
                if planted(Bug::NumberUsedTwice) && self.next_id % 4 == 3 {
                    self.next_sequence = sequence;
                }
                return Ok(sequence);
            }
        }
    }

    /// Notes that a request was sent, with a number from [`Requests::sequence`]. `about` is the
    /// association with which it may be withdrawn.
    pub fn sent(
        &mut self,
        now: Instant,
        (peer, sequence): (SocketAddr, Sequence),
        about: Option<AssociationId>,
        answer: MessageType,
        octets: Arc<[u8]>,
    ) -> RequestId {
        let request = RequestId(self.next_id);
        self.next_id += 1;
        let key = (peer, sequence);
        self.waiting.insert(
            key,
            Waiting {
                request,
                about,
                answer,
                octets: Some(octets),
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

    /// Matches an answer with its request. `None` for one that comes late, from another address,
    /// twice, or that is of another type than the request asks for.
    ///
    /// Version Not Supported Response answers any request.
    pub fn answered(
        &mut self,
        peer: SocketAddr,
        sequence: Sequence,
        answer: MessageType,
    ) -> Option<RequestId> {
        let fits = |waiting: &Waiting| {
            let is_of_it = waiting.answer == answer;
            let is_any = answer == MessageType::VERSION_NOT_SUPPORTED_RESPONSE;
            waiting.octets.is_some() && (is_of_it || is_any)
        };
        if !self.waiting.get(&(peer, sequence)).is_some_and(fits) {
            self.late += 1;
            return None;
        }
        let answered = self.waiting.remove(&(peer, sequence));
        self.compact();
        answered.map(|waiting| waiting.request)
    }

    /// Withdraws a request: it is not sent again, and its answer is nobody's. Returns its bytes,
    /// the very ones that may still wait to be sent; `None` if it does not wait any more.
    pub fn withdraw(&mut self, outstanding: Outstanding) -> Option<Arc<[u8]>> {
        let key = (outstanding.peer, outstanding.sequence);
        let waiting = self.waiting.get_mut(&key);
        let waiting = waiting.filter(|waiting| waiting.request == outstanding.request)?;
        let octets = waiting.octets.take();
        self.withdrawn += usize::from(octets.is_some());
        octets
    }

    /// Returns `true` if an answer with this number is that of a withdrawn request.
    #[must_use]
    pub fn is_withdrawn(&self, peer: SocketAddr, sequence: Sequence) -> bool {
        let waiting = self.waiting.get(&(peer, sequence));
        waiting.is_some_and(|waiting| waiting.octets.is_none())
    }

    /// Returns the requests about an association, oldest first.
    #[must_use]
    pub fn about(&self, association: AssociationId) -> Vec<Outstanding> {
        let of_it = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.about == Some(association) && waiting.octets.is_some());
        let mut found: Vec<_> = of_it
            .map(|(&(peer, sequence), waiting)| Outstanding {
                request: waiting.request,
                peer,
                sequence,
            })
            .collect();
        found.sort_unstable_by_key(|one| one.request);
        found
    }

    /// Drops the deadlines of what is answered once they are the most.
    fn compact(&mut self) {
        if self.deadlines.len() > 64 + 2 * self.waiting.len() {
            let waiting = &self.waiting;
            self.deadlines.retain(|deadline| {
                let current = waiting.get(&deadline.key);
                current.is_some_and(|waiting| waiting.request == deadline.request)
            });
        }
    }

    /// Returns the next thing that is due at `now`.
    pub fn poll_due(&mut self, now: Instant) -> Option<Due> {
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
            let Some(octets) = waiting.octets.clone() else {
                self.waiting.remove(&key);
                self.withdrawn -= 1;
                continue;
            };
            if waiting.sent >= self.retransmission.n1.max(1) {
                self.waiting.remove(&key);
                return Some(Due::Failed {
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
            return Some(Due::Again {
                request,
                peer: key.0,
                octets,
            });
        }
        None
    }

    /// Returns when [`Requests::poll_due`] may have something next.
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

    /// Returns how many requests wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() - self.withdrawn
    }

    /// Says that no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many answers fitted no request.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }
}
