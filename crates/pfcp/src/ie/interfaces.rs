//! The interfaces that elements and messages are used on.

use super::Release;

/// A set of interfaces (reference points).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Interfaces(pub(crate) u8);

impl Interfaces {
    /// The empty set of interfaces.
    pub const NONE: Self = Self(0);
    /// The interface between the control and user planes of a serving gateway.
    pub const SXA: Self = Self(1);
    /// The interface between the control and user planes of a packet gateway.
    pub const SXB: Self = Self(2);
    /// The interface between the control and user planes of a traffic detection function.
    pub const SXC: Self = Self(4);
    /// The interface between SMF and UPF.
    pub const N4: Self = Self(8);
    /// The interface between MB-SMF and MB-UPF.
    pub const N4MB: Self = Self(16);
    /// The set of all five interfaces.
    pub const ALL: Self = Self(31);

    /// Returns the union of the two sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of the two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the interfaces that are not in the other set.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the interfaces if release 17 has an element introduced in `since`, or none.
    pub(crate) const fn before(self, since: Release) -> Self {
        match since {
            Release::R17 => self,
            Release::R19 => Self::NONE,
        }
    }

    /// Returns `true` if the set contains all interfaces of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns an iterator over the interfaces of the set, one at a time.
    pub fn iter(self) -> impl Iterator<Item = Self> {
        (0..5)
            .map(|bit| Self(1 << bit))
            .filter(move |one| self.contains(*one))
    }
}

impl std::fmt::Display for Interfaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 5] = ["Sxa", "Sxb", "Sxc", "N4", "N4mb"];
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                write!(f, "{separator}{name}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Interfaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Interfaces({self})")
    }
}
