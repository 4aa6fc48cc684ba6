//! Components that compute all the time beside others, with real threads on the real clock.
//!
//! What is promised is about time, so nothing here is virtual. The bounds are generous: a machine
//! that runs other tests meanwhile keeps them, and a component that holds a worker does not.

mod hogs;
mod kit;
mod limits;
mod node;
mod share;
