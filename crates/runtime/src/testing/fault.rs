//! Faults that a test puts into the life of an actor.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::exit::BoxError;
use crate::path::Path;
use crate::sync::{AtomicUsize, Ordering};

/// A place in the life of an actor where a fault may be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hook {
    /// Before [`Actor::pre_start`](crate::Actor::pre_start).
    PreStart,
    /// Before [`Actor::handle`](crate::Actor::handle): the message is taken and not handled.
    Handle,
    /// Before [`Actor::signal`](crate::Actor::signal).
    Signal,
    /// Before [`Actor::post_stop`](crate::Actor::post_stop), where only a panic or a stall does
    /// anything.
    PostStop,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The hook panics, with this message.
    Panic(Arc<str>),
    /// The hook returns an error with this text.
    Fail(Arc<str>),
    /// The hook takes this much longer.
    Stall(Duration),
}

impl Fault {
    /// A panic with this message.
    pub fn panic(message: impl Into<Arc<str>>) -> Self {
        Self::Panic(message.into())
    }

    /// An error with this text.
    pub fn fail(text: impl Into<Arc<str>>) -> Self {
        Self::Fail(text.into())
    }
}

/// An error that a test injected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Injected(Arc<str>);

/// The faults that are still to come in a system.
#[derive(Default)]
pub(crate) struct Faults {
    /// How many plans there are. A hint, written under their lock: a test plans a fault before it
    /// runs what is to fail.
    left: AtomicUsize,
    plans: Mutex<Vec<Plan>>,
    struck: Mutex<Vec<(Hook, Fault)>>,
}

struct Plan {
    path: Path,
    hook: Hook,
    nth: u64,
    fault: Fault,
}

impl Faults {
    pub(crate) fn add(&self, path: Path, hook: Hook, nth: u64, fault: Fault) {
        let mut plans = self.plans.lock();
        plans.push(Plan {
            path,
            hook,
            nth: nth.max(1),
            fault,
        });
        self.left.store(plans.len(), Ordering::Relaxed);
    }

    /// Whether any is.
    #[inline]
    pub(crate) fn are_planned(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    /// Lets a hook fail.
    pub(crate) async fn strike(&self, hook: Hook, due: Vec<Fault>) -> Result<(), BoxError> {
        for fault in due {
            self.struck.lock().push((hook, fault.clone()));
            match fault {
                // Past the panic hook: an ordered panic is no news.
                Fault::Panic(message) => {
                    std::panic::resume_unwind(Box::new(String::from(&*message)));
                }
                Fault::Fail(text) => return Err(Injected(text).into()),
                Fault::Stall(time) => tokio::time::sleep(time).await,
            }
        }
        Ok(())
    }

    pub(crate) fn take_struck(&self) -> Vec<(Hook, Fault)> {
        std::mem::take(&mut self.struck.lock())
    }

    /// Counts a hook that is about to run; what goes wrong with it.
    pub(crate) fn due(&self, path: &Path, hook: Hook) -> Vec<Fault> {
        let mut due = Vec::new();
        let mut plans = self.plans.lock();
        plans.retain_mut(|plan| {
            if plan.hook != hook || plan.path != *path {
                return true;
            }
            plan.nth -= 1;
            if plan.nth == 0 {
                due.push(plan.fault.clone());
            }
            plan.nth > 0
        });
        self.left.store(plans.len(), Ordering::Relaxed);
        due
    }
}
