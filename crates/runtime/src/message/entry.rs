//! The way of one kind of message to one actor, and of what comes of it.

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
use crate::reply::{Outside, Unanswered};
use crate::stream::{ReadError, Reader};

/// What the sender of a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Pattern {
    /// It is told: nobody hears whether it was handled.
    Tell,
    /// It is asked: there is one answer.
    Ask,
    /// It is asked for a stream: there are items, then an end.
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

/// What comes of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// One answer.
    One(Payload),
    /// Items, then an end.
    Items(Items),
}

/// Those who wait for answers outside: a connection, which numbers its calls.
pub trait Calls: Send + Sync + 'static {
    /// Takes the answer of a call in, once for each call at most; in the turn of the actor that
    /// answers, so it should not take long. The answer of a call that was given up may still come.
    fn answer(&self, call: u64, result: Result<Answer, Fault>);

    /// Whether the answer of a call is still waited for.
    fn is_wanted(&self, call: u64) -> bool;
}

/// What came of putting a message into a mailbox.
#[must_use = "a message that waits for room is put in by polling"]
pub enum Put {
    /// It is in, or was refused.
    Done(Result<Ticket, Fault>),
    /// There is no room, and the rule of the mailbox is to wait: the message is in line already,
    /// and goes in as this is polled. Dropping it takes the message back.
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
    /// Takes note that nobody wants the message any more: it is not handled, if that has not begun.
    pub fn give_up(self) {
        self.actor.0.forgo(self.number);
    }
}

/// The way of messages of one name to one exposed actor. A clone is the same.
#[derive(Clone)]
pub struct Entry(Arc<dyn Reach>);

/// One who waits outside, if anybody does, and the number of the call there.
pub(super) type Caller = Option<(u64, Arc<dyn Calls>)>;

/// An entry with its actor's own message type inside.
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

    /// How messages of this name are sent. One that is asked may be told as well.
    #[must_use]
    pub fn pattern(&self) -> Pattern {
        self.0.pattern()
    }

    /// Whether the actor has not ended for good.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// The actor.
    #[must_use]
    pub fn actor(&self) -> AnyRef {
        self.0.actor()
    }

    /// Tells the actor.
    pub fn tell(&self, payload: &Payload) -> Put {
        match self.pattern() {
            Pattern::Tell | Pattern::Ask => self.0.put(payload, None),
            Pattern::Stream => self.refuse("is a stream, which cannot be told"),
        }
    }

    /// Asks the actor. What comes of it goes to `calls` with the number of the call; not if the
    /// message was refused.
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

/// Puts a message into a mailbox, or in line for it. What is refused is discarded by `discard`.
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
            // From now on it has its place in line, whoever polls it further.
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

/// A reply on its way outside.
pub(super) struct Asked<E> {
    actor: AnyRef,
    encode: Arc<E>,
    call: u64,
    calls: Arc<dyn Calls>,
}

impl<E> Asked<E> {
    pub(super) fn new(actor: AnyRef, encode: Arc<E>, call: u64, calls: Arc<dyn Calls>) -> Self {
        Self {
            actor,
            encode,
            call,
            calls,
        }
    }
}

impl<T, E> Outside<T> for Asked<E>
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

type Next = dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<Payload, Fault>>> + Send;

/// The items of a stream, as those outside see them. Dropping it ends the stream.
pub struct Items(Box<Next>);

impl Items {
    /// What a reader reads, written by a function.
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

    /// The next item, an error that is the last, or `None` after the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Payload, Fault>>> {
        (self.0)(cx)
    }
}

/// What a reader was told in the place of an item.
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
