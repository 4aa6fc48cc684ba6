//! WebAssembly components as supervised actors.
//!
//! A *component* is a plug-in that nobody has to trust. A [`Host`] loads it with a [`Manifest`],
//! which says what it may reach and use up; it is started as a [`ComponentActor`], a leaf of the
//! tree: messaged, restarted and stopped like every other actor.
//!
//! ```text
//!  octets + manifest ─▶ Host::load ─▶ Image ─▶ Host::component ─▶ ComponentArgs ─▶ tree
//!   who may what        validate,     ready     is there room?     state, and       lives:
//!                       compile,      to start                     figures of       a Store
//!                       check grants                               all lives        for each
//! ```
//!
//! # What holds
//!
//! - **What is not granted is denied**: a component that imports more than its manifest grants is
//!   not loaded, and the error says what would grant it.
//! - **A fault ends a life, not the host**: a trap, a call that computes for too long, memory
//!   beyond the limit. The Store is thrown away, and the supervisor gets a [`Fault`] with a name.
//! - **Nobody waits for a component but who asks it**: what computes for longer than a slice goes
//!   on on guest threads of a low priority, where components have shares by weight.
//! - **What waits stays**: the mailbox outlives a fault; the message that was being handled does
//!   not come again.
//! - **State is handed on** if the manifest says so: `init` is told why it runs, and what was kept.
//! - **A number reaches nobody**: who a component may talk to is in a table of its own.
//!
//! The contract is `wit/component.wit`. How to write, run and upgrade a component is told in the
//! guide to components.

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
mod guests;
mod host;
mod kv;
mod load;
mod manifest;
mod message;
mod metric;
mod planted;
mod registry;
mod script;
mod signature;
mod usage;

pub use component::{ComponentActor, ComponentArgs, ComponentInfo, Stage};
pub use contract::Payload;
pub use digest::Digest;
pub use directory::{Directory, Door, Waiting};
pub use engine::{Excess, HostLimits};
pub use fault::{Fault, FaultKind, Phase};
pub use host::{Full, Host, HostError, HostInfo};
pub use kv::{KvError, KvStore};
pub use load::{Denied, Image, Inspection, LoadError};
pub use manifest::{
    Caps, Excessive, FilesGrant, Grant, Identity, KvGrant, Limits, Manifest, ManifestError,
    Pattern, RestartKind, RestartRule, RunRule, Share, StateMode, StateRule,
};
pub use message::{Answer, Call, CallError, ComponentMsg, Event, Health, Message, Open, Upgrade};
pub use registry::{ComponentRegistry, Deployed, RegistryError};
pub use script::{
    Answering, Realm, RealmError, RunError, RunLimits, ScriptCaller, ScriptFunction, Scripts, Task,
};
pub use signature::{Signature, Signer};
