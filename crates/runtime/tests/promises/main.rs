//! Guarantees about time and stacks, on the real clock and on runtimes as programs create them.
//!
//! Virtual time cannot test these: with it, handlers take no time. The margins are generous because
//! a test machine is sometimes slow; a broken guarantee misses them by far.

mod budget;
mod deadlines;
mod elsewhere;
mod fairness;
mod rings;
mod stacks;
mod support;
mod turns;
mod weather;
