//! Components that compute all the time beside others, with real threads on the real clock.
//!
//! The guarantees are about time, so nothing here is virtual. The bounds are generous: a machine
//! that runs other tests at the same time meets them, and a component that blocks a worker does
//! not.

mod hogs;
mod host_work;
mod kit;
mod limits;
mod node;
mod scripts;
mod share;
