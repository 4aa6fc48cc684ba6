//! What components and others say to each other.

use std::fmt;
use std::sync::Arc;

use strowger::{Accepts, Ask, Completion, Reader, Request};

use crate::component::Item;
use crate::contract::Payload;
use crate::fault::Fault;
use crate::load::Image;

/// Octets that are told: to a component, or by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message(pub Payload);

/// Octets that are asked, with octets for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call(pub Payload);

impl Request for Call {
    type Reply = Answer;
}

/// The answer to a [`Call`].
pub type Answer = Result<Payload, CallError>;

/// Why a [`Call`] that was delivered has no octets for an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The actor refused, with these words, and goes on.
    #[error("refused: {0}")]
    Refused(String),
    /// The component failed over it.
    #[error("the component failed: {0}")]
    Fault(Fault),
}

/// Octets by which a stream of octets is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open(pub Payload);

impl Request for Open {
    type Reply = Result<Reader<Payload>, CallError>;
}

/// Octets published on a topic. The topics of components are those of their system with messages
/// of this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The topic.
    pub topic: Arc<str>,
    /// What was published.
    pub payload: Payload,
}

/// What a component takes: [`Message`]s, [`Call`]s, and what its host has for it.
pub struct ComponentMsg(pub(crate) Inside);

pub(crate) enum Inside {
    Message(Message),
    Call(Ask<Call>),
    Answer(Completion<Answer>),
    Event(Tagged),
    Timer(Due),
    Health(Ask<Health>),
    Upgrade(Ask<Upgrade>),
    Rouse(Rouse),
    Idle(Idle),
    Open(Ask<Open>),
    Item(Item),
    Flow(Completion<()>),
}

/// An event, with the subscription through which it came.
pub(crate) struct Tagged {
    pub(crate) token: u64,
    pub(crate) event: Arc<Event>,
}

/// A timer that is due: one of the component's own, with a payload, or the end of an ask.
pub(crate) struct Due {
    pub(crate) token: u64,
    pub(crate) payload: Option<Payload>,
}

/// Says that something of a life before this one is left to handle.
pub(crate) struct Rouse;

/// Says that it is time to see whether a component has had nothing to do.
pub(crate) struct Idle;

/// Asks a component whether it can do its work.
#[derive(Debug, Clone, Copy)]
pub struct Health;

impl Request for Health {
    /// A fault is its own word that it cannot, or why it did not come to say it.
    type Reply = Result<(), Fault>;
}

/// Asks a component to let another version take its place.
///
/// What waits is held meanwhile. State is handed over if both versions are `stateful`; the new
/// one gets its `init` and has to be well. On any error the old version goes on, except that a
/// trap in its own snapshot ends its life, as every trap does.
#[derive(Debug)]
pub struct Upgrade(pub(crate) Arc<Image>);

impl Upgrade {
    /// To this version.
    #[must_use]
    pub fn to(image: Image) -> Self {
        Self(Arc::new(image))
    }
}

impl Request for Upgrade {
    /// A fault is the one in which the new version ended, or the old one's snapshot.
    type Reply = Result<(), Fault>;
}

macro_rules! accepts {
    ($($message:ty => $case:ident),*) => {$(
        impl Accepts<$message> for ComponentMsg {
            fn wrap(message: $message) -> Self {
                Self(Inside::$case(message))
            }
        }
    )*};
}

accepts! {
    Message => Message,
    Ask<Call> => Call,
    Completion<Answer> => Answer,
    Tagged => Event,
    Due => Timer,
    Ask<Health> => Health,
    Ask<Upgrade> => Upgrade,
    Rouse => Rouse,
    Idle => Idle,
    Ask<Open> => Open,
    Item => Item,
    Completion<()> => Flow
}

impl fmt::Debug for ComponentMsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Inside {
    /// What it is, in traces.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Call(_) => "call",
            Self::Answer(_) => "answer",
            Self::Event(_) => "event",
            Self::Timer(_) => "timer",
            Self::Health(_) => "health",
            Self::Upgrade(_) => "upgrade",
            Self::Rouse(_) => "rouse",
            Self::Idle(_) => "idle",
            Self::Open(_) => "open",
            Self::Item(_) => "item",
            Self::Flow(_) => "flow",
        }
    }

    /// Whether it is for the actor, whichever of its lives handles it.
    pub(crate) const fn outlives(&self) -> bool {
        matches!(
            self,
            Self::Message(_) | Self::Call(_) | Self::Open(_) | Self::Health(_) | Self::Upgrade(_)
        )
    }

    /// Whether who has this to handle is not idle.
    pub(crate) const fn is_work(&self) -> bool {
        !matches!(self, Self::Idle(_) | Self::Health(_) | Self::Rouse(_))
    }

    /// Whether it may wait in a batch with others.
    pub(crate) const fn batches(&self) -> bool {
        matches!(
            self,
            Self::Message(_)
                | Self::Answer(_)
                | Self::Event(_)
                | Self::Timer(_)
                | Self::Item(_)
                | Self::Flow(_)
        )
    }
}
