use crate::ie::{Interfaces, Release};

/// The criteria by which a message is checked: the interfaces it may be used on, and their release.
///
/// Interfaces alone imply the newest release.
///
/// ```
/// use strowger_pfcp::validate::Scope;
/// use strowger_pfcp::{Interfaces, Release};
///
/// let scope = Scope::from(Interfaces::N4);
/// assert_eq!(scope.release, Release::R19);
/// assert_eq!(Interfaces::N4.in_release(Release::R17).release, Release::R17);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Interfaces on which the message may be sent.
    pub on: Interfaces,
    /// Release of TS 29.244 to check against.
    pub release: Release,
}

impl From<Interfaces> for Scope {
    fn from(on: Interfaces) -> Self {
        on.in_release(Release::R19)
    }
}

impl Interfaces {
    /// Combines the interfaces with a release.
    #[must_use]
    pub const fn in_release(self, release: Release) -> Scope {
        Scope { on: self, release }
    }
}
