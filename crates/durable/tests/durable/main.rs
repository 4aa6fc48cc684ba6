//! The guarantees of durable actors and their stores, tested through the public API.

mod actor;
mod counter;
mod kill;
mod simulation;
mod store;
