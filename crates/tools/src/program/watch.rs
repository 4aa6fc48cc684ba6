//! What programs did, for those who watch them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;

use super::message::ProgramError;
use crate::files::VerbUsage;

/// What all programs of a desk did, for those who watch them. A clone is the same; it outlives
/// incarnations.
#[derive(Debug, Clone, Default)]
pub struct ProgramsWatch(Arc<Watched>);

#[derive(Debug, Default)]
struct Watched {
    published: AtomicUsize,
    resident: AtomicUsize,
    calls: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// How many programs there are, and what they did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProgramsUsage {
    /// Those that are published.
    pub programs: usize,
    /// Those that have a realm.
    pub resident: usize,
    /// The messages that they handled, also those that are gone by now.
    pub calls: u64,
    /// Of these, those that were refused: not as the schema says, or to a draft.
    pub refused: u64,
    /// Of these, those that failed, or passed a limit.
    pub failed: u64,
}

impl ProgramsWatch {
    /// What they did by now.
    #[must_use]
    pub fn usage(&self) -> ProgramsUsage {
        let watched = &*self.0;
        ProgramsUsage {
            programs: watched.published.load(Ordering::Relaxed),
            resident: watched.resident.load(Ordering::Relaxed),
            calls: watched.calls.load(Ordering::Relaxed),
            refused: watched.refused.load(Ordering::Relaxed),
            failed: watched.failed.load(Ordering::Relaxed),
        }
    }

    /// The same as other tools tell it: by verb.
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

    /// A desk begins, without programs.
    pub(super) fn begin(&self) {
        self.published(0);
    }

    pub(super) fn published(&self, programs: usize) {
        self.0.published.store(programs, Ordering::Relaxed);
    }

    pub(super) fn moved_in(&self) {
        self.0.resident.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn moved_out(&self) {
        self.0.resident.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn called(&self, error: Option<&ProgramError>) {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        let count = match error {
            None => return,
            Some(ProgramError::Draft(_) | ProgramError::Schema(..)) => &self.0.refused,
            Some(_) => &self.0.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
