//! Requests and their answers, TS 29.244 §6.4.
//!
//! A request that we send is kept until its answer arrives, and the same bytes are sent again every
//! T1, N1 times in all ([`Requests`]). An answer that we give is kept as long as the peer may
//! repeat its request, and repetitions get the same bytes ([`Answers`]).
//!
//! ```text
//!            peer ── request ──▶ Answers::admit ──▶ New: to be processed
//!                                      │               │
//!            peer ◀── the same ── Again(octets)        ▼
//!                    bytes             ▲          Answers::answer ──▶ peer
//!                                      └───────────────┘
//! ```

mod answers;
mod requests;

pub use answers::{Admission, AnswerKey, AnswerLimits, Answers, TransactionId};
pub use requests::{Due, Outstanding, RequestId, Requests, RequestsFull, Retransmission};
