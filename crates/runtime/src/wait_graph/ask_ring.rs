//! The description of a ring, for the error of the ask that is refused.

use std::fmt;
use std::ops::Deref;

use crate::path::ActorPath;

/// A ring of actors, each of which waits for the next: from the asker back to the asker.
///
/// It dereferences to the paths of the actors; the first and the last are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRing {
    pub(super) actors: Vec<ActorPath>,
    pub(super) waits: Vec<RingWait>,
}

/// The event that an actor in an [`AskRing`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RingWait {
    /// An answer of the next actor.
    Answer,
    /// The end of the next actor.
    End,
    /// The start of the next actor.
    Start,
    /// A decision of the next actor, its supervisor, about its restart.
    Restart,
}

impl AskRing {
    /// Returns the events that the actors wait for: one less than there are paths.
    #[must_use]
    pub fn waits(&self) -> &[RingWait] {
        &self.waits
    }
}

impl Deref for AskRing {
    type Target = [ActorPath];

    fn deref(&self) -> &[ActorPath] {
        &self.actors
    }
}

impl fmt::Display for AskRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.actors.iter().map(ActorPath::as_str).collect();
        f.write_str(&names.join(" -> "))?;
        // A reader expects asks; other waits explain why there is a ring.
        let mut before = ", because";
        for (pair, wait) in self.actors.windows(2).zip(&self.waits) {
            let (from, on) = (&pair[0], &pair[1]);
            match wait {
                RingWait::Answer => continue,
                RingWait::End => write!(f, "{before} {from} waits for the end of {on}")?,
                RingWait::Start => write!(f, "{before} {from} waits for the start of {on}")?,
                RingWait::Restart => write!(f, "{before} {from} waits for its restart by {on}")?,
            }
            before = " and";
        }
        Ok(())
    }
}
