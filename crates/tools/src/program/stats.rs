//! Stats of programs, for observers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;

use super::message::{ProgramError, SchemaSide};
use crate::files::VerbUsage;

/// A handle that observes the stats of all programs of a registry. Clones share the same stats,
/// which continue across restarts.
#[derive(Debug, Clone, Default)]
pub struct ProgramsWatch(Arc<ProgramsCounters>);

#[derive(Debug, Default)]
struct ProgramsCounters {
    published: AtomicUsize,
    resident: AtomicUsize,
    calls: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// Stats of all programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProgramsUsage {
    /// Number of published programs.
    pub programs: usize,
    /// Number of programs with a realm.
    pub resident: usize,
    /// Number of messages handled, including those of withdrawn programs.
    pub calls: u64,
    /// Number of messages refused: the program is a draft, or the input is too long or does not
    /// match its schema.
    pub refused: u64,
    /// Number of messages that failed for other reasons, such as an exceeded limit.
    pub failed: u64,
}

impl ProgramsWatch {
    /// Returns the current stats.
    #[must_use]
    pub fn usage(&self) -> ProgramsUsage {
        let counters = &*self.0;
        ProgramsUsage {
            programs: counters.published.load(Ordering::Relaxed),
            resident: counters.resident.load(Ordering::Relaxed),
            calls: counters.calls.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
        }
    }

    /// Returns the stats by verb, in the form that all tools share.
    #[must_use]
    pub fn verbs(&self) -> BTreeMap<&'static str, VerbUsage> {
        let usage = self.usage();
        if usage.calls == 0 {
            return BTreeMap::new();
        }
        let perform = VerbUsage {
            calls: usage.calls,
            refused: usage.refused,
            failed: usage.failed,
            ..VerbUsage::default()
        };
        BTreeMap::from([("perform", perform)])
    }

    /// Starts an incarnation of the registry, without programs.
    pub(super) fn reset(&self) {
        self.set_published(0);
    }

    pub(super) fn set_published(&self, programs: usize) {
        self.0.published.store(programs, Ordering::Relaxed);
    }

    pub(super) fn slot_taken(&self) {
        self.0.resident.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn slot_freed(&self) {
        self.0.resident.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn record_call(&self, error: Option<&ProgramError>) {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        let count = match error {
            None => return,
            Some(
                ProgramError::Draft(_)
                | ProgramError::InputTooLong { .. }
                | ProgramError::SchemaMismatch(SchemaSide::Input, _),
            ) => &self.0.refused,
            Some(_) => &self.0.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
