//! What of an actor changes as its incarnations come and go.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::{ActorId, AnyCell, Node, Stand};
use crate::exit::Exit;
use crate::monitor::MonitorId;
use crate::supervision::Overseer;
use crate::tie::Tie;

/// Where an actor stands in the life of its incarnations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Starting,
    Running,
    Stopping,
    /// The incarnation ended; the owner decides what follows.
    Down,
    Ended,
}

impl Phase {
    /// What a phase was as a number.
    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Starting,
            1 => Self::Running,
            2 => Self::Stopping,
            3 => Self::Down,
            _ => Self::Ended,
        }
    }
}

/// What most actors do not have, made when first needed.
#[derive(Default)]
pub(super) struct Life {
    pub(super) more: Option<Box<More>>,
}

#[derive(Default)]
pub(super) struct More {
    /// Why the last incarnation ended, where its kind does not say everything.
    pub(super) last_exit: Option<Exit>,
    pub(super) restarts: u32,
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
    /// Who decides about itself, once that was asked.
    pub(super) overseen: Option<Arc<dyn Overseer>>,
}

impl Life {
    /// Notes why the incarnation ended; what it replaces is to be dropped without the lock.
    pub(super) fn set_last_exit(&mut self, stand: &Stand, exit: Exit, earlier: &mut Option<Exit>) {
        if !stand.set_last(&exit) {
            *earlier = self.more().last_exit.replace(exit);
        }
    }

    /// Why the last incarnation ended, if its kind does not say everything.
    pub(super) fn last_exit(&self) -> Option<Exit> {
        self.more.as_ref()?.last_exit.clone()
    }

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
        if self.ticket.is_none() && (self.ready)(self.node.phase()) {
            return Poll::Ready(());
        }
        let mut life = self.node.life.lock();
        if let Some(ticket) = self.ticket.take() {
            life.stop_waiting(ticket);
        }
        if (self.ready)(self.node.phase()) {
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
