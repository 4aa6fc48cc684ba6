//! Who is reachable: doors by address.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::address::Address;
use super::door::Door;
use super::entry::{Entry, Pattern};
use super::fault::{Code, Fault};
use crate::address::{ActorRef, AnyRef};
use crate::system::ActorSystem;

/// Why a door was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExposeError {
    /// The path has a character that addresses do not have, or is too long.
    #[error("{0}")]
    Address(Fault),
    /// Another actor has a door at this address.
    #[error("another actor has a door at {address}")]
    Taken {
        /// The address.
        address: Address,
    },
}

/// An actor that was exposed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exposed {
    /// Where.
    pub address: Address,
    /// The names of its messages, and how each is sent.
    pub messages: Vec<(Arc<str>, Pattern)>,
}

/// The doors of a system.
#[derive(Default)]
pub(crate) struct Directory(RwLock<Doors>);

#[derive(Default)]
struct Doors {
    by_path: FxHashMap<Arc<str>, Opened>,
    /// Beyond so many, those of actors that ended are looked for.
    sweep: usize,
}

/// A door, and whose it is.
struct Opened {
    actor: AnyRef,
    entries: FxHashMap<Arc<str>, Entry>,
}

/// So many doors need no sweeping.
const FEW: usize = 64;

impl ActorSystem {
    /// Opens a door to an actor, at the address of its path.
    ///
    /// A second door of the same actor takes the place of the first, so that `pre_start` may open
    /// it for every incarnation. It stays open over restarts, and closes when the actor has ended.
    ///
    /// # Errors
    /// When the path cannot be an address, or another actor is exposed there by name.
    pub fn expose<M: Send + 'static>(
        &self,
        actor: &ActorRef<M>,
        door: Door<M>,
    ) -> Result<Address, ExposeError> {
        let address = Address::try_from(&actor.path()).map_err(ExposeError::Address)?;
        self.open(address, actor, door)
    }

    /// Opens a door to an actor under a name, which is a path without slashes at its ends.
    ///
    /// # Errors
    /// When the name cannot be an address, or another actor has a door there.
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
        let opened = Opened {
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
        // Foreign code: the closures of doors.
        drop((replaced, ended));
        Ok(address)
    }

    /// What a message of this name to this address goes through.
    ///
    /// # Errors
    /// `unknown-target` when nobody is exposed there, or has ended; `bad-request` when that actor
    /// takes no message of this name.
    pub fn entry(&self, address: &Address, name: &str) -> Result<Entry, Fault> {
        let directory = self.directory();
        let doors = directory.0.read();
        let opened = doors.by_path.get(address.path());
        let Some(opened) = opened.filter(|opened| opened.actor.is_alive()) else {
            let text = format!("nobody is exposed at {address}");
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

    /// What is exposed, by address.
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

impl Doors {
    /// Takes out the doors of actors that have ended.
    fn close_ended(&mut self) -> Vec<Opened> {
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
