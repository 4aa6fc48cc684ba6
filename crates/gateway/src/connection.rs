//! A client connection: an actor that receives frames and makes sure that each call is answered.
//!
//! ```text
//!                        ┌── sends ─▶ exposed actors ──── replies ────┐
//! reader ──frames──▶ connection ──starts──▶ calls of methods ─────────┤
//! (task)                 │                                            ▼
//!                        └── faults, goodbye ────────────────────▶ outbox ──▶ writer (task)
//! ```
//!
//! A message to an exposed actor costs no task: the answer is written to the [`Outbox`], the outbox
//! of the connection, in the turn of the actor that answers. Only messages that wait for room in a
//! mailbox, and streams, are pipes. Everything that waits is bounded: a client that does not read
//! is not served any further, and a client that floods a mailbox delays only itself. A connection
//! that closes sends the reason in an error with id 0, waits until that is written, and ends.

mod mailbox_queue;
mod method_call;
mod name;
mod outbox;
mod pump;
mod settings;
mod wire;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use strowger::{
    Accepts, Actor, ActorRef, CallSink, Completion, Context, Delivery, DeliveryHandle,
    EarliestTimer, Exit, Fault, FaultCode, MailboxSpec, MessagePattern, Payload, PayloadStream,
    PipeId, RemoteEntry, Signal, TooManyPipes,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::mailbox_queue::{MailboxQueues, QueuedMessage};
use self::name::{BoundName, BoundNames};
use self::outbox::{OpenCall, Outbox};
use self::pump::pump;
use self::settings::AcceptError;
pub(crate) use self::settings::{Admission, ByteStream, ConnectionArgs, EndpointSettings};
use self::wire::{AdmittedClient, PendingClient};
use crate::access::{AuditGuard, Caller};
use crate::connection::method_call::{
    MethodCall, MethodCallArgs, StartMethod, stream_needs_credit,
};
use crate::frame::{Frame, FrameKind};
use crate::limits::Limits;
use crate::method::Methods;

/// The protocol version announced in the hello frame.
pub(crate) const PROTOCOL: u64 = 2;

/// The actor of a client connection.
pub(crate) struct Connection {
    methods: Arc<Methods>,
    limits: Limits,
    names: BoundNames,
    last_id: u32,
    outbox: Arc<Outbox>,
    /// Running method calls.
    method_calls: HashMap<u32, ActorRef<StartMethod>>,
    /// The running method calls whose caller reads rows.
    row_calls: HashSet<u32>,
    /// Messages that wait for room in mailboxes.
    queues: MailboxQueues,
    /// Messages that wait at a mailbox, and streams in progress.
    pipes: HashMap<u32, PipeId>,
    /// Wakes the connection at the deadline of the next overdue call.
    deadline_timer: EarliestTimer,
    last_frame: Instant,
    /// `true` until the client has authenticated.
    is_unauthenticated: bool,
    /// The authenticated client, once it is known.
    admitted: Arc<OnceLock<AdmittedClient>>,
}

pub(crate) enum ConnectionMsg {
    /// Frames from the reader.
    Frames(Vec<Frame>),
    /// The reader reached the end of the stream.
    Ended,
    /// The reader met an error after which nothing can be read.
    ReadFailed(Fault),
    /// The timer message that checks for a silent client.
    CheckIdle,
    /// The timer message that checks for overdue calls.
    CheckDeadlines,
    /// An actor answered with a stream.
    Items(Completion<PayloadStream>),
    /// A message was put into its mailbox, or was refused.
    Delivered(u32, FrameKind, Result<DeliveryHandle, Fault>),
    /// A stream ended; `None` if its call had ended before.
    Streamed(u32, Option<Result<(), Fault>>),
}

impl Accepts<Completion<PayloadStream>> for ConnectionMsg {
    fn wrap(items: Completion<PayloadStream>) -> Self {
        Self::Items(items)
    }
}

/// Time limit for authentication.
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// Default deadline of messages.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(5);

impl Actor for Connection {
    type Msg = ConnectionMsg;
    type Args = ConnectionArgs;
    type Error = AcceptError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(4);
    /// Bounded by the calls in flight.
    const PIPES: usize = usize::MAX;

    async fn pre_start(args: ConnectionArgs, cx: &mut Context<Self>) -> Result<Self, AcceptError> {
        let (stream, status) = args.open(AUTHENTICATION_TIMEOUT).await?;
        let EndpointSettings {
            methods,
            limits,
            admission,
            admitted_count,
            ..
        } = args.settings;
        let (read, write) = tokio::io::split(stream);
        let outbox = Arc::new(Outbox::new(limits, cx.lane()));
        let hello = Frame::new(FrameKind::Hello, 0).with_json(&json!({
            "protocol": PROTOCOL,
            "frame": limits.frame,
            "in_flight": limits.in_flight,
            "names": limits.names,
            "token": admission.tokens().is_some(),
        }));
        outbox.write(&hello);
        let is_unauthenticated = admission.tokens().is_some();
        let admitted = Arc::new(OnceLock::new());
        let pending = PendingClient {
            admission,
            status,
            admitted_count,
            admitted: Arc::clone(&admitted),
        };
        cx.task("reader", wire::read(read, limits, pending, cx.actor_ref()));
        cx.task("writer", wire::write(write, limits, Arc::clone(&outbox)));
        let connection = Self {
            methods,
            limits,
            names: BoundNames::new(limits.names),
            last_id: 0,
            outbox,
            method_calls: HashMap::new(),
            row_calls: HashSet::new(),
            queues: MailboxQueues::new(limits.memory),
            pipes: HashMap::new(),
            deadline_timer: EarliestTimer::new(),
            last_frame: cx.now(),
            is_unauthenticated,
            admitted,
        };
        cx.send_every(
            connection.idle_timeout() / 4 + Duration::from_millis(1),
            || ConnectionMsg::CheckIdle,
        );
        Ok(connection)
    }

    async fn handle(
        &mut self,
        message: ConnectionMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), AcceptError> {
        match message {
            ConnectionMsg::Frames(frames) => {
                self.outbox.ready_for_frames().await;
                self.is_unauthenticated = false;
                self.last_frame = cx.now();
                for frame in frames {
                    if let Err(fault) = self.handle_frame(frame, cx) {
                        self.close(&fault);
                        break;
                    }
                }
            }
            ConnectionMsg::Ended => {
                self.outbox.end_input();
                self.fail_streams(cx);
            }
            ConnectionMsg::ReadFailed(fault) => self.close(&fault),
            ConnectionMsg::CheckIdle => {
                if let Ok(caller) = self.caller() {
                    caller.flush_audit();
                }
                let silent = cx.now().saturating_duration_since(self.last_frame);
                let idle_timeout = self.idle_timeout();
                if silent >= idle_timeout && self.outbox.is_idle() {
                    let text = format!("idle: no frame for {idle_timeout:?}");
                    self.close(&Fault::new(FaultCode::Idle, text));
                }
            }
            ConnectionMsg::CheckDeadlines => {
                self.deadline_timer.clear();
                self.fail_overdue_calls(cx);
            }
            ConnectionMsg::Items(Completion { token, result }) => {
                if let (Ok(id), Ok(items)) = (u32::try_from(token), result) {
                    self.start_stream(id, items, cx);
                }
            }
            ConnectionMsg::Delivered(id, kind, put) => {
                self.pipes.remove(&id);
                self.on_delivered(id, kind, put);
                self.deliver_next(id, cx);
            }
            ConnectionMsg::Streamed(id, end) => {
                self.pipes.remove(&id);
                if let Some(end) = end {
                    self.outbox.finish(id, end.map(|()| Payload::EMPTY));
                }
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), AcceptError> {
        match signal {
            Signal::TaskEnded { name } if &*name == "writer" => {
                self.kill_method_calls();
                cx.stop();
            }
            Signal::ChildEnded { key, exit, .. } => self.on_method_exit(&key, &exit),
            Signal::PipePanicked { pipe, panic } => {
                let call = self.pipes.iter().find(|(_, one)| **one == pipe);
                if let Some(id) = call.map(|(id, _)| *id) {
                    self.pipes.remove(&id);
                    let fault =
                        Fault::new(FaultCode::Failed, format!("panic in a stream: {panic}"));
                    self.outbox.fail(id, fault);
                    self.deliver_next(id, cx);
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        self.outbox.disconnect();
        if let Ok(caller) = self.caller() {
            caller.flush_audit();
        }
    }
}

impl Connection {
    /// Returns the authenticated client.
    fn caller(&self) -> Result<&Caller, Fault> {
        let admitted = self.admitted.get().map(|admitted| &admitted.caller);
        // Frames arrive only after authentication.
        admitted.ok_or_else(|| Fault::new(FaultCode::Refused, "the client is not authenticated"))
    }

    fn handle_frame(&mut self, frame: Frame, cx: &mut Context<Self>) -> Result<(), Fault> {
        match frame.kind {
            FrameKind::Call | FrameKind::Tell => {
                let id = frame.id;
                if let Err(fault) = self.start_call(frame, cx) {
                    self.outbox.reply_unlisted(id, Err(fault));
                }
            }
            FrameKind::Name => {
                let caller = self.caller()?.clone();
                self.names.bind(&frame, &caller)?;
            }
            FrameKind::Cancel => {
                let fault = Fault::new(FaultCode::Cancelled, "cancelled by the caller");
                self.fail_call(frame.id, fault, cx);
            }
            FrameKind::Credit => self.outbox.add_credit(frame.id, frame.credit),
            // The reader has checked the token already, if one is required.
            FrameKind::Token => {}
            FrameKind::Hello | FrameKind::Item | FrameKind::Done | FrameKind::Error => {
                let text = format!("clients must not send {} frames", frame.kind);
                return Err(Fault::new(FaultCode::Protocol, text));
            }
        }
        Ok(())
    }

    fn start_call(&mut self, frame: Frame, cx: &mut Context<Self>) -> Result<(), Fault> {
        if frame.id <= self.last_id {
            let text = format!("call {} after call {}", frame.id, self.last_id);
            return Err(Fault::new(
                FaultCode::BadRequest,
                text + ": IDs must increase",
            ));
        }
        self.last_id = frame.id;
        match self.names.get(frame.target) {
            None => {
                let text = format!("no name is bound to target {}", frame.target);
                Err(Fault::new(FaultCode::UnknownTarget, text))
            }
            Some(BoundName::Method(name)) => {
                let name = Arc::clone(name);
                self.start_method(frame, name, cx)
            }
            Some(BoundName::Message {
                address,
                kind,
                permissions,
                entry,
            }) => {
                let admitted = self.admitted.get().map(|admitted| &admitted.caller);
                let Some(caller) = admitted else {
                    return Ok(());
                };
                permissions.check_frame(caller, frame.kind, cx.now())?;
                if entry.as_ref().is_none_or(|entry| !entry.is_alive()) {
                    *entry = None;
                    *entry = Some(cx.system().remote_entry(address, kind)?);
                }
                match entry.clone() {
                    Some(entry) => {
                        let pattern = entry.pattern();
                        let record =
                            permissions.authorize(caller, frame.kind, pattern, cx.now())?;
                        if expects_single_reply(&frame) && pattern == MessagePattern::Stream {
                            return Err(stream_needs_credit(kind));
                        }
                        self.send_message(frame, &entry, record, cx)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Sends a message to an exposed actor.
    fn send_message(
        &mut self,
        frame: Frame,
        entry: &RemoteEntry,
        record: Option<AuditGuard>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        let (id, kind) = (frame.id, frame.kind);
        let asked = Duration::from_millis(frame.deadline.into());
        let span = match (frame.deadline, entry.pattern()) {
            (0, MessagePattern::Stream) if kind == FrameKind::Call => None,
            (0, _) => Some(DEFAULT_DEADLINE.min(self.limits.deadline)),
            (_, MessagePattern::Stream) => Some(asked),
            _ => Some(asked.min(self.limits.deadline)),
        };
        let deadline = span.map(|span| (cx.now() + span, span));
        let credit = (frame.credit > 0).then(|| {
            let credit = Semaphore::new(0);
            outbox::add_permits(&credit, frame.credit);
            Arc::new(credit)
        });
        let open = OpenCall {
            delivery: None,
            deadline,
            credit,
            record,
        };
        self.outbox.add_call(id, open)?;
        let waiting = QueuedMessage {
            id,
            kind,
            entry: entry.clone(),
            payload: frame.into_payload(),
        };
        match self.queues.enqueue(waiting) {
            Ok(Some(first)) => {
                self.deliver(first, cx);
            }
            Ok(None) => {}
            Err(fault) => self.outbox.finish(id, Err(fault)),
        }
        if let Some((at, _)) = deadline {
            self.deadline_timer
                .arm(at, ConnectionMsg::CheckDeadlines, cx);
        }
        Ok(())
    }

    /// Puts a message into its mailbox. Returns `false` if it has to wait there.
    fn deliver(&mut self, message: QueuedMessage, cx: &mut Context<Self>) -> bool {
        let QueuedMessage {
            id,
            kind,
            entry,
            payload,
        } = message;
        let put = match kind {
            FrameKind::Tell => entry.tell(&payload),
            _ => {
                let outbox = Arc::clone(&self.outbox);
                entry.call(&payload, id.into(), outbox as Arc<dyn CallSink>)
            }
        };
        match put {
            Delivery::Settled(done) => {
                self.on_delivered(id, kind, done);
                true
            }
            Delivery::Queued(waits) => {
                self.queues.set_first(entry.order(), id);
                let pipe = cx.pipe(waits, move |done| ConnectionMsg::Delivered(id, kind, done));
                self.track_pipe(id, pipe);
                false
            }
        }
    }

    /// Delivers the messages queued behind one that does not wait at its mailbox any more.
    fn deliver_next(&mut self, id: u32, cx: &mut Context<Self>) {
        let Some(actor) = self.queues.waits_at(id) else {
            return;
        };
        while let Some(next) = self.queues.next(&actor) {
            if self.outbox.is_waiting(next.id.into()) && !self.deliver(next, cx) {
                return;
            }
        }
    }

    /// Continues with a message that was put into its mailbox or refused.
    fn on_delivered(&self, id: u32, kind: FrameKind, put: Result<DeliveryHandle, Fault>) {
        match put {
            Ok(_) if kind == FrameKind::Tell => self.outbox.finish(id, Ok(Payload::EMPTY)),
            Ok(delivery) => self.outbox.set_delivery(id, delivery),
            Err(fault) => self.outbox.finish(id, Err(fault)),
        }
    }

    /// Starts to send the items of a stream, as far as credit allows.
    fn start_stream(&mut self, id: u32, items: PayloadStream, cx: &mut Context<Self>) {
        if self.outbox.is_ending() {
            self.outbox.finish(id, Err(client_stopped_sending()));
            return;
        }
        let Some(credit) = self.outbox.credit(id) else {
            return;
        };
        let pump = pump(id, items, credit, Arc::clone(&self.outbox));
        let pipe = cx.pipe(pump, move |end| ConnectionMsg::Streamed(id, end));
        self.track_pipe(id, pipe);
    }

    /// Records the pipe that works for a call.
    fn track_pipe(&mut self, id: u32, pipe: Result<PipeId, TooManyPipes>) {
        match pipe {
            Ok(pipe) => {
                self.pipes.insert(id, pipe);
            }
            Err(error) => {
                let fault = Fault::new(FaultCode::Full, error.to_string());
                self.outbox.fail(id, fault);
            }
        }
    }

    /// Ends the streams of a client that sends nothing more: it cannot grant them credit.
    fn fail_streams(&mut self, cx: &mut Context<Self>) {
        let ids = self.pipes.keys().copied();
        let streams = ids.filter(|id| self.queues.waits_at(*id).is_none());
        let streams: Vec<_> = streams.chain(self.row_calls.iter().copied()).collect();
        for id in streams {
            self.fail_call(id, client_stopped_sending(), cx);
        }
    }

    /// Runs a method as an actor of its own.
    fn start_method(
        &mut self,
        frame: Frame,
        name: Arc<str>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        let id = frame.id;
        if frame.kind == FrameKind::Tell {
            let text = format!("{name} is a method: call it instead of sending a message");
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
        let caller = self.caller()?.clone();
        self.outbox.add_call(id, OpenCall::default())?;
        self.outbox.add_credit(id, frame.credit);
        let reads_rows = frame.credit > 0;
        let asked = Duration::from_millis(frame.deadline.into());
        let deadline = match frame.deadline {
            0 => self.limits.deadline,
            _ => asked.min(self.limits.deadline),
        };
        let args = MethodCallArgs {
            id,
            name,
            payload: frame.into_payload(),
            methods: Arc::clone(&self.methods),
            caller,
            deadline,
            reads_rows,
            outbox: Arc::clone(&self.outbox),
        };
        match cx.spawn::<MethodCall>(id.to_string(), args) {
            Ok(actor) => {
                // If this fails, the actor has ended already, and its end is reported separately.
                let _ = actor.try_tell(StartMethod);
                self.method_calls.insert(id, actor);
                if reads_rows {
                    self.row_calls.insert(id);
                }
            }
            Err(error) => {
                let fault = Fault::new(FaultCode::Failed, error.to_string());
                self.outbox.fail(id, fault);
            }
        }
        Ok(())
    }

    fn on_method_exit(&mut self, key: &str, exit: &Exit) {
        let Some(id) = key.parse().ok() else { return };
        self.row_calls.remove(&id);
        if self.method_calls.remove(&id).is_some() && !exit.is_orderly() {
            let fault = Fault::new(FaultCode::Failed, format!("the method {exit}"));
            self.outbox.fail(id, fault);
        }
    }

    /// Answers a call with a fault and ends the work for it.
    fn fail_call(&mut self, id: u32, fault: Fault, cx: &mut Context<Self>) {
        if !self.outbox.fail(id, fault) {
            return;
        }
        if let Some(actor) = self.method_calls.get(&id) {
            actor.kill();
        }
        if let Some(pipe) = self.pipes.remove(&id) {
            cx.cancel_pipe(pipe);
            self.deliver_next(id, cx);
        }
    }

    fn fail_overdue_calls(&mut self, cx: &mut Context<Self>) {
        let (over, next) = self.outbox.overdue(cx.now());
        for (id, span) in over {
            let fault = Fault::new(FaultCode::Deadline, format!("no reply within {span:?}"));
            self.fail_call(id, fault, cx);
        }
        if let Some(next) = next {
            self.deadline_timer
                .arm(next, ConnectionMsg::CheckDeadlines, cx);
        }
    }

    /// Time for which the client may be silent.
    fn idle_timeout(&self) -> Duration {
        if self.is_unauthenticated {
            self.limits.idle.min(AUTHENTICATION_TIMEOUT)
        } else {
            self.limits.idle
        }
    }

    /// Sends the reason for closing; the connection ends once it is written.
    fn close(&self, fault: &Fault) {
        self.outbox.close(fault);
        self.kill_method_calls();
    }

    fn kill_method_calls(&self) {
        for actor in self.method_calls.values() {
            actor.kill();
        }
    }
}

/// Returns `true` for a call that expects a single answer: a call that reads items grants credit.
fn expects_single_reply(frame: &Frame) -> bool {
    frame.kind == FrameKind::Call && frame.credit == 0
}

fn client_stopped_sending() -> Fault {
    Fault::new(FaultCode::Cancelled, "the client stopped sending")
}
