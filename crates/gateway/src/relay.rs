//! Topics for external clients, as streams of what is published.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::{Value, json};
use strowger::{
    Accepts, Actor, Ask, BoxError, ChildSpec, Context, Export, Fault, FaultCode, MailboxSpec,
    Overflow, Payload, Reader, Request, SlowReader, Source, SourceSpec,
};

/// The configuration of a relay, which exposes a topic to external clients.
pub struct RelaySpec<T> {
    topic: Arc<str>,
    encode: fn(&T) -> Value,
}

impl<T: Send + Sync + 'static> RelaySpec<T> {
    /// Exposes the topic with this name, whose messages are encoded as JSON by a function.
    ///
    /// Its address is `@(topic/NAME)`. Its only message, `subscribe`, is a stream of what is
    /// published from then on: `{"value": ..}`, with `"missed": N` if the reader was slow and
    /// missed N messages just before.
    ///
    /// ```
    /// use serde_json::json;
    /// use strowger::{ActorSystem, Strategy, Supervisor};
    /// use strowger_gateway::relay::RelaySpec;
    ///
    /// struct Load(u32);
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = ActorSystem::new("node")?;
    /// let load = RelaySpec::<Load>::new("node/load", |load| json!({ "percent": load.0 }));
    /// let relays = Supervisor::new(Strategy::OneForOne).child(load.child("load"));
    /// system.supervise("relays", relays).await?;
    /// assert_eq!(system.exports()[0].address.to_string(), "@(topic/node/load)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(topic: &str, encode: fn(&T) -> Value) -> Self {
        Self {
            topic: Arc::from(topic),
            encode,
        }
    }

    /// Returns the child specification of the relay actor, for a supervisor.
    pub fn child(self, key: &str) -> ChildSpec {
        ChildSpec::new::<Relay<T>>(key, self)
    }
}

impl<T> Clone for RelaySpec<T> {
    fn clone(&self) -> Self {
        Self {
            topic: Arc::clone(&self.topic),
            encode: self.encode,
        }
    }
}

impl<T> fmt::Debug for RelaySpec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RelaySpec").field(&self.topic).finish()
    }
}

/// An actor that passes messages published to a topic on to all readers.
pub(crate) struct Relay<T> {
    source: Source<Arc<Value>>,
    encode: fn(&T) -> Value,
    message_type: PhantomData<fn(T)>,
}

/// The messages of a relay.
pub(crate) enum RelayMsg<T> {
    Published(Arc<T>),
    Subscribe(Ask<Subscribe>),
}

pub(crate) struct Subscribe;

impl Request for Subscribe {
    type Reply = Result<Reader<Arc<Value>>, Fault>;
}

impl<T: Send + Sync + 'static> Accepts<Ask<Subscribe>> for RelayMsg<T> {
    fn wrap(ask: Ask<Subscribe>) -> Self {
        Self::Subscribe(ask)
    }
}

impl<T: Send + Sync + 'static> Accepts<Arc<T>> for RelayMsg<T> {
    fn wrap(message: Arc<T>) -> Self {
        Self::Published(message)
    }
}

/// Number of messages buffered for a slow reader.
const WINDOW: u32 = 1024;

impl<T: Send + Sync + 'static> Actor for Relay<T> {
    type Msg = RelayMsg<T>;
    type Args = RelaySpec<T>;
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(4096).overflow(Overflow::Fail);

    async fn pre_start(args: RelaySpec<T>, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let system = cx.system();
        system.subscribe(&args.topic, cx.actor_ref().recipient::<Arc<T>>())?;
        let spec = SourceSpec::DEFAULT
            .slow_reader(SlowReader::Miss)
            .window(WINDOW);
        let export = Export::new().stream_with(
            "subscribe",
            |_| Ok(Subscribe),
            |reply: Result<Reader<Arc<Value>>, Fault>| reply,
            |value, missed| match missed {
                0 => Payload::from_json(&json!({ "value": &*value })),
                missed => Payload::from_json(&json!({ "value": &*value, "missed": missed })),
            },
        );
        system.export_as(&format!("topic/{}", args.topic), &cx.actor_ref(), export)?;
        Ok(Self {
            source: cx.source(spec),
            encode: args.encode,
            message_type: PhantomData,
        })
    }

    async fn handle(
        &mut self,
        message: RelayMsg<T>,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        match message {
            RelayMsg::Subscribe(ask) => {
                let reader = self.source.reader();
                let full = |error| Fault::new(FaultCode::Full, format!("{error}"));
                ask.reply.send(reader.map_err(full));
            }
            RelayMsg::Published(message) if self.source.info().readers > 0 => {
                let value = Arc::new((self.encode)(&message));
                // Readers that lag miss the value, so sending never fails for lack of room.
                self.source
                    .try_send(value)
                    .map_err(|error| error.to_string())?;
            }
            RelayMsg::Published(_) => {}
        }
        Ok(())
    }
}
