//! Stats of a code actor, for observers.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::message::CodeUsage;
use crate::files::VerbUsage;

/// A handle that observes the stats of a code actor. Clones share the same stats, which continue
/// across restarts of the actor.
#[derive(Debug, Clone, Default)]
pub struct CodeWatch(Arc<Mutex<CodeUsage>>);

impl CodeWatch {
    /// Returns the current stats.
    #[must_use]
    pub fn usage(&self) -> CodeUsage {
        self.0.lock().clone()
    }

    /// Returns the stats by verb, in the form that all tools share. Runs that exceeded a limit
    /// count as refused, cancelled runs as failed.
    #[must_use]
    pub fn verbs(&self) -> BTreeMap<&'static str, VerbUsage> {
        let usage = self.0.lock();
        if usage.runs == 0 {
            return BTreeMap::new();
        }
        let execute = VerbUsage {
            calls: usage.runs,
            refused: usage.limits.values().sum(),
            failed: usage.failed + usage.cancelled,
            ..VerbUsage::default()
        };
        BTreeMap::from([("execute", execute)])
    }

    pub(super) fn set(&self, usage: CodeUsage) {
        *self.0.lock() = usage;
    }
}
