//! Guarantees about time and stacks, on the real clock and on runtimes as programs create them.
//!
//! Virtual time cannot test these: with it, handlers take no time. The margins are generous because
//! a test machine is sometimes slow; a broken guarantee misses them by far. The tests run one at a
//! time ([`support::alone`]).

mod asking;
mod budget;
mod caller_stack;
mod deadlines;
mod fairness;
mod foreign_runtime;
mod rings;
mod stopping;
mod stress;
mod support;
mod turns;
mod wakes;
