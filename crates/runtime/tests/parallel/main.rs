//! Tests that only real threads can fail.

mod answered_task_latency;
mod contention;
mod existing_tokio;
mod restart_loop;
mod threads;
mod workers;
