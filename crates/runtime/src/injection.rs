//! Fault injection: lets a test make a hook fail before it runs.

#[cfg(feature = "testing")]
pub(crate) use armed::*;

#[cfg(not(feature = "testing"))]
pub(crate) use never::*;

#[cfg(feature = "testing")]
mod armed {
    use crate::cell::Node;
    use crate::exit::BoxError;
    use crate::testing::Fault;
    pub(crate) use crate::testing::Hook;

    /// The faults injected into one call of a hook.
    pub(crate) struct Injection(Hook, Vec<Fault>);

    /// Returns `true` if any fault is planned in the system.
    #[inline]
    pub(crate) fn any_planned(node: &Node) -> bool {
        node.shared.faults.are_planned()
    }

    /// Counts a hook that is about to run, and returns the faults planned for this call.
    pub(crate) fn planned(node: &Node, hook: Hook) -> Injection {
        let any = any_planned(node);
        Injection(
            hook,
            match any {
                true => node.shared.faults.due(&node.path(), hook),
                false => Vec::new(),
            },
        )
    }

    impl Injection {
        pub(crate) fn is_due(&self) -> bool {
            !self.1.is_empty()
        }

        /// Carries out the faults.
        pub(crate) async fn carry_out(self, node: &Node) -> Result<(), BoxError> {
            node.shared.faults.carry_out(self.0, self.1).await
        }
    }
}

#[cfg(not(feature = "testing"))]
mod never {
    use crate::cell::Node;
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
    pub(crate) const fn any_planned(_: &Node) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) const fn planned(_: &Node, _: Hook) -> Injection {
        Injection
    }

    impl Injection {
        #[inline(always)]
        pub(crate) const fn is_due(&self) -> bool {
            false
        }

        #[expect(clippy::unused_async, reason = "as with faults")]
        pub(crate) async fn carry_out(self, _: &Node) -> Result<(), BoxError> {
            Ok(())
        }
    }
}
