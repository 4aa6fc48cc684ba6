//! What only real threads can break.

mod contention;
mod existing_tokio;
mod threads;
mod workers;
