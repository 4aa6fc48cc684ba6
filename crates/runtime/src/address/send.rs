//! A message on its way into a mailbox.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::{Accepts, SendError};
use crate::budget::{charge_poll, should_charge_tell};
use crate::cell::ActorCell;
use crate::clock::remaining;
use crate::mailbox::PushError;
use crate::recipient::Reservation;
use crate::schedule::strand::OpaqueMessage;
use crate::seeded_bug::{Bug, seeded};

/// The future that puts a message into a mailbox: at once if there is room, otherwise in turn if
/// the overflow rule is to wait.
///
/// It is not an `async fn`, which would move the message before the lock is taken: a processor
/// stalls if it reads as a whole what was just written in parts, for as long as everything else
/// takes.
#[must_use = "nothing is sent before it is awaited"]
pub(crate) struct SendFuture<'a, M: Send + 'static, T> {
    /// The message, until it is sent.
    message: Option<OpaqueMessage<T>>,
    reservation: Reservation<'a, ActorCell<M>>,
}

impl<'a, M: Accepts<T>, T> SendFuture<'a, M, T> {
    #[inline(always)]
    pub(crate) const fn new(cell: &'a ActorCell<M>, message: T) -> Self {
        Self {
            message: Some(OpaqueMessage::new(message)),
            reservation: Reservation::new(cell),
        }
    }

    fn take(&mut self) -> T {
        let message = self.message.take();
        message.expect("a message is sent once").into_inner()
    }

    /// Puts the message in, if there is room; returns its number. Returns `None` if the sender has
    /// to wait for room.
    #[inline(always)]
    fn attempt(&mut self, until: Option<Instant>) -> Option<Result<u64, PushError>> {
        let cell = self.reservation.sender_queue();
        match cell.send(&mut self.message, until) {
            Err(PushError::Full) if cell.mailbox.spec().waits() => None,
            sent => Some(sent),
        }
    }

    /// Hands the message back, once the task was charged for it: a task that tries again and again
    /// yields now and then.
    #[cold]
    fn poll_reject(
        &mut self,
        refused: PushError,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u64, SendError<T>>> {
        charge_poll(cx, |_| Poll::Ready(Err(refused.hand_back(self.take()))))
    }

    /// Charges the task for the last few messages. Not under the test kit, where the schedule
    /// follows from a seed, and not from what this thread sent before.
    #[cold]
    fn poll_charge(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self
            .reservation
            .sender_queue()
            .core
            .shared
            .scheduler
            .has_beat()
            && !seeded(Bug::TellNotCharged)
        {
            true => charge_poll(cx, |_| Poll::Ready(())),
            false => Poll::Ready(()),
        }
    }

    /// Puts the message in once there is room for it.
    #[cold]
    fn poll_reserved(
        &mut self,
        until: Option<Instant>,
        cx: &Context<'_>,
    ) -> Poll<Result<u64, SendError<T>>> {
        let cell = self.reservation.sender_queue();
        self.reservation.poll(cx).map(|placed| {
            if !placed {
                return Err(cell.mailbox.refusal().hand_back(self.take()));
            }
            let message = M::wrap(self.take());
            Ok(cell.fill_reserved(self.reservation.take(), message, until))
        })
    }

    /// Puts the message in, which expires at `until`, if given; returns its number.
    pub(crate) async fn deliver(mut self, until: Option<Instant>) -> Result<u64, SendError<T>> {
        match self.attempt(until) {
            None => {}
            Some(Ok(number)) => return Ok(number),
            Some(Err(refused)) => return poll_fn(|cx| self.poll_reject(refused, cx)).await,
        }
        let alarms = &self.reservation.sender_queue().core.shared.alarms;
        let polled = poll_fn(|cx| self.poll_reserved(until, cx));
        let Some(until) = until else {
            return polled.await;
        };
        // Boxed; otherwise every hook that tells would have room for it.
        let done = Box::pin(alarms.timeout(remaining(until), polled)).await;
        done.unwrap_or_else(|| Err(SendError::Expired(self.take())))
    }
}

impl<M: Accepts<T>, T> Future for SendFuture<'_, M, T> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if should_charge_tell() {
            ready!(this.poll_charge(cx));
        }
        let attempted = match this.reservation.waits() {
            true => None,
            false => this.attempt(None),
        };
        let sent = match attempted {
            Some(Ok(_)) => return Poll::Ready(Ok(())),
            Some(Err(refused)) => this.poll_reject(refused, cx),
            None => this.poll_reserved(None, cx),
        };
        sent.map(|sent| sent.map(drop))
    }
}

// Nothing in it is pinned.
impl<M: Send + 'static, T> Unpin for SendFuture<'_, M, T> {}
