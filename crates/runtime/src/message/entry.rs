//! Routes for messages of one name to one actor, and for the answers.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::address::Address;
use super::export::catch_user_panic;
use super::fault::{Fault, FaultCode};
use super::payload::Payload;
use crate::address::{Accepts, ActorRef, AnyRef, SendError};
use crate::cell::ActorId;
use crate::reply::{ExternalReply, ReplyError};
use crate::stream::{ReadError, Reader};

/// The response that the sender of a message expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MessagePattern {
    /// A tell: the sender does not learn if the message was handled.
    Tell,
    /// An ask: there is one answer.
    Ask,
    /// An ask for a stream: there are items, followed by an end.
    Stream,
}

impl fmt::Display for MessagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tell => "tell",
            Self::Ask => "ask",
            Self::Stream => "stream",
        })
    }
}

/// The answer to a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallReply {
    /// A single answer.
    Single(Payload),
    /// A stream of items, followed by an end.
    Stream(PayloadStream),
}

/// A receiver of answers outside the process: a connection, which numbers its calls.
pub trait CallSink: Send + Sync + 'static {
    /// Receives the answer to a call, at most once for each call. This runs in the turn of the
    /// actor that answers, so it should not take long. A call that was given up may still be
    /// answered.
    fn answer(&self, call: u64, result: Result<CallReply, Fault>);

    /// Returns `true` if the caller still waits for the answer to a call.
    fn is_waiting(&self, call: u64) -> bool;
}

/// The outcome of putting a message into a mailbox.
#[must_use = "a message that waits for room is put in by polling"]
pub enum Delivery {
    /// The message is in the mailbox, or was rejected.
    Settled(Result<DeliveryHandle, Fault>),
    /// The mailbox is full, and its rule is to wait. The message already has a place in line and is
    /// delivered by polling this future; dropping the future withdraws the message.
    Queued(Pin<Box<dyn Future<Output = Result<DeliveryHandle, Fault>> + Send>>),
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled(done) => f.debug_tuple("Done").field(done).finish(),
            Self::Queued(_) => f.write_str("Waits(..)"),
        }
    }
}

/// A message in a mailbox.
#[derive(Debug)]
pub struct DeliveryHandle {
    actor: AnyRef,
    number: u64,
}

impl DeliveryHandle {
    /// Records that the message is no longer wanted. It is not handled, unless that has already
    /// begun.
    pub fn cancel(self) {
        self.actor.0.cancel_message(self.number);
    }
}

/// Names the messages that arrive in the order in which one caller sends them: those to one actor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeliveryOrder(pub(super) OrderKey);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum OrderKey {
    Actor(ActorId),
    /// An actor that is found by the key at the end of its address.
    Keyed(Address),
}

/// The route for messages of one name to one exposed actor. Clones refer to the same route.
#[derive(Clone)]
pub struct RemoteEntry(Arc<dyn ErasedEntry>);

/// The caller outside the process, if there is one, and the number of its call.
pub(super) type RemoteCaller = Option<(u64, Arc<dyn CallSink>)>;

/// A route, with the message type of its actor erased.
pub(super) trait ErasedEntry: Send + Sync {
    fn deliver(&self, payload: &Payload, caller: RemoteCaller) -> Delivery;
    fn pattern(&self) -> MessagePattern;
    fn name(&self) -> &str;
    fn address(&self) -> &Address;
    fn order(&self) -> OrderKey;
    fn is_alive(&self) -> bool;
}

impl RemoteEntry {
    pub(super) fn new(reach: impl ErasedEntry + 'static) -> Self {
        Self(Arc::new(reach))
    }

    /// Returns how messages of this name are sent. A message for [`MessagePattern::Ask`] may also
    /// be told.
    #[must_use]
    pub fn pattern(&self) -> MessagePattern {
        self.0.pattern()
    }

    /// Returns `true` unless the actor has ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// Returns the order that messages over this route share with those over other routes to the
    /// same actor. While one waits at the mailbox, the next ones have to wait behind it.
    #[must_use]
    pub fn order(&self) -> DeliveryOrder {
        DeliveryOrder(self.0.order())
    }

    /// Sends a tell to the actor.
    pub fn tell(&self, payload: &Payload) -> Delivery {
        match self.pattern() {
            MessagePattern::Tell | MessagePattern::Ask => self.0.deliver(payload, None),
            MessagePattern::Stream => self.reject_pattern("is a stream, which cannot be told"),
        }
    }

    /// Sends an ask to the actor. The answer is passed to `calls` with the number of the call,
    /// unless the message was rejected.
    pub fn call(&self, payload: &Payload, call: u64, calls: Arc<dyn CallSink>) -> Delivery {
        match self.pattern() {
            MessagePattern::Ask | MessagePattern::Stream => {
                self.0.deliver(payload, Some((call, calls)))
            }
            MessagePattern::Tell => self.reject_pattern("is told, and has no answer"),
        }
    }

    fn reject_pattern(&self, why: &str) -> Delivery {
        let text = format!("{} of {} {why}", self.0.name(), self.0.address());
        Delivery::Settled(Err(Fault::new(FaultCode::BadRequest, text)))
    }
}

impl fmt::Debug for RemoteEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({} {})", self.0.address(), self.0.name())
    }
}

/// Puts a message into a mailbox, or in line for it. A rejected message is passed to `discard`.
pub(super) fn deliver<M, T>(
    actor: &ActorRef<M>,
    address: &Address,
    message: T,
    discard: fn(T),
) -> Delivery
where
    M: Accepts<T>,
    T: Send + 'static,
{
    let ticket = |number| DeliveryHandle {
        actor: actor.erase(),
        number,
    };
    match actor.0.try_send(message, None) {
        Ok(number) => Delivery::Settled(Ok(ticket(number))),
        Err(SendError::Full(message)) if actor.0.mailbox.spec().waits() => {
            let (actor, address) = (actor.clone(), address.clone());
            let turn = Box::pin(async move {
                let number = actor.send_expiring(message, None).await;
                let number = number.map_err(|error| rejection_fault(error, &address, discard))?;
                let actor = actor.erase();
                Ok(DeliveryHandle { actor, number })
            });
            // The first poll gives the message its place in line.
            begin_delivery(turn)
        }
        Err(error) => Delivery::Settled(Err(rejection_fault(error, address, discard))),
    }
}

/// Polls a delivery for the first time; later polls come from the caller.
pub(super) fn begin_delivery(
    mut turn: Pin<Box<dyn Future<Output = Result<DeliveryHandle, Fault>> + Send>>,
) -> Delivery {
    let mut nobody = Context::from_waker(Waker::noop());
    match turn.as_mut().poll(&mut nobody) {
        Poll::Ready(done) => Delivery::Settled(done),
        Poll::Pending => Delivery::Queued(turn),
    }
}

fn rejection_fault<T>(error: SendError<T>, address: &Address, discard: fn(T)) -> Fault {
    let (code, why) = match &error {
        SendError::Closed(_) => (FaultCode::UnknownTarget, "has ended"),
        SendError::Full(_) => (FaultCode::Full, "has a full mailbox"),
        SendError::Draining(_) => (FaultCode::Full, "is being drained"),
        SendError::Expired(_) => (FaultCode::Deadline, "had a full mailbox until the deadline"),
    };
    discard(error.into_message());
    Fault::new(code, format!("{address} {why}"))
}

/// A reply on its way to a caller outside the process.
pub(super) struct ReplyEncoder<E> {
    actor: AnyRef,
    encode: Arc<E>,
    call: u64,
    calls: Arc<dyn CallSink>,
}

impl<E> ReplyEncoder<E> {
    pub(super) fn new(actor: AnyRef, encode: Arc<E>, call: u64, calls: Arc<dyn CallSink>) -> Self {
        Self {
            actor,
            encode,
            call,
            calls,
        }
    }
}

impl<T, E> ExternalReply<T> for ReplyEncoder<E>
where
    E: Fn(T) -> Result<CallReply, Fault> + Send + Sync,
{
    fn deliver(self: Box<Self>, result: Result<T, ReplyError>) {
        let answer = match result {
            Ok(reply) => (self.encode)(reply),
            Err(ReplyError::Dropped) if !self.actor.is_alive() => {
                let text = format!("{} has ended", self.actor.path());
                Err(Fault::new(FaultCode::UnknownTarget, text))
            }
            Err(why) => {
                let text = format!("{}: {why}", self.actor.path());
                Err(Fault::new(FaultCode::Failed, text))
            }
        };
        self.calls.answer(self.call, answer);
    }

    fn is_waiting(&self) -> bool {
        self.calls.is_waiting(self.call)
    }
}

type PollNextFn = dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<Payload, Fault>>> + Send;

/// The items of a stream for a caller outside the process. Dropping it ends the stream.
pub struct PayloadStream(Box<PollNextFn>);

impl PayloadStream {
    /// Reads the items of `reader` and encodes each with `encode`.
    pub(super) fn new<T: Send + 'static>(
        mut reader: Reader<T>,
        encode: impl Fn(T, u64) -> Result<Payload, Fault> + Send + 'static,
    ) -> Self {
        let (mut ended, mut missed) = (false, 0);
        Self(Box::new(move |cx| {
            if ended {
                return Poll::Ready(None);
            }
            let item = loop {
                match ready!(reader.poll_recv(cx)) {
                    Some(Err(ReadError::Missed { count })) => missed += count,
                    Some(Ok(item)) => {
                        break Some(catch_user_panic(|| encode(item, mem::take(&mut missed))));
                    }
                    Some(Err(error)) => break Some(Err(read_error_fault(&error))),
                    None => break None,
                }
            };
            ended = !matches!(item, Some(Ok(_)));
            Poll::Ready(item)
        }))
    }

    /// Polls for the next item. An error is the last item; `None` follows the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Payload, Fault>>> {
        (self.0)(cx)
    }
}

/// Converts an error that a reader got in place of an item.
fn read_error_fault(error: &ReadError) -> Fault {
    let code = match error {
        ReadError::Missed { .. } | ReadError::Disconnected => FaultCode::Full,
        ReadError::Failed { error } => match error.downcast_ref::<Fault>() {
            Some(fault) => return fault.clone(),
            None => FaultCode::Failed,
        },
        ReadError::Ended { .. } | ReadError::Dropped => FaultCode::Failed,
    };
    Fault::new(code, error.to_string())
}

impl fmt::Debug for PayloadStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Items(..)")
    }
}
