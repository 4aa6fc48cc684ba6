//! The registry of named actors.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::address::AnyRef;
use crate::cell::ActorId;

/// The error returned when an actor cannot be registered under a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another actor has the name.
    #[error("the name {name:?} is taken")]
    NameTaken {
        /// The taken name.
        name: Arc<str>,
    },
    /// The actor has ended.
    #[error("the actor that was to be named {name:?} has ended")]
    Ended {
        /// Name that was to be registered.
        name: Arc<str>,
    },
}

/// The registered actors by name. A name is free again once its actor has ended.
#[derive(Default)]
pub(crate) struct Registry(Mutex<FxHashMap<Arc<str>, AnyRef>>);

impl Registry {
    pub(crate) fn register(&self, name: Arc<str>, actor: AnyRef) -> Result<(), RegisterError> {
        let mut names = self.0.lock();
        if names.contains_key(&name) {
            return Err(RegisterError::NameTaken { name });
        }
        // An ending actor first marks itself as ended and then frees its names, so either this call
        // fails or the actor's end frees the name.
        if !actor.0.core().add_registered_name(Arc::clone(&name)) {
            return Err(RegisterError::Ended { name });
        }
        names.insert(name, actor);
        Ok(())
    }

    pub(crate) fn unregister(&self, name: &str) -> bool {
        let removed = self.0.lock().remove(name);
        removed.is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<AnyRef> {
        self.0.lock().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> = self.0.lock().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn remove_all(&self, id: ActorId, freed: &[Arc<str>]) {
        if freed.is_empty() {
            return;
        }
        let mut names = self.0.lock();
        for name in freed {
            if names.get(name).is_some_and(|actor| actor.id() == id) {
                names.remove(name);
            }
        }
    }
}
