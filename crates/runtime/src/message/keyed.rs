//! Exports of actors that are found by the key at the end of their address, and need not exist
//! before a message arrives.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::address::Address;
use super::entry::{
    CallReply, CallSink, Delivery, ErasedEntry, MessagePattern, OrderKey, RemoteCaller,
    RemoteEntry, begin_delivery,
};
use super::export::{DeliverFn, Export, ExportTarget};
use super::fault::{Fault, FaultCode};
use super::payload::Payload;
use crate::address::ActorRef;

/// Actors with messages of type `M` that are found by a key, for
/// [`ActorSystem::export_keyed`](crate::ActorSystem::export_keyed).
pub trait KeyedActors<M>: Send + Sync + 'static {
    /// Keeps an actor until a message is in its mailbox and, if it is an ask, answered; it is
    /// dropped then.
    type Hold: Send + Sync + 'static;

    /// Finds or starts the actor with a key. This runs in the turn of the connection that the
    /// message came from, and the future is polled there, so neither may block. Dropping the future
    /// gives up.
    fn find(&self, key: &str) -> FindActor<M, Self::Hold>;

    /// Returns `false` once no actor will be found any more.
    fn is_open(&self) -> bool;
}

/// The outcome of [`KeyedActors::find`]: the actor, or the fault for the sender.
pub type FindActor<M, H> = Pin<Box<dyn Future<Output = Result<(ActorRef<M>, H), Fault>> + Send>>;

/// A keyed export, with its types erased.
pub(super) trait ErasedKeyedExport: Send + Sync {
    /// Returns the route for messages of one name to the actor with a key.
    fn entry(self: Arc<Self>, address: &Address, key: &str, name: &str) -> Option<RemoteEntry>;
    fn messages(&self) -> Vec<(Arc<str>, MessagePattern)>;
    fn is_open(&self) -> bool;
}

/// The actors of a keyed export, and their messages.
pub(super) struct KeyedExport<M, K> {
    pub(super) export: Export<M>,
    pub(super) actors: K,
}

impl<M: Send + 'static, K: KeyedActors<M>> ErasedKeyedExport for KeyedExport<M, K> {
    fn entry(self: Arc<Self>, address: &Address, key: &str, name: &str) -> Option<RemoteEntry> {
        let (name, message) = self.export.messages.get_key_value(name)?;
        let entry = KeyedEntry {
            key: Arc::from(key),
            address: address.clone(),
            name: Arc::clone(name),
            pattern: message.pattern,
            deliver: Arc::clone(&message.deliver),
            export: Arc::clone(&self),
        };
        Some(RemoteEntry::new(entry))
    }

    fn messages(&self) -> Vec<(Arc<str>, MessagePattern)> {
        let messages = self.export.messages.iter();
        let messages = messages.map(|(name, message)| (Arc::clone(name), message.pattern));
        messages.collect()
    }

    fn is_open(&self) -> bool {
        self.actors.is_open()
    }
}

/// The route for messages of one name to the actor with one key.
struct KeyedEntry<M, K> {
    export: Arc<KeyedExport<M, K>>,
    key: Arc<str>,
    address: Address,
    name: Arc<str>,
    pattern: MessagePattern,
    deliver: Arc<DeliverFn<M>>,
}

impl<M: Send + 'static, K: KeyedActors<M>> ErasedEntry for KeyedEntry<M, K> {
    fn deliver(&self, payload: &Payload, caller: RemoteCaller) -> Delivery {
        let found = self.export.actors.find(&self.key);
        let (deliver, address) = (Arc::clone(&self.deliver), self.address.clone());
        let payload = payload.clone();
        begin_delivery(Box::pin(async move {
            let (actor, hold) = found.await?;
            let hold = Arc::new(hold);
            let caller = caller.map(|(call, sink)| {
                let sink = HeldCall {
                    sink,
                    _hold: Arc::clone(&hold),
                };
                (call, Arc::new(sink) as Arc<dyn CallSink>)
            });
            let target = ExportTarget { actor, address };
            let delivered = match deliver(&target, &payload, caller) {
                Delivery::Settled(delivered) => delivered,
                Delivery::Queued(turn) => turn.await,
            };
            drop(hold);
            delivered
        }))
    }

    fn pattern(&self) -> MessagePattern {
        self.pattern
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn order(&self) -> OrderKey {
        OrderKey::Keyed(self.address.clone())
    }

    fn is_alive(&self) -> bool {
        self.export.actors.is_open()
    }
}

/// A caller whose reply keeps the actor.
struct HeldCall<H> {
    sink: Arc<dyn CallSink>,
    _hold: Arc<H>,
}

impl<H: Send + Sync + 'static> CallSink for HeldCall<H> {
    fn answer(&self, call: u64, mut result: Result<CallReply, Fault>) {
        // The actor had the message when it ended, and the address leads to another one next.
        if let Err(fault) = &mut result
            && fault.code == FaultCode::UnknownTarget
        {
            fault.code = FaultCode::Failed;
        }
        self.sink.answer(call, result);
    }

    fn is_waiting(&self, call: u64) -> bool {
        self.sink.is_waiting(call)
    }
}

impl<M, K> fmt::Debug for KeyedExport<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyedExport").field(&self.export).finish()
    }
}
