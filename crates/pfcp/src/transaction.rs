//! Requests and their answers, TS 29.244 §6.4.
//!
//! A request that we send is kept until its answer arrives, and the same bytes are sent again every
//! T1, N1 times in all ([`Requests`]). An answer that we give is kept as long as the peer may
//! repeat its request, and repetitions get the same bytes ([`ResponseCache`]).
//!
//! ```text
//!            peer ── request ──▶ ResponseCache::admit ──▶ New: to be processed
//!                                      │               │
//!            peer ◀── the same ── Retransmitted(bytes)▼
//!                    bytes             ▲          ResponseCache::answer ──▶ peer
//!                                      └───────────────┘
//! ```
//!
//! Answers end with the incarnation of the peer that asked: §6.4 makes a sequence number unique
//! only while its request is outstanding, and a peer that restarts may count from the same number
//! again.

mod answers;
mod requests;

pub use answers::{
    Admission, RequestOrigin, ResponseCache, ResponseCacheLimits, ResponseKey, TransactionId,
};
pub use requests::{
    AnswerRequirement, OutstandingRequest, RequestId, Requests, RequestsFull, Retransmission,
    TimerAction,
};
