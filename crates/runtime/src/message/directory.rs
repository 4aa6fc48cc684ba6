//! The directory of exposed actors, by address.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::address::Address;
use super::door::Door;
use super::entry::{Entry, Pattern};
use super::fault::{Code, Fault};
use crate::address::{ActorRef, AnyRef};
use crate::system::ActorSystem;

/// The error returned when an actor cannot be exposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExposeError {
    /// The path has a character that is not allowed in addresses, or is too long.
    #[error("{0}")]
    Address(Fault),
    /// Another actor is exposed at this address.
    #[error("another actor has a door at {address}")]
    Taken {
        /// The address.
        address: Address,
    },
}

/// An exposed actor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exposed {
    /// The address of the actor.
    pub address: Address,
    /// The names of its messages, each with the way it is sent.
    pub messages: Vec<(Arc<str>, Pattern)>,
}

/// The exposed actors of a system.
#[derive(Default)]
pub(crate) struct ExposedActors(RwLock<ExposedTable>);

#[derive(Default)]
struct ExposedTable {
    by_path: FxHashMap<Arc<str>, ExposedEntry>,
    /// The number of entries above which those of ended actors are looked for and removed.
    sweep: usize,
}

/// An exposed actor and the routes to it.
struct ExposedEntry {
    actor: AnyRef,
    entries: FxHashMap<Arc<str>, Entry>,
}

/// Up to this number of entries, ended actors are not looked for.
const FEW: usize = 64;

impl ActorSystem {
    /// Exposes an actor at the address of its path.
    ///
    /// Exposing the same actor again replaces its door, so `pre_start` may expose the actor in each
    /// incarnation. The actor remains exposed across restarts, until it has ended for good.
    ///
    /// # Errors
    /// Returns an error if the path is not a valid address, or if another actor is exposed there
    /// under a name.
    pub fn expose<M: Send + 'static>(
        &self,
        actor: &ActorRef<M>,
        door: Door<M>,
    ) -> Result<Address, ExposeError> {
        let address = Address::try_from(&actor.path()).map_err(ExposeError::Address)?;
        self.open(address, actor, door)
    }

    /// Exposes an actor under a name, which is a path without slashes at its ends.
    ///
    /// # Errors
    /// Returns an error if the name is not a valid address, or if another actor is exposed there.
    pub fn expose_as<M: Send + 'static>(
        &self,
        name: &str,
        actor: &ActorRef<M>,
        door: Door<M>,
    ) -> Result<Address, ExposeError> {
        let address = Address::of(name).map_err(ExposeError::Address)?;
        self.open(address, actor, door)
    }

    fn open<M: Send + 'static>(
        &self,
        address: Address,
        actor: &ActorRef<M>,
        door: Door<M>,
    ) -> Result<Address, ExposeError> {
        let directory = self.directory();
        let opened = ExposedEntry {
            actor: actor.erase(),
            entries: door.entries(actor, &address),
        };
        let mut doors = directory.0.write();
        let held = doors.by_path.get(address.path());
        if held.is_some_and(|held| held.actor.is_alive() && held.actor.id() != actor.id()) {
            return Err(ExposeError::Taken { address });
        }
        let replaced = doors.by_path.insert(address.shared(), opened);
        let mut ended = Vec::new();
        if doors.by_path.len() > doors.sweep.max(FEW) {
            ended = doors.close_ended();
        }
        drop(doors);
        // Dropping the closures of a door runs user code, so it is done without the lock.
        drop((replaced, ended));
        Ok(address)
    }

    /// Returns the route for messages of one name to an address.
    ///
    /// # Errors
    /// `unknown-target` if no actor is exposed at the address or it has ended; `bad-request` if the
    /// actor accepts no message of this name.
    pub fn entry(&self, address: &Address, name: &str) -> Result<Entry, Fault> {
        let directory = self.directory();
        let doors = directory.0.read();
        let opened = doors.by_path.get(address.path());
        let Some(opened) = opened.filter(|opened| opened.actor.is_alive()) else {
            let text = format!("no actor is exposed at {address}");
            return Err(Fault::new(Code::UnknownTarget, text));
        };
        if let Some(entry) = opened.entries.get(name) {
            return Ok(entry.clone());
        }
        let mut known: Vec<&str> = opened.entries.keys().map(AsRef::as_ref).collect();
        known.sort_unstable();
        let text = format!(
            "{address} takes no {}; it takes {}",
            super::address::shown(name),
            known.join(", ")
        );
        Err(Fault::new(Code::BadRequest, text))
    }

    /// Returns all exposed actors, sorted by address.
    #[must_use]
    pub fn exposed(&self) -> Vec<Exposed> {
        let directory = self.directory();
        let doors = directory.0.read();
        let alive = doors.by_path.iter();
        let alive = alive.filter(|(_, opened)| opened.actor.is_alive());
        let mut list: Vec<_> = alive
            .filter_map(|(path, opened)| {
                let names = opened.entries.iter();
                let names = names.map(|(name, entry)| (Arc::clone(name), entry.pattern()));
                let mut names: Vec<_> = names.collect();
                names.sort_unstable();
                let address = Address::of(path).ok()?;
                Some(Exposed {
                    address,
                    messages: names,
                })
            })
            .collect();
        list.sort_unstable_by(|one: &Exposed, other| one.address.cmp(&other.address));
        list
    }
}

impl ExposedTable {
    /// Removes and returns the entries of actors that have ended.
    fn close_ended(&mut self) -> Vec<ExposedEntry> {
        let ended: Vec<Arc<str>> = self
            .by_path
            .iter()
            .filter(|(_, opened)| !opened.actor.is_alive())
            .map(|(path, _)| Arc::clone(path))
            .collect();
        let closed = ended.iter().filter_map(|path| self.by_path.remove(path));
        let closed = closed.collect();
        self.sweep = 2 * self.by_path.len();
        closed
    }
}
