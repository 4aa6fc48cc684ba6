//! What ends with an actor, though others hold it.

use std::sync::Weak;

use crate::cell::ActorId;

/// Something that actors are members of: topics of one type, groups.
pub(crate) trait Leave: Send + Sync {
    /// The actor has ended for good.
    fn leave(&self, actor: ActorId);
}

/// What is undone at an actor's end.
pub(crate) type Tie = Weak<dyn Leave>;
