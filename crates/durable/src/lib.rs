//! Actors whose state outlives the process, on an embedded store.

#[cfg(feature = "testing")]
pub mod conformance;
mod seeded_bug;
pub mod store;
