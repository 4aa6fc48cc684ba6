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
use super::entry::{
    CallReply, Delivery, ErasedEntry, MessagePattern, OrderKey, PayloadStream, RemoteCaller,
    RemoteEntry, ReplyEncoder, deliver,
};
use super::fault::{Fault, FaultCode};
use super::payload::Payload;
use crate::address::{Accepts, ActorRef};
use crate::exit::panic_message;
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
///     Accepts, Actor, Address, Ask, CallReply, CallSink, Context, Delivery, Export, Fault,
///     Payload, Request,
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
/// struct Outside(mpsc::SyncSender<Result<CallReply, Fault>>);
/// impl CallSink for Outside {
///     fn answer(&self, _: u64, result: Result<CallReply, Fault>) {
///         let _ = self.0.send(result);
///     }
///
///     fn is_waiting(&self, _: u64) -> bool {
///         true
///     }
/// }
///
/// let kit = TestSystem::new(1);
/// let counter = kit.spawn::<Counter>("counter", ());
/// let address = kit.system().export(&counter, Export::new().ask::<Add>("add"))?;
/// assert_eq!(address.to_string(), "@(counter)");
///
/// let (answers, answer) = mpsc::sync_channel(1);
/// let outside = std::sync::Arc::new(Outside(answers));
/// let add = kit.system().remote_entry(&address, "add")?;
/// let put = add.call(&Payload::from_json(&3)?, 1, outside);
/// assert!(matches!(put, Delivery::Settled(Ok(_))), "there is room");
/// kit.run_until_idle();
/// let CallReply::Single(sum) = answer.try_recv()?? else { panic!("it is no stream") };
/// assert_eq!(sum.decode::<u32>()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an export does nothing until it is passed to `ActorSystem::export`"]
pub struct Export<M> {
    pub(super) messages: BTreeMap<Arc<str>, MessageExport<M>>,
}

/// The delivery of messages of one name.
pub(super) struct MessageExport<M> {
    pub(super) pattern: MessagePattern,
    pub(super) deliver: Arc<DeliverFn<M>>,
}

pub(super) type DeliverFn<M> =
    dyn Fn(&ExportTarget<M>, &Payload, RemoteCaller) -> Delivery + Send + Sync;

/// An actor and the address at which it is exposed.
pub(super) struct ExportTarget<M> {
    pub(super) actor: ActorRef<M>,
    pub(super) address: Address,
}

impl<M: Send + 'static> Default for Export<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> Export<M> {
    /// Creates an export without messages.
    pub const fn new() -> Self {
        Self {
            messages: BTreeMap::new(),
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
        self.tell_with(name, Payload::decode::<T>)
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
        self.add_message(name, MessagePattern::Tell, move |target, payload, _| {
            match catch_user_panic(|| decode(payload)) {
                Ok(message) => deliver(&target.actor, &target.address, message, |_| {}),
                Err(fault) => Delivery::Settled(Err(fault)),
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
        R::Reply: JsonReply,
    {
        self.ask_with(name, Payload::decode::<R>, |reply: R::Reply| {
            Payload::from_json(&reply)
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
        self.add_request(name, MessagePattern::Ask, decode, move |reply| {
            encode(reply).map(CallReply::Single)
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
            Payload::decode::<R>,
            Ok,
            |item: T, missed| match missed {
                0 => Payload::from_json(&item),
                missed => {
                    let text = format!("read too slowly: {missed} items were missed");
                    Err(Fault::new(FaultCode::Full, text))
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
        self.add_request(name, MessagePattern::Stream, decode, move |reply| {
            let encode = Arc::clone(&encode);
            let items =
                PayloadStream::new(reader(reply)?, move |item, missed| encode(item, missed));
            Ok(CallReply::Stream(items))
        })
    }

    fn add_request<R>(
        self,
        name: &str,
        pattern: MessagePattern,
        decode: impl Fn(&Payload) -> Result<R, Fault> + Send + Sync + 'static,
        encode: impl Fn(R::Reply) -> Result<CallReply, Fault> + Send + Sync + 'static,
    ) -> Self
    where
        M: Accepts<Ask<R>>,
        R: Request,
    {
        let encode = Arc::new(move |reply| catch_user_panic(|| encode(reply)));
        self.add_message(name, pattern, move |target, payload, caller| {
            let request = match catch_user_panic(|| decode(payload)) {
                Ok(request) => request,
                Err(fault) => return Delivery::Settled(Err(fault)),
            };
            let reply = match caller {
                None => Reply::ignored(),
                Some((call, calls)) => {
                    let actor = target.actor.erase();
                    let encode = Arc::clone(&encode);
                    Reply::external(Box::new(ReplyEncoder::new(actor, encode, call, calls)))
                }
            };
            let ask = Ask { request, reply };
            deliver(&target.actor, &target.address, ask, |ask: Ask<R>| {
                ask.reply.withdraw()
            })
        })
    }

    fn add_message<F>(mut self, name: &str, pattern: MessagePattern, deliver: F) -> Self
    where
        F: Fn(&ExportTarget<M>, &Payload, RemoteCaller) -> Delivery + Send + Sync + 'static,
    {
        let deliver: Arc<DeliverFn<M>> = Arc::new(deliver);
        let before = self
            .messages
            .insert(Arc::from(name), MessageExport { pattern, deliver });
        assert!(before.is_none(), "message {name:?} is already exported");
        self
    }

    /// Creates the routes to an actor, one for each message name.
    pub(super) fn into_remote_entries(
        self,
        actor: &ActorRef<M>,
        address: &Address,
    ) -> FxHashMap<Arc<str>, RemoteEntry> {
        let ways = self.messages.into_iter();
        let entries = ways.map(|(name, MessageExport { pattern, deliver })| {
            let to = ExportTarget {
                actor: actor.clone(),
                address: address.clone(),
            };
            let led = BoundMessageExport {
                to,
                name: Arc::clone(&name),
                pattern,
                deliver,
            };
            (name, RemoteEntry::new(led))
        });
        entries.collect()
    }
}

/// A reply that can leave the process as JSON: every type that implements [`Serialize`].
///
/// A stream is not: a [`Reader`] is exposed with [`Export::stream`], as callers get its items and
/// not one answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent as a reply outside the process",
    label = "does not implement `serde::Serialize`",
    note = "a request whose reply is a `Reader` is a stream, which is read and not asked: expose \
            it with `Export::stream`",
    note = "other replies implement `Serialize`, or are written by a function: `Export::ask_with`"
)]
pub trait JsonReply: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> JsonReply for T {}

impl<M> fmt::Debug for Export<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = self
            .messages
            .iter()
            .map(|(name, message)| (name, message.pattern));
        f.debug_map().entries(messages).finish()
    }
}

/// The delivery of messages of one name to one actor.
struct BoundMessageExport<M> {
    to: ExportTarget<M>,
    name: Arc<str>,
    pattern: MessagePattern,
    deliver: Arc<DeliverFn<M>>,
}

impl<M: Send + 'static> ErasedEntry for BoundMessageExport<M> {
    fn deliver(&self, payload: &Payload, caller: RemoteCaller) -> Delivery {
        (self.deliver)(&self.to, payload, caller)
    }

    fn pattern(&self) -> MessagePattern {
        self.pattern
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> &Address {
        &self.to.address
    }

    fn order(&self) -> OrderKey {
        OrderKey::Actor(self.to.actor.id())
    }

    fn is_alive(&self) -> bool {
        self.to.actor.is_alive()
    }
}

/// Runs a decoding or encoding function of the user. A panic becomes a fault of this one message.
pub(super) fn catch_user_panic<T>(run: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = format!(
            "panic while a payload was read or written: {}",
            panic_message(&*panic)
        );
        Err(Fault::new(FaultCode::Failed, text))
    })
}
