//! The guarantees of the runtime, tested through its public API and on virtual time where possible.
//!
//! All tests are one program, so that it is linked once; each file covers one guarantee.

mod ask;
mod ask_and_tell_order;
mod ask_rings;
mod batch_start;
mod destructors;
mod drain;
mod dynamic;
mod escalation;
mod expiry;
mod group;
mod handlers;
mod hanging_hooks;
mod ignored_start;
mod late_asks;
mod lifecycle;
mod links;
mod mailbox;
mod message;
mod message_vectors;
mod monitor;
mod notifier;
mod one_to_many;
mod phase_wait_rings;
mod pipe;
mod registry;
mod restarting;
mod shutdown;
mod stop_in_backoff;
mod strategies;
mod stream;
mod stream_hostile;
mod supervision;
mod testing;
mod timer;
mod top;
mod topic;
mod topic_patterns;
mod topic_rules;
mod trace;
mod turns;
