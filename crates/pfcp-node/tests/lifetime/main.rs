//! The lifetime of a node's requests to a peer, and of the state that it keeps for the peer, on the
//! real clock: apart from the tests of `node`, which load the machine more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod claims;
mod peer;
mod pools;
mod release;
mod report_address;
mod report_lifetime;
mod restart;
mod restoration;
mod session;
