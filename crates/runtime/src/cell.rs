//! What stands behind an address: the part of an actor that survives its restarts.

mod end;
mod id;
mod life;
#[cfg(all(test, strowger_loom))]
mod loom;
mod marks;
mod span;
mod stand;

use std::any::Any;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Weak};

use crate::branch::Branch;
use crate::budget::charged;
use crate::event::Event;
use crate::exit::{Exit, discard_one};
use crate::info::{ActorInfo, COUNTED, State};
use crate::mailbox::{Figures, Mailbox, MailboxSpec, System};
use crate::metric::Count;
use crate::monitor::MonitorId;
use crate::path::{Key, Path};
use crate::reply::{Completion, Sink};
use crate::schedule::strand::{self, Lock};
use crate::supervision::{Limit, Overseer, Shutdown};
use crate::system::Shared;
use crate::tie::Tie;
pub(crate) use end::{down, finish, finish_down, finish_if_down, part};
pub use id::ActorId;
use life::{Life, PhaseWait, Watcher};
pub(crate) use life::{Link, Phase};
use marks::Marks;
use stand::Stand;

/// The cell of an actor that takes messages of type `M`.
pub(crate) struct Cell<M> {
    pub(crate) node: Node,
    pub(crate) mailbox: Mailbox<M>,
}

/// A cell without its message type, as the tree, supervisors and the registry see it.
pub(crate) trait AnyCell: Send + Sync {
    fn node(&self) -> &Node;
    fn system(&self, system: System, incarnation: Option<u32>) -> bool;
    fn incarnation(&self) -> u32;
    fn floor(&self) -> Option<u64>;
    fn figures(&self) -> Figures;
    fn spec(&self) -> MailboxSpec;
    fn close(&self) -> u64;
    /// An estimate of what it takes, in octets.
    fn memory(&self, figures: &Figures) -> usize;
    /// A number that changes with every message that is taken.
    fn progress(&self) -> u64;
    /// Asks the incarnation to stop, before all that waits.
    fn stop(&self);
    /// Ends the incarnation at its next await.
    fn kill(&self);
    /// Ends an incarnation that nobody will run any more.
    fn abandon(&self);
    /// Takes note that nobody wants a message any more, by its number.
    #[cfg(feature = "messages")]
    fn forgo(&self, number: u64);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Send + 'static> AnyCell for Cell<M> {
    fn node(&self) -> &Node {
        &self.node
    }

    fn system(&self, system: System, incarnation: Option<u32>) -> bool {
        self.mailbox.system(system, incarnation)
    }

    fn incarnation(&self) -> u32 {
        self.mailbox.incarnation()
    }

    #[cfg(feature = "messages")]
    fn forgo(&self, number: u64) {
        self.mailbox.abandon(number);
    }

    fn floor(&self) -> Option<u64> {
        self.mailbox.floor()
    }

    fn figures(&self) -> Figures {
        self.mailbox.figures()
    }

    fn spec(&self) -> MailboxSpec {
        self.mailbox.spec()
    }

    fn close(&self) -> u64 {
        self.mailbox.close()
    }

    fn memory(&self, figures: &Figures) -> usize {
        let counts = 2 * size_of::<usize>();
        size_of::<Self>() + counts + figures.octets + (self.node.kind)().apart
    }

    fn progress(&self) -> u64 {
        self.mailbox.progress()
    }

    fn stop(&self) {
        if let Some((ready, place)) = self.mailbox.stop() {
            self.node.shared.scheduler.push_near(ready, place);
        }
    }

    fn kill(&self) {
        if self.node.kill() {
            self.mailbox.strand().wake();
        }
    }

    fn abandon(&self) {
        strand::abandon(self);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A lane's way into a cell: the wrapping of completions is fixed when the lane is made.
pub(crate) struct LaneSink<M, T> {
    pub(crate) cell: Weak<Cell<M>>,
    pub(crate) incarnation: u32,
    pub(crate) wrap: fn(Completion<T>) -> M,
}

impl<M: Send + 'static, T> Sink<T> for LaneSink<M, T> {
    fn complete(&self, completion: Completion<T>) {
        if let Some(cell) = self.cell.upgrade() {
            cell.mailbox
                .complete(self.incarnation, (self.wrap)(completion), None);
        }
    }
}

/// What is the same for all actors of one type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The name of the Rust type.
    pub(crate) name: &'static str,
    /// The octets of an incarnation that have no room in its cell, the actor's value among them.
    pub(crate) apart: usize,
}

/// What cells of all message types have.
pub(crate) struct Node {
    pub(crate) id: ActorId,
    pub(crate) key: Key,
    /// Its number among its siblings, in the order of their start.
    pub(crate) place: u64,
    pub(crate) kind: fn() -> Kind,
    pub(crate) owner: Owner,
    pub(crate) shared: Arc<Shared>,
    pub(crate) children: Branch,
    /// How long it may take to stop.
    pub(crate) limit: Limit,
    /// `KILLED`, `TRACED`.
    marks: Marks,
    stand: Stand,
    life: Lock<Life>,
}

/// Who holds an actor.
pub(crate) enum Owner {
    /// The system: the actor stands at the top of the tree.
    System,
    /// An actor that lets its children end, and is told.
    Parent {
        cell: Arc<dyn AnyCell>,
        incarnation: u32,
    },
    /// A dynamic supervisor that lets its children end, and need not be told.
    Keeper { cell: Arc<dyn AnyCell> },
    /// A supervisor, which decides after each exit.
    Supervisor {
        cell: Arc<dyn AnyCell>,
        incarnation: u32,
    },
}

impl Owner {
    pub(crate) fn cell(&self) -> Option<&Arc<dyn AnyCell>> {
        match self {
            Self::System => None,
            Self::Parent { cell, .. } | Self::Keeper { cell } | Self::Supervisor { cell, .. } => {
                Some(cell)
            }
        }
    }
}

/// The incarnation ends at its next await.
const KILLED: u8 = 1;
/// Somebody listens to spans, and this actor has one.
const SPANNED: u8 = 4;
/// Somebody traces the actor, or did so a moment ago.
const TRACED: u8 = 2;

/// What a node is made of.
pub(crate) struct NodeParts {
    pub(crate) id: ActorId,
    pub(crate) key: Key,
    pub(crate) place: u64,
    pub(crate) kind: fn() -> Kind,
    pub(crate) owner: Owner,
    pub(crate) shared: Arc<Shared>,
    pub(crate) shutdown: Shutdown,
}

impl Node {
    #[inline(always)]
    pub(crate) fn new(parts: NodeParts) -> Self {
        let NodeParts {
            id,
            key,
            place,
            kind,
            owner,
            shared,
            shutdown,
        } = parts;
        Self {
            id,
            key,
            place,
            kind,
            owner,
            shared,
            limit: shutdown.into(),
            children: Branch::default(),
            marks: Marks::default(),
            stand: Stand::default(),
            life: Lock::new(Life::default()),
        }
    }

    pub(crate) fn path(&self) -> Path {
        let mut keys = vec![&self.key];
        let mut above = self.owner.cell();
        while let Some(cell) = above {
            keys.push(&cell.node().key);
            above = cell.node().owner.cell();
        }
        Path::from_keys_upward(&keys)
    }

    /// The child with this key.
    pub(crate) fn child(&self, key: &Key) -> Option<Arc<dyn AnyCell>> {
        self.children.get(&self.shared.cells, key)
    }

    /// The children in the order of their start.
    pub(crate) fn children(&self) -> Vec<Arc<dyn AnyCell>> {
        self.children.all(&self.shared.cells)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.stand.phase()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stand.is_over()
    }

    /// Why the last incarnation ended.
    pub(crate) fn last_exit(&self) -> Option<Exit> {
        match self.stand.last() {
            Ok(exit) => exit,
            Err(_) => self.life.lock().last_exit(),
        }
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.marks.has(KILLED)
    }

    /// Whether it is killed, or somebody may trace it; read for each message.
    #[inline(always)]
    pub(crate) fn is_marked(&self) -> bool {
        let seen = if COUNTED { KILLED | TRACED } else { KILLED };
        self.marks.has(seen)
    }

    /// Whether somebody may trace this actor.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        COUNTED && self.marks.has(TRACED)
    }

    pub(crate) fn set_traced(&self, traced: bool) {
        if traced {
            self.marks.set(TRACED);
        } else {
            self.marks.clear(TRACED);
        }
    }

    /// Marks the incarnation as killed; false when there is none.
    fn kill(&self) -> bool {
        let life = self.life.lock();
        let lives = !self.is_over() && self.phase() != Phase::Down;
        if lives {
            self.marks.set(KILLED);
        }
        drop(life);
        lives
    }

    /// Makes the node ready for another incarnation: how many there were before. None when the
    /// actor has ended.
    pub(crate) fn rise(&self) -> Option<u32> {
        if self.phase() == Phase::Starting {
            return Some(0);
        }
        let mut life = self.life.lock();
        if self.is_over() {
            return None;
        }
        if self.is_killed() {
            self.marks.clear(KILLED);
        }
        let more = life.more();
        more.restarts += 1;
        let restarts = more.restarts;
        self.stand.enter(Phase::Starting);
        drop(life);
        self.children.open();
        Some(restarts)
    }

    /// Notes the end of an incarnation, and makes the node ready for the one that follows at once,
    /// without having been down: a kill from now on is meant for that one. Returns the links of
    /// the one that ended.
    pub(crate) fn succeed(&self, exit: Exit, overseen: Arc<dyn Overseer>) -> Vec<Link> {
        let mut earlier = None;
        let mut life = self.life.lock();
        life.set_last_exit(&self.stand, exit, &mut earlier);
        let more = life.more();
        more.restarts += 1;
        let overseers = (more.overseer.take(), more.overseen.replace(overseen));
        let links = mem::take(&mut more.links);
        self.stand.enter(Phase::Starting);
        drop(life);
        drop(overseers);
        discard_one(earlier);
        self.children.open();
        links
    }

    /// Who runs the incarnation says where it stands, and wakes those who wait for that.
    pub(crate) fn enter(&self, phase: Phase) {
        if phase == Phase::Stopping && self.phase() == Phase::Running {
            // Of those who wait, nobody waits for this.
            return self.stand.enter(phase);
        }
        let mut life = self.life.lock();
        self.stand.enter(phase);
        let Some(more) = &mut life.more else { return };
        if more.waiting.is_empty() {
            return;
        }
        let waiting = mem::take(&mut more.waiting);
        drop(life);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Notes the end of an incarnation; returns the links that it had.
    pub(crate) fn fall(&self, exit: &Exit) -> Vec<Link> {
        self.leave_span();
        let mut earlier = None;
        let mut life = self.life.lock();
        life.set_last_exit(&self.stand, exit.clone(), &mut earlier);
        let Some(more) = &mut life.more else {
            return Vec::new();
        };
        let overseer = more.overseer.take();
        let links = mem::take(&mut more.links);
        drop(life);
        drop(overseer);
        discard_one(earlier);
        links
    }

    /// Waits until the phase satisfies `ready`.
    pub(crate) async fn reached(&self, ready: fn(Phase) -> bool) {
        let mut wait = PhaseWait {
            node: self,
            ticket: None,
            ready,
        };
        poll_fn(|cx| charged(cx, |cx| wait.poll(cx))).await;
    }

    /// Adds a watcher; returns the exit at once when the actor has ended.
    pub(crate) fn watch(
        &self,
        id: MonitorId,
        cell: Weak<dyn AnyCell>,
        incarnation: u32,
    ) -> Option<Exit> {
        let mut life = self.life.lock();
        if self.is_over() {
            drop(life);
            return self.last_exit();
        }
        life.more().monitors.push(Watcher {
            id,
            cell,
            incarnation,
        });
        None
    }

    pub(crate) fn unwatch(&self, id: MonitorId) {
        if let Some(more) = &mut self.life.lock().more {
            more.monitors.retain(|watcher| watcher.id != id);
        }
    }

    /// Adds a link; returns the exit when the actor has ended.
    pub(crate) fn link(&self, link: Link) -> Option<Exit> {
        let mut life = self.life.lock();
        if self.is_over() {
            drop(life);
            return self.last_exit();
        }
        life.more().links.push(link);
        None
    }

    pub(crate) fn unlink(&self, id: ActorId) {
        if let Some(more) = &mut self.life.lock().more {
            more.links.retain(|link| link.id != id);
        }
    }

    /// Notes a registered name, to be freed at the end; false when the actor has ended.
    pub(crate) fn named(&self, name: Arc<str>) -> bool {
        let mut life = self.life.lock();
        let alive = !self.is_over();
        if alive {
            life.more().names.push(name);
        }
        alive
    }

    /// Notes something to be left at the end; false when the actor has ended.
    pub(crate) fn tie(&self, tie: Tie) -> bool {
        let mut life = self.life.lock();
        if self.is_over() {
            return false;
        }
        let ties = &mut life.more().ties;
        if !ties.iter().any(|one| one.ptr_eq(&tie)) {
            ties.push(tie);
        }
        true
    }

    pub(crate) fn attach(&self, value: Arc<dyn Any + Send + Sync>) {
        self.life.lock().more().attached = Some(value);
    }

    pub(crate) fn attached(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.life.lock().more.as_ref()?.attached.clone()
    }

    /// Says who decides about the children of this actor.
    pub(crate) fn oversee(&self, overseer: Arc<dyn Overseer>) {
        self.life.lock().more().overseer = Some(overseer);
    }

    pub(crate) fn overseer(&self) -> Option<Arc<dyn Overseer>> {
        self.life.lock().more.as_ref()?.overseer.clone()
    }

    /// Who decides about this actor, which has this parent. It stays the same as long as the actor
    /// is there, so it is kept after the first restart.
    pub(crate) fn overseen_by(&self, parent: &Self) -> Option<Arc<dyn Overseer>> {
        let mut life = self.life.lock();
        let more = life.more.as_mut();
        let kept = more.and_then(|more| more.overseen.take());
        drop(life);
        kept.or_else(|| parent.overseer())
    }

    /// Counts the first start, and tells it to those who want to know.
    pub(crate) fn started(&self) {
        self.shared
            .events
            .emit(Count::Started, || Event::Started { path: self.path() });
        tracing::debug!(target: "strowger", path = %self.path(), "actor starts");
    }

    pub(crate) fn restarts(&self) -> u32 {
        let life = self.life.lock();
        life.more.as_ref().map_or(0, |more| more.restarts)
    }

    pub(crate) fn info(&self, figures: Figures, spec: MailboxSpec, memory: usize) -> ActorInfo {
        ActorInfo {
            path: self.path(),
            id: self.id,
            kind: (self.kind)().name,
            state: State::from(self.phase()),
            depth: figures.depth,
            capacity: spec.capacity(),
            high_water: figures.high_water,
            dropped: figures.dropped,
            expired: figures.expired,
            handled: figures.handled,
            busy: figures.busy,
            waited: figures.waited,
            memory,
            restarts: self.restarts(),
            last_exit: self.last_exit(),
            children: self.children.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_leaves_room_for_a_message_below_half_a_kilobyte() {
        let counts = 2 * size_of::<usize>();
        assert!(size_of::<Cell<[u64; 4]>>() + counts + 32 <= 512);
    }
}
