//! The messages that components and other actors exchange.

use std::fmt;
use std::sync::Arc;

use strowger::{Accepts, Ask, Completion, Reader, Request};

use crate::component::StreamItem;
pub use crate::contract::Payload;
use crate::fault::Fault;
use crate::load::Image;

/// A message without a reply, sent to or by a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message(pub Payload);

/// A request whose reply is an [`Answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call(pub Payload);

impl Request for Call {
    type Reply = Answer;
}

/// The answer to a [`Call`].
pub type Answer = Result<Payload, CallError>;

/// The error returned when a delivered [`Call`] was not answered with a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The actor refused, with this text, and continues.
    #[error("refused: {0}")]
    Refused(String),
    /// The component failed while it handled the call.
    #[error("the component failed: {0}")]
    Fault(Fault),
}

/// A request to read a stream of payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenStream(pub Payload);

impl Request for OpenStream {
    type Reply = Result<Reader<Payload>, CallError>;
}

/// A payload published on a topic. The topics of components are those topics of their system whose
/// messages have this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Topic that the event was published to.
    pub topic: Arc<str>,
    /// The published payload.
    pub payload: Payload,
}

/// The message type of a component: [`Message`]s, [`Call`]s, and messages of the host.
pub struct ComponentMsg(pub(crate) MsgBody);

pub(crate) enum MsgBody {
    Message(Message),
    Call(Ask<Call>),
    Answer(Completion<Answer>),
    Event(TaggedEvent),
    Timer(TimerDue),
    Health(Ask<CheckHealth>),
    Upgrade(Ask<Upgrade>),
    DrainBacklog(DrainBacklog),
    CheckIdle(CheckIdle),
    Open(Ask<OpenStream>),
    Item(StreamItem),
    Flow(Completion<()>),
}

/// An event, with the token of its subscription.
pub(crate) struct TaggedEvent {
    pub(crate) token: u64,
    pub(crate) event: Arc<Event>,
}

/// A timer that fired: one of the component's own, with a payload, or the timeout of an ask.
pub(crate) struct TimerDue {
    pub(crate) token: u64,
    pub(crate) payload: Option<Payload>,
}

/// A message that makes the actor handle what earlier incarnations left.
pub(crate) struct DrainBacklog;

/// A message that makes the actor check whether it has been idle.
pub(crate) struct CheckIdle;

/// A request for the health of a component.
#[derive(Debug, Clone, Copy)]
pub struct CheckHealth;

impl Request for CheckHealth {
    /// The fault is the component's own report that it is not healthy, or the reason why the call
    /// failed.
    type Reply = Result<(), Fault>;
}

/// A request to replace a component with another version.
///
/// Messages stay in the mailbox meanwhile. State is handed over if both versions are `stateful`.
/// The new version is initialized and has to report that it is healthy. On any error the old
/// version continues, except that a trap in its own snapshot ends its incarnation, as every trap
/// does. What the two versions may do is not compared here;
/// [`ComponentRegistry::upgrade`](crate::ComponentRegistry::upgrade) does that.
#[derive(Debug)]
pub struct Upgrade {
    pub(crate) image: Arc<Image>,
    /// The version that must still be running, if any.
    pub(crate) over: Option<Arc<Image>>,
}

impl Upgrade {
    /// Creates a request to upgrade to this version.
    #[must_use]
    pub fn to(image: Image) -> Self {
        Self {
            image: Arc::new(image),
            over: None,
        }
    }
}

impl Request for Upgrade {
    /// The fault ended the new version, or the snapshot of the old one.
    type Reply = Result<(), Fault>;
}

macro_rules! accepts {
    ($($message:ty => $case:ident),*) => {$(
        impl Accepts<$message> for ComponentMsg {
            fn wrap(message: $message) -> Self {
                Self(MsgBody::$case(message))
            }
        }
    )*};
}

accepts! {
    Message => Message,
    Ask<Call> => Call,
    Completion<Answer> => Answer,
    TaggedEvent => Event,
    TimerDue => Timer,
    Ask<CheckHealth> => Health,
    Ask<Upgrade> => Upgrade,
    DrainBacklog => DrainBacklog,
    CheckIdle => CheckIdle,
    Ask<OpenStream> => Open,
    StreamItem => Item,
    Completion<()> => Flow
}

impl fmt::Debug for ComponentMsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl MsgBody {
    /// Returns the name of the variant, for traces.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Call(_) => "call",
            Self::Answer(_) => "answer",
            Self::Event(_) => "event",
            Self::Timer(_) => "timer",
            Self::Health(_) => "health",
            Self::Upgrade(_) => "upgrade",
            Self::DrainBacklog(_) => "drain_backlog",
            Self::CheckIdle(_) => "check_idle",
            Self::Open(_) => "open",
            Self::Item(_) => "item",
            Self::Flow(_) => "flow",
        }
    }

    /// Returns `true` if any incarnation can handle it.
    pub(crate) const fn survives_restart(&self) -> bool {
        matches!(
            self,
            Self::Message(_) | Self::Call(_) | Self::Open(_) | Self::Health(_) | Self::Upgrade(_)
        )
    }

    /// Returns `true` if handling it counts as work, so that the component is not idle.
    pub(crate) const fn is_work(&self) -> bool {
        !matches!(
            self,
            Self::CheckIdle(_) | Self::Health(_) | Self::DrainBacklog(_)
        )
    }

    /// Returns `true` if it may be part of a batch.
    pub(crate) const fn can_batch(&self) -> bool {
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
