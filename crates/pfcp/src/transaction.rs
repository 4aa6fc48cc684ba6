//! Requests and their answers, TS 29.244 §6.4.
//!
//! A request that we send is kept until its answer comes, and sent again, the same octets, every
//! T1 at most N1 times ([`Requests`]). An answer that we give is kept as long as the peer may send
//! its request again, and is then given again, the same octets ([`Answers`]).
//!
//! ```text
//!            peer ── request ──▶ Answers::admit ──▶ New: somebody works on it
//!                                      │               │
//!            peer ◀── the same ── Again(octets)        ▼
//!                    octets            ▲          Answers::answer ──▶ peer
//!                                      └───────────────┘
//! ```

mod answers;
mod requests;

pub use answers::{Admission, AnswerKey, AnswerLimits, Answers, TransactionId};
pub use requests::{Due, Outstanding, RequestId, Requests, RequestsFull, Retransmission};
