//! Fault injection: lets a test make a hook fail before it runs.

#[cfg(feature = "testing")]
pub(crate) use armed::*;

#[cfg(not(feature = "testing"))]
pub(crate) use never::*;

#[cfg(feature = "testing")]
mod armed {
    use crate::cell::ActorCore;
    use crate::exit::BoxError;
    pub(crate) use crate::testing::Hook;
    use crate::testing::InjectedFault;

    /// The faults injected into one call of a hook.
    pub(crate) struct Injection(Hook, Vec<InjectedFault>);

    /// Returns `true` if any fault is planned in the system.
    #[inline]
    pub(crate) fn has_planned_faults(node: &ActorCore) -> bool {
        node.shared.faults.has_planned()
    }

    /// Counts a hook that is about to run, and returns the faults planned for this call.
    pub(crate) fn take_injection(node: &ActorCore, hook: Hook) -> Injection {
        let any = has_planned_faults(node);
        Injection(
            hook,
            match any {
                true => node.shared.faults.take_due(&node.path(), hook),
                false => Vec::new(),
            },
        )
    }

    impl Injection {
        pub(crate) fn is_due(&self) -> bool {
            !self.1.is_empty()
        }

        /// Carries out the faults.
        pub(crate) async fn apply(self, node: &ActorCore) -> Result<(), BoxError> {
            node.shared.faults.inject_all(self.0, self.1).await
        }
    }
}

#[cfg(not(feature = "testing"))]
mod never {
    use crate::cell::ActorCore;
    use crate::exit::BoxError;

    /// Never injects anything.
    pub(crate) struct Injection;

    pub(crate) enum Hook {
        PreStart,
        Handle,
        Signal,
        PostStop,
    }

    #[inline(always)]
    pub(crate) const fn has_planned_faults(_: &ActorCore) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) const fn take_injection(_: &ActorCore, _: Hook) -> Injection {
        Injection
    }

    impl Injection {
        #[inline(always)]
        pub(crate) const fn is_due(&self) -> bool {
            false
        }

        #[expect(clippy::unused_async, reason = "as with faults")]
        pub(crate) async fn apply(self, _: &ActorCore) -> Result<(), BoxError> {
            Ok(())
        }
    }
}
