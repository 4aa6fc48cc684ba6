//! What components keep by key, each in a place of its own.
//!
//! ```text
//!  component "a" ── Space ──┐
//!                           ├─▶ KvStore ── memory, or a database in a folder
//!  component "b" ── Space ──┘
//! ```
//!
//! A space is that of a name: the lives and versions of a component share it. What a space may
//! hold is the business of the one who writes: each write brings its quota along.

mod disk;
mod memory;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use self::disk::Disk;
use self::memory::Memory;
use crate::contract::{Payload, Refusal};
use crate::manifest::KvGrant;

/// Where components keep what outlives them. A clone is the same store.
#[derive(Clone)]
pub struct KvStore(Arc<Inner>);

struct Inner {
    table: Box<dyn Table>,
    spaces: Mutex<FxHashMap<Arc<str>, Place>>,
}

type Place = Arc<Mutex<Option<Used>>>;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// Another process has it.
    #[error("the store of components {path} is used by another process")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The system refuses, or what is there cannot be read.
    #[error("cannot use the store of components {path}: {why}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What the database says.
        why: String,
    },
}

impl fmt::Debug for KvStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KvStore({:?})", self.0.table)
    }
}

impl Default for KvStore {
    /// In memory.
    fn default() -> Self {
        Self::memory()
    }
}

impl KvStore {
    fn new(table: impl Table + 'static) -> Self {
        Self(Arc::new(Inner {
            table: Box::new(table),
            spaces: Mutex::default(),
        }))
    }

    /// A store that is gone with its process.
    #[must_use]
    pub fn memory() -> Self {
        Self::new(Memory::default())
    }

    /// A store in a folder, which is made if it is not there. What is written survives the end of
    /// the process, however it ends.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, KvError> {
        Disk::open(folder.as_ref()).map(Self::new)
    }

    /// The place of a name.
    pub(crate) fn space(&self, name: &str) -> Space {
        let mut spaces = self.0.spaces.lock();
        let place = match spaces.get(name) {
            Some(place) => Arc::clone(place),
            None => Arc::clone(spaces.entry(Arc::from(name)).or_default()),
        };
        Space {
            store: self.clone(),
            prefix: [name.as_bytes(), b"\0"].concat(),
            place,
        }
    }
}

/// The form of a store: keys in their order.
trait Table: fmt::Debug + Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken>;

    /// The octets of a value.
    fn size(&self, key: &[u8]) -> Result<Option<usize>, Broken>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Broken>;

    fn remove(&self, key: &[u8]) -> Result<(), Broken>;

    /// Shows the keys from one on that begin with a prefix, with the octets of their values, until
    /// it is told to stop.
    fn scan(
        &self,
        prefix: &[u8],
        from: &[u8],
        show: &mut dyn FnMut(&[u8], usize) -> bool,
    ) -> Result<(), Broken>;
}

/// A store that does not do its work; why was written to the log.
#[derive(Debug)]
struct Broken;

impl From<Broken> for Refusal {
    fn from(_: Broken) -> Self {
        Self::Failed
    }
}

/// What a space holds.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    octets: usize,
    keys: usize,
}

/// What an entry counts besides its key and its value: many tiny keys are no way around a quota.
const ENTRY: usize = 64;
/// The longest key.
const KEY: usize = 256;
/// The most keys of one listing.
const LIST: u32 = 1000;
/// What stands before keys of the component, and before what its host keeps for it.
const OWN: u8 = b'k';
const STATE: u8 = b's';

/// What a component keeps.
#[derive(Debug)]
pub(crate) struct Space {
    store: KvStore,
    prefix: Vec<u8>,
    place: Place,
}

impl Space {
    fn table(&self) -> &dyn Table {
        &*self.store.0.table
    }

    fn key(&self, kind: u8, key: &str) -> Result<Vec<u8>, Refusal> {
        if key.len() > KEY {
            return Err(Refusal::Limit);
        }
        Ok([&self.prefix[..], &[kind], key.as_bytes()].concat())
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let key = self.key(OWN, key)?;
        Ok(self.table().get(&key)?)
    }

    pub(crate) fn set(&self, key: &str, value: &[u8], quota: &KvGrant) -> Result<(), Refusal> {
        let key = self.key(OWN, key)?;
        let mut used = self.place.lock();
        self.write(&mut used, &key, Some(value), quota)
    }

    /// Writes if the present value is the expected one.
    pub(crate) fn swap(
        &self,
        key: &str,
        expected: Option<&[u8]>,
        value: Option<&[u8]>,
        quota: &KvGrant,
    ) -> Result<bool, Refusal> {
        let key = self.key(OWN, key)?;
        let mut used = self.place.lock();
        if self.table().get(&key)?.as_deref() != expected {
            return Ok(false);
        }
        self.write(&mut used, &key, value, quota)?;
        Ok(true)
    }

    pub(crate) fn remove(&self, key: &str, quota: &KvGrant) -> Result<bool, Refusal> {
        let key = self.key(OWN, key)?;
        let mut used = self.place.lock();
        let there = self.table().size(&key)?.is_some();
        self.write(&mut used, &key, None, quota)?;
        Ok(there)
    }

    pub(crate) fn list(
        &self,
        prefix: &str,
        after: &str,
        most: u32,
    ) -> Result<Vec<String>, Refusal> {
        let begin = self.key(OWN, prefix)?;
        let from = begin.clone().max(self.key(OWN, after)?);
        let (skip, at) = (self.key(OWN, after)?, self.prefix.len() + 1);
        let most = most.min(LIST) as usize;
        let mut keys = Vec::new();
        if most == 0 {
            return Ok(keys);
        }
        self.table().scan(&begin, &from, &mut |key, _| {
            // The empty key is after nothing.
            if key != skip || after.is_empty() {
                keys.push(String::from_utf8_lossy(&key[at..]).into_owned());
            }
            keys.len() < most
        })?;
        Ok(keys)
    }

    /// The state that the host keeps for the component, with the version of its form.
    pub(crate) fn state(&self) -> Result<Option<(u32, Payload)>, Refusal> {
        let key = self.key(STATE, "")?;
        let kept = self.table().get(&key)?;
        Ok(kept.as_deref().and_then(|kept| {
            let (version, state) = kept.split_first_chunk()?;
            Some((u32::from_le_bytes(*version), Payload::from(state)))
        }))
    }

    /// Keeps that state; it counts as an entry of the component's own.
    pub(crate) fn keep(&self, version: u32, state: &[u8], quota: &KvGrant) -> Result<(), Refusal> {
        let key = self.key(STATE, "")?;
        let kept = [&version.to_le_bytes(), state].concat();
        let mut used = self.place.lock();
        self.write(&mut used, &key, Some(&kept), quota)
    }

    /// Writes within the quota. What takes no more room than before is always written.
    fn write(
        &self,
        used: &mut Option<Used>,
        key: &[u8],
        value: Option<&[u8]>,
        quota: &KvGrant,
    ) -> Result<(), Refusal> {
        let now = match *used {
            Some(used) => used,
            None => self.measure()?,
        };
        let cost = |value: usize| key.len() - self.prefix.len() + value + ENTRY;
        let old = self.table().size(key)?;
        let next = Used {
            octets: now.octets - old.map_or(0, cost) + value.map_or(0, |value| cost(value.len())),
            keys: now.keys - usize::from(old.is_some()) + usize::from(value.is_some()),
        };
        // One key more is always some octets more.
        let grows = next.octets > now.octets;
        if grows && (next.octets > quota.size || next.keys > quota.keys) {
            return Err(Refusal::Limit);
        }
        // Until the write is known to have been done or not, so is what it uses.
        *used = None;
        match value {
            Some(value) => self.table().put(key, value)?,
            None if old.is_some() => self.table().remove(key)?,
            None => {}
        }
        *used = Some(next);
        Ok(())
    }

    /// Counts what is there; once for each name and process, and after a failure.
    fn measure(&self) -> Result<Used, Broken> {
        let mut used = Used::default();
        self.table()
            .scan(&self.prefix, &self.prefix, &mut |key, value| {
                used.octets += key.len() - self.prefix.len() + value + ENTRY;
                used.keys += 1;
                true
            })?;
        Ok(used)
    }
}

#[cfg(test)]
mod tests;
