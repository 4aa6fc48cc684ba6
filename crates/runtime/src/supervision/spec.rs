//! What a supervisor is told about a child, apart from its type.

use std::time::Duration;

/// Which other children share the fate of a child that is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Only the child that ended is restarted.
    #[default]
    OneForOne,
    /// All other children are stopped, and then all are started.
    OneForAll,
    /// Those started after the child that ended are stopped, and then it and they are started.
    RestForOne,
}

/// After which exits a child is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Restart {
    /// After every exit but [`Exit::Ignored`](crate::Exit::Ignored), which leaves the child
    /// stopped.
    #[default]
    Permanent,
    /// After an exit that was not orderly: [`Exit::Normal`](crate::Exit::Normal),
    /// [`Exit::Ignored`](crate::Exit::Ignored) and [`Exit::Shutdown`](crate::Exit::Shutdown) leave
    /// the child stopped.
    Transient,
    /// Never. Its place in the supervisor goes with it, also when a sibling's restart stops it.
    Temporary,
}

/// How long a child may take to stop before it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// It is asked to stop, and killed when it has not ended after this time, which is rounded up
    /// to milliseconds; a time of more than 49 days is no limit.
    Graceful(Duration),
    /// It is killed at once, without `post_stop`.
    Immediate,
    /// It is asked to stop and may take as long as it needs. For children that are supervisors,
    /// which pass the limits of their own children on.
    Infinity,
}

impl Default for Shutdown {
    /// Five seconds, as OTP gives a worker.
    fn default() -> Self {
        Self::Graceful(Duration::from_secs(5))
    }
}

impl Shutdown {
    /// The time after which the child is killed; `None` when it may take for ever.
    #[must_use]
    pub const fn limit(self) -> Option<Duration> {
        match self {
            Self::Graceful(limit) => Some(limit),
            Self::Immediate => Some(Duration::ZERO),
            Self::Infinity => None,
        }
    }
}

/// The limit of a shutdown in half a word: in milliseconds, rounded up. One of more than 49 days
/// is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(u32);

impl From<Shutdown> for Limit {
    fn from(shutdown: Shutdown) -> Self {
        let millis = |limit: Duration| {
            let millis = limit.as_nanos().div_ceil(1_000_000);
            u32::try_from(millis).unwrap_or(u32::MAX)
        };
        Self(shutdown.limit().map_or(u32::MAX, millis))
    }
}

impl Limit {
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
            assert_eq!(Limit::from(shutdown).get(), shutdown.limit());
        }
        let short = Shutdown::Graceful(Duration::from_nanos(1));
        let rounded = Limit::from(short).get();
        assert_eq!(rounded, Some(Duration::from_millis(1)), "not at once");
        let endless = Shutdown::Graceful(Duration::MAX);
        assert_eq!(Limit::from(endless).get(), None);
    }
}
