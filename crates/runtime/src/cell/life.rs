//! What of an actor changes as its incarnations come and go.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::{ActorId, AnyCell, Node, Phase};
use crate::exit::Exit;
use crate::monitor::MonitorId;
use crate::supervision::Overseer;
use crate::tie::Tie;

pub(super) struct Life {
    pub(super) phase: Phase,
    /// Whether somebody sees to the end for good; the phase is `Ended` when that is done.
    pub(super) over: bool,
    pub(super) restarts: u32,
    pub(super) last_exit: LastExit,
    /// What most actors do not have, made when first needed.
    pub(super) more: Option<Box<More>>,
}

/// Why the last incarnation ended; the exits of every day without an allocation.
pub(super) enum LastExit {
    None,
    Normal,
    Shutdown,
    Killed,
    Other(Box<Exit>),
}

impl LastExit {
    pub(super) fn of(exit: &Exit) -> Self {
        match exit {
            Exit::Normal => Self::Normal,
            Exit::Shutdown => Self::Shutdown,
            Exit::Killed => Self::Killed,
            other => Self::Other(Box::new(other.clone())),
        }
    }

    pub(super) fn get(&self) -> Option<Exit> {
        match self {
            Self::None => None,
            Self::Normal => Some(Exit::Normal),
            Self::Shutdown => Some(Exit::Shutdown),
            Self::Killed => Some(Exit::Killed),
            Self::Other(exit) => Some((**exit).clone()),
        }
    }
}

#[derive(Default)]
pub(super) struct More {
    pub(super) waiting: Vec<(u64, Waker)>,
    pub(super) next_wait: u64,
    pub(super) monitors: Vec<Watcher>,
    pub(super) links: Vec<Link>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) ties: Vec<Tie>,
    /// What the actor shows to those who know its type.
    pub(super) attached: Option<Arc<dyn Any + Send + Sync>>,
    /// In which the incarnation runs.
    pub(super) span: Option<tracing::Span>,
    /// Who decides about its children where they end.
    pub(super) overseer: Option<Arc<dyn Overseer>>,
}

impl Life {
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    pub(super) fn stop_waiting(&mut self, ticket: u64) {
        if let Some(more) = &mut self.more {
            more.waiting.retain(|(waiting, _)| *waiting != ticket);
        }
    }
}

pub(super) struct Watcher {
    pub(super) id: MonitorId,
    pub(super) cell: Weak<dyn AnyCell>,
    pub(super) incarnation: u32,
}

/// The other end of a link.
pub(crate) struct Link {
    pub(crate) id: ActorId,
    pub(crate) cell: Weak<dyn AnyCell>,
    pub(crate) incarnation: u32,
}

pub(super) struct PhaseWait<'a> {
    pub(super) node: &'a Node,
    pub(super) ticket: Option<u64>,
    pub(super) ready: fn(Phase) -> bool,
}

impl PhaseWait<'_> {
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut life = self.node.life.lock();
        if let Some(ticket) = self.ticket.take() {
            life.stop_waiting(ticket);
        }
        if (self.ready)(life.phase) {
            return Poll::Ready(());
        }
        let more = life.more();
        let ticket = more.next_wait;
        more.next_wait += 1;
        more.waiting.push((ticket, cx.waker().clone()));
        self.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for PhaseWait<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.node.life.lock().stop_waiting(ticket);
        }
    }
}
