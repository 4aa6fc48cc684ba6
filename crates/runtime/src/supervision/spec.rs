//! Restart strategies, restart kinds and shutdown limits.

use std::time::Duration;

/// The siblings that are restarted together with a child that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Only the child that ended is restarted.
    #[default]
    OneForOne,
    /// All other children are stopped, and then all children are started.
    OneForAll,
    /// The children started after the one that ended are stopped, and then it and they are started.
    RestForOne,
}

/// The exits after which a child is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Restart {
    /// After every exit except [`Exit::Ignored`](crate::Exit::Ignored), which leaves the child
    /// stopped.
    #[default]
    Permanent,
    /// After every exit that was not orderly. [`Exit::Normal`](crate::Exit::Normal),
    /// [`Exit::Ignored`](crate::Exit::Ignored) and [`Exit::Shutdown`](crate::Exit::Shutdown) leave
    /// the child stopped.
    Transient,
    /// Never. The child is removed from the child table when it ends, even if it is stopped because
    /// a sibling is restarted.
    Temporary,
}

/// The time that a child has to stop before it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// The child is asked to stop, and killed if it has not ended after this time, which is rounded
    /// up to milliseconds. A time of more than 49 days means no limit.
    Graceful(Duration),
    /// The child is killed at once, without `post_stop`.
    Immediate,
    /// The child is asked to stop and may take as long as it needs. For children that are
    /// supervisors, which apply the limits of their own children.
    Infinity,
}

impl Default for Shutdown {
    /// Five seconds, the default for a worker in OTP.
    fn default() -> Self {
        Self::Graceful(Duration::from_secs(5))
    }
}

impl Shutdown {
    /// Returns the time after which the child is killed, or `None` if there is no limit.
    #[must_use]
    pub const fn limit(self) -> Option<Duration> {
        match self {
            Self::Graceful(limit) => Some(limit),
            Self::Immediate => Some(Duration::ZERO),
            Self::Infinity => None,
        }
    }
}

/// A shutdown limit in 32 bits: milliseconds, rounded up. A limit of more than 49 days counts as
/// none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShutdownLimit(u32);

impl From<Shutdown> for ShutdownLimit {
    fn from(shutdown: Shutdown) -> Self {
        let millis = |limit: Duration| {
            let millis = limit.as_nanos().div_ceil(1_000_000);
            u32::try_from(millis).unwrap_or(u32::MAX)
        };
        Self(shutdown.limit().map_or(u32::MAX, millis))
    }
}

impl ShutdownLimit {
    pub(crate) fn get(self) -> Option<Duration> {
        (self.0 < u32::MAX).then(|| Duration::from_millis(self.0.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_infinite_shutdown_has_no_limit() {
        let second = Duration::from_secs(1);
        assert_eq!(Shutdown::Graceful(second).limit(), Some(second));
        assert_eq!(Shutdown::Immediate.limit(), Some(Duration::ZERO));
        assert_eq!(Shutdown::Infinity.limit(), None);
        assert_eq!(Shutdown::default().limit(), Some(5 * second));
        for shutdown in [
            Shutdown::Graceful(second),
            Shutdown::Immediate,
            Shutdown::Infinity,
        ] {
            assert_eq!(ShutdownLimit::from(shutdown).get(), shutdown.limit());
        }
        let short = Shutdown::Graceful(Duration::from_nanos(1));
        let rounded = ShutdownLimit::from(short).get();
        assert_eq!(rounded, Some(Duration::from_millis(1)), "not at once");
        let endless = Shutdown::Graceful(Duration::MAX);
        assert_eq!(ShutdownLimit::from(endless).get(), None);
    }
}
