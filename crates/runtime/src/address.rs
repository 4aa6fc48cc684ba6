//! Addresses of actors: sending, asking, waiting for the start and the end, draining; and their
//! errors.

mod send;

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::actor::Actor;
use crate::budget::charge_poll;
use crate::cell::{ActorCell, ActorId, ErasedCell, Phase, PhaseGoal};
use crate::clock;
use crate::event::Event;
use crate::exit::{Exit, drop_all_caught};
use crate::info::ActorInfo;
use crate::mailbox::{Drain, Mailbox, PushError, SystemMessage};
use crate::metric::MetricEvent;
use crate::path::ActorPath;
use crate::recipient::Recipient;
use crate::reply::{self, Ask, ReplyError, Request};
use crate::schedule::strand::OpaqueMessage;
use crate::seeded_bug::{Bug, seeded};
use crate::supervision::DynamicRef;
use crate::system::StartError;
use crate::wait_graph::{AskEdge, AskRing, PhaseEdge};
pub(crate) use send::SendFuture;

/// With at least this much time to the deadline, an ask may set the deadline a little after it was
/// sent.
const MIN_DEFERRED_DEADLINE: Duration = Duration::from_millis(10);

/// A refused message is never taken out of its place.
const NOT_TAKEN: &str = "a message that is refused stays";

/// A conversion into an actor's message type from a message of type `T`.
///
/// Every message type accepts itself. An enum accepts each of its cases by an implementation of
/// three lines. A request arrives as an [`Ask`].
///
/// `wrap` runs while the mailbox is locked, and only once there is room, so that a refused message
/// comes back as the caller passed it: build the value and do nothing else.
#[diagnostic::on_unimplemented(
    message = "actors with messages of type `{Self}` do not accept `{T}`",
    label = "not a message of this actor",
    note = "to take it, implement `Accepts<{T}>` for `{Self}`, or a handler in `#[handlers]`",
    note = "a `Request` is sent with `ask` and arrives as an `Ask`; every other message is told"
)]
pub trait Accepts<T>: Sized + Send + 'static {
    /// Builds the actor's own message.
    fn wrap(message: T) -> Self;
}

impl<M: Send + 'static> Accepts<M> for M {
    fn wrap(message: M) -> M {
        message
    }
}

/// The error returned when a message was not delivered; contains the message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<T> {
    /// The actor has ended.
    #[error("the actor has ended")]
    Closed(T),
    /// The mailbox is full.
    #[error("the mailbox is full")]
    Full(T),
    /// The actor is being [drained](ActorRef::drain), and takes no more messages until it is
    /// restarted, if it ever is.
    #[error("the actor is being drained")]
    Draining(T),
    /// The message's time to live passed before there was room.
    #[error("mailbox was full until the message expired")]
    Expired(T),
}

impl<T> SendError<T> {
    /// Returns the message that was not delivered.
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

impl PushError {
    /// Builds the error that hands the message back.
    #[cold]
    pub(crate) fn hand_back<T>(self, message: T) -> SendError<T> {
        match self {
            Self::Closed => SendError::Closed(message),
            Self::Full => SendError::Full(message),
            Self::Draining => SendError::Draining(message),
        }
    }
}

/// The error returned when a request brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The actor has ended.
    #[error("the actor has ended")]
    Closed,
    /// The mailbox is full, and its rule is not to wait.
    #[error("the mailbox is full")]
    Full,
    /// The actor is being [drained](ActorRef::drain), and takes no more requests.
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
    /// The answer would have to wait for the asker, which waits for the answer inside a hook. So it
    /// is when actors ask each other in a ring, and when the asker keeps the callee from going on:
    /// a child that asks its stopping parent, for example, which handles no more requests and
    /// waits for the child's end.
    ///
    /// Ask from a task ([`Context::pipe`](crate::Context::pipe)), or have the answer arrive as a
    /// message ([`Context::lane`](crate::Context::lane)): then the asker continues meanwhile.
    #[error(
        "ask refused: it would deadlock ({path}); ask from a pipe, or receive the answer through a \
         lane"
    )]
    Ring {
        /// The actors in the ring, each of which waits for the next: from the asker back to the
        /// asker.
        // A thin pointer, so that an answer of one word is moved as one word.
        path: Arc<AskRing>,
    },
}

impl From<Arc<AskRing>> for AskError {
    fn from(path: Arc<AskRing>) -> Self {
        Self::Ring { path }
    }
}

impl From<ReplyError> for AskError {
    fn from(unanswered: ReplyError) -> Self {
        match unanswered {
            ReplyError::Dropped => Self::Dropped,
            ReplyError::Panicked => Self::Panicked,
        }
    }
}

/// The address of an actor that takes messages of type `M`.
///
/// The address stays valid over restarts. Once the actor has ended for good, every send fails and
/// hands the message back. An address does not keep its actor alive.
pub struct ActorRef<M>(pub(crate) Arc<ActorCell<M>>);

impl<M> Clone for ActorRef<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for ActorRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorRef({})", self.0.core.path())
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
    /// Hands the message back: `Full` if there is no room, `Draining` while the actor is drained,
    /// `Closed` after its end.
    #[inline]
    pub fn try_tell<T>(&self, message: T) -> Result<(), SendError<T>>
    where
        M: Accepts<T>,
    {
        self.0.try_send(message, None).map(drop)
    }

    /// Sends a message. If the mailbox is full and its rule is to wait, waits in turn for room.
    ///
    /// Dropping the future before it completes gives up the sender's turn and sends nothing.
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
        SendFuture::new(&self.0, message)
    }

    /// Sends a message that expires at `until`, if given; returns its number in the mailbox.
    #[inline]
    pub(crate) async fn send_expiring<T>(
        &self,
        message: T,
        until: Option<Instant>,
    ) -> Result<u64, SendError<T>>
    where
        M: Accepts<T>,
    {
        SendFuture::new(&self.0, message).deliver(until).await
    }

    /// Sends a request and waits for its answer, up to the default deadline of the system.
    ///
    /// # Errors
    /// See [`AskError`]. Every case is final, and the request may have been handled.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Reply, AskError>
    where
        M: Accepts<Ask<R>>,
    {
        self.ask_within(request, self.0.core.shared.ask_deadline)
            .await
    }

    /// Sends a request and waits for its answer, up to a deadline that includes the wait for room.
    /// A deadline beyond what the clock can represent, such as [`Duration::MAX`], counts as thirty
    /// years: in practice the wait ends with the answer, or with the actor.
    ///
    /// # Errors
    /// See [`AskError`]. Every case is final, and the request may have been handled. If the actor
    /// has not begun to handle it when this future completes or is dropped, it never does.
    pub async fn ask_within<R: Request>(
        &self,
        request: R,
        within: Duration,
    ) -> Result<R::Reply, AskError>
    where
        M: Accepts<Ask<R>>,
    {
        let (reply, mut answer) = reply::reply_slot();
        let scheduler = &self.0.core.shared.scheduler;
        let mut may_poll = scheduler.announce_ask();
        // The mailbox reads the ask from this place once it holds its lock.
        let mut ask = Some(OpaqueMessage::new(Ask { request, reply }));
        let sent = self.0.send(&mut ask, None);
        let mut sending = pin!(self.send_waiting(sent, ask));
        // Until the ask is in the mailbox, it counts as behind everything that is.
        let mut asked = CancelOnDrop::new(&self.0.mailbox);
        // The clock is read, and the deadline set, only if the first poll does not complete.
        let mut deadline = self.0.core.shared.alarms.deadline(within);
        let mut asking = AskEdge::new(&self.0.core);
        // Nearly every ask is answered before its deadline is needed.
        if within >= MIN_DEFERRED_DEADLINE {
            answer.defer_deadline();
        }
        let mut poll = |cx: &mut TaskContext<'_>| {
            if asked.number.is_none()
                && let Poll::Ready(sent) = sending.as_mut().poll(cx)
            {
                asked.number = Some(sent?);
            }
            let Some(number) = asked.number else {
                asking.on_pending(cx, u64::MAX, || answer.pending_flag())?;
                return deadline
                    .poll_ask(cx, &self.0)
                    .map(|()| Err(AskError::TimedOut));
            };
            if mem::take(&mut may_poll) {
                scheduler.spin_for_answer(|| answer.is_ready());
            }
            let polled = answer.poll_wait(
                cx,
                |answer| scheduler.register_ask(answer),
                |cx, answer| Ok(asking.on_pending(cx, number, || answer.pending_flag())?),
                |cx| deadline.poll_ask(cx, &self.0).map(|()| AskError::TimedOut),
            );
            polled.map(|ended| {
                let answer = ended?;
                asked.number = None;
                answer.map_err(AskError::from)
            })
        };
        poll_fn(|cx| charge_poll(cx, &mut poll)).await
    }

    /// Waits for room for a request if the mailbox was full and its rule is to wait; returns the
    /// number of the request.
    async fn send_waiting<R: Request>(
        &self,
        sent: Result<u64, PushError>,
        ask: Option<OpaqueMessage<Ask<R>>>,
    ) -> Result<u64, AskError>
    where
        M: Accepts<Ask<R>>,
    {
        match (sent, ask) {
            (Ok(number), _) => Ok(number),
            (Err(PushError::Full), Some(ask)) if self.0.mailbox.spec().waits() => {
                let sent = self.send_expiring(ask.into_inner(), None).await;
                sent.map_err(|refused| match refused {
                    SendError::Closed(_) => AskError::Closed,
                    SendError::Full(_) => AskError::Full,
                    SendError::Draining(_) => AskError::Draining,
                    SendError::Expired(_) => AskError::TimedOut,
                })
            }
            (Err(PushError::Full), _) => Err(AskError::Full),
            (Err(PushError::Closed), _) => Err(AskError::Closed),
            (Err(PushError::Draining), _) => Err(AskError::Draining),
        }
    }

    /// Returns an address that takes messages of type `T` only.
    #[must_use]
    pub fn recipient<T>(&self) -> Recipient<T>
    where
        M: Accepts<T>,
        T: Send + 'static,
    {
        Recipient::new(Arc::clone(&self.0))
    }

    /// Returns the actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.core.id
    }

    /// Returns the actor's path in the tree.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.0.core.path()
    }

    /// Returns `true` unless the actor has ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.0.core.is_ending()
    }

    /// Asks the actor to stop. It ends with [`Exit::Shutdown`] once it has handled its current
    /// message, ahead of all messages that wait.
    pub fn stop(&self) {
        ErasedCell::stop(&*self.0);
    }

    /// Ends the actor at its next await, without `post_stop`.
    pub fn kill(&self) {
        ErasedCell::kill(&*self.0);
    }

    /// Returns `true` if the actor was killed and has not ended yet. Code that computes for long
    /// without an await checks this, and gives up.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.0.core.is_killed()
    }

    /// Waits until the actor has ended for good, over all restarts.
    ///
    /// Inside a hook this is a wait like an ask, but it cannot be refused: a hook must not wait for
    /// its own actor, nor for one that waits for it, such as a stopping parent. Monitor the actor
    /// instead ([`Context::monitor`](crate::Context::monitor)).
    pub async fn stopped(&self) -> Exit {
        wait_ended(&*self.0).await
    }

    /// Returns the same address without its message type.
    #[must_use]
    pub fn erase(&self) -> AnyRef {
        AnyRef(Arc::clone(&self.0) as Arc<dyn ErasedCell>)
    }
}

/// A request that waits for its answer. If the asker gives up, the request need not be handled.
pub(crate) struct CancelOnDrop<'a, M> {
    mailbox: &'a Mailbox<M>,
    /// The number of the request, while it is in the mailbox and not answered.
    pub(crate) number: Option<u64>,
}

impl<'a, M> CancelOnDrop<'a, M> {
    /// Creates a request that is not in the mailbox yet.
    pub(crate) const fn new(mailbox: &'a Mailbox<M>) -> Self {
        let number = None;
        Self { mailbox, number }
    }
}

impl<M> Drop for CancelOnDrop<'_, M> {
    fn drop(&mut self) {
        if let Some(number) = self.number
            && !seeded(Bug::CancelledAskHandled)
        {
            self.mailbox.cancel_message(number);
        }
    }
}

async fn wait_ended(cell: &dyn ErasedCell) -> Exit {
    let node = cell.core();
    node.wait_for_phase(PhaseGoal::Ended).await;
    node.last_exit().expect("an actor that ended has an exit")
}

impl<M: Send + 'static> ActorCell<M> {
    #[inline]
    pub(crate) fn send<T>(
        &self,
        message: &mut Option<OpaqueMessage<T>>,
        until: Option<Instant>,
    ) -> Result<u64, PushError>
    where
        M: Accepts<T>,
    {
        let placed = self.mailbox.push(message, until, M::wrap)?;
        if placed.dropped > 0 {
            self.report_overflow(placed.dropped);
        }
        Ok(placed.number)
    }

    /// Sends a message without waiting.
    #[inline]
    pub(crate) fn try_send<T>(
        &self,
        message: T,
        until: Option<Instant>,
    ) -> Result<u64, SendError<T>>
    where
        M: Accepts<T>,
    {
        let mut message = Some(OpaqueMessage::new(message));
        let sent = self.send(&mut message, until);
        sent.map_err(|refused| refused.hand_back(message.take().expect(NOT_TAKEN).into_inner()))
    }

    /// Puts a message in a place that was reserved; returns its number. If the actor ends at this
    /// moment, the message is lost like all that wait.
    pub(crate) fn fill_reserved(&self, ticket: u64, message: M, until: Option<Instant>) -> u64 {
        self.mailbox
            .fill_reserved(ticket, message, until)
            .unwrap_or_else(|| {
                self.report_dead_letters(1);
                u64::MAX
            })
    }

    /// Reports messages that no actor will handle.
    #[cold]
    pub(crate) fn report_dead_letters(&self, count: u64) {
        let node = &self.core;
        node.shared
            .events
            .emit(MetricEvent::DeadLetters(count), || Event::DeadLetter {
                path: node.path(),
                count,
                exit: node.last_exit().unwrap_or(Exit::Shutdown),
            });
    }

    #[cold]
    fn report_overflow(&self, count: u64) {
        let node = &self.core;
        node.shared
            .events
            .emit(MetricEvent::Overflow(count), || Event::Overflow {
                path: node.path(),
                count,
            });
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Waits until the actor runs, over all restarts: until a `pre_start` has returned a value.
    ///
    /// The code that starts an actor need not wait for this, because messages wait. It is for code
    /// that has to know that the actor started, or why it did not.
    ///
    /// ```
    /// use strowger::{Actor, ActorSystem, BoxError, Context, StartError};
    ///
    /// /// Runs only where there is something to do.
    /// struct Sweeper;
    ///
    /// impl Actor for Sweeper {
    ///     type Msg = ();
    ///     type Args = bool;
    ///     type Error = BoxError;
    ///
    ///     async fn pre_start(dirty: bool, cx: &mut Context<Self>) -> Result<Self, BoxError> {
    ///         if !dirty {
    ///             cx.stop();
    ///         }
    ///         Ok(Self)
    ///     }
    ///
    ///     async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// let system = ActorSystem::new("house")?;
    /// system.spawn::<Sweeper>("attic", true)?.started().await?;
    /// let cellar = system.spawn::<Sweeper>("cellar", false)?;
    /// assert!(matches!(cellar.started().await, Err(StartError::Ignored { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StartError::Ignored`] if the actor chose not to run, [`StartError::Failed`] if it has
    /// ended otherwise. An actor that its supervisor is going to restart has not ended.
    pub async fn started(&self) -> Result<(), StartError> {
        self.erase().started().await
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Sends a message that expires after `ttl`. If the mailbox is full and its rule is to wait,
    /// waits in turn for room, for as long.
    ///
    /// A message that the actor has not begun to handle when its time has passed is dropped instead
    /// of being handled, even after a restart of the actor. It is reported as [`Event::Expired`]
    /// and counted in [`ActorInfo::expired`](crate::ActorInfo::expired). Until its turn comes, it
    /// takes up its place.
    ///
    /// ```
    /// use std::time::Duration;
    /// use strowger::testing::{ScriptCommand, ScriptedActor, RecordedEvent, TestSystem};
    ///
    /// let system = TestSystem::new(1);
    /// let probe = system.probe::<RecordedEvent>();
    /// let actor = system.spawn::<ScriptedActor>("p", probe.recipient());
    /// let second = Duration::from_secs(1);
    /// actor.try_tell(ScriptCommand::Sleep(5 * second)).expect("there is room");
    /// actor.try_tell_within(ScriptCommand::Note(1), 4 * second).expect("there is room");
    /// actor.try_tell_within(ScriptCommand::Note(2), 6 * second).expect("there is room");
    /// system.advance(5 * second);
    /// assert_eq!(probe.event_lines(), ["/p started", "/p noted 2"]);
    /// ```
    ///
    /// # Errors
    /// Hands the message back, as [`ActorRef::tell`] does, and with `Expired` if its time passes
    /// before there is room.
    pub async fn tell_within<T>(&self, message: T, ttl: Duration) -> Result<(), SendError<T>>
    where
        M: Accepts<T>,
    {
        let until = clock::saturating_add(self.0.core.shared.now(), ttl);
        self.send_expiring(message, Some(until)).await.map(drop)
    }

    /// Sends a message that expires after `ttl`, without waiting; see [`ActorRef::tell_within`].
    ///
    /// # Errors
    /// Hands the message back, as [`ActorRef::try_tell`] does.
    pub fn try_tell_within<T>(&self, message: T, ttl: Duration) -> Result<(), SendError<T>>
    where
        M: Accepts<T>,
    {
        let until = clock::saturating_add(self.0.core.shared.now(), ttl);
        self.0.try_send(message, Some(until)).map(drop)
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Refuses new messages, lets the actor handle those that wait, and stops it. Messages that
    /// were not handled within the limit are handed back, in order.
    ///
    /// From the first poll on, messages are refused with
    /// [`SendError::Draining`], including those whose senders wait for
    /// room. When no message waits any more, or the limit has passed, the actor stops as with
    /// [`ActorRef::stop`]: with [`Exit::Shutdown`], once it has handled its current message. Its
    /// children stop before it. After the limit, it has its [`Shutdown`](crate::Shutdown) time for
    /// that, and is then killed. If it ends earlier, by a panic for example, the drain is over too,
    /// and the messages that wait are handed back; only the message that was being handled is a
    /// dead letter.
    ///
    /// A supervisor sees an exit like any other: it restarts a permanent child, and the new
    /// incarnation takes messages again; a transient or temporary child has ended. The drain does
    /// not wait for answers and outputs of pipes that have not arrived when nothing else waits.
    ///
    /// If there are several drains at once, the first one that is polled after the end gets the
    /// messages that were not handled. If this future is dropped, the actor continues to drain,
    /// without a limit; messages left over then stay for the next incarnation, or become dead
    /// letters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use strowger::testing::{ScriptCommand, ScriptedActor, RecordedEvent, TestSystem};
    ///
    /// let system = TestSystem::new(1);
    /// let probe = system.probe::<RecordedEvent>();
    /// let actor = system.spawn::<ScriptedActor>("p", probe.recipient());
    /// let sleep = ScriptCommand::Sleep(Duration::from_secs(9));
    /// for order in [ScriptCommand::Note(1), sleep, ScriptCommand::Note(2)] {
    ///     actor.try_tell(order).expect("there is room");
    /// }
    /// let left = system.run(actor.drain(Duration::from_secs(5)));
    /// assert!(matches!(left[..], [ScriptCommand::Note(2)]));
    /// assert!(!actor.is_alive());
    /// ```
    pub async fn drain(&self, within: Duration) -> Vec<M> {
        let cell = &*self.0;
        let Some(drain) = cell.mailbox.drain() else {
            return Vec::new();
        };
        let drainer = DrainWaiter { cell, drain };
        let node = &cell.core;
        let alarms = &node.shared.alarms;
        if let Some(left) = alarms.timeout(within, drainer.unhandled()).await {
            return left;
        }
        if node.phase() == Phase::Down {
            // No incarnation runs that could handle messages or stop.
            cell.mailbox.end_drain();
        } else {
            cell.mailbox
                .push_system(SystemMessage::Stop(Exit::Shutdown), None);
        }
        let Some(limit) = node.shutdown_limit.get() else {
            return drainer.unhandled().await;
        };
        if let Some(left) = alarms.timeout(limit, drainer.unhandled()).await {
            return left;
        }
        self.kill();
        drainer.unhandled().await
    }
}

/// A caller that waits for the end of a drain.
struct DrainWaiter<'a, M: Send + 'static> {
    cell: &'a ActorCell<M>,
    drain: Arc<Drain<M>>,
}

impl<M: Send + 'static> DrainWaiter<'_, M> {
    async fn unhandled(&self) -> Vec<M> {
        // A drain is over at the end of the incarnation, at the latest.
        let mut edge = PhaseEdge::new(&self.cell.core, PhaseGoal::Down);
        poll_fn(|cx| {
            let left = self.drain.poll_unhandled(cx.waker());
            if left.is_pending() {
                edge.on_pending();
            }
            left
        })
        .await
    }
}

impl<M: Send + 'static> Drop for DrainWaiter<'_, M> {
    fn drop(&mut self) {
        let left = self.drain.remove_waiter();
        if !left.is_empty() {
            self.cell.report_dead_letters(left.len() as u64);
            drop_all_caught(left);
        }
    }
}

/// The address of an actor without its message type.
#[derive(Clone)]
pub struct AnyRef(pub(crate) Arc<dyn ErasedCell>);

impl fmt::Debug for AnyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyRef({})", self.path())
    }
}

impl AnyRef {
    /// Returns the actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.core().id
    }

    /// Returns the actor's path in the tree.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.0.core().path()
    }

    /// Returns `true` unless the actor has ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.0.core().is_ending()
    }

    /// Asks the actor to stop; see [`ActorRef::stop`].
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Ends the actor at its next await, without `post_stop`.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Makes the actor panic with this message before it takes the next one; for tests and drills
    /// of its supervision.
    pub fn inject_panic(&self, message: &str) {
        self.0
            .push_system(SystemMessage::Panic(Arc::from(message)), None);
    }

    /// Waits until the actor runs, as [`ActorRef::started`] does.
    ///
    /// # Errors
    /// As for [`ActorRef::started`].
    pub async fn started(&self) -> Result<(), StartError> {
        let cell = Arc::clone(&self.0);
        let node = cell.core();
        node.wait_for_phase(PhaseGoal::RanOnce).await;
        if node.phase() != Phase::Ended {
            return Ok(());
        }
        let path = node.path();
        Err(match node.last_exit().unwrap_or(Exit::Shutdown) {
            Exit::Ignored => StartError::Ignored { path },
            exit => StartError::Failed { path, exit },
        })
    }

    /// Waits until the actor has ended for good, over all restarts.
    pub async fn stopped(&self) -> Exit {
        wait_ended(&*self.0).await
    }

    /// Returns the actor's stats at this moment.
    #[must_use]
    pub fn info(&self) -> ActorInfo {
        let stats = self.0.stats();
        let memory = self.0.memory(&stats);
        self.0.core().info(stats, self.0.spec(), memory)
    }

    /// Returns the address as that of a dynamic supervisor of children of type `A`, if it is one.
    #[must_use]
    pub fn dynamic<A: Actor>(&self) -> Option<DynamicRef<A>> {
        DynamicRef::from_ref(self)
    }

    /// Returns the address with its message type, if that type is `M`.
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
