//! A cache of compiled components, so that no component is compiled twice.
//!
//! The memory cache is keyed by hash and engine, and evicts the least recently used entry first. If
//! the host has a cache directory, compiled code is also kept there for the next process.

mod disk;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub(crate) use self::disk::CodeDirectory;
use crate::digest::Digest;
use crate::engine::EngineClass;
use crate::load::CompiledComponent;

/// The compiled components in memory.
#[derive(Default)]
pub(crate) struct CodeCache {
    entries: FxHashMap<(Digest, EngineClass), CachedCode>,
    bytes: usize,
    uses: u64,
}

struct CachedCode {
    compiled: Arc<CompiledComponent>,
    bytes: usize,
    /// Value of `CodeCache::uses` when the entry was last used.
    used: u64,
}

impl CodeCache {
    pub(crate) fn get(&mut self, key: (Digest, EngineClass)) -> Option<Arc<CompiledComponent>> {
        let entry = self.entries.get_mut(&key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(Arc::clone(&entry.compiled))
    }

    /// Inserts an entry, and evicts others until the code of all entries has at most `max` bytes.
    /// An entry that is larger than `max` by itself is not kept. Returns the entry stored under the
    /// key, which is an earlier one if there is one.
    pub(crate) fn insert(
        &mut self,
        key: (Digest, EngineClass),
        compiled: Arc<CompiledComponent>,
        max: usize,
    ) -> Arc<CompiledComponent> {
        if let Some(there) = self.get(key) {
            return there;
        }
        let bytes = compiled.code_size();
        if bytes > max {
            return compiled;
        }
        while self.bytes > max - bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            let gone = self.entries.remove(&oldest);
            self.bytes -= gone.map_or(0, |gone| gone.bytes);
        }
        self.uses += 1;
        self.bytes += bytes;
        let entry = CachedCode {
            compiled: Arc::clone(&compiled),
            bytes,
            used: self.uses,
        };
        self.entries.insert(key, entry);
        compiled
    }

    /// Total size of the cached code in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}
