//! What only real threads can break.

mod contention;
mod existing_tokio;
mod line;
mod restart_loop;
mod threads;
mod workers;
