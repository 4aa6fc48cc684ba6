//! The names by which components reach actors.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use strowger::{Accepts, ActorRef, Ask, AskError, Recipient, Request};

use crate::message::{Answer, Call, Message, Open};

type Opened = Pin<Box<dyn Future<Output = Result<<Open as Request>::Reply, AskError>> + Send>>;

/// A future of an answer.
pub type Waiting = Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send>>;

type Fallback = dyn Fn(&str) -> Option<Door> + Send + Sync;

/// An actor that components can reach: another component, or any actor that accepts [`Message`]s
/// and [`Call`]s.
#[derive(Clone)]
pub struct Door {
    pub(crate) tell: Recipient<Message>,
    pub(crate) ask: Recipient<Ask<Call>>,
    pub(crate) wait: Arc<dyn Fn(Call, Duration) -> Waiting + Send + Sync>,
    /// Opens a stream, if the actor serves streams.
    pub(crate) open: Option<Arc<dyn Fn(Open, Duration) -> Opened + Send + Sync>>,
}

impl Door {
    /// Creates a door from its parts: the recipient of messages, the recipient of requests, and a
    /// function that sends a request and waits for the answer.
    #[must_use]
    pub fn new(
        tell: Recipient<Message>,
        ask: Recipient<Ask<Call>>,
        wait: impl Fn(Call, Duration) -> Waiting + Send + Sync + 'static,
    ) -> Self {
        Self {
            tell,
            ask,
            wait: Arc::new(wait),
            open: None,
        }
    }

    /// Creates a door to an actor that also serves streams to components.
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
        Self::new(actor.recipient(), actor.recipient(), move |call, within| {
            let asked = asked.clone();
            Box::pin(async move { asked.ask_within(call, within).await })
        })
    }
}

/// The names by which components reach other actors. A clone is the same directory.
#[derive(Clone, Default)]
pub struct Directory(Arc<Names>);

#[derive(Default)]
struct Names {
    doors: RwLock<FxHashMap<Arc<str>, Door>>,
    fallback: OnceLock<Box<Fallback>>,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Directory({} names)", self.len())
    }
}

impl Directory {
    /// Creates an empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts an actor under a name; returns the previous one.
    pub fn insert(&self, name: impl Into<Arc<str>>, door: impl Into<Door>) -> Option<Door> {
        self.0.doors.write().insert(name.into(), door.into())
    }

    /// Sets a function that looks up names that are not in the directory. Only the first call has
    /// an effect.
    pub fn beyond(&self, find: impl Fn(&str) -> Option<Door> + Send + Sync + 'static) {
        let _ = self.0.fallback.set(Box::new(find));
    }

    /// Inserts many names at once, so that no lookup sees only a part of them.
    pub fn extend(&self, doors: impl IntoIterator<Item = (Arc<str>, Door)>) {
        self.0.doors.write().extend(doors);
    }

    /// Removes a name; returns its actor.
    #[expect(
        clippy::must_use_candidate,
        reason = "who had it is rarely of interest"
    )]
    pub fn remove(&self, name: &str) -> Option<Door> {
        self.0.doors.write().remove(name)
    }

    /// Returns the actor under a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Door> {
        let entered = self.0.doors.read().get(name).cloned();
        entered.or_else(|| self.0.fallback.get()?(name))
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.doors.read().len()
    }

    /// Returns `true` if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
