//! Where a test may let a hook fail before it runs.

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

    /// What goes wrong with a hook.
    pub(crate) struct Strike(Hook, Vec<Fault>);

    /// Whether anything may still go wrong in the system.
    #[inline]
    pub(crate) fn strikes(node: &Node) -> bool {
        node.shared.faults.are_planned()
    }

    /// Counts a hook that is about to run; what goes wrong with it.
    pub(crate) fn strike(node: &Node, hook: Hook) -> Strike {
        let planned = strikes(node);
        Strike(
            hook,
            match planned {
                true => node.shared.faults.due(&node.path(), hook),
                false => Vec::new(),
            },
        )
    }

    impl Strike {
        pub(crate) fn is_due(&self) -> bool {
            !self.1.is_empty()
        }

        /// Lets it go wrong.
        pub(crate) async fn suffer(self, node: &Node) -> Result<(), BoxError> {
            node.shared.faults.strike(self.0, self.1).await
        }
    }
}

#[cfg(not(feature = "testing"))]
mod never {
    use crate::cell::Node;
    use crate::exit::BoxError;

    /// Nothing goes wrong.
    pub(crate) struct Strike;

    pub(crate) enum Hook {
        PreStart,
        Handle,
        Signal,
        PostStop,
    }

    #[inline(always)]
    pub(crate) const fn strikes(_: &Node) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) const fn strike(_: &Node, _: Hook) -> Strike {
        Strike
    }

    impl Strike {
        #[inline(always)]
        pub(crate) const fn is_due(&self) -> bool {
            false
        }

        #[expect(clippy::unused_async, reason = "as with faults")]
        pub(crate) async fn suffer(self, _: &Node) -> Result<(), BoxError> {
            Ok(())
        }
    }
}
