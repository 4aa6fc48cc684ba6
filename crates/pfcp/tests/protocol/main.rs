//! The state machines of the protocol through their public interface, on virtual time.

mod association;
mod bad_inputs;
mod peers;
mod session;
mod simulation;
mod transaction;
mod usage;
