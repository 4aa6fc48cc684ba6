//! Memberships that end with an actor, although others hold a reference to it.

use std::sync::Weak;

use crate::cell::ActorId;

/// Something that actors can be members of: the topics of one message type, or a group.
pub(crate) trait Membership: Send + Sync {
    /// Removes an actor that has ended for good.
    fn on_exit(&self, actor: ActorId);
}

/// A membership to end when the actor does.
pub(crate) type WeakMembership = Weak<dyn Membership>;
