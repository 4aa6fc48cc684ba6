//! Guarantees about time and stacks, on the real clock and on runtimes as programs create them.
//!
//! Virtual time cannot test these: with it, handlers take no time. The margins are generous because
//! a test machine is sometimes slow; a broken guarantee misses them by far. The tests run one at a
//! time ([`support::alone`]).

mod asking;
mod budget;
mod deadlines;
mod foreign_runtime;
mod fairness;
mod rings;
mod caller_stack;
mod stopping;
mod support;
mod turns;
mod wakes;
mod stress;
