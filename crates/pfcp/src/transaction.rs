//! Requests and their answers, TS 29.244 §6.4.
//!
//! A request that we send is kept until its answer arrives, and the same bytes are sent again every
//! T1, N1 times in all ([`Requests`]). An answer that we give is kept as long as the peer may
//! repeat its request, and repetitions get the same bytes ([`ResponseCache`]).
//!
//! ```text
//!            peer ── request ──▶ ResponseCache::admit ──▶ New: to be processed
//!                                      │               │
//!            peer ◀── the same ── Retransmitted(octets)▼
//!                    bytes             ▲          ResponseCache::answer ──▶ peer
//!                                      └───────────────┘
//! ```

mod answers;
mod requests;

pub use answers::{Admission, ResponseCache, ResponseCacheLimits, ResponseKey, TransactionId};
pub use requests::{
    OutstandingRequest, RequestId, Requests, RequestsFull, Retransmission, TimerAction,
};
