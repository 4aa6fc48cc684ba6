//! The reasons why actors end.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::path::ActorPath;

/// An error of any type, as returned by actors.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why an incarnation of an actor ended.
///
/// Every end has one: a panic in any hook, an error, a kill, the end of a linked actor and an
/// ordered stop are all exits, and supervisors, monitors and events report nothing else.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Exit {
    /// The actor ended itself.
    Normal,
    /// The actor chose not to run: it called [`Context::stop`](crate::Context::stop) in
    /// `pre_start`. No restart follows. OTP calls this `ignore`.
    Ignored,
    /// The actor was asked to stop, by its supervisor, by its parent or from outside.
    Shutdown,
    /// The actor was ended at its next await, without `post_stop`.
    Killed,
    /// A hook returned an error.
    Failed(Arc<dyn Error + Send + Sync>),
    /// A hook panicked, with this message.
    Panicked(Arc<str>),
    /// An actor that was linked to this one ended.
    Linked {
        /// The path of the linked actor.
        path: ActorPath,
        /// The exit of the linked actor.
        exit: Arc<Self>,
    },
    /// A supervisor gave up on a child.
    Escalated {
        /// The path of the child whose exit was one too many.
        child: ActorPath,
        /// The exit of that child.
        exit: Arc<Self>,
    },
}

impl Exit {
    /// Returns `true` if the end was wanted: [`Exit::Normal`], [`Exit::Ignored`] or
    /// [`Exit::Shutdown`].
    #[must_use]
    pub const fn is_orderly(&self) -> bool {
        matches!(self, Self::Normal | Self::Ignored | Self::Shutdown)
    }

    /// Creates an exit from an error that a hook returned.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(Arc::from(error.into()))
    }

    /// Returns one word for the kind of the exit, for listings and labels.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Ignored => "ignored",
            Self::Shutdown => "shutdown",
            Self::Killed => "killed",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::Linked { .. } => "linked",
            Self::Escalated { .. } => "escalated",
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal | Self::Ignored | Self::Shutdown | Self::Killed => {
                f.write_str(self.kind())
            }
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Linked { path, exit } => write!(f, "linked {path} ended: {exit}"),
            Self::Escalated { child, exit } => write!(f, "escalated {child}: {exit}"),
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> Arc<str> {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Arc::from(text.unwrap_or("a panic payload that is not a string"))
}

/// Drops values of foreign types one by one. A destructor that panics is logged, and affects
/// neither the other values nor the caller.
pub(crate) fn drop_all_caught<T>(values: impl IntoIterator<Item = T>) {
    values.into_iter().for_each(drop_caught);
}

/// Does the same for one value.
#[inline(always)]
pub(crate) fn drop_caught<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        let panic = panic_message(payload.as_ref());
        tracing::error!(kind = std::any::type_name::<T>(), %panic, "panic in a destructor");
    }
}
