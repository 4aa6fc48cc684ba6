//! Addresses of actors, and what can be sent to them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::actor::Actor;
use crate::budget::charged;
use crate::cell::{ActorId, AnyCell, Cell, Phase};
use crate::event::Event;
use crate::exit::Exit;
use crate::info::ActorInfo;
use crate::mailbox::{Mailbox, Refused, System};
use crate::metric::Count;
use crate::path::Path;
use crate::recipient::Recipient;
use crate::reply::{self, Ask, Request, Unanswered};
use crate::ring::{self, Asking};
use crate::schedule::strand::Whole;
use crate::sending::Sending;
use crate::supervision::DynamicRef;

/// Deadlines beyond this may be set a little later than their questions are asked.
const SOON: Duration = Duration::from_millis(10);

/// What is refused is not taken.
const KEPT: &str = "a message that is refused stays";

/// Says that an actor's message type takes messages of type `T`.
///
/// A message type takes itself. An enum takes each of its cases by an implementation of three
/// lines. A request arrives as an [`Ask`].
///
/// `wrap` runs while the mailbox is locked, and only once there is room, so that a message that
/// is refused comes back as the caller gave it: build the value and do nothing else.
#[diagnostic::on_unimplemented(
    message = "actors with messages of type `{Self}` do not take `{T}`",
    label = "not a message of this actor",
    note = "to take it, implement `Accepts<{T}>` for `{Self}`, or a handler in `#[handlers]`",
    note = "a `Request` is sent with `ask` and arrives as an `Ask`; every other message is told"
)]
pub trait Accepts<T>: Sized + Send + 'static {
    /// Makes the actor's own message.
    fn wrap(message: T) -> Self;
}

impl<M: Send + 'static> Accepts<M> for M {
    fn wrap(message: M) -> M {
        message
    }
}

/// A message that was not delivered, with the message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<T> {
    /// The actor has ended.
    #[error("the actor has ended")]
    Closed(T),
    /// The mailbox has no room.
    #[error("the mailbox is full")]
    Full(T),
    /// The actor is [drained](ActorRef::drain), and takes no more messages before it is restarted,
    /// if it is.
    #[error("the actor is being drained")]
    Draining(T),
    /// The message's time to live passed before there was room.
    #[error("there was no room within the time to live")]
    Expired(T),
}

impl<T> SendError<T> {
    /// The message that was not delivered.
    pub fn into_message(self) -> T {
        match self {
            Self::Closed(message)
            | Self::Full(message)
            | Self::Draining(message)
            | Self::Expired(message) => message,
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed(_) => "Closed",
            Self::Full(_) => "Full",
            Self::Draining(_) => "Draining",
            Self::Expired(_) => "Expired",
        })
    }
}

impl Refused {
    /// The error that hands the message back.
    #[cold]
    pub(crate) fn hand_back<T>(self, message: T) -> SendError<T> {
        match self {
            Self::Closed => SendError::Closed(message),
            Self::Full => SendError::Full(message),
            Self::Draining => SendError::Draining(message),
        }
    }
}

/// Why a request brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The actor has ended.
    #[error("the actor has ended")]
    Closed,
    /// The mailbox has no room, and its rule is not to wait.
    #[error("the mailbox is full")]
    Full,
    /// The actor is [drained](ActorRef::drain), and takes no more requests.
    #[error("the actor is being drained")]
    Draining,
    /// The deadline passed.
    #[error("no answer within the deadline")]
    TimedOut,
    /// The reply was dropped without an answer.
    #[error("the reply was dropped without an answer")]
    Dropped,
    /// The actor panicked before it answered.
    #[error("the actor panicked before it answered")]
    Panicked,
    /// The answer would have to wait for the asker, which waits for it inside a hook.
    ///
    /// Ask from a task ([`Context::pipe`](crate::Context::pipe)), or have the answer come as a
    /// message ([`Context::lane`](crate::Context::lane)): then the asker goes on meanwhile.
    #[error("the ask would wait for itself: {}", ring::show(.path))]
    Ring {
        /// The actors, each of which waits for the next: from the asker back to the asker.
        // A thin pointer, so that an answer of one word is moved as one word.
        path: Arc<Vec<Path>>,
    },
}

impl From<Unanswered> for AskError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Dropped => Self::Dropped,
            Unanswered::Panicked => Self::Panicked,
        }
    }
}

/// The address of an actor that takes messages of type `M`.
///
/// It stays valid over restarts; once the actor has ended for good, every send fails and hands
/// the message back. Holding it does not keep the actor alive.
pub struct ActorRef<M>(pub(crate) Arc<Cell<M>>);

impl<M> Clone for ActorRef<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for ActorRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorRef({})", self.0.node.path())
    }
}

impl<M> PartialEq for ActorRef<M> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<M> Eq for ActorRef<M> {}

impl<M: Send + 'static> ActorRef<M> {
    /// Sends a message without waiting.
    ///
    /// # Errors
    /// Hands the message back: `Full` without room, `Draining` while the actor is drained, `Closed`
    /// after its end.
    #[inline]
    pub fn try_tell<T>(&self, message: T) -> Result<(), SendError<T>>
    where
        M: Accepts<T>,
    {
        self.0.send_now(message, None).map(drop)
    }

    /// Sends a message; waits in turn for room if the mailbox's rule is to wait.
    ///
    /// Dropping the future before it is done gives the turn up and sends nothing.
    ///
    /// # Errors
    /// Hands the message back: `Full` if the rule is to fail, `Draining` while the actor is
    /// drained, `Closed` after its end.
    #[inline(always)]
    pub fn tell<T>(
        &self,
        message: T,
    ) -> impl Future<Output = Result<(), SendError<T>>> + use<'_, M, T>
    where
        M: Accepts<T>,
    {
        Sending::new(&self.0, message)
    }

    /// Sends a message, which is wanted until a time; returns its number in the mailbox.
    #[inline]
    pub(crate) async fn deliver<T>(
        &self,
        message: T,
        until: Option<Instant>,
    ) -> Result<u64, SendError<T>>
    where
        M: Accepts<T>,
    {
        Sending::new(&self.0, message).deliver(until).await
    }

    /// Sends a request and waits for its answer, up to the default deadline of the system.
    ///
    /// # Errors
    /// See [`AskError`]; every case is final, and the request may have been handled.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Reply, AskError>
    where
        M: Accepts<Ask<R>>,
    {
        self.ask_within(request, self.0.node.shared.ask_deadline)
            .await
    }

    /// Sends a request and waits for its answer, up to a deadline that covers the wait for room.
    ///
    /// # Errors
    /// See [`AskError`]; every case is final, and the request may have been handled: but not after
    /// this future is done or dropped, if it was not begun before.
    pub async fn ask_within<R: Request>(
        &self,
        request: R,
        within: Duration,
    ) -> Result<R::Reply, AskError>
    where
        M: Accepts<Ask<R>>,
    {
        let (reply, mut answer) = reply::slot();
        // Where it is made it is read from, once the lock of the mailbox is taken.
        let mut ask = Some(Whole::new(Ask { request, reply }));
        let sent = self.0.send(&mut ask, None);
        let mut sending = pin!(self.send_in_turn(sent, ask));
        // Until it is in the mailbox, it comes after all that is.
        let mut asked = Asked {
            mailbox: &self.0.mailbox,
            number: None,
        };
        // The clock is read, and the deadline set, only if the first poll is not the last.
        let mut deadline = self.0.node.shared.alarms.deadline(within);
        let mut asking = Asking::new(&self.0.node);
        // Nearly every question is answered before any of that is of use.
        let mut soon = within >= SOON;
        let mut listed = false;
        let mut looked = false;
        let mut poll = |cx: &mut TaskContext<'_>| {
            if asked.number.is_none()
                && let Poll::Ready(sent) = sending.as_mut().poll(cx)
            {
                asked.number = Some(sent?);
            }
            if asked.number.is_some() {
                if !looked {
                    looked = true;
                    let scheduler = &self.0.node.shared.scheduler;
                    scheduler.look_for_answer(|| answer.is_there());
                }
                if let Poll::Ready(result) = answer.poll(cx) {
                    asked.number = None;
                    return Poll::Ready(result.map_err(AskError::from));
                }
                if soon {
                    if !listed {
                        listed = self.0.node.shared.scheduler.list(&mut answer);
                        soon = listed;
                    }
                    if listed && answer.is_listed() {
                        return Poll::Pending;
                    }
                    soon = false;
                }
            }
            asking.pending(asked.number.unwrap_or(u64::MAX), || answer.open())?;
            deadline.poll(cx).map(|()| Err(AskError::TimedOut))
        };
        poll_fn(|cx| charged(cx, &mut poll)).await
    }

    /// Waits for room for a request, if there was none and that is the rule; returns its number.
    async fn send_in_turn<R: Request>(
        &self,
        sent: Result<u64, Refused>,
        ask: Option<Whole<Ask<R>>>,
    ) -> Result<u64, AskError>
    where
        M: Accepts<Ask<R>>,
    {
        match (sent, ask) {
            (Ok(number), _) => Ok(number),
            (Err(Refused::Full), Some(ask)) if self.0.mailbox.spec().waits() => {
                let sent = self.deliver(ask.into_inner(), None).await;
                sent.map_err(|refused| match refused {
                    SendError::Closed(_) => AskError::Closed,
                    SendError::Full(_) => AskError::Full,
                    SendError::Draining(_) => AskError::Draining,
                    SendError::Expired(_) => AskError::TimedOut,
                })
            }
            (Err(Refused::Full), _) => Err(AskError::Full),
            (Err(Refused::Closed), _) => Err(AskError::Closed),
            (Err(Refused::Draining), _) => Err(AskError::Draining),
        }
    }

    /// An address for messages of one type only.
    #[must_use]
    pub fn recipient<T>(&self) -> Recipient<T>
    where
        M: Accepts<T>,
        T: Send + 'static,
    {
        Recipient::new(Arc::clone(&self.0))
    }

    /// The actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.node.id
    }

    /// Where the actor lives in the tree.
    #[must_use]
    pub fn path(&self) -> Path {
        self.0.node.path()
    }

    /// Whether the actor has not ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.0.node.is_over()
    }

    /// Asks the actor to stop: it ends with [`Exit::Shutdown`] once it has handled the message
    /// that it is at, before all that waits.
    pub fn stop(&self) {
        AnyCell::stop(&*self.0);
    }

    /// Ends the actor at its next await, without `post_stop`.
    pub fn kill(&self) {
        AnyCell::kill(&*self.0);
    }

    /// Waits for the actor's end, over all restarts.
    pub async fn stopped(&self) -> Exit {
        ended(&*self.0).await
    }

    /// The same address without its message type.
    #[must_use]
    pub fn erase(&self) -> AnyRef {
        AnyRef(Arc::clone(&self.0) as Arc<dyn AnyCell>)
    }
}

/// A request that waits for its answer. When that is given up, the request need not be handled.
struct Asked<'a, M> {
    mailbox: &'a Mailbox<M>,
    number: Option<u64>,
}

impl<M> Drop for Asked<'_, M> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.mailbox.abandon(number);
        }
    }
}

async fn ended(cell: &dyn AnyCell) -> Exit {
    let node = cell.node();
    node.reached(|phase| phase == Phase::Ended).await;
    node.last_exit().expect("an actor that ended has an exit")
}

impl<M: Send + 'static> Cell<M> {
    #[inline]
    pub(crate) fn send<T>(
        &self,
        message: &mut Option<Whole<T>>,
        until: Option<Instant>,
    ) -> Result<u64, Refused>
    where
        M: Accepts<T>,
    {
        let placed = self.mailbox.push(message, until, M::wrap)?;
        if placed.dropped > 0 {
            self.overflowed(placed.dropped);
        }
        Ok(placed.number)
    }

    /// Sends a message without waiting.
    #[inline]
    pub(crate) fn send_now<T>(
        &self,
        message: T,
        until: Option<Instant>,
    ) -> Result<u64, SendError<T>>
    where
        M: Accepts<T>,
    {
        let mut message = Some(Whole::new(message));
        let sent = self.send(&mut message, until);
        sent.map_err(|refused| refused.hand_back(message.take().expect(KEPT).into_inner()))
    }

    /// Puts a message in a place that was reserved; returns its number. An end in this moment
    /// loses it, as it loses all that waits.
    pub(crate) fn fill(&self, ticket: u64, message: M, until: Option<Instant>) -> u64 {
        self.mailbox
            .fill(ticket, message, until)
            .unwrap_or_else(|| {
                self.lost(1);
                u64::MAX
            })
    }

    /// Reports messages that nobody will handle.
    #[cold]
    pub(crate) fn lost(&self, count: u64) {
        let node = &self.node;
        node.shared
            .events
            .emit(Count::DeadLetters(count), || Event::DeadLetter {
                path: node.path(),
                count,
                exit: node.last_exit().unwrap_or(Exit::Shutdown),
            });
    }

    #[cold]
    fn overflowed(&self, count: u64) {
        let node = &self.node;
        node.shared
            .events
            .emit(Count::Overflow(count), || Event::Overflow {
                path: node.path(),
                count,
            });
    }
}

/// The address of an actor without its message type.
#[derive(Clone)]
pub struct AnyRef(pub(crate) Arc<dyn AnyCell>);

impl fmt::Debug for AnyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyRef({})", self.path())
    }
}

impl AnyRef {
    /// The actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.node().id
    }

    /// Where the actor lives in the tree.
    #[must_use]
    pub fn path(&self) -> Path {
        self.0.node().path()
    }

    /// Whether the actor has not ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.0.node().is_over()
    }

    /// Asks the actor to stop; see [`ActorRef::stop`].
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Ends the actor at its next await, without `post_stop`.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Makes the actor panic with this message before it takes the next one; for tests and
    /// drills of its supervision.
    pub fn inject_panic(&self, message: &str) {
        self.0.system(System::Panic(Arc::from(message)), None);
    }

    /// Waits for the actor's end, over all restarts.
    pub async fn stopped(&self) -> Exit {
        ended(&*self.0).await
    }

    /// The actor's figures at this moment.
    #[must_use]
    pub fn info(&self) -> ActorInfo {
        let figures = self.0.figures();
        let memory = self.0.memory(&figures);
        self.0.node().info(figures, self.0.spec(), memory)
    }

    /// The address as that of a dynamic supervisor of children of type `A`, if it is one.
    #[must_use]
    pub fn dynamic<A: Actor>(&self) -> Option<DynamicRef<A>> {
        DynamicRef::of(self)
    }

    /// The address with its message type, if that is `M`.
    #[must_use]
    pub fn downcast<M: Send + 'static>(&self) -> Option<ActorRef<M>> {
        Arc::clone(&self.0).into_any().downcast().ok().map(ActorRef)
    }
}

impl<M: Send + 'static> From<&ActorRef<M>> for AnyRef {
    fn from(actor: &ActorRef<M>) -> Self {
        actor.erase()
    }
}

impl From<&Self> for AnyRef {
    fn from(actor: &Self) -> Self {
        actor.clone()
    }
}
