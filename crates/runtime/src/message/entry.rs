//! Routes for messages of one name to one actor, and for the answers.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::address::Address;
use super::door::guarded;
use super::fault::{Code, Fault};
use super::payload::Payload;
use crate::address::{Accepts, ActorRef, AnyRef, SendError};
use crate::reply::{ExternalReply, Unanswered};
use crate::stream::{ReadError, Reader};

/// The response that the sender of a message expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Pattern {
    /// A tell: the sender does not learn if the message was handled.
    Tell,
    /// An ask: there is one answer.
    Ask,
    /// An ask for a stream: there are items, followed by an end.
    Stream,
}

impl fmt::Display for Pattern {
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
pub enum Answer {
    /// A single answer.
    One(Payload),
    /// A stream of items, followed by an end.
    Items(Items),
}

/// A receiver of answers outside the process: a connection, which numbers its calls.
pub trait Calls: Send + Sync + 'static {
    /// Receives the answer to a call, at most once for each call. This runs in the turn of the
    /// actor that answers, so it should not take long. A call that was given up may still be
    /// answered.
    fn answer(&self, call: u64, result: Result<Answer, Fault>);

    /// Returns `true` if the caller still waits for the answer to a call.
    fn is_wanted(&self, call: u64) -> bool;
}

/// The outcome of putting a message into a mailbox.
#[must_use = "a message that waits for room is put in by polling"]
pub enum Put {
    /// The message is in the mailbox, or was rejected.
    Done(Result<Ticket, Fault>),
    /// The mailbox is full, and its rule is to wait. The message already has a place in line and is
    /// delivered by polling this future; dropping the future withdraws the message.
    Waits(Pin<Box<dyn Future<Output = Result<Ticket, Fault>> + Send>>),
}

impl fmt::Debug for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(done) => f.debug_tuple("Done").field(done).finish(),
            Self::Waits(_) => f.write_str("Waits(..)"),
        }
    }
}

/// A message in a mailbox.
#[derive(Debug)]
pub struct Ticket {
    actor: AnyRef,
    number: u64,
}

impl Ticket {
    /// Records that the message is no longer wanted. It is not handled, unless that has already
    /// begun.
    pub fn give_up(self) {
        self.actor.0.abandon_message(self.number);
    }
}

/// The route for messages of one name to one exposed actor. Clones refer to the same route.
#[derive(Clone)]
pub struct Entry(Arc<dyn Reach>);

/// The caller outside the process, if there is one, and the number of its call.
pub(super) type Caller = Option<(u64, Arc<dyn Calls>)>;

/// A route, with the message type of its actor erased.
pub(super) trait Reach: Send + Sync {
    fn put(&self, payload: &Payload, caller: Caller) -> Put;
    fn pattern(&self) -> Pattern;
    fn name(&self) -> &str;
    fn address(&self) -> &Address;
    fn actor(&self) -> AnyRef;
    fn is_alive(&self) -> bool;
}

impl Entry {
    pub(super) fn new(reach: impl Reach + 'static) -> Self {
        Self(Arc::new(reach))
    }

    /// Returns how messages of this name are sent. A message for [`Pattern::Ask`] may also be told.
    #[must_use]
    pub fn pattern(&self) -> Pattern {
        self.0.pattern()
    }

    /// Returns `true` unless the actor has ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// Returns the actor.
    #[must_use]
    pub fn actor(&self) -> AnyRef {
        self.0.actor()
    }

    /// Sends a tell to the actor.
    pub fn tell(&self, payload: &Payload) -> Put {
        match self.pattern() {
            Pattern::Tell | Pattern::Ask => self.0.put(payload, None),
            Pattern::Stream => self.refuse("is a stream, which cannot be told"),
        }
    }

    /// Sends an ask to the actor. The answer is passed to `calls` with the number of the call,
    /// unless the message was rejected.
    pub fn call(&self, payload: &Payload, call: u64, calls: Arc<dyn Calls>) -> Put {
        match self.pattern() {
            Pattern::Ask | Pattern::Stream => self.0.put(payload, Some((call, calls))),
            Pattern::Tell => self.refuse("is told, and has no answer"),
        }
    }

    fn refuse(&self, why: &str) -> Put {
        let text = format!("{} of {} {why}", self.0.name(), self.0.address());
        Put::Done(Err(Fault::new(Code::BadRequest, text)))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({} {})", self.0.address(), self.0.name())
    }
}

/// Puts a message into a mailbox, or in line for it. A rejected message is passed to `discard`.
pub(super) fn put<M, T>(actor: &ActorRef<M>, address: &Address, message: T, discard: fn(T)) -> Put
where
    M: Accepts<T>,
    T: Send + 'static,
{
    let ticket = |number| Ticket {
        actor: actor.erase(),
        number,
    };
    match actor.0.send_now(message, None) {
        Ok(number) => Put::Done(Ok(ticket(number))),
        Err(SendError::Full(message)) if actor.0.mailbox.spec().waits() => {
            let (actor, address) = (actor.clone(), address.clone());
            let mut turn = Box::pin(async move {
                let number = actor.deliver(message, None).await;
                let number = number.map_err(|error| refused(error, &address, discard))?;
                let actor = actor.erase();
                Ok(Ticket { actor, number })
            });
            // The first poll gives the message its place in line; later polls come from the caller.
            let mut nobody = Context::from_waker(Waker::noop());
            match turn.as_mut().poll(&mut nobody) {
                Poll::Ready(done) => Put::Done(done),
                Poll::Pending => Put::Waits(turn),
            }
        }
        Err(error) => Put::Done(Err(refused(error, address, discard))),
    }
}

fn refused<T>(error: SendError<T>, address: &Address, discard: fn(T)) -> Fault {
    let (code, why) = match &error {
        SendError::Closed(_) => (Code::UnknownTarget, "has ended"),
        SendError::Full(_) => (Code::Full, "has no room in its mailbox"),
        SendError::Draining(_) => (Code::Full, "is being drained"),
        SendError::Expired(_) => (Code::Deadline, "had no room in time"),
    };
    discard(error.into_message());
    Fault::new(code, format!("{address} {why}"))
}

/// A reply on its way to a caller outside the process.
pub(super) struct EncodedReply<E> {
    actor: AnyRef,
    encode: Arc<E>,
    call: u64,
    calls: Arc<dyn Calls>,
}

impl<E> EncodedReply<E> {
    pub(super) fn new(actor: AnyRef, encode: Arc<E>, call: u64, calls: Arc<dyn Calls>) -> Self {
        Self {
            actor,
            encode,
            call,
            calls,
        }
    }
}

impl<T, E> ExternalReply<T> for EncodedReply<E>
where
    E: Fn(T) -> Result<Answer, Fault> + Send + Sync,
{
    fn settle(self: Box<Self>, result: Result<T, Unanswered>) {
        let answer = match result {
            Ok(reply) => (self.encode)(reply),
            Err(Unanswered::Dropped) if !self.actor.is_alive() => {
                let text = format!("{} has ended", self.actor.path());
                Err(Fault::new(Code::UnknownTarget, text))
            }
            Err(why) => {
                let text = format!("{}: {why}", self.actor.path());
                Err(Fault::new(Code::Failed, text))
            }
        };
        self.calls.answer(self.call, answer);
    }

    fn is_wanted(&self) -> bool {
        self.calls.is_wanted(self.call)
    }
}

type NextItem = dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<Payload, Fault>>> + Send;

/// The items of a stream for a caller outside the process. Dropping it ends the stream.
pub struct Items(Box<NextItem>);

impl Items {
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
                    Some(Ok(item)) => break Some(guarded(|| encode(item, mem::take(&mut missed)))),
                    Some(Err(error)) => break Some(Err(unread(&error))),
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
fn unread(error: &ReadError) -> Fault {
    let code = match error {
        ReadError::Missed { .. } | ReadError::Disconnected => Code::Full,
        ReadError::Failed { error } => match error.downcast_ref::<Fault>() {
            Some(fault) => return fault.clone(),
            None => Code::Failed,
        },
        ReadError::Ended { .. } | ReadError::Dropped => Code::Failed,
    };
    Fault::new(code, error.to_string())
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Items(..)")
    }
}
