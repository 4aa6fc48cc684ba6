//! Addresses by the type of message instead of the type of actor.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::address::{Accepts, AnyRef, SendError};
use crate::budget::charge_ready;
use crate::cell::ActorCell;
use crate::clock;
use crate::clock::remaining;
use crate::mailbox::PushError;

/// The address of any actor that takes messages of type `T`, whatever else it takes.
pub struct Recipient<T>(Arc<dyn RecipientTarget<T>>);

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
    pub(crate) fn new<M: Accepts<T>>(cell: Arc<ActorCell<M>>) -> Self {
        Self(cell)
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// Hands the message back: `Full` if there is no room, `Draining` while the actor is drained,
    /// `Closed` after its end.
    pub fn try_tell(&self, message: T) -> Result<(), SendError<T>> {
        self.0.try_tell(message, None)
    }

    /// Sends a message that expires after `ttl`, without waiting; see
    /// [`ActorRef::tell_within`](crate::ActorRef::tell_within).
    ///
    /// # Errors
    /// Hands the message back, as [`Recipient::try_tell`] does.
    pub fn try_tell_within(&self, message: T, ttl: Duration) -> Result<(), SendError<T>> {
        self.0.try_tell(message, Some(self.expiry_of(ttl)))
    }

    /// Sends a message. If the mailbox is full and its rule is to wait, waits in turn for room.
    ///
    /// # Errors
    /// Hands the message back: `Full` if the rule is to fail, `Draining` while the actor is
    /// drained, `Closed` after its end.
    pub async fn tell(&self, message: T) -> Result<(), SendError<T>> {
        self.deliver(message, None).await
    }

    /// Sends a message that expires after `ttl`. If the mailbox is full and its rule is to wait,
    /// waits in turn for room, for as long; see
    /// [`ActorRef::tell_within`](crate::ActorRef::tell_within).
    ///
    /// # Errors
    /// Hands the message back, as [`Recipient::tell`] does, and with `Expired` if its time passes
    /// before there is room.
    pub async fn tell_within(&self, message: T, ttl: Duration) -> Result<(), SendError<T>> {
        let until = self.expiry_of(ttl);
        self.deliver(message, Some(until)).await
    }

    fn expiry_of(&self, ttl: Duration) -> Instant {
        let AnyRef(cell) = self.actor();
        clock::saturating_add(cell.core().shared.now(), ttl)
    }

    async fn deliver(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        match self.0.try_tell(message, until) {
            Err(SendError::Full(message)) if self.0.waits() => {
                let mut reservation = Reservation {
                    target: self.0.sender_queue(),
                    ticket: None,
                };
                let placed = match until {
                    None => Some(reservation.reserve().await),
                    Some(until) => {
                        let AnyRef(cell) = self.actor();
                        let alarms = &cell.core().shared.alarms;
                        alarms
                            .timeout(remaining(until), reservation.reserve())
                            .await
                    }
                };
                match placed {
                    None => Err(SendError::Expired(message)),
                    Some(false) => Err(self.0.refusal().hand_back(message)),
                    Some(true) => {
                        self.0.fill_reserved(reservation.take(), message, until);
                        Ok(())
                    }
                }
            }
            Ok(()) => Ok(()),
            refused => {
                charge_ready().await;
                refused
            }
        }
    }

    /// Returns a recipient of other messages, each of which is converted into one of these. An
    /// adapter thus needs no actor of its own.
    #[must_use]
    pub fn contramap<S: Send + 'static>(
        &self,
        convert: impl Fn(S) -> T + Send + Sync + 'static,
    ) -> Recipient<S> {
        Recipient(Arc::new(ConvertingTarget {
            inner: Arc::clone(&self.0),
            convert: Box::new(convert),
        }))
    }

    /// Returns the address of the actor that receives the messages.
    #[must_use]
    pub fn actor(&self) -> AnyRef {
        Arc::clone(&self.0).actor_ref()
    }
}

/// The queue of senders that wait for room in a mailbox, without its message type.
pub(crate) trait ReservePlace: Send + Sync {
    fn waits(&self) -> bool;
    /// Reserves a place if there is one now; `Ok(None)` if the overflow rule always makes room.
    fn try_reserve(&self) -> Result<Option<u64>, PushError>;
    fn poll_reserve(&self, ticket: &mut Option<u64>, cx: &Context<'_>) -> Poll<bool>;
    fn release_place(&self, ticket: u64);
    /// Returns the reason why the mailbox takes no message any more.
    fn refusal(&self) -> PushError;
}

impl<M: Send + 'static> ReservePlace for ActorCell<M> {
    fn waits(&self) -> bool {
        self.mailbox.spec().waits()
    }

    fn try_reserve(&self) -> Result<Option<u64>, PushError> {
        self.mailbox.try_reserve()
    }

    fn poll_reserve(&self, ticket: &mut Option<u64>, cx: &Context<'_>) -> Poll<bool> {
        self.mailbox.poll_reserve(ticket, cx.waker())
    }

    fn release_place(&self, ticket: u64) {
        self.mailbox.release_place(ticket);
    }

    fn refusal(&self) -> PushError {
        self.mailbox.refusal()
    }
}

/// A sender's place in the queue for a full mailbox, given up when dropped.
pub(crate) struct Reservation<'a, L: ReservePlace + ?Sized> {
    target: &'a L,
    ticket: Option<u64>,
}

impl<'a, L: ReservePlace + ?Sized> Reservation<'a, L> {
    pub(crate) const fn new(sender_queue: &'a L) -> Self {
        Self {
            target: sender_queue,
            ticket: None,
        }
    }

    /// Waits for a place; returns `false` if the mailbox refuses messages.
    pub(crate) async fn reserve(&mut self) -> bool {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Polls for a place, as `reserve` does.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<bool> {
        self.target.poll_reserve(&mut self.ticket, cx)
    }

    /// Returns `true` if the sender is in the queue.
    pub(crate) const fn waits(&self) -> bool {
        self.ticket.is_some()
    }

    pub(crate) const fn sender_queue(&self) -> &'a L {
        self.target
    }

    /// Takes the place, to be filled at once.
    pub(crate) fn take(&mut self) -> u64 {
        self.ticket
            .take()
            .expect("taken once, after the reservation")
    }
}

impl<L: ReservePlace + ?Sized> Drop for Reservation<'_, L> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.target.release_place(ticket);
        }
    }
}

/// The target of a recipient: a cell that takes `T`, or one behind a conversion.
trait RecipientTarget<T>: ReservePlace {
    fn try_tell(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>>;
    fn fill_reserved(&self, ticket: u64, message: T, until: Option<Instant>);
    fn sender_queue(&self) -> &dyn ReservePlace;
    fn actor_ref(self: Arc<Self>) -> AnyRef;
}

impl<M, T> RecipientTarget<T> for ActorCell<M>
where
    M: Accepts<T>,
    T: Send + 'static,
{
    fn try_tell(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        self.try_send(message, until).map(drop)
    }

    fn fill_reserved(&self, ticket: u64, message: T, until: Option<Instant>) {
        Self::fill_reserved(self, ticket, M::wrap(message), until);
    }

    fn sender_queue(&self) -> &dyn ReservePlace {
        self
    }

    fn actor_ref(self: Arc<Self>) -> AnyRef {
        AnyRef(self)
    }
}

struct ConvertingTarget<T, U> {
    inner: Arc<dyn RecipientTarget<U>>,
    convert: Box<dyn Fn(T) -> U + Send + Sync>,
}

impl<T, U> ReservePlace for ConvertingTarget<T, U> {
    fn waits(&self) -> bool {
        self.inner.waits()
    }

    fn try_reserve(&self) -> Result<Option<u64>, PushError> {
        self.inner.try_reserve()
    }

    fn poll_reserve(&self, ticket: &mut Option<u64>, cx: &Context<'_>) -> Poll<bool> {
        self.inner.poll_reserve(ticket, cx)
    }

    fn release_place(&self, ticket: u64) {
        self.inner.release_place(ticket);
    }

    fn refusal(&self) -> PushError {
        self.inner.refusal()
    }
}

impl<T: Send + 'static, U: Send + 'static> RecipientTarget<T> for ConvertingTarget<T, U> {
    fn try_tell(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        // The place comes first: once converted, the message could not be handed back.
        match self.inner.try_reserve() {
            Err(refused) => Err(refused.hand_back(message)),
            Ok(None) => {
                // The message is refused only if the actor ends at this moment; it is lost then,
                // like all that wait.
                let _lost = self.inner.try_tell((self.convert)(message), until);
                Ok(())
            }
            Ok(Some(ticket)) => {
                let mut reservation = Reservation {
                    target: self.inner.sender_queue(),
                    ticket: Some(ticket),
                };
                let converted = (self.convert)(message);
                self.inner
                    .fill_reserved(reservation.take(), converted, until);
                Ok(())
            }
        }
    }

    fn fill_reserved(&self, ticket: u64, message: T, until: Option<Instant>) {
        let mut reservation = Reservation {
            target: self.inner.sender_queue(),
            ticket: Some(ticket),
        };
        let converted = (self.convert)(message);
        self.inner
            .fill_reserved(reservation.take(), converted, until);
    }

    fn sender_queue(&self) -> &dyn ReservePlace {
        self
    }

    fn actor_ref(self: Arc<Self>) -> AnyRef {
        Arc::clone(&self.inner).actor_ref()
    }
}
