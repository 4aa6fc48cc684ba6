//! Promises about time and stacks, on the real clock and on runtimes as programs make them.
//!
//! Virtual time cannot fail on these: there every handler takes no time at all. The margins are
//! generous, because a test machine is slow now and then; a broken promise misses them by far.

mod budget;
mod deadlines;
mod elsewhere;
mod fairness;
mod rings;
mod stacks;
mod support;
mod weather;
