//! The guarantees of durable actors and their stores, tested through the public API.

mod actor;
mod counter;
mod entity;
mod full_disk;
mod kill;
mod reminder;
mod simulation;
mod store;
mod workload;
