//! An actor that executes commands and reports what happens to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::Actor;
use crate::address::AnyRef;
use crate::context::Context;
use crate::exit::{BoxError, Exit};
use crate::monitor::Signal;
use crate::path::Path;
use crate::recipient::Recipient;
use crate::testing::Probe;

/// A stand-in for a real actor: it executes commands, and reports the events of its life to a
/// recipient, usually a [`Probe`](super::Probe).
///
/// ```
/// use strowger::testing::{Order, Puppet, Story, TestSystem};
///
/// let system = TestSystem::new(1);
/// let probe = system.probe::<Story>();
/// let puppet = system.spawn::<Puppet>("p", probe.recipient());
/// puppet.try_tell(Order::Note(7)).expect("there is room");
/// puppet.try_tell(Order::Panic).expect("there is room");
/// assert_eq!(probe.story(), ["/p started", "/p noted 7", "/p dropped"]);
/// ```
#[derive(Debug)]
pub struct Puppet {
    to: Recipient<Story>,
    path: Path,
    /// `true` once `post_stop` has run.
    stopped: bool,
}

/// A command to a [`Puppet`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Order {
    /// Report this number.
    Note(u64),
    /// Panic.
    Panic,
    /// Return an error.
    Fail,
    /// Stop normally.
    Stop,
    /// Be busy for this time.
    Wait(Duration),
    /// Report this number after this time, using a timer.
    Later(Duration, u64),
    /// Monitor an actor.
    Monitor(AnyRef),
    /// Link to an actor.
    Link(AnyRef),
    /// Start another puppet as a child.
    Spawn(Arc<str>),
}

/// A report of one event in the life of a [`Puppet`].
#[derive(Debug, Clone)]
pub struct Story {
    /// The path of the puppet.
    pub path: Path,
    /// The event.
    pub what: Chapter,
}

/// An event in the life of a [`Puppet`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Chapter {
    /// `pre_start` ran.
    Started,
    /// The puppet was told to report this number.
    Noted(u64),
    /// An actor that the puppet monitors ended.
    Down(Path, Exit),
    /// `post_stop` ran.
    Stopped(Exit),
    /// The value of the puppet was dropped without `post_stop`.
    Dropped,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.path)?;
        match &self.what {
            Chapter::Started => f.write_str("started"),
            Chapter::Noted(number) => write!(f, "noted {number}"),
            Chapter::Down(path, exit) => write!(f, "saw {path} end: {exit}"),
            Chapter::Stopped(exit) => write!(f, "stopped: {exit}"),
            Chapter::Dropped => f.write_str("dropped"),
        }
    }
}

impl Probe<Story> {
    /// Runs the system until idle and takes all reports, each as a line of text.
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        self.drain().iter().map(ToString::to_string).collect()
    }
}

impl Puppet {
    fn tell(&self, what: Chapter) {
        // The recipient may have ended, which is no reason to fail.
        let _told = self.to.try_tell(Story {
            path: self.path.clone(),
            what,
        });
    }
}

impl Actor for Puppet {
    type Msg = Order;
    type Args = Recipient<Story>;
    type Error = BoxError;

    async fn pre_start(to: Recipient<Story>, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let puppet = Self {
            to,
            path: cx.path(),
            stopped: false,
        };
        puppet.tell(Chapter::Started);
        Ok(puppet)
    }

    async fn handle(&mut self, order: Order, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match order {
            Order::Note(number) => self.tell(Chapter::Noted(number)),
            // Bypasses the panic hook, as an ordered panic need not be reported.
            Order::Panic => std::panic::resume_unwind(Box::new("as ordered")),
            Order::Fail => return Err("as ordered".into()),
            Order::Stop => cx.stop(),
            Order::Wait(time) => tokio::time::sleep(time).await,
            Order::Later(time, number) => {
                cx.send_after(time, Order::Note(number));
            }
            Order::Monitor(actor) => {
                cx.monitor(actor);
            }
            Order::Link(actor) => cx.link(actor),
            Order::Spawn(key) => {
                cx.spawn::<Self>(key, self.to.clone())?;
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { path, exit, .. } = signal {
            self.tell(Chapter::Down(path, exit));
        }
        Ok(())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        self.stopped = true;
        self.tell(Chapter::Stopped(exit.clone()));
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        if !self.stopped {
            self.tell(Chapter::Dropped);
        }
    }
}
