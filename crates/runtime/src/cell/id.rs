//! The identifier of an actor.

/// The identifier of an actor in its system, valid for as long as its address.
///
/// A slot is used again after the actor's end, with another generation, so an identifier never
/// names two actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    /// Slot in the system's table.
    pub slot: u32,
    /// Number of times that the slot was used before.
    pub generation: u32,
}

impl ActorId {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

impl std::fmt::Display for ActorId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}
