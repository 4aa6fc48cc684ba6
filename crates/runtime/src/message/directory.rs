//! The directory of exposed actors, by address.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::address::Address;
use super::entry::{MessagePattern, RemoteEntry};
use super::export::Export;
use super::fault::{Fault, FaultCode};
use super::keyed::{ErasedKeyedExport, KeyedActors, KeyedExport};
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
        /// The address that has an export already.
        address: Address,
    },
}

/// An exposed actor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportInfo {
    /// The address of the actor; of actors with keys, without the key.
    pub address: Address,
    /// `true` if the address is that of actors that are found by a key behind it.
    pub is_keyed: bool,
    /// The names of its messages, each with the way it is sent.
    pub messages: Vec<(Arc<str>, MessagePattern)>,
}

impl ExportInfo {
    /// Returns `true` if messages to an address go to this actor, or to one of these actors.
    #[must_use]
    pub fn covers(&self, address: &Address) -> bool {
        match self.is_keyed {
            true => split_key(address.path()).is_some_and(|(path, _)| path == self.address.path()),
            false => self.address == *address,
        }
    }
}

/// Splits the path of an actor that is found by its key, which is the last one.
fn split_key(path: &str) -> Option<(&str, &str)> {
    path.rsplit_once('/')
}

/// The exposed actors of a system.
#[derive(Default)]
pub(crate) struct ExportRegistry(RwLock<ExportTable>);

#[derive(Default)]
struct ExportTable {
    by_path: FxHashMap<Arc<str>, ExportedActor>,
    /// The actors with keys, by their address without the key.
    keyed: FxHashMap<Arc<str>, Arc<dyn ErasedKeyedExport>>,
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

    /// Exposes actors that are found by their key, each at the name, a slash and its key: those of
    /// `accounts` at `@(accounts/acc-42)` and so on. A message waits in line until its actor is
    /// found. An actor that is exposed at such an address by itself is preferred.
    ///
    /// # Errors
    /// Returns an error if the name is not a valid address, or if other actors with keys are
    /// exposed there.
    pub fn export_keyed<M: Send + 'static>(
        &self,
        name: &str,
        actors: impl KeyedActors<M>,
        export: Export<M>,
    ) -> Result<Address, ExportError> {
        let address = Address::from_path(name).map_err(ExportError::Address)?;
        let opened: Arc<dyn ErasedKeyedExport> = Arc::new(KeyedExport { export, actors });
        let directory = self.export_registry();
        let mut table = directory.0.write();
        if table.keyed.get(name).is_some_and(|held| held.is_open()) {
            return Err(ExportError::Taken { address });
        }
        let replaced = table.keyed.insert(address.shared(), opened);
        drop(table);
        // As above, without the lock.
        drop(replaced);
        Ok(address)
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
        if let Some(opened) = opened.filter(|opened| opened.actor.is_alive()) {
            let found = opened.remote_entries.get(name).cloned();
            let known = || opened.remote_entries.keys().cloned().collect();
            return found.ok_or_else(|| unknown_message(address, name, known()));
        }
        let keyed = split_key(address.path())
            .and_then(|(path, key)| Some((Arc::clone(table.keyed.get(path)?), key)));
        drop(table);
        let Some((opened, key)) = keyed.filter(|(opened, _)| opened.is_open()) else {
            let text = format!("no actor is exposed at {address}");
            return Err(Fault::new(FaultCode::UnknownTarget, text));
        };
        let found = Arc::clone(&opened).entry(address, key, name);
        let known = || opened.messages().into_iter().map(|(name, _)| name);
        found.ok_or_else(|| unknown_message(address, name, known().collect()))
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
                    is_keyed: false,
                    messages: names,
                })
            })
            .collect();
        let keyed = table.keyed.iter().filter(|(_, keyed)| keyed.is_open());
        list.extend(keyed.filter_map(|(path, keyed)| {
            Some(ExportInfo {
                address: Address::from_path(path).ok()?,
                is_keyed: true,
                messages: keyed.messages(),
            })
        }));
        list.sort_by(|one: &ExportInfo, other| one.address.cmp(&other.address));
        list
    }
}

/// The fault for a message whose name its receiver does not know.
fn unknown_message(address: &Address, name: &str, mut known: Vec<Arc<str>>) -> Fault {
    known.sort_unstable();
    let text = format!(
        "{address} takes no {}; it takes {}",
        super::address::quote_truncated(name),
        known.join(", ")
    );
    Fault::new(FaultCode::BadRequest, text)
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
