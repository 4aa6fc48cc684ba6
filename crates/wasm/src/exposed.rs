//! Messages from components to the exposed actors of a system.
//!
//! A component that is granted the name `PATH#MESSAGE`, such as `conformance/echo#add`, sends to
//! the actor exposed at this address as clients do. Its message is JSON if it parses as JSON, else
//! a text or bytes.

use std::borrow::Cow;
use std::convert::Infallible;
use std::str;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::de::IgnoredAny;
use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Address, Ask, CallReply, CallSink, ChildSpec,
    ContentType, Context, Delivery, DeliveryHandle, Fault, FaultCode, MailboxSpec, MessagePattern,
    Overflow, Payload, RemoteEntry, Reply, Request, StartError, Strategy, Supervisor,
};
use tokio::time::Instant;

use crate::directory::{Directory, DirectoryEntry};
use crate::log_limit::{LINES_PER_SECOND, LineLimiter};
use crate::message::{Call, CallError, Message};

impl Directory {
    /// Lets components reach the exposed actors of a system, durable entities included, under names
    /// such as `accounts/acc-42#deposit`: the address and the message. A component still needs the
    /// grant of each name. Names that were inserted come first. Only the first call of this method
    /// or of [`set_fallback`](Self::set_fallback) has an effect on lookups.
    ///
    /// A message for an actor whose mailbox is full waits beside it; a component that asks gets the
    /// answer of the actor as a text if it is one, as JSON if it is a value, or as bytes.
    ///
    /// # Errors
    /// Fails if the actor that forwards the messages, below the supervisor `exits`, does not start:
    /// the system stops, or this was called before.
    pub async fn add_exposed_actors(&self, system: &ActorSystem) -> Result<(), StartError> {
        let child = ChildSpec::new::<Forwarder>(KEY, ());
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
        let supervisor = system.supervise(SUPERVISOR, supervisor).await?;
        let path = format!("{}/{KEY}", supervisor.path());
        let forwarder = system.find(path.as_str());
        let Some(forwarder) = forwarder.and_then(|forwarder| forwarder.downcast::<ForwarderMsg>())
        else {
            return Ok(());
        };
        let system = system.clone();
        self.set_fallback(move |name| {
            let (path, message) = name.split_once('#')?;
            let entry = system
                .remote_entry(&Address::from_path(path).ok()?, message)
                .ok()?;
            (entry.pattern() != MessagePattern::Stream).then(|| export_message(&forwarder, &entry))
        });
        Ok(())
    }
}

/// Returns the bytes that a component receives for the payload of a client: those of a text, and
/// JSON as it is written.
///
/// # Errors
/// Fails if the payload is not the JSON that it claims to be.
pub fn to_bytes(payload: &Payload) -> Result<crate::Payload, Fault> {
    let bytes = &payload.bytes;
    if payload.content != ContentType::Json {
        return Ok((**bytes).into());
    }
    let wrong = |error| Fault::new(FaultCode::BadRequest, format!("payload: {error}"));
    if bytes.first() == Some(&b'"') {
        let text: String = serde_json::from_slice(bytes).map_err(wrong)?;
        return Ok(text.into_bytes().into());
    }
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(wrong)?;
    Ok((**bytes).into())
}

const SUPERVISOR: &str = "exits";
const KEY: &str = "components";

/// Returns the export for one message of an exposed actor.
fn export_message(forwarder: &ActorRef<ForwarderMsg>, entry: &RemoteEntry) -> DirectoryEntry {
    let (tell_entry, ask_entry, outside_entry, to) = (
        entry.clone(),
        entry.clone(),
        entry.clone(),
        forwarder.clone(),
    );
    let tell = forwarder.recipient::<ForwardedTell>();
    let tell = tell.contramap(move |message| ForwardedTell(tell_entry.clone(), message));
    let ask = forwarder.recipient::<Ask<ForwardedAsk>>();
    let ask = ask.contramap(move |ask: Ask<Call>| Ask {
        request: ForwardedAsk(ask_entry.clone(), ask.request),
        reply: ask.reply,
    });
    DirectoryEntry::new(tell, ask, move |call, within| {
        let (to, through) = (to.clone(), ForwardedAsk(outside_entry.clone(), call));
        Box::pin(async move { to.ask_within(through, within).await })
    })
}

/// An actor that forwards the messages of components.
#[derive(Debug)]
struct Forwarder {
    /// The rate of its log lines, for all components together.
    lines: Arc<LineLimiter>,
}

struct ForwardedTell(RemoteEntry, Message);

struct ForwardedAsk(RemoteEntry, Call);

impl Request for ForwardedAsk {
    type Reply = crate::Answer;
}

enum ForwarderMsg {
    Tell(ForwardedTell),
    Ask(Ask<ForwardedAsk>),
    /// A message that waited for room was enqueued or refused.
    EnqueueDone,
}

impl Accepts<ForwardedTell> for ForwarderMsg {
    fn wrap(tell: ForwardedTell) -> Self {
        Self::Tell(tell)
    }
}

impl Accepts<Ask<ForwardedAsk>> for ForwarderMsg {
    fn wrap(ask: Ask<ForwardedAsk>) -> Self {
        Self::Ask(ask)
    }
}

struct EnqueueDone;

impl Accepts<EnqueueDone> for ForwarderMsg {
    fn wrap(_: EnqueueDone) -> Self {
        Self::EnqueueDone
    }
}

impl Actor for Forwarder {
    type Msg = ForwarderMsg;
    type Args = ();
    type Error = Infallible;

    // The sender, a component, gets an error when the mailbox is full and does not wait.
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1024).overflow(Overflow::Fail);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        let lines = Arc::new(LineLimiter::new(LINES_PER_SECOND));
        Ok(Self { lines })
    }

    fn describe(message: &ForwarderMsg) -> Cow<'static, str> {
        match message {
            ForwarderMsg::Tell(_) => "message".into(),
            ForwarderMsg::Ask(_) => "call".into(),
            ForwarderMsg::EnqueueDone => "the end of a wait".into(),
        }
    }

    async fn handle(
        &mut self,
        message: ForwarderMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            ForwarderMsg::Tell(ForwardedTell(entry, Message(bytes))) => {
                let told = entry.tell(&payload(&bytes));
                let lines = Arc::clone(&self.lines);
                let refused = move |fault| {
                    if let Some(omitted) = lines.take(Instant::now()) {
                        tracing::debug!(?entry, %fault, omitted, "message of a component refused");
                    }
                };
                enqueue(told, cx, &self.lines, refused);
            }
            ForwarderMsg::Ask(ask) => {
                let ForwardedAsk(entry, Call(bytes)) = ask.request;
                let reply = Arc::new(AskReply(Mutex::new(Some(ask.reply))));
                let put = entry.call(&payload(&bytes), 0, reply.clone());
                let refused = move |fault| reply.answer(0, Err(fault));
                enqueue(put, cx, &self.lines, refused);
            }
            ForwarderMsg::EnqueueDone => {}
        }
        Ok(())
    }
}

/// Ensures that a message is enqueued, or that `refused` learns that it was not.
fn enqueue(
    put: Delivery,
    cx: &mut Context<Forwarder>,
    lines: &LineLimiter,
    refused: impl FnOnce(Fault) + Send + 'static,
) {
    let done = |done: Result<DeliveryHandle, Fault>| {
        if let Err(fault) = done {
            refused(fault);
        }
    };
    match put {
        Delivery::Settled(outcome) => done(outcome),
        Delivery::Queued(waiting) => {
            let waiting = async move { done(waiting.await) };
            // If too many messages wait already, this one is dropped, and the drop is the answer.
            if cx.pipe(waiting, |()| EnqueueDone).is_err()
                && let Some(omitted) = lines.take(Instant::now())
            {
                tracing::debug!(
                    omitted,
                    "too many messages of components wait for mailboxes"
                );
            }
        }
    }
}

/// The reply channel to the component that asked.
struct AskReply(Mutex<Option<Reply<crate::Answer>>>);

impl CallSink for AskReply {
    fn answer(&self, _: u64, result: Result<CallReply, Fault>) {
        let Some(reply) = self.0.lock().take() else {
            return;
        };
        let refused = |fault: Fault| CallError::Refused(fault.message);
        reply.send(match result {
            Ok(CallReply::Single(payload)) => to_bytes(&payload).map_err(refused),
            Ok(_) => Err(CallError::Refused("it is a stream".to_owned())),
            Err(fault) => Err(refused(fault)),
        });
    }

    fn is_waiting(&self, _: u64) -> bool {
        self.0.lock().as_ref().is_some_and(Reply::is_waiting)
    }
}

/// Converts the bytes of a component to a payload with the most specific content type.
fn payload(bytes: &[u8]) -> Payload {
    let content = if bytes.is_empty() {
        ContentType::None
    } else if serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
        ContentType::Json
    } else if str::from_utf8(bytes).is_ok() {
        ContentType::Text
    } else {
        ContentType::Bytes
    };
    Payload::new(content, bytes.to_vec())
}
