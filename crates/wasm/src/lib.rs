//! WebAssembly components as supervised actors.
//!
//! For programs that run plug-ins they do not trust: a *component* is sandboxed WebAssembly with a
//! [`Manifest`], which lists its grants and its limits. A [`Host`] compiles it, and a
//! [`ComponentRegistry`] runs it as a [`ComponentActor`] below a supervisor. It is messaged,
//! restarted, upgraded and stopped like every other actor.
//!
//! ```
//! use strowger::ActorSystem;
//! use strowger_wasm::{Call, ComponentRegistry, Host, HostLimits, Manifest};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/components/echo.wasm");
//! let system = ActorSystem::new("node")?;
//! let host = Host::new(HostLimits::default())?;
//! let registry = ComponentRegistry::start(&system, "components", &host).await?;
//!
//! let manifest = Manifest::parse("[component]\nname = \"echo\"\n[limits]\nmemory = \"2MiB\"")?;
//! let image = host.load(std::fs::read(file)?, manifest).await?;
//! let echo = registry.deploy(image).await?;
//!
//! let answer = echo.ask(Call(b"hello"[..].into())).await??;
//! assert_eq!(&*answer, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! From the bytes of a component to its actor:
//!
//! ```text
//!  bytes + manifest ─▶ Host::load ─▶ Image ─▶ Host::component ─▶ ComponentArgs ─▶ tree
//!   code, grants        validate,     ready     reserve a slot    state and stats  one Store
//!   and limits          compile,      to start                    of all           for each
//!                       check grants                              incarnations     incarnation
//! ```
//!
//! # Modules
//!
//! The root has the names of a first program. The others are in [`manifest`] (grants, limits and
//! caps), [`host`] and [`load`] (limits of the host, loading and inspection), [`registry`]
//! (deployments and upgrades), [`component`] (the actor and its stats), [`message`] and
//! [`directory`] (messages between components and native actors), [`kv`] (storage), [`signature`]
//! (signed components), [`fault`], and [`script`] (untrusted JavaScript).
//!
//! # Guarantees
//!
//! - **Access is denied unless granted**: a component that imports more than its manifest grants is
//!   not loaded, and the error names the missing grant.
//! - **No version widens its own access**: a [`ComponentRegistry`] shows the difference at each
//!   upgrade, and wider access has to be allowed. [`ManifestCaps`](manifest::ManifestCaps) and
//!   [`TrustPolicy`](signature::TrustPolicy) bound what any manifest can ask for.
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
pub mod exposed;
pub mod fault;
#[cfg(unix)]
mod files;
mod guest;
mod guest_threads;
pub mod host;
mod host_call;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
