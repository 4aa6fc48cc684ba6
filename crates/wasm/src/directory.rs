//! Who can be reached by which name.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use strowger::{Accepts, ActorRef, Ask, AskError, Recipient, Request};

use crate::message::{Answer, Call, Message, Open};

type Opened = Pin<Box<dyn Future<Output = Result<<Open as Request>::Reply, AskError>> + Send>>;
type Waiting = Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send>>;

/// An actor that components can reach: another component, or any actor that takes [`Message`]s
/// and [`Call`]s.
#[derive(Clone)]
pub struct Door {
    pub(crate) tell: Recipient<Message>,
    pub(crate) ask: Recipient<Ask<Call>>,
    pub(crate) wait: Arc<dyn Fn(Call, Duration) -> Waiting + Send + Sync>,
    /// For a stream, if it has some.
    pub(crate) open: Option<Arc<dyn Fn(Open, Duration) -> Opened + Send + Sync>>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({:?})", self.tell.actor())
    }
}

impl<M> From<&ActorRef<M>> for Door
where
    M: Accepts<Message> + Accepts<Ask<Call>>,
{
    fn from(actor: &ActorRef<M>) -> Self {
        let asked = actor.clone();
        Self {
            tell: actor.recipient(),
            ask: actor.recipient(),
            wait: Arc::new(move |call, within| {
                let asked = asked.clone();
                Box::pin(async move { asked.ask_within(call, within).await })
            }),
            open: None,
        }
    }
}

impl Door {
    /// An actor of which components can read streams, too.
    #[must_use]
    pub fn streaming<M>(actor: &ActorRef<M>) -> Self
    where
        M: Accepts<Message> + Accepts<Ask<Call>> + Accepts<Ask<Open>>,
    {
        let asked = actor.clone();
        let open = move |open: Open, within: Duration| -> Opened {
            let asked = asked.clone();
            Box::pin(async move { asked.ask_within(open, within).await })
        };
        Self {
            open: Some(Arc::new(open)),
            ..Self::from(actor)
        }
    }
}

/// The names by which components reach others. A clone is the same directory.
#[derive(Debug, Clone, Default)]
pub struct Directory(Arc<RwLock<FxHashMap<Arc<str>, Door>>>);

impl Directory {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters an actor under a name; returns who had it before.
    pub fn insert(&self, name: impl Into<Arc<str>>, door: impl Into<Door>) -> Option<Door> {
        self.0.write().insert(name.into(), door.into())
    }

    /// Enters many at once: nobody sees a part of them.
    pub fn extend(&self, doors: impl IntoIterator<Item = (Arc<str>, Door)>) {
        self.0.write().extend(doors);
    }

    /// Takes a name out.
    #[expect(
        clippy::must_use_candidate,
        reason = "who had it is rarely of interest"
    )]
    pub fn remove(&self, name: &str) -> Option<Door> {
        self.0.write().remove(name)
    }

    /// Who has a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Door> {
        self.0.read().get(name).cloned()
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().len()
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
