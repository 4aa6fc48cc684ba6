//! How long what a node asks of a peer, and what it keeps for it, lives.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ended;
mod peer;
mod restart;
