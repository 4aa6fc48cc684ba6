//! WebAssembly components as supervised actors.
//!
//! A *component* is WebAssembly code that the node does not have to trust. A [`Host`] loads it with
//! a [`Manifest`], which names its grants and its limits. It starts as a [`ComponentActor`], a leaf
//! of the supervision tree, and is messaged, restarted and stopped like every other actor.
//!
//! ```text
//!  bytes + manifest ─▶ Host::load ─▶ Image ─▶ Host::component ─▶ ComponentArgs ─▶ tree
//!   code, grants        validate,     ready     reserve a slot    state and stats  one Store
//!   and limits          compile,      to start                    of all           for each
//!                       check grants                              incarnations     incarnation
//! ```
//!
//! # Guarantees
//!
//! - **Access is denied unless granted**: a component that imports more than its manifest grants is
//!   not loaded, and the error names the missing grant.
//! - **No version widens its own access**: a [`ComponentRegistry`] shows the difference at each
//!   upgrade, and wider access has to be allowed. [`Caps`](manifest::Caps) and
//!   [`Trust`](signature::Trust) bound what any manifest
//!   can ask for.
//! - **A fault ends an incarnation, not the host**: a trap, a call that computes for too long, or
//!   memory beyond the limit. The Store is dropped, and the supervisor gets a [`Fault`] that names
//!   the cause.
//! - **Only the caller waits for a component**: a call that computes for longer than a slice
//!   continues on a low-priority guest thread, where components get shares by weight.
//! - **Queued messages survive**: the mailbox outlives a fault. The message that was being handled
//!   is not delivered again, unless the manifest says so.
//! - **State is handed on** if the manifest says so: `init` receives the reason for the start and
//!   the saved state.
//! - **Handles cannot be forged**: a handle is an index into the component's own table of the
//!   actors that it may talk to.
//!
//! The contract is `wit/component.wit`. The guide to components describes how to write, run and
//! upgrade one.

mod cache;
pub mod component;
mod contract;
mod digest;
pub mod directory;
mod engine;
pub mod fault;
#[cfg(unix)]
mod files;
mod guest;
mod guest_threads;
pub mod host;
pub mod kv;
pub mod load;
mod log_limit;
pub mod manifest;
pub mod message;
mod metric;
pub mod registry;
pub mod script;
mod seeded_bug;
pub mod signature;
mod sync;
mod token_bucket;
mod trust;
mod usage;

pub use component::{ComponentActor, ComponentArgs};
pub use directory::Directory;
pub use fault::Fault;
pub use host::{Host, HostLimits};
pub use load::{Image, LoadError};
pub use manifest::Manifest;
pub use message::{Answer, Call, CallError, Message, Payload};
pub use registry::ComponentRegistry;
