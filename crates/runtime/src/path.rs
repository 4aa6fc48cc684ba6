//! Paths of actors in the tree.

mod key;
mod pattern;

use std::fmt;
use std::sync::Arc;

pub use key::Key;
pub use pattern::{PathPattern, PathPatternError};

/// The path of an actor in the tree: the keys from the root to the actor, as in `/n4/smf-1/0x2a`.
///
/// An actor does not store its path. It is built from the keys of the actor and its ancestors on
/// request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorPath(Arc<str>);

impl ActorPath {
    /// Returns the path of the root, `/`.
    #[must_use]
    pub fn root() -> Self {
        Self(Arc::from("/"))
    }

    /// Returns the path of the actor whose hook is running on the current thread, for logging and
    /// measurements. Returns `None` in tasks, pipes and anything else that is not a hook.
    #[must_use]
    pub fn current() -> Option<Self> {
        crate::wait_graph::current_path()
    }

    /// Returns the path as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the keys, starting at the root.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|key| !key.is_empty())
    }

    /// Returns the last key, or an empty string for the root.
    #[must_use]
    pub fn key(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Builds a path from keys that are listed from the actor up to the root.
    pub(crate) fn from_keys_upward(keys: &[&Key]) -> Self {
        let mut text = String::with_capacity(keys.len() * 8);
        for key in keys.iter().rev() {
            text.push('/');
            text.push_str(&key.text());
        }
        if text.is_empty() {
            text.push('/');
        }
        Self(text.into())
    }

    /// Returns the path of a child.
    pub(crate) fn child(&self, key: &Key) -> Self {
        let parent = self.0.trim_end_matches('/');
        Self(format!("{parent}/{key}").into())
    }
}

impl From<&str> for ActorPath {
    /// Accepts a path with or without the leading slash.
    fn from(text: &str) -> Self {
        let mut path = String::with_capacity(text.len() + 1);
        for key in text.split('/').filter(|key| !key.is_empty()) {
            path.push('/');
            path.push_str(key);
        }
        if path.is_empty() {
            path.push('/');
        }
        Self(path.into())
    }
}

impl AsRef<str> for ActorPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
