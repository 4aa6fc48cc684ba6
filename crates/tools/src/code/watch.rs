//! What a code actor did, for those who watch it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::message::CodeUsage;
use crate::files::VerbUsage;

/// What a code actor did, for those who watch it. A clone is the same. It outlives incarnations:
/// the figures of the next go on from those of the one before.
#[derive(Debug, Clone, Default)]
pub struct CodeWatch(Arc<Mutex<CodeUsage>>);

impl CodeWatch {
    /// What was run by now, and what is kept.
    #[must_use]
    pub fn usage(&self) -> CodeUsage {
        self.0.lock().clone()
    }

    /// The same as other tools tell it: by verb. A run that passed a limit is one that was refused;
    /// one that nobody wanted any more has failed.
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

    pub(super) fn tell(&self, usage: CodeUsage) {
        *self.0.lock() = usage;
    }
}
