//! Doors, which give names to an actor's messages and define how their bytes are decoded and
//! encoded.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::address::Address;
use super::entry::{Answer, Caller, EncodedReply, Entry, Items, Pattern, Put, Reach, put};
use super::fault::{Code, Fault};
use super::payload::Payload;
use crate::address::{Accepts, ActorRef, AnyRef};
use crate::exit::panic_text;
use crate::reply::{Ask, Reply, Request};
use crate::stream::Reader;

/// The interface of an exposed actor with messages of type `M`: the names of the messages that
/// callers outside the process may send, with functions that decode them and encode the replies.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::mpsc;
///
/// use serde::Deserialize;
/// use strowger::testing::TestSystem;
/// use strowger::{
///     Accepts, Actor, Address, Answer, Ask, Calls, Context, Door, Fault, Payload, Put, Request,
/// };
///
/// #[derive(Deserialize)]
/// struct Add(u32);
/// impl Request for Add {
///     type Reply = u32;
/// }
///
/// enum Msg {
///     Add(Ask<Add>),
/// }
/// impl Accepts<Ask<Add>> for Msg {
///     fn wrap(ask: Ask<Add>) -> Self {
///         Self::Add(ask)
///     }
/// }
///
/// struct Counter(u32);
/// impl Actor for Counter {
///     type Msg = Msg;
///     type Args = ();
///     type Error = Infallible;
///
///     async fn pre_start(_: (), _: &mut Context<Self>) -> Result<Self, Infallible> {
///         Ok(Self(0))
///     }
///
///     async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
///         let Msg::Add(Ask { request: Add(more), reply }) = msg;
///         self.0 += more;
///         reply.send(self.0);
///         Ok(())
///     }
/// }
///
/// /// A caller outside the process, such as a connection.
/// struct Outside(mpsc::SyncSender<Result<Answer, Fault>>);
/// impl Calls for Outside {
///     fn answer(&self, _: u64, result: Result<Answer, Fault>) {
///         let _ = self.0.send(result);
///     }
///
///     fn is_wanted(&self, _: u64) -> bool {
///         true
///     }
/// }
///
/// let kit = TestSystem::new(1);
/// let counter = kit.spawn::<Counter>("counter", ());
/// let address = kit.system().expose(&counter, Door::new().ask::<Add>("add"))?;
/// assert_eq!(address.to_string(), "@(counter)");
///
/// let (answers, answer) = mpsc::sync_channel(1);
/// let outside = std::sync::Arc::new(Outside(answers));
/// let add = kit.system().entry(&address, "add")?;
/// let put = add.call(&Payload::json(&3)?, 1, outside);
/// assert!(matches!(put, Put::Done(Ok(_))), "there is room");
/// kit.run_until_idle();
/// let Answer::One(sum) = answer.try_recv()?? else { panic!("it is no stream") };
/// assert_eq!(sum.read::<u32>()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a door opens with `ActorSystem::expose`"]
pub struct Door<M> {
    ways: BTreeMap<Arc<str>, Way<M>>,
}

/// The delivery of messages of one name.
struct Way<M> {
    pattern: Pattern,
    deliver: Arc<Deliver<M>>,
}

type Deliver<M> = dyn Fn(&ExposedActor<M>, &Payload, Caller) -> Put + Send + Sync;

/// An actor and the address at which it is exposed.
pub(super) struct ExposedActor<M> {
    actor: ActorRef<M>,
    address: Address,
}

impl<M: Send + 'static> Default for Door<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> Door<M> {
    /// Creates a door without messages.
    pub const fn new() -> Self {
        Self {
            ways: BTreeMap::new(),
        }
    }

    /// Accepts a tell whose payload is JSON.
    ///
    /// # Panics
    /// Panics if the name is already in use.
    pub fn tell<T>(self, name: &str) -> Self
    where
        M: Accepts<T>,
        T: DeserializeOwned + Send + 'static,
    {
        self.tell_with(name, Payload::read::<T>)
    }

    /// Accepts a tell whose payload is decoded by a function.
    ///
    /// # Panics
    /// Panics if the name is already in use.
    pub fn tell_with<T>(
        self,
        name: &str,
        decode: impl Fn(&Payload) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Self
    where
        M: Accepts<T>,
        T: Send + 'static,
    {
        self.way(name, Pattern::Tell, move |way, payload, _| {
            match guarded(|| decode(payload)) {
                Ok(message) => put(&way.actor, &way.address, message, |_| {}),
                Err(fault) => Put::Done(Err(fault)),
            }
        })
    }

    /// Accepts an ask whose payload and reply are JSON. Callers may also send it as a tell; the
    /// reply is then discarded.
    ///
    /// # Panics
    /// Panics if the name is already in use.
    pub fn ask<R>(self, name: &str) -> Self
    where
        M: Accepts<Ask<R>>,
        R: Request + DeserializeOwned,
        R::Reply: JsonAnswer,
    {
        self.ask_with(name, Payload::read::<R>, |reply: R::Reply| {
            Payload::json(&reply)
        })
    }

    /// Accepts an ask whose payload is decoded by one function and whose reply is encoded by
    /// another, which may turn the reply into a fault.
    ///
    /// # Panics
    /// Panics if the name is already in use.
    pub fn ask_with<R>(
        self,
        name: &str,
        decode: impl Fn(&Payload) -> Result<R, Fault> + Send + Sync + 'static,
        encode: impl Fn(R::Reply) -> Result<Payload, Fault> + Send + Sync + 'static,
    ) -> Self
    where
        M: Accepts<Ask<R>>,
        R: Request,
    {
        self.request(name, Pattern::Ask, decode, move |reply| {
            encode(reply).map(Answer::One)
        })
    }

    /// Accepts a stream: a request whose reply is a [`Reader`], each item of which is sent as JSON,
    /// as far as the caller grants credit. If the caller misses an item, the stream ends.
    ///
    /// # Panics
    /// Panics if the name is already in use.
    pub fn stream<R, T>(self, name: &str) -> Self
    where
        M: Accepts<Ask<R>>,
        R: Request<Reply = Reader<T>> + DeserializeOwned,
        T: Serialize + Clone + Send + 'static,
    {
        self.stream_with(
            name,
            Payload::read::<R>,
            Ok,
            |item: T, missed| match missed {
                0 => Payload::json(&item),
                missed => {
                    let text = format!("read too slowly: {missed} items were missed");
                    Err(Fault::new(Code::Full, text))
                }
            },
        )
    }

    /// Accepts a stream: one function decodes the payload, another gets the reader out of the
    /// reply, and a third encodes each item. The third also gets the number of items missed just
    /// before the item.
    ///
    /// # Panics
    /// Panics if the name is already in use.
    pub fn stream_with<R, T>(
        self,
        name: &str,
        decode: impl Fn(&Payload) -> Result<R, Fault> + Send + Sync + 'static,
        reader: impl Fn(R::Reply) -> Result<Reader<T>, Fault> + Send + Sync + 'static,
        encode: impl Fn(T, u64) -> Result<Payload, Fault> + Send + Sync + 'static,
    ) -> Self
    where
        M: Accepts<Ask<R>>,
        R: Request,
        T: Clone + Send + 'static,
    {
        let encode = Arc::new(encode);
        self.request(name, Pattern::Stream, decode, move |reply| {
            let encode = Arc::clone(&encode);
            let items = Items::new(reader(reply)?, move |item, missed| encode(item, missed));
            Ok(Answer::Items(items))
        })
    }

    fn request<R>(
        self,
        name: &str,
        pattern: Pattern,
        decode: impl Fn(&Payload) -> Result<R, Fault> + Send + Sync + 'static,
        encode: impl Fn(R::Reply) -> Result<Answer, Fault> + Send + Sync + 'static,
    ) -> Self
    where
        M: Accepts<Ask<R>>,
        R: Request,
    {
        let encode = Arc::new(move |reply| guarded(|| encode(reply)));
        self.way(name, pattern, move |way, payload, caller| {
            let request = match guarded(|| decode(payload)) {
                Ok(request) => request,
                Err(fault) => return Put::Done(Err(fault)),
            };
            let reply = match caller {
                None => Reply::ignored(),
                Some((call, calls)) => {
                    let actor = way.actor.erase();
                    let encode = Arc::clone(&encode);
                    Reply::external(Box::new(EncodedReply::new(actor, encode, call, calls)))
                }
            };
            let ask = Ask { request, reply };
            put(&way.actor, &way.address, ask, |ask: Ask<R>| {
                ask.reply.withdraw()
            })
        })
    }

    fn way(
        mut self,
        name: &str,
        pattern: Pattern,
        deliver: impl Fn(&ExposedActor<M>, &Payload, Caller) -> Put + Send + Sync + 'static,
    ) -> Self {
        let deliver: Arc<Deliver<M>> = Arc::new(deliver);
        let before = self.ways.insert(Arc::from(name), Way { pattern, deliver });
        assert!(before.is_none(), "the message {name} has a way already");
        self
    }

    /// Creates the routes to an actor, one for each message name.
    pub(super) fn entries(
        self,
        actor: &ActorRef<M>,
        address: &Address,
    ) -> FxHashMap<Arc<str>, Entry> {
        let ways = self.ways.into_iter();
        let entries = ways.map(|(name, Way { pattern, deliver })| {
            let to = ExposedActor {
                actor: actor.clone(),
                address: address.clone(),
            };
            let led = Led {
                to,
                name: Arc::clone(&name),
                pattern,
                deliver,
            };
            (name, Entry::new(led))
        });
        entries.collect()
    }
}

/// A reply that can leave the process as JSON: every type that implements [`Serialize`].
///
/// A stream is not: a [`Reader`] is exposed with [`Door::stream`], as callers get its items and not
/// one answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an answer to those outside",
    label = "not written as JSON by `serde::Serialize`",
    note = "a request whose reply is a `Reader` is a stream, which is read and not asked: expose \
            it with `Door::stream`",
    note = "other replies implement `Serialize`, or are written by a function: `Door::ask_with`"
)]
pub trait JsonAnswer: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> JsonAnswer for T {}

impl<M> fmt::Debug for Door<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = self.ways.iter().map(|(name, way)| (name, way.pattern));
        f.debug_map().entries(ways).finish()
    }
}

/// The delivery of messages of one name to one actor.
struct Led<M> {
    to: ExposedActor<M>,
    name: Arc<str>,
    pattern: Pattern,
    deliver: Arc<Deliver<M>>,
}

impl<M: Send + 'static> Reach for Led<M> {
    fn put(&self, payload: &Payload, caller: Caller) -> Put {
        (self.deliver)(&self.to, payload, caller)
    }

    fn pattern(&self) -> Pattern {
        self.pattern
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> &Address {
        &self.to.address
    }

    fn actor(&self) -> AnyRef {
        self.to.actor.erase()
    }

    fn is_alive(&self) -> bool {
        self.to.actor.is_alive()
    }
}

/// Runs a decoding or encoding function of the user. A panic becomes a fault of this one message.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = format!(
            "panic while a payload was read or written: {}",
            panic_text(&*panic)
        );
        Err(Fault::new(Code::Failed, text))
    })
}
