//! One client: an actor that reads frames, starts calls and writes what they answer.
//!
//! ```text
//! reader (task) ──frames──▶ connection (actor) ──starts──▶ calls (actors)
//!                                  └───────── frames ─────────┴──▶ writer (task)
//! ```
//!
//! Every arrow is a bounded queue: a client that does not read stops its own calls, and a client
//! that floods waits for itself. A connection that is over says why in an error with id 0, has
//! that written, and ends.

mod call;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use strowger::{Actor, ActorRef, Context, Exit, MailboxSpec, Signal, StartError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use crate::connection::call::{Call, CallArgs, Run};
use crate::fault::{Code, Fault};
use crate::frame::{Content, Frame, FrameError, Kind};
use crate::limits::Limits;
use crate::method::Methods;

/// The version of the protocol that the hello frame announces.
pub(crate) const PROTOCOL: u64 = 1;

/// Octets both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What a connection is made from.
#[derive(Clone)]
pub(crate) struct ConnectionArgs {
    stream: Arc<Mutex<Option<Box<dyn Stream>>>>,
    methods: Arc<Methods>,
    limits: Limits,
}

impl ConnectionArgs {
    pub(crate) fn new(
        stream: impl Stream + 'static,
        methods: Arc<Methods>,
        limits: Limits,
    ) -> Self {
        Self {
            stream: Arc::new(Mutex::new(Some(Box::new(stream)))),
            methods,
            limits,
        }
    }

    fn take(&self) -> Option<Box<dyn Stream>> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.take()
    }
}

/// One client.
pub(crate) struct Connection {
    methods: Arc<Methods>,
    limits: Limits,
    names: HashMap<u32, Arc<str>>,
    last_id: u32,
    calls: BTreeMap<u32, InFlight>,
    last_frame: Instant,
    /// Nothing comes any more; the connection ends with its last call.
    ended: bool,
    /// Absent once the connection is over: then what was sent is still written.
    out: Option<mpsc::Sender<Frame>>,
}

struct InFlight {
    actor: ActorRef<Run>,
    credit: Arc<Semaphore>,
    cancelled: bool,
}

pub(crate) enum ConnectionMsg {
    /// The reader has a frame.
    Frame(Frame),
    /// The reader has reached the end.
    Ended,
    /// The reader has met something that is not a frame.
    Broken(FrameError),
    /// It is time to see whether the client is still there.
    Look,
}

/// How many frames may wait to be written.
const UNWRITTEN: usize = 64;
/// The most items that a client may have asked for and not received.
const MOST_CREDIT: usize = 1 << 20;

impl Actor for Connection {
    type Msg = ConnectionMsg;
    type Args = ConnectionArgs;
    type Error = Gone;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(16);

    async fn pre_start(args: ConnectionArgs, cx: &mut Context<Self>) -> Result<Self, Gone> {
        let stream = args.take().ok_or(Gone)?;
        let (read, write) = tokio::io::split(stream);
        let (out, unwritten) = mpsc::channel(UNWRITTEN);
        let limits = args.limits;
        cx.task("reader", wire::read(read, limits.frame, cx.me()));
        cx.task("writer", wire::write(write, limits, unwritten));
        cx.send_every(limits.idle / 4 + Duration::from_millis(1), || {
            ConnectionMsg::Look
        });
        let hello = Frame::new(Kind::Hello, 0).with_json(&json!({
            "protocol": PROTOCOL,
            "frame": limits.frame,
            "in_flight": limits.in_flight,
        }));
        let connection = Self {
            methods: args.methods,
            limits,
            names: HashMap::new(),
            last_id: 0,
            calls: BTreeMap::new(),
            last_frame: cx.now(),
            ended: false,
            out: Some(out),
        };
        connection.send(hello).await;
        Ok(connection)
    }

    async fn handle(&mut self, message: ConnectionMsg, cx: &mut Context<Self>) -> Result<(), Gone> {
        match message {
            ConnectionMsg::Frame(frame) => {
                self.last_frame = cx.now();
                self.frame(frame, cx).await;
            }
            ConnectionMsg::Ended => {
                self.ended = true;
                self.leave_if_done();
            }
            ConnectionMsg::Broken(error) => {
                let fault = Fault::new(Code::Protocol, error.to_string());
                self.close(&fault).await;
            }
            ConnectionMsg::Look => {
                let silent = cx.now().saturating_duration_since(self.last_frame);
                if self.calls.is_empty() && silent >= self.limits.idle {
                    let text = format!("no frame for {:?}", self.limits.idle);
                    self.close(&Fault::new(Code::Idle, text)).await;
                }
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Gone> {
        match signal {
            Signal::TaskEnded { name } if &*name == "writer" => {
                self.end_calls();
                cx.stop();
            }
            Signal::ChildEnded { key, exit, .. } => self.call_ended(&key, &exit).await,
            _ => {}
        }
        Ok(())
    }
}

impl Connection {
    async fn frame(&mut self, frame: Frame, cx: &mut Context<Self>) {
        let done = match frame.kind {
            Kind::Name => self.name(&frame),
            Kind::Call => {
                if let Err(fault) = self.call(&frame, cx) {
                    let error = Frame::new(Kind::Error, frame.id).with_json(&fault.to_json());
                    self.send(error).await;
                }
                Ok(())
            }
            Kind::Cancel => {
                self.cancel(frame.id).await;
                Ok(())
            }
            Kind::Credit => {
                if let Some(call) = self.calls.get(&frame.id) {
                    grant(&call.credit, frame.credit);
                }
                Ok(())
            }
            Kind::Hello | Kind::Item | Kind::Done | Kind::Error => {
                let text = format!("a client does not send {} frames", frame.kind);
                Err(Fault::new(Code::Protocol, text))
            }
        };
        if let Err(fault) = done {
            self.close(&fault).await;
        }
    }

    /// Binds a target. All calls that follow depend on it, so what is wrong here ends it all.
    fn name(&mut self, frame: &Frame) -> Result<(), Fault> {
        let wrong = |text: String| Err(Fault::new(Code::Protocol, text));
        let most = self.limits.names;
        if frame.content != Content::Text || frame.payload.len() > most {
            return wrong(format!("a name is text of at most {most} octets"));
        }
        let Ok(name) = std::str::from_utf8(&frame.payload) else {
            return wrong(format!("name {} is not UTF-8", frame.target));
        };
        if frame.target == 0 {
            return wrong(format!("{name:?} is bound to target 0, which is nobody"));
        }
        if self.names.len() >= most && !self.names.contains_key(&frame.target) {
            return wrong(format!("more than {most} names"));
        }
        self.names.insert(frame.target, Arc::from(name));
        Ok(())
    }

    fn call(&mut self, frame: &Frame, cx: &mut Context<Self>) -> Result<(), Fault> {
        if self.out.is_none() {
            return Ok(());
        }
        if frame.id <= self.last_id {
            let text = format!("call {} after call {}", frame.id, self.last_id);
            return Err(Fault::new(Code::BadRequest, text + ": ids must grow"));
        }
        self.last_id = frame.id;
        let unknown = || format!("no name is bound to target {}", frame.target);
        let name = self.names.get(&frame.target);
        let name = name.ok_or_else(|| Fault::new(Code::UnknownTarget, unknown()))?;
        let most = self.limits.in_flight;
        if self.calls.len() >= most {
            let text = format!("{most} calls are in flight, which is the limit");
            return Err(Fault::new(Code::Full, text));
        }
        let Some(out) = self.out.clone() else {
            return Ok(());
        };
        let credit = Arc::new(Semaphore::new(0));
        grant(&credit, frame.credit);
        let asked = Duration::from_millis(frame.deadline.into());
        let deadline = match frame.deadline {
            0 => self.limits.deadline,
            _ => asked.min(self.limits.deadline),
        };
        let args = CallArgs {
            id: frame.id,
            name: Arc::clone(name),
            payload: frame.payload.clone(),
            content: frame.content,
            methods: Arc::clone(&self.methods),
            deadline,
            frame: self.limits.frame,
            credit: Arc::clone(&credit),
            out,
        };
        let actor = cx
            .spawn::<Call>(frame.id.to_string(), args)
            .map_err(|error: StartError| Fault::new(Code::Failed, error.to_string()))?;
        // It has ended already if this fails, and its end is reported.
        let _ = actor.try_tell(Run);
        let call = InFlight {
            actor,
            credit,
            cancelled: false,
        };
        self.calls.insert(frame.id, call);
        Ok(())
    }

    async fn cancel(&mut self, id: u32) {
        let Some(call) = self.calls.get_mut(&id).filter(|call| !call.cancelled) else {
            return;
        };
        call.cancelled = true;
        call.actor.kill();
    }

    async fn call_ended(&mut self, key: &str, exit: &Exit) {
        let id = key.parse().ok();
        let Some((id, call)) = id.and_then(|id| self.calls.remove_entry(&id)) else {
            return;
        };
        let fault = match exit {
            exit if exit.is_orderly() => None,
            Exit::Killed if call.cancelled => {
                Some(Fault::new(Code::Cancelled, "the caller cancelled"))
            }
            exit => Some(Fault::new(Code::Failed, format!("the method {exit}"))),
        };
        if let Some(fault) = fault {
            let error = Frame::new(Kind::Error, id).with_json(&fault.to_json());
            self.send(error).await;
        }
        self.leave_if_done();
    }

    /// Says why it is over, and leaves once that is written.
    async fn close(&mut self, fault: &Fault) {
        let error = Frame::new(Kind::Error, 0).with_json(&fault.to_json());
        self.send(error).await;
        self.end_calls();
        self.out = None;
    }

    fn end_calls(&self) {
        for call in self.calls.values() {
            call.actor.kill();
        }
    }

    fn leave_if_done(&mut self) {
        if self.ended && self.calls.is_empty() {
            self.out = None;
        }
    }

    async fn send(&self, frame: Frame) {
        if let Some(out) = &self.out {
            // The writer's end is a signal of its own.
            let _ = out.send(frame).await;
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// The stream was taken by an earlier incarnation: a connection has one life.
#[derive(Debug, thiserror::Error)]
#[error("the connection was taken over already")]
pub(crate) struct Gone;

impl From<Infallible> for Gone {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Adds credit, up to a limit beyond which nobody counts.
fn grant(credit: &Semaphore, more: u32) {
    let room = MOST_CREDIT.saturating_sub(credit.available_permits());
    credit.add_permits(room.min(more as usize));
}
