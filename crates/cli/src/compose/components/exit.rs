//! The way out: from components to whatever a node exposes.
//!
//! A component that is granted the name `PATH#MESSAGE`, such as `conformance/echo#add`, sends to
//! the actor that is exposed at this address as clients do. What it sends is JSON if it can be read
//! so, else a text or octets.

use std::borrow::Cow;
use std::convert::Infallible;
use std::str;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::de::IgnoredAny;
use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Address, Answer, Ask, Calls, ChildSpec, Content,
    Context, Entry, Fault, MailboxSpec, Overflow, Pattern, Payload, Put, Reply, Request,
    StartError, Strategy, Supervisor, Ticket,
};
use strowger_wasm::{Call, CallError, Directory, Door, Message};

use super::door::octets;

/// Lets components reach what is exposed.
pub(super) async fn open(system: &ActorSystem, directory: &Directory) -> Result<(), StartError> {
    let child = ChildSpec::new::<Exit>(KEY, ());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise(SUPERVISOR, supervisor).await?;
    let path = format!("{}/{KEY}", supervisor.path());
    let exit = system.find(path.as_str());
    let Some(exit) = exit.and_then(|exit| exit.downcast::<ExitMsg>()) else {
        return Ok(());
    };
    let system = system.clone();
    directory.beyond(move |name| {
        let (path, message) = name.split_once('#')?;
        let entry = system.entry(&Address::of(path).ok()?, message).ok()?;
        (entry.pattern() != Pattern::Stream).then(|| door(&exit, &entry))
    });
    Ok(())
}

const SUPERVISOR: &str = "exits";
const KEY: &str = "components";

/// The door to one message of an exposed actor.
fn door(exit: &ActorRef<ExitMsg>, entry: &Entry) -> Door {
    let (told, asked, waited, to) = (entry.clone(), entry.clone(), entry.clone(), exit.clone());
    let tell = exit.recipient::<Told>();
    let tell = tell.contramap(move |message| Told(told.clone(), message));
    let ask = exit.recipient::<Ask<Through>>();
    let ask = ask.contramap(move |ask: Ask<Call>| Ask {
        request: Through(asked.clone(), ask.request),
        reply: ask.reply,
    });
    Door::new(tell, ask, move |call, within| {
        let (to, through) = (to.clone(), Through(waited.clone(), call));
        Box::pin(async move { to.ask_within(through, within).await })
    })
}

/// Passes on what components send.
#[derive(Debug)]
struct Exit;

struct Told(Entry, Message);

struct Through(Entry, Call);

impl Request for Through {
    type Reply = strowger_wasm::Answer;
}

enum ExitMsg {
    Told(Told),
    Ask(Ask<Through>),
    /// A message that waited for room is in, or was refused.
    Waited,
}

impl Accepts<Told> for ExitMsg {
    fn wrap(told: Told) -> Self {
        Self::Told(told)
    }
}

impl Accepts<Ask<Through>> for ExitMsg {
    fn wrap(ask: Ask<Through>) -> Self {
        Self::Ask(ask)
    }
}

struct Waited;

impl Accepts<Waited> for ExitMsg {
    fn wrap(_: Waited) -> Self {
        Self::Waited
    }
}

impl Actor for Exit {
    type Msg = ExitMsg;
    type Args = ();
    type Error = Infallible;

    // Its sender, a component, is told that there is no room, and does not wait.
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1024).overflow(Overflow::Fail);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    fn describe(message: &ExitMsg) -> Cow<'static, str> {
        match message {
            ExitMsg::Told(_) => "message".into(),
            ExitMsg::Ask(_) => "call".into(),
            ExitMsg::Waited => "the end of a wait".into(),
        }
    }

    async fn handle(&mut self, message: ExitMsg, cx: &mut Context<Self>) -> Result<(), Infallible> {
        match message {
            ExitMsg::Told(Told(entry, Message(octets))) => {
                settle(entry.tell(&payload(&octets)), cx, move |fault| {
                    tracing::debug!(?entry, %fault, "did not take what a component told");
                });
            }
            ExitMsg::Ask(ask) => {
                let Through(entry, Call(octets)) = ask.request;
                let asker = Arc::new(Asker(Mutex::new(Some(ask.reply))));
                let put = entry.call(&payload(&octets), 0, asker.clone());
                settle(put, cx, move |fault| asker.answer(0, Err(fault)));
            }
            ExitMsg::Waited => {}
        }
        Ok(())
    }
}

/// Sees to it that a message is put in, or that somebody hears that it was not.
fn settle(put: Put, cx: &mut Context<Exit>, refused: impl FnOnce(Fault) + Send + 'static) {
    let done = |done: Result<Ticket, Fault>| {
        if let Err(fault) = done {
            refused(fault);
        }
    };
    match put {
        Put::Done(outcome) => done(outcome),
        Put::Waits(waiting) => {
            let waiting = async move { done(waiting.await) };
            // With as many that wait as may, it is dropped, and that is the answer.
            if cx.pipe(waiting, |()| Waited).is_err() {
                tracing::debug!("too many messages of components wait for room");
            }
        }
    }
}

/// The component that asked.
struct Asker(Mutex<Option<Reply<strowger_wasm::Answer>>>);

impl Calls for Asker {
    fn answer(&self, _: u64, result: Result<Answer, Fault>) {
        let Some(reply) = self.0.lock().take() else {
            return;
        };
        let refused = |fault: Fault| CallError::Refused(fault.message);
        reply.send(match result {
            Ok(Answer::One(payload)) => octets(&payload).map_err(refused),
            Ok(_) => Err(CallError::Refused("it is a stream".to_owned())),
            Err(fault) => Err(refused(fault)),
        });
    }

    fn is_wanted(&self, _: u64) -> bool {
        self.0.lock().as_ref().is_some_and(Reply::is_wanted)
    }
}

/// Octets of a component as those outside its language read them.
fn payload(octets: &[u8]) -> Payload {
    let content = if octets.is_empty() {
        Content::None
    } else if serde_json::from_slice::<IgnoredAny>(octets).is_ok() {
        Content::Json
    } else if str::from_utf8(octets).is_ok() {
        Content::Text
    } else {
        Content::Octets
    };
    Payload::new(content, octets.to_vec())
}
