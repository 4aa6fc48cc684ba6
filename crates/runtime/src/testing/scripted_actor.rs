//! An actor that executes commands and reports what happens to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::Actor;
use crate::address::AnyRef;
use crate::context::Context;
use crate::exit::{BoxError, Exit};
use crate::monitor::Signal;
use crate::path::ActorPath;
use crate::recipient::Recipient;
use crate::testing::Probe;

/// A stand-in for a real actor: it executes commands, and reports the events of its life to a
/// recipient, usually a [`Probe`](super::Probe).
///
/// ```
/// use strowger::testing::{ScriptCommand, ScriptedActor, RecordedEvent, TestSystem};
///
/// let system = TestSystem::new(1);
/// let probe = system.probe::<RecordedEvent>();
/// let actor = system.spawn::<ScriptedActor>("p", probe.recipient());
/// actor.try_tell(ScriptCommand::Note(7)).expect("there is room");
/// actor.try_tell(ScriptCommand::Panic).expect("there is room");
/// assert_eq!(probe.event_lines(), ["/p started", "/p noted 7", "/p dropped"]);
/// ```
#[derive(Debug)]
pub struct ScriptedActor {
    to: Recipient<RecordedEvent>,
    path: ActorPath,
    /// `true` once `post_stop` has run.
    stopped: bool,
}

/// A command to a [`ScriptedActor`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ScriptCommand {
    /// Report this number.
    Note(u64),
    /// Panics.
    ///
    /// The panic hook does not run, so nothing is printed.
    Panic,
    /// Returns an error from `handle`.
    Error,
    /// Stops with the exit `Normal`.
    Stop,
    /// Sleeps for this time in `handle`.
    Sleep(Duration),
    /// Report this number after this time, using a timer.
    NoteAfter(Duration, u64),
    /// Monitor an actor.
    Monitor(AnyRef),
    /// Link to an actor.
    Link(AnyRef),
    /// Start another actor as a child.
    Spawn(Arc<str>),
}

/// A report of one event in the life of a [`ScriptedActor`].
#[derive(Debug, Clone)]
pub struct RecordedEvent {
    /// The path of the actor.
    pub path: ActorPath,
    /// The hook or the message that was recorded.
    pub kind: EventKind,
}

/// An event in the life of a [`ScriptedActor`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventKind {
    /// `pre_start` has run.
    Started,
    /// The actor was told to report this number.
    Noted(u64),
    /// An actor that the actor monitors ended.
    Down(ActorPath, Exit),
    /// `post_stop` has run, with this exit.
    Stopped(Exit),
    /// The value of the actor was dropped without `post_stop`.
    Dropped,
}

impl fmt::Display for RecordedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.path)?;
        match &self.kind {
            EventKind::Started => f.write_str("started"),
            EventKind::Noted(number) => write!(f, "noted {number}"),
            EventKind::Down(path, exit) => write!(f, "saw {path} end: {exit}"),
            EventKind::Stopped(exit) => write!(f, "stopped: {exit}"),
            EventKind::Dropped => f.write_str("dropped"),
        }
    }
}

impl Probe<RecordedEvent> {
    /// Runs the system until idle and takes all reports, each as a line of text.
    #[must_use]
    pub fn event_lines(&self) -> Vec<String> {
        self.drain().iter().map(ToString::to_string).collect()
    }
}

impl ScriptedActor {
    fn record(&self, what: EventKind) {
        // The recipient may have ended, which is no reason to fail.
        let _told = self.to.try_tell(RecordedEvent {
            path: self.path.clone(),
            kind: what,
        });
    }
}

impl Actor for ScriptedActor {
    type Msg = ScriptCommand;
    type Args = Recipient<RecordedEvent>;
    type Error = BoxError;

    async fn pre_start(
        to: Recipient<RecordedEvent>,
        cx: &mut Context<Self>,
    ) -> Result<Self, BoxError> {
        let actor = Self {
            to,
            path: cx.path(),
            stopped: false,
        };
        actor.record(EventKind::Started);
        Ok(actor)
    }

    async fn handle(
        &mut self,
        order: ScriptCommand,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        match order {
            ScriptCommand::Note(number) => self.record(EventKind::Noted(number)),
            // Bypasses the panic hook, as an ordered panic need not be reported.
            ScriptCommand::Panic => std::panic::resume_unwind(Box::new("as ordered")),
            ScriptCommand::Error => return Err("as ordered".into()),
            ScriptCommand::Stop => cx.stop(),
            ScriptCommand::Sleep(time) => tokio::time::sleep(time).await,
            ScriptCommand::NoteAfter(time, number) => {
                cx.send_after(time, ScriptCommand::Note(number));
            }
            ScriptCommand::Monitor(actor) => {
                cx.monitor(actor);
            }
            ScriptCommand::Link(actor) => cx.link(actor),
            ScriptCommand::Spawn(key) => {
                cx.spawn::<Self>(key, self.to.clone())?;
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { path, exit, .. } = signal {
            self.record(EventKind::Down(path, exit));
        }
        Ok(())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        self.stopped = true;
        self.record(EventKind::Stopped(exit.clone()));
    }
}

impl Drop for ScriptedActor {
    fn drop(&mut self) {
        if !self.stopped {
            self.record(EventKind::Dropped);
        }
    }
}
