//! The key-value store of components, in which each component has its own space.
//!
//! ```text
//!  component "a" ── Space ──┐
//!                           ├─▶ KvStore ── memory, or a database in a directory
//!  component "b" ── Space ──┘
//! ```
//!
//! A space belongs to a name: all incarnations and versions of a component share it. The quota is
//! not part of the space; each write passes it.

mod disk;
mod memory;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use self::disk::DiskBackend;
use self::memory::MemoryBackend;
use crate::contract::{Payload, Refusal};
use crate::host_call::{HostCall, NoCall};
use crate::manifest::KvGrant;

/// The store for what components keep beyond an incarnation. A clone is the same store.
#[derive(Clone)]
pub struct KvStore(Arc<KvStoreInner>);

struct KvStoreInner {
    table: Box<dyn Backend>,
    spaces: Mutex<FxHashMap<Arc<str>, SharedKvUsage>>,
}

type SharedKvUsage = Arc<Mutex<Option<KvUsage>>>;

/// The error returned when a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// Another process uses the store.
    #[error("the component store {path} is in use by another process")]
    Locked {
        /// Directory of the store.
        path: PathBuf,
    },
    /// The system refuses access, or the content cannot be read.
    #[error("cannot use the component store {path}: {why}")]
    Unusable {
        /// Directory of the store.
        path: PathBuf,
        /// The error message of the database.
        why: String,
    },
}

impl fmt::Debug for KvStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KvStore({:?})", self.0.table)
    }
}

impl Default for KvStore {
    /// Creates a store in memory.
    fn default() -> Self {
        Self::memory()
    }
}

impl KvStore {
    fn new(table: impl Backend + 'static) -> Self {
        Self(Arc::new(KvStoreInner {
            table: Box::new(table),
            spaces: Mutex::default(),
        }))
    }

    /// Creates a store in memory, which ends with the process.
    #[must_use]
    pub fn memory() -> Self {
        Self::new(MemoryBackend::default())
    }

    /// Opens a store in a directory, which is created if it does not exist. Written data survives
    /// the end of the process, however it ends.
    ///
    /// # Errors
    /// [`KvError::Locked`] if another process uses the directory, [`KvError::Unusable`] if it
    /// cannot be read or written.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, KvError> {
        DiskBackend::open(folder.as_ref()).map(Self::new)
    }

    /// Returns the space of a name.
    pub(crate) fn space(&self, name: &str) -> KvSpace {
        let mut spaces = self.0.spaces.lock();
        let usage = match spaces.get(name) {
            Some(usage) => Arc::clone(usage),
            None => Arc::clone(spaces.entry(Arc::from(name)).or_default()),
        };
        KvSpace {
            store: self.clone(),
            prefix: [name.as_bytes(), b"\0"].concat(),
            usage,
        }
    }
}

/// The backend of a store: a table with ordered keys.
trait Backend: fmt::Debug + Send + Sync {
    /// Returns `true` if operations may wait for a disk.
    fn may_block(&self) -> bool;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError>;

    /// Returns the size of a value in bytes.
    fn size(&self, key: &[u8]) -> Result<Option<usize>, BackendError>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), BackendError>;

    fn remove(&self, key: &[u8]) -> Result<(), BackendError>;

    /// Calls `visit` for the keys from `from` on that start with `prefix`, with the size of their
    /// values in bytes, until it returns `false`.
    fn scan(
        &self,
        prefix: &[u8],
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], usize) -> bool,
    ) -> Result<(), BackendError>;
}

/// The error of a failed backend; the cause is in the log.
#[derive(Debug)]
struct BackendError;

impl From<BackendError> for Refusal {
    fn from(_: BackendError) -> Self {
        Self::Failed
    }
}

/// The usage of a space.
#[derive(Debug, Clone, Copy, Default)]
struct KvUsage {
    bytes: usize,
    keys: usize,
}

/// Size that each entry counts in addition to key and value, so that many tiny keys do not bypass
/// the quota.
const ENTRY_OVERHEAD: usize = 64;
/// Maximum length of a key in bytes.
const MAX_KEY: usize = 256;
/// Maximum number of keys per listing.
const MAX_LISTED: u32 = 1000;
/// Key prefixes: entries of the component, and the state that its host saves.
const OWN_KIND: u8 = b'k';
const STATE_KIND: u8 = b's';

/// The space of one component.
#[derive(Debug)]
pub(crate) struct KvSpace {
    store: KvStore,
    prefix: Vec<u8>,
    usage: SharedKvUsage,
}

impl KvSpace {
    /// Returns `true` if operations may wait for a disk.
    pub(crate) fn may_block(&self) -> bool {
        self.table().may_block()
    }

    fn table(&self) -> &dyn Backend {
        &*self.store.0.table
    }

    fn key(&self, kind: u8, key: &str) -> Result<Vec<u8>, Refusal> {
        if key.len() > MAX_KEY {
            return Err(Refusal::Limit);
        }
        Ok([&self.prefix[..], &[kind], key.as_bytes()].concat())
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let key = self.key(OWN_KIND, key)?;
        Ok(self.table().get(&key)?)
    }

    pub(crate) fn set(
        &self,
        key: &str,
        value: &[u8],
        quota: &KvGrant,
        call: &mut dyn HostCall,
    ) -> Result<(), Refusal> {
        let key = self.key(OWN_KIND, key)?;
        let mut used = self.usage.lock();
        self.write(&mut used, &key, Some(value), quota, call)
    }

    /// Writes if the current value is the expected one.
    pub(crate) fn swap(
        &self,
        key: &str,
        expected: Option<&[u8]>,
        value: Option<&[u8]>,
        quota: &KvGrant,
        call: &mut dyn HostCall,
    ) -> Result<bool, Refusal> {
        let key = self.key(OWN_KIND, key)?;
        let mut used = self.usage.lock();
        if self.table().get(&key)?.as_deref() != expected {
            return Ok(false);
        }
        self.write(&mut used, &key, value, quota, call)?;
        Ok(true)
    }

    pub(crate) fn remove(
        &self,
        key: &str,
        quota: &KvGrant,
        call: &mut dyn HostCall,
    ) -> Result<bool, Refusal> {
        let key = self.key(OWN_KIND, key)?;
        let mut used = self.usage.lock();
        let there = self.table().size(&key)?.is_some();
        self.write(&mut used, &key, None, quota, call)?;
        Ok(there)
    }

    pub(crate) fn list(
        &self,
        prefix: &str,
        after: &str,
        most: u32,
    ) -> Result<Vec<String>, Refusal> {
        let begin = self.key(OWN_KIND, prefix)?;
        let from = begin.clone().max(self.key(OWN_KIND, after)?);
        let (skip, at) = (self.key(OWN_KIND, after)?, self.prefix.len() + 1);
        let most = most.min(MAX_LISTED) as usize;
        let mut keys = Vec::new();
        if most == 0 {
            return Ok(keys);
        }
        self.table().scan(&begin, &from, &mut |key, _| {
            // An empty `after` excludes no key.
            if key != skip || after.is_empty() {
                keys.push(String::from_utf8_lossy(&key[at..]).into_owned());
            }
            keys.len() < most
        })?;
        Ok(keys)
    }

    /// Returns the saved state of the component, with the version of its format.
    pub(crate) fn saved_state(&self) -> Result<Option<(u32, Payload)>, Refusal> {
        let key = self.key(STATE_KIND, "")?;
        let saved = self.table().get(&key)?;
        Ok(saved.as_deref().and_then(|saved| {
            let (version, state) = saved.split_first_chunk()?;
            Some((u32::from_le_bytes(*version), Payload::from(state)))
        }))
    }

    /// Saves the state of the component; it counts as an entry of the space.
    pub(crate) fn save_state(
        &self,
        version: u32,
        state: &[u8],
        quota: &KvGrant,
    ) -> Result<(), Refusal> {
        let key = self.key(STATE_KIND, "")?;
        let value = [&version.to_le_bytes(), state].concat();
        let mut used = self.usage.lock();
        self.write(&mut used, &key, Some(&value), quota, &mut NoCall)
    }

    /// Writes within the quota. A write that does not increase the usage always succeeds.
    fn write(
        &self,
        used: &mut Option<KvUsage>,
        key: &[u8],
        value: Option<&[u8]>,
        quota: &KvGrant,
        call: &mut dyn HostCall,
    ) -> Result<(), Refusal> {
        let now = match *used {
            Some(used) => used,
            None if !self.may_block() => self.measure(&AtomicBool::new(false))?,
            None => {
                let mut measured = Err(BackendError);
                call.run_aside(&mut |stop| measured = self.measure(stop));
                measured?
            }
        };
        let cost = |value: usize| key.len() - self.prefix.len() + value + ENTRY_OVERHEAD;
        let old = self.table().size(key)?;
        let next = KvUsage {
            bytes: now.bytes - old.map_or(0, cost) + value.map_or(0, |value| cost(value.len())),
            keys: now.keys - usize::from(old.is_some()) + usize::from(value.is_some()),
        };
        // Each further key also adds bytes.
        let grows = next.bytes > now.bytes;
        if grows && (next.bytes > quota.size || next.keys > quota.keys) {
            return Err(Refusal::Limit);
        }
        // If the write fails, the usage is unknown and will be measured again.
        *used = None;
        match value {
            Some(value) => self.table().put(key, value)?,
            None if old.is_some() => self.table().remove(key)?,
            None => {}
        }
        *used = Some(next);
        Ok(())
    }

    /// Measures the usage: at the first write to each space in a process, and after a failure.
    fn measure(&self, stop: &AtomicBool) -> Result<KvUsage, BackendError> {
        let mut used = KvUsage::default();
        self.table()
            .scan(&self.prefix, &self.prefix, &mut |key, value| {
                used.bytes += key.len() - self.prefix.len() + value + ENTRY_OVERHEAD;
                used.keys += 1;
                !stop.load(Ordering::Relaxed)
            })?;
        match stop.load(Ordering::Relaxed) {
            true => Err(BackendError),
            false => Ok(used),
        }
    }
}

#[cfg(test)]
mod tests;
