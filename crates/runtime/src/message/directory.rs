//! The directory of exposed actors, by address.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::address::Address;
use super::entry::{MessagePattern, RemoteEntry};
use super::export::Export;
use super::fault::{Fault, FaultCode};
use crate::address::{ActorRef, AnyRef};
use crate::system::ActorSystem;

/// The error returned when an actor cannot be exposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The path has a character that is not allowed in addresses, or is too long.
    #[error("{0}")]
    Address(Fault),
    /// Another actor is exposed at this address.
    #[error("another actor is exported at {address}")]
    Taken {
        /// Address that has an export already.
        address: Address,
    },
}

/// An exposed actor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportInfo {
    /// The address of the actor.
    pub address: Address,
    /// The names of its messages, each with the way it is sent.
    pub messages: Vec<(Arc<str>, MessagePattern)>,
}

/// The exposed actors of a system.
#[derive(Default)]
pub(crate) struct ExportRegistry(RwLock<ExportTable>);

#[derive(Default)]
struct ExportTable {
    by_path: FxHashMap<Arc<str>, ExportedActor>,
    /// The number of entries above which those of ended actors are looked for and removed.
    sweep_at: usize,
}

/// An exposed actor and the routes to it.
struct ExportedActor {
    actor: AnyRef,
    remote_entries: FxHashMap<Arc<str>, RemoteEntry>,
}

/// Up to this number of entries, ended actors are not looked for.
const SWEEP_THRESHOLD: usize = 64;

impl ActorSystem {
    /// Exposes an actor at the address of its path.
    ///
    /// Exporting the same actor again replaces its export, so `pre_start` may export the actor in
    /// each incarnation. The export remains across restarts, until the actor has ended for good.
    ///
    /// # Errors
    /// Returns an error if the path is not a valid address, or if another actor is exposed there
    /// under a name.
    pub fn export<M: Send + 'static>(
        &self,
        actor: &ActorRef<M>,
        export: Export<M>,
    ) -> Result<Address, ExportError> {
        let address = Address::try_from(&actor.path()).map_err(ExportError::Address)?;
        self.insert_export(address, actor, export)
    }

    /// Exposes an actor under a name, which is a path without slashes at its ends.
    ///
    /// # Errors
    /// Returns an error if the name is not a valid address, or if another actor is exposed there.
    pub fn export_as<M: Send + 'static>(
        &self,
        name: &str,
        actor: &ActorRef<M>,
        export: Export<M>,
    ) -> Result<Address, ExportError> {
        let address = Address::from_path(name).map_err(ExportError::Address)?;
        self.insert_export(address, actor, export)
    }

    fn insert_export<M: Send + 'static>(
        &self,
        address: Address,
        actor: &ActorRef<M>,
        export: Export<M>,
    ) -> Result<Address, ExportError> {
        let directory = self.export_registry();
        let opened = ExportedActor {
            actor: actor.erase(),
            remote_entries: export.into_remote_entries(actor, &address),
        };
        let mut table = directory.0.write();
        let held = table.by_path.get(address.path());
        if held.is_some_and(|held| held.actor.is_alive() && held.actor.id() != actor.id()) {
            return Err(ExportError::Taken { address });
        }
        let replaced = table.by_path.insert(address.shared(), opened);
        let mut ended = Vec::new();
        if table.by_path.len() > table.sweep_at.max(SWEEP_THRESHOLD) {
            ended = table.remove_ended();
        }
        drop(table);
        // Dropping the closures of an export runs user code, so it is done without the lock.
        drop((replaced, ended));
        Ok(address)
    }

    /// Returns the route for messages of one name to an address.
    ///
    /// # Errors
    /// `unknown-target` if no actor is exposed at the address or it has ended; `bad-request` if the
    /// actor accepts no message of this name.
    pub fn remote_entry(&self, address: &Address, name: &str) -> Result<RemoteEntry, Fault> {
        let directory = self.export_registry();
        let table = directory.0.read();
        let opened = table.by_path.get(address.path());
        let Some(opened) = opened.filter(|opened| opened.actor.is_alive()) else {
            let text = format!("no actor is exposed at {address}");
            return Err(Fault::new(FaultCode::UnknownTarget, text));
        };
        if let Some(entry) = opened.remote_entries.get(name) {
            return Ok(entry.clone());
        }
        let mut known: Vec<&str> = opened.remote_entries.keys().map(AsRef::as_ref).collect();
        known.sort_unstable();
        let text = format!(
            "{address} takes no {}; it takes {}",
            super::address::quote_truncated(name),
            known.join(", ")
        );
        Err(Fault::new(FaultCode::BadRequest, text))
    }

    /// Returns all exposed actors, sorted by address.
    #[must_use]
    pub fn exports(&self) -> Vec<ExportInfo> {
        let directory = self.export_registry();
        let table = directory.0.read();
        let alive = table.by_path.iter();
        let alive = alive.filter(|(_, opened)| opened.actor.is_alive());
        let mut list: Vec<_> = alive
            .filter_map(|(path, opened)| {
                let names = opened.remote_entries.iter();
                let names = names.map(|(name, entry)| (Arc::clone(name), entry.pattern()));
                let mut names: Vec<_> = names.collect();
                names.sort_unstable();
                let address = Address::from_path(path).ok()?;
                Some(ExportInfo {
                    address,
                    messages: names,
                })
            })
            .collect();
        list.sort_unstable_by(|one: &ExportInfo, other| one.address.cmp(&other.address));
        list
    }
}

impl ExportTable {
    /// Removes and returns the entries of actors that have ended.
    fn remove_ended(&mut self) -> Vec<ExportedActor> {
        let ended: Vec<Arc<str>> = self
            .by_path
            .iter()
            .filter(|(_, opened)| !opened.actor.is_alive())
            .map(|(path, _)| Arc::clone(path))
            .collect();
        let closed = ended.iter().filter_map(|path| self.by_path.remove(path));
        let closed = closed.collect();
        self.sweep_at = 2 * self.by_path.len();
        closed
    }
}
