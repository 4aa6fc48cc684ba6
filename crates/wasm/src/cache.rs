//! Compiled components, kept so that nobody compiles twice.
//!
//! In memory they are kept by hash and engine, and the one that was not wanted for longest goes
//! first; in a folder, if the host has one, they are kept for the next process.

mod folder;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub(crate) use self::folder::Folder;
use crate::digest::Digest;
use crate::engine::Class;
use crate::load::Compiled;

/// What is kept in memory.
#[derive(Default)]
pub(crate) struct Cache {
    kept: FxHashMap<(Digest, Class), Kept>,
    octets: usize,
    uses: u64,
}

struct Kept {
    compiled: Arc<Compiled>,
    octets: usize,
    /// When it was last wanted.
    used: u64,
}

impl Cache {
    pub(crate) fn get(&mut self, key: (Digest, Class)) -> Option<Arc<Compiled>> {
        let kept = self.kept.get_mut(&key)?;
        self.uses += 1;
        kept.used = self.uses;
        Some(Arc::clone(&kept.compiled))
    }

    /// Keeps one, and lets go of others until all that is kept has at most so many octets of code;
    /// of what is longer than that by itself nothing is kept. Returns what is kept under the key.
    pub(crate) fn keep(
        &mut self,
        key: (Digest, Class),
        compiled: Arc<Compiled>,
        max: usize,
    ) -> Arc<Compiled> {
        if let Some(there) = self.get(key) {
            return there;
        }
        let octets = compiled.code();
        if octets > max {
            return compiled;
        }
        while self.octets > max - octets {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            let gone = self.kept.remove(&oldest);
            self.octets -= gone.map_or(0, |gone| gone.octets);
        }
        self.uses += 1;
        self.octets += octets;
        let kept = Kept {
            compiled: Arc::clone(&compiled),
            octets,
            used: self.uses,
        };
        self.kept.insert(key, kept);
        compiled
    }

    /// The octets of code that are kept.
    pub(crate) const fn octets(&self) -> usize {
        self.octets
    }
}
