//! Addresses by what is sent, not by who takes it.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::address::{Accepts, AnyRef, SendError};
use crate::budget::pay;
use crate::cell::Cell;
use crate::clock;
use crate::expiry::left;
use crate::mailbox::Refused;

/// The address of any actor that takes messages of type `T`, whatever else it takes.
pub struct Recipient<T>(Arc<dyn Tell<T>>);

impl<T> Clone for Recipient<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Recipient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recipient")
    }
}

impl<T: Send + 'static> Recipient<T> {
    pub(crate) fn new<M: Accepts<T>>(cell: Arc<Cell<M>>) -> Self {
        Self(cell)
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// Hands the message back: `Full` without room, `Draining` while the actor is drained, `Closed`
    /// after its end.
    pub fn try_tell(&self, message: T) -> Result<(), SendError<T>> {
        self.0.try_tell(message, None)
    }

    /// Sends a message that is only wanted for a while, without waiting; see
    /// [`ActorRef::tell_within`](crate::ActorRef::tell_within).
    ///
    /// # Errors
    /// Hands the message back, as [`Recipient::try_tell`] does.
    pub fn try_tell_within(&self, message: T, ttl: Duration) -> Result<(), SendError<T>> {
        self.0.try_tell(message, Some(self.until(ttl)))
    }

    /// Sends a message; waits in turn for room if the mailbox's rule is to wait.
    ///
    /// # Errors
    /// Hands the message back: `Full` if the rule is to fail, `Draining` while the actor is
    /// drained, `Closed` after its end.
    pub async fn tell(&self, message: T) -> Result<(), SendError<T>> {
        self.deliver(message, None).await
    }

    /// Sends a message that is only wanted for a while; waits in turn for room, if the mailbox's
    /// rule is to wait, for as long; see [`ActorRef::tell_within`](crate::ActorRef::tell_within).
    ///
    /// # Errors
    /// Hands the message back, as [`Recipient::tell`] does, and with `Expired` when its time
    /// passed before there was room.
    pub async fn tell_within(&self, message: T, ttl: Duration) -> Result<(), SendError<T>> {
        let until = self.until(ttl);
        self.deliver(message, Some(until)).await
    }

    fn until(&self, ttl: Duration) -> Instant {
        let AnyRef(cell) = self.actor();
        clock::later(cell.node().shared.now(), ttl)
    }

    async fn deliver(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        match self.0.try_tell(message, until) {
            Err(SendError::Full(message)) if self.0.waits() => {
                let mut turn = Turn {
                    line: self.0.line(),
                    ticket: None,
                };
                let placed = match until {
                    None => Some(turn.reserve().await),
                    Some(until) => {
                        let AnyRef(cell) = self.actor();
                        let alarms = &cell.node().shared.alarms;
                        alarms.within(left(until), turn.reserve()).await
                    }
                };
                match placed {
                    None => Err(SendError::Expired(message)),
                    Some(false) => Err(self.0.refusal().hand_back(message)),
                    Some(true) => {
                        self.0.fill(turn.take(), message, until);
                        Ok(())
                    }
                }
            }
            Ok(()) => Ok(()),
            refused => {
                pay().await;
                refused
            }
        }
    }

    /// A recipient of other messages, each converted into one of these. So an adapter needs no
    /// actor of its own.
    #[must_use]
    pub fn contramap<S: Send + 'static>(
        &self,
        convert: impl Fn(S) -> T + Send + Sync + 'static,
    ) -> Recipient<S> {
        Recipient(Arc::new(Mapped {
            inner: Arc::clone(&self.0),
            convert: Box::new(convert),
        }))
    }

    /// The actor behind it.
    #[must_use]
    pub fn actor(&self) -> AnyRef {
        Arc::clone(&self.0).any()
    }
}

/// The line before a mailbox, without its message type.
pub(crate) trait Line: Send + Sync {
    fn waits(&self) -> bool;
    /// A place now: `Ok(None)` where the rule always makes room.
    fn try_reserve(&self) -> Result<Option<u64>, Refused>;
    fn poll_reserve(&self, ticket: &mut Option<u64>, cx: &Context<'_>) -> Poll<bool>;
    fn give_up(&self, ticket: u64);
    /// Why there is no room any more.
    fn refusal(&self) -> Refused;
}

impl<M: Send + 'static> Line for Cell<M> {
    fn waits(&self) -> bool {
        self.mailbox.spec().waits()
    }

    fn try_reserve(&self) -> Result<Option<u64>, Refused> {
        self.mailbox.try_reserve()
    }

    fn poll_reserve(&self, ticket: &mut Option<u64>, cx: &Context<'_>) -> Poll<bool> {
        self.mailbox.poll_reserve(ticket, cx.waker())
    }

    fn give_up(&self, ticket: u64) {
        self.mailbox.give_up(ticket);
    }

    fn refusal(&self) -> Refused {
        self.mailbox.refusal()
    }
}

/// A sender's place in the line before a full mailbox, given up when dropped.
pub(crate) struct Turn<'a, L: Line + ?Sized> {
    line: &'a L,
    ticket: Option<u64>,
}

impl<'a, L: Line + ?Sized> Turn<'a, L> {
    pub(crate) const fn new(line: &'a L) -> Self {
        Self { line, ticket: None }
    }

    /// Waits for a place; false when the actor has ended.
    pub(crate) async fn reserve(&mut self) -> bool {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// As `reserve`.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<bool> {
        self.line.poll_reserve(&mut self.ticket, cx)
    }

    /// Whether there is one in line.
    pub(crate) const fn waits(&self) -> bool {
        self.ticket.is_some()
    }

    pub(crate) const fn line(&self) -> &'a L {
        self.line
    }

    /// Takes the place, to be filled at once.
    pub(crate) fn take(&mut self) -> u64 {
        self.ticket
            .take()
            .expect("taken once, after the reservation")
    }
}

impl<L: Line + ?Sized> Drop for Turn<'_, L> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.line.give_up(ticket);
        }
    }
}

/// What a recipient holds: a cell that takes `T`, or one behind a conversion.
trait Tell<T>: Line {
    fn try_tell(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>>;
    fn fill(&self, ticket: u64, message: T, until: Option<Instant>);
    fn line(&self) -> &dyn Line;
    fn any(self: Arc<Self>) -> AnyRef;
}

impl<M, T> Tell<T> for Cell<M>
where
    M: Accepts<T>,
    T: Send + 'static,
{
    fn try_tell(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        self.send_now(message, until).map(drop)
    }

    fn fill(&self, ticket: u64, message: T, until: Option<Instant>) {
        Self::fill(self, ticket, M::wrap(message), until);
    }

    fn line(&self) -> &dyn Line {
        self
    }

    fn any(self: Arc<Self>) -> AnyRef {
        AnyRef(self)
    }
}

struct Mapped<T, U> {
    inner: Arc<dyn Tell<U>>,
    convert: Box<dyn Fn(T) -> U + Send + Sync>,
}

impl<T, U> Line for Mapped<T, U> {
    fn waits(&self) -> bool {
        self.inner.waits()
    }

    fn try_reserve(&self) -> Result<Option<u64>, Refused> {
        self.inner.try_reserve()
    }

    fn poll_reserve(&self, ticket: &mut Option<u64>, cx: &Context<'_>) -> Poll<bool> {
        self.inner.poll_reserve(ticket, cx)
    }

    fn give_up(&self, ticket: u64) {
        self.inner.give_up(ticket);
    }

    fn refusal(&self) -> Refused {
        self.inner.refusal()
    }
}

impl<T: Send + 'static, U: Send + 'static> Tell<T> for Mapped<T, U> {
    fn try_tell(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        // The place comes first: once converted, the message could not be handed back.
        match self.inner.try_reserve() {
            Err(refused) => Err(refused.hand_back(message)),
            Ok(None) => {
                // Only an end in this moment refuses it; it is lost as all that waits then.
                let _lost = self.inner.try_tell((self.convert)(message), until);
                Ok(())
            }
            Ok(Some(ticket)) => {
                let mut turn = Turn {
                    line: self.inner.line(),
                    ticket: Some(ticket),
                };
                let converted = (self.convert)(message);
                self.inner.fill(turn.take(), converted, until);
                Ok(())
            }
        }
    }

    fn fill(&self, ticket: u64, message: T, until: Option<Instant>) {
        let mut turn = Turn {
            line: self.inner.line(),
            ticket: Some(ticket),
        };
        let converted = (self.convert)(message);
        self.inner.fill(turn.take(), converted, until);
    }

    fn line(&self) -> &dyn Line {
        self
    }

    fn any(self: Arc<Self>) -> AnyRef {
        Arc::clone(&self.inner).any()
    }
}
