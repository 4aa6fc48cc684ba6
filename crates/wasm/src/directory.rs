//! The names by which components reach other components and native actors.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use strowger::{Accepts, ActorRef, Ask, AskError, Recipient, Request};

use crate::message::{Answer, Call, Message, OpenStream};

type StreamFuture =
    Pin<Box<dyn Future<Output = Result<<OpenStream as Request>::Reply, AskError>> + Send>>;

/// A future of an answer.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send>>;

type FallbackLookup = dyn Fn(&str) -> Option<DirectoryEntry> + Send + Sync;

/// An actor in a [`Directory`], which components can reach: another component, or a native actor
/// that accepts [`Message`]s and [`Call`]s.
#[derive(Clone)]
pub struct DirectoryEntry {
    pub(crate) tell: Recipient<Message>,
    pub(crate) ask: Recipient<Ask<Call>>,
    pub(crate) request: Arc<dyn Fn(Call, Duration) -> AnswerFuture + Send + Sync>,
    /// Opens a stream, if the actor serves streams.
    pub(crate) open_stream: Option<Arc<dyn Fn(OpenStream, Duration) -> StreamFuture + Send + Sync>>,
}

impl DirectoryEntry {
    /// Creates an entry from its parts: the recipient of messages, the recipient of requests, and a
    /// function that sends a request and waits for the answer.
    #[must_use]
    pub fn new(
        tell: Recipient<Message>,
        ask: Recipient<Ask<Call>>,
        request: impl Fn(Call, Duration) -> AnswerFuture + Send + Sync + 'static,
    ) -> Self {
        Self {
            tell,
            ask,
            request: Arc::new(request),
            open_stream: None,
        }
    }

    /// Creates an entry for an actor that also serves streams to components.
    #[must_use]
    pub fn with_streams<M>(actor: &ActorRef<M>) -> Self
    where
        M: Accepts<Message> + Accepts<Ask<Call>> + Accepts<Ask<OpenStream>>,
    {
        let asked = actor.clone();
        let open = move |open: OpenStream, within: Duration| -> StreamFuture {
            let asked = asked.clone();
            Box::pin(async move { asked.ask_within(open, within).await })
        };
        Self {
            open_stream: Some(Arc::new(open)),
            ..Self::from(actor)
        }
    }
}

impl fmt::Debug for DirectoryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DirectoryEntry({:?})", self.tell.actor())
    }
}

impl<M> From<&ActorRef<M>> for DirectoryEntry
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
pub struct Directory(Arc<DirectoryInner>);

#[derive(Default)]
struct DirectoryInner {
    entries: RwLock<FxHashMap<Arc<str>, DirectoryEntry>>,
    fallback: OnceLock<Box<FallbackLookup>>,
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
    pub fn insert(
        &self,
        name: impl Into<Arc<str>>,
        entry: impl Into<DirectoryEntry>,
    ) -> Option<DirectoryEntry> {
        self.0.entries.write().insert(name.into(), entry.into())
    }

    /// Sets a function that looks up names that are not in the directory. Only the first call has
    /// an effect.
    pub fn set_fallback(
        &self,
        find: impl Fn(&str) -> Option<DirectoryEntry> + Send + Sync + 'static,
    ) {
        let _ = self.0.fallback.set(Box::new(find));
    }

    /// Inserts many names at once, so that no lookup sees only a part of them.
    pub fn extend(&self, entries: impl IntoIterator<Item = (Arc<str>, DirectoryEntry)>) {
        self.0.entries.write().extend(entries);
    }

    /// Removes a name; returns its actor.
    #[expect(
        clippy::must_use_candidate,
        reason = "callers rarely need the removed entry"
    )]
    pub fn remove(&self, name: &str) -> Option<DirectoryEntry> {
        self.0.entries.write().remove(name)
    }

    /// Returns the actor under a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<DirectoryEntry> {
        let entered = self.0.entries.read().get(name).cloned();
        entered.or_else(|| self.0.fallback.get()?(name))
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.entries.read().len()
    }

    /// Returns `true` if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
