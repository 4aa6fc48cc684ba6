//! Faults that a test injects into an actor.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::exit::BoxError;
use crate::path::ActorPath;
use crate::sync::{AtomicUsize, Ordering};

/// A point in the life of an actor where a fault can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hook {
    /// The fault strikes before [`Actor::pre_start`](crate::Actor::pre_start).
    PreStart,
    /// Before [`Actor::handle`](crate::Actor::handle). The message has been taken but is not
    /// handled.
    Handle,
    /// The fault strikes before [`Actor::signal`](crate::Actor::signal).
    Signal,
    /// Before [`Actor::post_stop`](crate::Actor::post_stop), where only a panic or a stall has an
    /// effect.
    PostStop,
}

/// An injected fault.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InjectedFault {
    /// The hook panics, with this message.
    Panic(Arc<str>),
    /// The hook returns an error with this text.
    Error(Arc<str>),
    /// The hook takes this much longer.
    Stall(Duration),
}

impl InjectedFault {
    /// Creates a panic with this message.
    pub fn panic(message: impl Into<Arc<str>>) -> Self {
        Self::Panic(message.into())
    }

    /// Creates an error with this text.
    pub fn error(text: impl Into<Arc<str>>) -> Self {
        Self::Error(text.into())
    }
}

/// An error that a test injected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct InjectedError(Arc<str>);

/// The planned faults of a system.
#[derive(Default)]
pub(crate) struct FaultPlan {
    /// Number of plans, written under their lock. This is a hint: a test plans a fault before it
    /// runs the actor that is to fail.
    remaining: AtomicUsize,
    plans: Mutex<Vec<PlannedFault>>,
    injected: Mutex<Vec<(Hook, InjectedFault)>>,
}

struct PlannedFault {
    path: ActorPath,
    hook: Hook,
    nth: u64,
    fault: InjectedFault,
}

impl FaultPlan {
    pub(crate) fn add(&self, path: ActorPath, hook: Hook, nth: u64, fault: InjectedFault) {
        let mut plans = self.plans.lock();
        plans.push(PlannedFault {
            path,
            hook,
            nth: nth.max(1),
            fault,
        });
        self.remaining.store(plans.len(), Ordering::Relaxed);
    }

    /// Returns `true` if any fault is planned.
    #[inline]
    pub(crate) fn has_planned(&self) -> bool {
        self.remaining.load(Ordering::Relaxed) > 0
    }

    /// Makes a hook fail with the given faults.
    pub(crate) async fn inject_all(
        &self,
        hook: Hook,
        due: Vec<InjectedFault>,
    ) -> Result<(), BoxError> {
        for fault in due {
            self.injected.lock().push((hook, fault.clone()));
            match fault {
                // Bypasses the panic hook, as an injected panic need not be reported.
                InjectedFault::Panic(message) => {
                    std::panic::resume_unwind(Box::new(String::from(&*message)));
                }
                InjectedFault::Error(text) => return Err(InjectedError(text).into()),
                InjectedFault::Stall(time) => tokio::time::sleep(time).await,
            }
        }
        Ok(())
    }

    pub(crate) fn take_injected(&self) -> Vec<(Hook, InjectedFault)> {
        std::mem::take(&mut self.injected.lock())
    }

    /// Counts a hook that is about to run, and returns the faults planned for this call.
    pub(crate) fn take_due(&self, path: &ActorPath, hook: Hook) -> Vec<InjectedFault> {
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
        self.remaining.store(plans.len(), Ordering::Relaxed);
        due
    }
}
