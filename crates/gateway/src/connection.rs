//! One client: an actor that takes frames in and sees to it that each call is answered.
//!
//! ```text
//!                        ┌── puts ──▶ exposed actors ──── answers ────┐
//! reader ──frames──▶ connection ──starts──▶ calls of methods ─────────┤
//! (task)                 │                                            ▼
//!                        └── faults, goodbye ──────────────────────▶ desk ──▶ writer (task)
//! ```
//!
//! A message to an exposed actor costs no task: its answer is written to the [`Desk`] in the turn
//! of the actor. Only what waits for room in a mailbox, and what a stream's items wait for, are
//! pipes. What waits is bounded everywhere: a client that does not read is served no further, and
//! one that floods waits for itself. A connection that is over says why in an error with id 0, has
//! that written, and ends.

mod call;
mod desk;
mod line;
mod name;
mod terms;
mod wire;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use strowger::{
    Accepts, Actor, ActorRef, Calls, Code, Completion, Context, Entry, Exit, Fault, Items,
    MailboxSpec, Pattern, Payload, PipeId, Put, Signal, Ticket, TimerKey, TooManyPipes,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::desk::{Desk, Open};
use self::line::{Lines, Waiting};
use self::name::{Name, Names};
use self::terms::Gone;
pub(crate) use self::terms::{ConnectionArgs, Guest, Octets, Terms};
use self::wire::Gate;
pub(crate) use self::wire::full;
use crate::connection::call::{Call, CallArgs, Run, unasked};
use crate::frame::{Frame, Kind};
use crate::limits::Limits;
use crate::method::Methods;
use crate::stranger::LetIn;

/// The version of the protocol that the hello frame announces.
pub(crate) const PROTOCOL: u64 = 2;

/// One client.
pub(crate) struct Connection {
    methods: Arc<Methods>,
    limits: Limits,
    names: Names,
    last_id: u32,
    desk: Arc<Desk>,
    /// Calls of methods.
    runs: HashMap<u32, ActorRef<Run>>,
    /// Those of them whose caller reads rows.
    rows: HashSet<u32>,
    /// What waits for room.
    lines: Lines,
    /// What waits at a mailbox, and streams.
    pipes: HashMap<u32, PipeId>,
    /// When the next call is overdue.
    alarm: Option<(Instant, TimerKey)>,
    last_frame: Instant,
    /// Whether the client has to say who it is yet.
    stranger: bool,
    /// Its place among those who were let in.
    _let_in: Arc<OnceLock<LetIn>>,
}

pub(crate) enum ConnectionMsg {
    /// The reader has frames.
    Frames(Vec<Frame>),
    /// The reader has reached the end.
    Ended,
    /// The reader has met something after which there is nothing.
    Over(Fault),
    /// It is time to see whether the client is still there.
    Look,
    /// It is time to see which calls are overdue.
    Due,
    /// An actor answers with a stream.
    Items(Completion<Items>),
    /// A message has its room.
    Put(u32, Kind, Result<Ticket, Fault>),
    /// A stream is over; `None` when its call was before.
    Streamed(u32, Option<Result<(), Fault>>),
}

impl Accepts<Completion<Items>> for ConnectionMsg {
    fn wrap(items: Completion<Items>) -> Self {
        Self::Items(items)
    }
}

/// How long a client may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// The deadline of messages that give none.
const ASK: Duration = Duration::from_secs(5);

impl Actor for Connection {
    type Msg = ConnectionMsg;
    type Args = ConnectionArgs;
    type Error = Gone;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(4);
    /// Bounded by the calls in flight.
    const PIPES: usize = usize::MAX;

    async fn pre_start(args: ConnectionArgs, cx: &mut Context<Self>) -> Result<Self, Gone> {
        let (stream, guest) = args.open(INTRODUCTION).await?;
        let Terms {
            methods,
            limits,
            token,
            known,
            ..
        } = args.terms;
        let (read, write) = tokio::io::split(stream);
        let desk = Arc::new(Desk::new(limits, cx.lane()));
        let hello = Frame::new(Kind::Hello, 0).with_json(&json!({
            "protocol": PROTOCOL,
            "frame": limits.frame,
            "in_flight": limits.in_flight,
            "names": limits.names,
            "token": token.is_some(),
        }));
        desk.write(hello);
        let stranger = token.is_some();
        let let_in = Arc::new(OnceLock::new());
        let gate = Gate {
            token,
            guest,
            known,
            let_in: Arc::clone(&let_in),
        };
        cx.task("reader", wire::read(read, limits, gate, cx.me()));
        cx.task("writer", wire::write(write, limits, Arc::clone(&desk)));
        let connection = Self {
            methods,
            limits,
            names: Names::new(limits.names),
            last_id: 0,
            desk,
            runs: HashMap::new(),
            rows: HashSet::new(),
            lines: Lines::new(limits.memory),
            pipes: HashMap::new(),
            alarm: None,
            last_frame: cx.now(),
            stranger,
            _let_in: let_in,
        };
        cx.send_every(connection.patience() / 4 + Duration::from_millis(1), || {
            ConnectionMsg::Look
        });
        Ok(connection)
    }

    async fn handle(&mut self, message: ConnectionMsg, cx: &mut Context<Self>) -> Result<(), Gone> {
        match message {
            ConnectionMsg::Frames(frames) => {
                self.desk.ready().await;
                self.stranger = false;
                self.last_frame = cx.now();
                for frame in frames {
                    if let Err(fault) = self.frame(frame, cx) {
                        self.close(&fault);
                        break;
                    }
                }
            }
            ConnectionMsg::Ended => {
                self.desk.end();
                self.end_streams(cx);
            }
            ConnectionMsg::Over(fault) => self.close(&fault),
            ConnectionMsg::Look => {
                let silent = cx.now().saturating_duration_since(self.last_frame);
                let patience = self.patience();
                if silent >= patience && self.desk.is_idle() {
                    let text = format!("no frame for {patience:?}");
                    self.close(&Fault::new(Code::Idle, text));
                }
            }
            ConnectionMsg::Due => {
                self.alarm = None;
                self.overdue(cx);
            }
            ConnectionMsg::Items(Completion { token, result }) => {
                if let (Ok(id), Ok(items)) = (u32::try_from(token), result) {
                    self.stream(id, items, cx);
                }
            }
            ConnectionMsg::Put(id, kind, put) => {
                self.pipes.remove(&id);
                self.put(id, kind, put);
                self.go_on(id, cx);
            }
            ConnectionMsg::Streamed(id, end) => {
                self.pipes.remove(&id);
                if let Some(end) = end {
                    self.desk.finish(id, end.map(|()| Payload::NONE));
                }
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Gone> {
        match signal {
            Signal::TaskEnded { name } if &*name == "writer" => {
                self.end_runs();
                cx.stop();
            }
            Signal::ChildEnded { key, exit, .. } => self.run_ended(&key, &exit),
            Signal::PipePanicked { pipe, panic } => {
                let call = self.pipes.iter().find(|(_, one)| **one == pipe);
                if let Some(id) = call.map(|(id, _)| *id) {
                    self.pipes.remove(&id);
                    let fault = Fault::new(Code::Failed, format!("panic in a stream: {panic}"));
                    self.desk.give_up(id, fault);
                    self.go_on(id, cx);
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        self.desk.gone();
    }
}

impl Connection {
    fn frame(&mut self, frame: Frame, cx: &mut Context<Self>) -> Result<(), Fault> {
        match frame.kind {
            Kind::Call | Kind::Tell => {
                let id = frame.id;
                if let Err(fault) = self.call(frame, cx) {
                    self.desk.reply(id, Err(fault));
                }
            }
            Kind::Name => self.names.bind(&frame)?,
            Kind::Cancel => {
                let fault = Fault::new(Code::Cancelled, "the caller cancelled");
                self.give_up(frame.id, fault, cx);
            }
            Kind::Credit => self.desk.grant(frame.id, frame.credit),
            // It was looked at before, if anybody wanted it.
            Kind::Token => {}
            Kind::Hello | Kind::Item | Kind::Done | Kind::Error => {
                let text = format!("a client does not send {} frames", frame.kind);
                return Err(Fault::new(Code::Protocol, text));
            }
        }
        Ok(())
    }

    fn call(&mut self, frame: Frame, cx: &mut Context<Self>) -> Result<(), Fault> {
        if frame.id <= self.last_id {
            let text = format!("call {} after call {}", frame.id, self.last_id);
            return Err(Fault::new(Code::BadRequest, text + ": ids must grow"));
        }
        self.last_id = frame.id;
        match self.names.get(frame.target) {
            None => {
                let text = format!("no name is bound to target {}", frame.target);
                Err(Fault::new(Code::UnknownTarget, text))
            }
            Some(Name::Method(name)) => {
                let name = Arc::clone(name);
                self.run(frame, name, cx)
            }
            Some(Name::Message {
                address,
                kind,
                entry,
            }) => {
                if entry.as_ref().is_none_or(|entry| !entry.is_alive()) {
                    *entry = None;
                    *entry = Some(cx.system().entry(address, kind)?);
                }
                match entry.clone() {
                    Some(entry) if is_asked(&frame) && entry.pattern() == Pattern::Stream => {
                        Err(unasked(kind))
                    }
                    Some(entry) => self.message(frame, &entry, cx),
                    None => Ok(()),
                }
            }
        }
    }

    /// Sends a message to an exposed actor.
    fn message(
        &mut self,
        frame: Frame,
        entry: &Entry,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        let (id, kind) = (frame.id, frame.kind);
        let asked = Duration::from_millis(frame.deadline.into());
        let span = match (frame.deadline, entry.pattern()) {
            (0, Pattern::Stream) if kind == Kind::Call => None,
            (0, _) => Some(ASK.min(self.limits.deadline)),
            (_, Pattern::Stream) => Some(asked),
            _ => Some(asked.min(self.limits.deadline)),
        };
        let due = span.map(|span| (cx.now() + span, span));
        let credit = (frame.credit > 0).then(|| {
            let credit = Semaphore::new(0);
            desk::grant(&credit, frame.credit);
            Arc::new(credit)
        });
        let open = Open {
            ticket: None,
            due,
            credit,
        };
        self.desk.admit(id, open)?;
        let waiting = Waiting {
            id,
            kind,
            entry: entry.clone(),
            payload: frame.into_payload(),
        };
        match self.lines.join(waiting) {
            Ok(Some(first)) => {
                self.deliver(first, cx);
            }
            Ok(None) => {}
            Err(fault) => self.desk.finish(id, Err(fault)),
        }
        if let Some((at, _)) = due {
            self.wake_at(at, cx);
        }
        Ok(())
    }

    /// Puts a message into its mailbox; false if it has to wait there.
    fn deliver(&mut self, message: Waiting, cx: &mut Context<Self>) -> bool {
        let Waiting {
            id,
            kind,
            entry,
            payload,
        } = message;
        let put = match kind {
            Kind::Tell => entry.tell(&payload),
            _ => {
                let desk = Arc::clone(&self.desk);
                entry.call(&payload, id.into(), desk as Arc<dyn Calls>)
            }
        };
        match put {
            Put::Done(done) => {
                self.put(id, kind, done);
                true
            }
            Put::Waits(waits) => {
                self.lines.stand(entry.actor().id(), id);
                let pipe = cx.pipe(waits, move |done| ConnectionMsg::Put(id, kind, done));
                self.keep(id, pipe);
                false
            }
        }
    }

    /// Lets the next go to a mailbox where a message does not wait any more.
    fn go_on(&mut self, id: u32, cx: &mut Context<Self>) {
        let Some(actor) = self.lines.stands_at(id) else {
            return;
        };
        while let Some(next) = self.lines.next(actor) {
            if self.desk.is_wanted(next.id.into()) && !self.deliver(next, cx) {
                return;
            }
        }
    }

    /// Goes on with a message that is in its mailbox, or was refused.
    fn put(&self, id: u32, kind: Kind, put: Result<Ticket, Fault>) {
        match put {
            Ok(_) if kind == Kind::Tell => self.desk.finish(id, Ok(Payload::NONE)),
            Ok(ticket) => self.desk.hold(id, ticket),
            Err(fault) => self.desk.finish(id, Err(fault)),
        }
    }

    /// Sends the items of a stream, as far as there is credit.
    fn stream(&mut self, id: u32, items: Items, cx: &mut Context<Self>) {
        if self.desk.is_ending() {
            self.desk.finish(id, Err(unread()));
            return;
        }
        let Some(credit) = self.desk.credit(id) else {
            return;
        };
        let pump = pump(id, items, credit, Arc::clone(&self.desk));
        let pipe = cx.pipe(pump, move |end| ConnectionMsg::Streamed(id, end));
        self.keep(id, pipe);
    }

    /// Keeps the pipe that works for a call.
    fn keep(&mut self, id: u32, pipe: Result<PipeId, TooManyPipes>) {
        match pipe {
            Ok(pipe) => {
                self.pipes.insert(id, pipe);
            }
            Err(error) => {
                let fault = Fault::new(Code::Full, error.to_string());
                self.desk.give_up(id, fault);
            }
        }
    }

    /// Ends the streams of a client that says no more: it could give them no credit.
    fn end_streams(&mut self, cx: &mut Context<Self>) {
        let ids = self.pipes.keys().copied();
        let streams = ids.filter(|id| self.lines.stands_at(*id).is_none());
        let streams: Vec<_> = streams.chain(self.rows.iter().copied()).collect();
        for id in streams {
            self.give_up(id, unread(), cx);
        }
    }

    /// Runs a method as an actor of its own.
    fn run(&mut self, frame: Frame, name: Arc<str>, cx: &mut Context<Self>) -> Result<(), Fault> {
        let id = frame.id;
        if frame.kind == Kind::Tell {
            let text = format!("the method {name} is called, not told");
            return Err(Fault::new(Code::BadRequest, text));
        }
        self.desk.admit(id, Open::default())?;
        self.desk.grant(id, frame.credit);
        let reads = frame.credit > 0;
        let asked = Duration::from_millis(frame.deadline.into());
        let deadline = match frame.deadline {
            0 => self.limits.deadline,
            _ => asked.min(self.limits.deadline),
        };
        let args = CallArgs {
            id,
            name,
            payload: frame.into_payload(),
            methods: Arc::clone(&self.methods),
            deadline,
            reads,
            desk: Arc::clone(&self.desk),
        };
        match cx.spawn::<Call>(id.to_string(), args) {
            Ok(actor) => {
                // It has ended already if this fails, and its end is reported.
                let _ = actor.try_tell(Run);
                self.runs.insert(id, actor);
                if reads {
                    self.rows.insert(id);
                }
            }
            Err(error) => {
                let fault = Fault::new(Code::Failed, error.to_string());
                self.desk.give_up(id, fault);
            }
        }
        Ok(())
    }

    fn run_ended(&mut self, key: &str, exit: &Exit) {
        let Some(id) = key.parse().ok() else { return };
        self.rows.remove(&id);
        if self.runs.remove(&id).is_some() && !exit.is_orderly() {
            let fault = Fault::new(Code::Failed, format!("the method {exit}"));
            self.desk.give_up(id, fault);
        }
    }

    /// Answers a call with a fault, and ends what works for it.
    fn give_up(&mut self, id: u32, fault: Fault, cx: &mut Context<Self>) {
        if !self.desk.give_up(id, fault) {
            return;
        }
        if let Some(actor) = self.runs.get(&id) {
            actor.kill();
        }
        if let Some(pipe) = self.pipes.remove(&id) {
            cx.cancel_pipe(pipe);
            self.go_on(id, cx);
        }
    }

    fn overdue(&mut self, cx: &mut Context<Self>) {
        let (over, next) = self.desk.overdue(cx.now());
        for (id, span) in over {
            let fault = Fault::new(Code::Deadline, format!("no answer within {span:?}"));
            self.give_up(id, fault, cx);
        }
        if let Some(next) = next {
            self.wake_at(next, cx);
        }
    }

    /// Looks for overdue calls at a time, or before.
    fn wake_at(&mut self, at: Instant, cx: &mut Context<Self>) {
        if let Some((earlier, timer)) = self.alarm {
            if earlier <= at {
                return;
            }
            cx.cancel(timer);
        }
        let after = at.saturating_duration_since(cx.now());
        let timer = cx.send_after(after, ConnectionMsg::Due);
        self.alarm = Some((at, timer));
    }

    /// How long the client may be silent.
    fn patience(&self) -> Duration {
        if self.stranger {
            self.limits.idle.min(INTRODUCTION)
        } else {
            self.limits.idle
        }
    }

    /// Says why it is over, and leaves once that is written.
    fn close(&self, fault: &Fault) {
        self.desk.close(fault);
        self.end_runs();
    }

    fn end_runs(&self) {
        for actor in self.runs.values() {
            actor.kill();
        }
    }
}

/// Returns `true` for a call that expects one answer: whoever reads items gives credit with it.
fn is_asked(frame: &Frame) -> bool {
    frame.kind == Kind::Call && frame.credit == 0
}

fn unread() -> Fault {
    Fault::new(Code::Cancelled, "the client says no more")
}

/// Sends items one by one; `None` when nobody reads them any more.
async fn pump(
    id: u32,
    mut items: Items,
    credit: Arc<Semaphore>,
    desk: Arc<Desk>,
) -> Option<Result<(), Fault>> {
    // The end takes no credit, so the next item is looked for first.
    while let Some(item) = poll_fn(|cx| items.poll_next(cx)).await {
        let item = match item {
            Ok(item) => item,
            Err(fault) => return Some(Err(fault)),
        };
        credit.acquire().await.ok()?.forget();
        match desk.item(id, &item).await {
            Ok(true) => {}
            Ok(false) => return None,
            Err(fault) => return Some(Err(fault)),
        }
    }
    Some(Ok(()))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
