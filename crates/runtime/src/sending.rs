//! A message on its way into a mailbox.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;

use crate::address::{Accepts, SendError};
use crate::budget::charged;
use crate::cell::Cell;
use crate::expiry::left;
use crate::mailbox::Refused;
use crate::recipient::Turn;
use crate::schedule::strand::Whole;

/// Puts a message into a mailbox: at once if there is room, else in turn if that is the rule.
///
/// No `async fn`, which would move the message about before the lock is taken: a processor that
/// reads as a whole what was just written in parts waits for it, for as long as all the rest takes.
#[must_use = "nothing is sent before it is awaited"]
pub(crate) struct Sending<'a, M: Send + 'static, T> {
    /// Until it is sent.
    message: Option<Whole<T>>,
    turn: Turn<'a, Cell<M>>,
}

impl<'a, M: Accepts<T>, T> Sending<'a, M, T> {
    #[inline(always)]
    pub(crate) const fn new(cell: &'a Cell<M>, message: T) -> Self {
        Self {
            message: Some(Whole::new(message)),
            turn: Turn::new(cell),
        }
    }

    fn take(&mut self) -> T {
        let message = self.message.take();
        message.expect("a message is sent once").into_inner()
    }

    /// Puts the message in, if there is room; nothing if that is to be waited for. Returns its
    /// number.
    #[inline(always)]
    fn attempt(&mut self, until: Option<Instant>) -> Option<Result<u64, Refused>> {
        let cell = self.turn.line();
        match cell.send(&mut self.message, until) {
            Err(Refused::Full) if cell.mailbox.spec().waits() => None,
            sent => Some(sent),
        }
    }

    /// Hands the message back, once the task has paid for it: one that tries again and again gives
    /// way now and then.
    #[cold]
    fn poll_refused(
        &mut self,
        refused: Refused,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u64, SendError<T>>> {
        charged(cx, |_| Poll::Ready(Err(refused.hand_back(self.take()))))
    }

    /// Puts the message in when there is room for it.
    #[cold]
    fn poll_turn(
        &mut self,
        until: Option<Instant>,
        cx: &Context<'_>,
    ) -> Poll<Result<u64, SendError<T>>> {
        let cell = self.turn.line();
        self.turn.poll(cx).map(|placed| {
            if !placed {
                return Err(cell.mailbox.refusal().hand_back(self.take()));
            }
            let message = M::wrap(self.take());
            Ok(cell.fill(self.turn.take(), message, until))
        })
    }

    /// Puts the message in, which is wanted until a time; returns its number.
    pub(crate) async fn deliver(mut self, until: Option<Instant>) -> Result<u64, SendError<T>> {
        match self.attempt(until) {
            None => {}
            Some(Ok(number)) => return Ok(number),
            Some(Err(refused)) => return poll_fn(|cx| self.poll_refused(refused, cx)).await,
        }
        let alarms = &self.turn.line().node.shared.alarms;
        let polled = poll_fn(|cx| self.poll_turn(until, cx));
        let Some(until) = until else {
            return polled.await;
        };
        // Apart, or every hook that tells would have room for it.
        let done = Box::pin(alarms.within(left(until), polled)).await;
        done.unwrap_or_else(|| Err(SendError::Expired(self.take())))
    }
}

impl<M: Accepts<T>, T> Future for Sending<'_, M, T> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let attempted = match this.turn.waits() {
            true => None,
            false => this.attempt(None),
        };
        let sent = match attempted {
            Some(Ok(_)) => return Poll::Ready(Ok(())),
            Some(Err(refused)) => this.poll_refused(refused, cx),
            None => this.poll_turn(None, cx),
        };
        sent.map(|sent| sent.map(drop))
    }
}

// Nothing in it is pinned.
impl<M: Send + 'static, T> Unpin for Sending<'_, M, T> {}
