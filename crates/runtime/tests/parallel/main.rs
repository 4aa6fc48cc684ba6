//! Tests that only real threads can fail.

mod contention;
mod existing_tokio;
mod line;
mod restart_loop;
mod threads;
mod workers;
