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
//!   upgrade, and wider access has to be allowed. [`Caps`] and [`Trust`] bound what any manifest
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

mod bucket;
mod cache;
mod component;
mod contract;
mod digest;
mod directory;
mod engine;
mod fault;
#[cfg(unix)]
mod files;
mod guest;
mod guest_threads;
mod host;
mod kv;
mod lines;
mod load;
mod manifest;
mod message;
mod metric;
mod registry;
mod script;
mod seeded_bug;
mod signature;
mod sync;
mod trust;
mod usage;

pub use component::{ComponentActor, ComponentArgs, ComponentInfo, Stage};
pub use contract::Payload;
pub use digest::Digest;
pub use directory::{Directory, Door, Waiting};
pub use engine::{Excess, HostLimits, ReserveError};
pub use fault::{Fault, FaultKind, Phase};
pub use host::{Full, Host, HostError, HostInfo, LoadStage};
pub use kv::{KvError, KvStore};
pub use load::{Denied, Image, Inspection, LoadError};
pub use manifest::{
    Bound, Caps, Change, ChangeKind, Excessive, FilesCaps, FilesGrant, Grant, Identity, KvCaps,
    KvGrant, Limits, Manifest, ManifestError, Pattern, RestartKind, RestartRule, RunRule, Share,
    StateMode, StateRule,
};
pub use message::{Answer, Call, CallError, ComponentMsg, Event, Health, Message, Open, Upgrade};
pub use registry::{ComponentRegistry, Deployed, RegistryError, Widening};
pub use script::{
    Answering, Realm, RealmError, RunError, RunLimits, ScriptCaller, ScriptFunction, ScriptLimit,
    Scripts, Task,
};
pub use signature::{Signature, Signer, SigningKey, Statement};
pub use trust::Trust;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
