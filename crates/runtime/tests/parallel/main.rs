//! Tests that only real threads can fail.

mod contention;
mod existing_tokio;
mod answered_task_latency;
mod restart_loop;
mod threads;
mod workers;
