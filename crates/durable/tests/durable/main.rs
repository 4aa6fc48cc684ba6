//! The guarantees of durable actors and their stores, tested through the public API.

mod actor;
mod counter;
mod entity;
mod event_simulation;
mod event_sourced;
mod event_versions;
mod format;
mod full_disk;
mod journals;
mod kill;
mod ledger;
mod outbox;
mod reminder;
mod simulation;
mod store;
mod tools;
mod workload;
