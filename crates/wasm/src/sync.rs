//! Atomics of the standard library, replaced by loom's in models.
//!
//! A file that imports its atomics from here has loom models. It must use nothing else of this
//! crate: the models are built as part of the crate `strowger`, without wasmtime.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
