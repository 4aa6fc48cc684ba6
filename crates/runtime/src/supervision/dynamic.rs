//! A supervisor of many children of one kind, that come and go.
//!
//! Its table of children is shared with those who hold its address: starting a child is a call on
//! the table, not a message. Children are restarted one for one, and stop all at once.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::actor::Actor;
use crate::address::{ActorRef, AnyRef};
use crate::budget::charge;
use crate::cell::{self, ActorId, AnyCell, Cell, Node, Owner, Phase};
use crate::context::Context;
use crate::event::Event;
use crate::exit::Exit;
use crate::mailbox::{Idle, MailboxSpec};
use crate::metric::Count;
use crate::monitor::Signal;
use crate::path::{Key, Path};
use crate::run;
use crate::supervision::backoff::Backoff;
use crate::supervision::intensity::Intensity;
use crate::supervision::roster::{Answer, Overseer, restarted, taken};
use crate::supervision::spec::{Restart, Shutdown, Strategy};
use crate::supervision::strategy::{Child, Policy, Verdict};
use crate::supervision::ward::{self, Ward};
use crate::system::{CellSettings, Shared, StartError};

/// What a dynamic supervisor does with children of type `A`.
///
/// Unless said otherwise they are temporary, get five seconds to stop, have no limit in number,
/// and one restart more than three in five seconds is one too many.
#[must_use = "a specification starts nothing by itself"]
pub struct Dynamic<A> {
    restart: Restart,
    shutdown: Shutdown,
    intensity: (u32, Duration),
    backoff: Backoff,
    max_children: usize,
    mailbox: Option<MailboxSpec>,
    kind: std::marker::PhantomData<fn() -> A>,
}

impl<A: Actor> Dynamic<A> {
    /// A dynamic supervisor without children.
    pub const fn new() -> Self {
        Self {
            restart: Restart::Temporary,
            shutdown: Shutdown::Graceful(Duration::from_secs(5)),
            intensity: (3, Duration::from_secs(5)),
            backoff: Backoff::NONE,
            max_children: usize::MAX,
            mailbox: None,
            kind: std::marker::PhantomData,
        }
    }

    /// Says after which exits a child is started again.
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Says how long a child may take to stop.
    pub const fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Says how many restarts within a period the supervisor carries out; with one more it ends
    /// its children and itself. [`u32::MAX`] is no limit.
    pub const fn intensity(mut self, restarts: u32, period: Duration) -> Self {
        self.intensity = (restarts, period);
        self
    }

    /// Says how long to wait before a restart.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Says how many children there may be at a time.
    pub const fn max_children(mut self, limit: usize) -> Self {
        self.max_children = limit;
        self
    }

    /// Gives the children another mailbox than their type asks for.
    pub const fn mailbox(mut self, mailbox: MailboxSpec) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    pub(crate) fn into_table(self) -> Arc<Table<A>> {
        let (restarts, period) = self.intensity;
        let intensity = Intensity::new(restarts, period);
        let policy = Policy {
            strategy: Strategy::OneForOne,
            intensity,
            backoff: self.backoff,
        };
        Arc::new(Table {
            restart: self.restart,
            settings: CellSettings {
                shutdown: self.shutdown,
                mailbox: self.mailbox.unwrap_or(A::MAILBOX),
                limit: self.max_children,
                place: None,
            },
            fresh: policy.clone(),
            state: Mutex::new(State {
                policy,
                children: Ward::default(),
            }),
        })
    }
}

impl<A: Actor> Default for Dynamic<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A> fmt::Debug for Dynamic<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dynamic")
            .field("restart", &self.restart)
            .finish_non_exhaustive()
    }
}

/// The table of children, shared by the supervisor and its addresses.
pub(crate) struct Table<A: Actor> {
    restart: Restart,
    settings: CellSettings,
    /// The policy of a new incarnation of the supervisor.
    fresh: Policy,
    state: Mutex<State<A>>,
}

struct State<A: Actor> {
    policy: Policy,
    /// Only children that may be restarted: of temporary ones nothing is kept.
    children: Ward<Kept<A>>,
}

struct Kept<A: Actor> {
    cell: Arc<Cell<A::Msg>>,
    args: A::Args,
    fact: Child,
}

impl<A: Actor> ward::Kept for Kept<A> {
    fn id(&self) -> ActorId {
        self.cell.node.id
    }
}

impl<A: Actor> Kept<A> {
    /// Makes the next incarnation ready to run.
    fn prepare(&mut self) -> Option<Idle> {
        restarted(&self.cell.node, None);
        let ready = run::prepare::<A>(&self.cell, self.args.clone());
        self.fact.running = true;
        ready
    }

    fn relaunch(&mut self) {
        if let Some((ready, place)) = self.prepare() {
            self.cell.node.shared.scheduler.push(ready, place);
        }
    }
}

/// The address of a dynamic supervisor.
pub struct DynamicRef<A: Actor> {
    cell: Arc<Cell<DynamicMsg>>,
    table: Arc<Table<A>>,
}

impl<A: Actor> Clone for DynamicRef<A> {
    fn clone(&self) -> Self {
        Self {
            cell: Arc::clone(&self.cell),
            table: Arc::clone(&self.table),
        }
    }
}

impl<A: Actor> fmt::Debug for DynamicRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamicRef({})", self.path())
    }
}

impl<A: Actor> DynamicRef<A> {
    /// Starts the supervisor.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        owner: Owner,
        key: &Key,
        dynamic: Dynamic<A>,
    ) -> Result<Self, StartError> {
        let settings = CellSettings {
            shutdown: Shutdown::Infinity,
            mailbox: DynamicActor::<A>::MAILBOX,
            limit: usize::MAX,
            place: None,
        };
        let table = dynamic.into_table();
        let cell = shared.cell::<DynamicActor<A>>(owner, key, &settings)?;
        cell.node.started();
        attach(&cell, &table);
        run::launch::<DynamicActor<A>>(&cell, Arc::clone(&table));
        Ok(Self { cell, table })
    }

    /// The dynamic supervisor behind an address, if it is one for children of type `A`.
    pub(crate) fn of(actor: &AnyRef) -> Option<Self> {
        let table = actor.0.node().attached()?.downcast().ok()?;
        let cell = Arc::clone(&actor.0).into_any().downcast().ok()?;
        Some(Self { cell, table })
    }

    /// Starts many children in one call, in this order. Comes back with a result for each; one
    /// that is refused changes nothing for the others. For all or none there is
    /// [`DynamicRef::start_together`].
    ///
    /// # Errors
    /// A result is an error as in [`DynamicRef::start_child`].
    pub fn start_children<K: Into<Key>>(
        &self,
        children: impl IntoIterator<Item = (K, A::Args)>,
    ) -> Vec<Result<ActorRef<A::Msg>, StartError>> {
        let children = children.into_iter();
        children
            .map(|(key, args)| self.start_child(key, args))
            .collect()
    }

    /// Starts many children in one call, all or none: the first that is refused ends those
    /// before it, the latest first, and waits for their end.
    ///
    /// # Errors
    /// The error of the child that was refused, as in [`DynamicRef::start_child`].
    pub async fn start_together<K: Into<Key>>(
        &self,
        children: impl IntoIterator<Item = (K, A::Args)> + Send,
    ) -> Result<Vec<ActorRef<A::Msg>>, StartError> {
        let children = children.into_iter();
        let mut started = Vec::with_capacity(children.size_hint().0);
        let mut refused = None;
        for (key, args) in children {
            match self.start_child(key, args) {
                Ok(child) => started.push(child),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let Some(error) = refused else {
            return Ok(started);
        };
        for ActorRef(cell) in started.into_iter().rev() {
            self.end_child(cell).await;
        }
        Err(error)
    }

    /// Starts a child. Messages that are sent before it has started wait.
    ///
    /// This is a call, not a message: it does not wait for the supervisor, nor for the child.
    /// [`ActorRef::started`] does, and says if the child chose not to run: nothing is kept of one
    /// that did, whatever its restart kind, and its key is free again.
    ///
    /// # Errors
    /// When the key is taken, there are too many children, or the supervisor is ending.
    pub fn start_child(
        &self,
        key: impl Into<Key>,
        args: A::Args,
    ) -> Result<ActorRef<A::Msg>, StartError> {
        charge();
        let table = &self.table;
        let cell: Arc<dyn AnyCell> = Arc::<Cell<DynamicMsg>>::clone(&self.cell);
        let incarnation = self.cell.mailbox.incarnation();
        let temporary = table.restart == Restart::Temporary;
        let owner = if temporary {
            Owner::Keeper { cell }
        } else {
            Owner::Supervisor { cell, incarnation }
        };
        let shared = &self.cell.node.shared;
        let child = shared.cell::<A>(owner, &key.into(), &table.settings)?;
        child.node.started();
        if temporary {
            run::launch_near::<A>(&child, args);
        } else {
            let mut fact = Child::new(table.restart);
            fact.running = true;
            let first = args.clone();
            let kept = Kept {
                cell: Arc::clone(&child),
                args,
                fact,
            };
            // In the table before it can end, so that its exit finds it.
            table.state.lock().children.insert(kept);
            run::launch_near::<A>(&child, first);
        }
        Ok(ActorRef(child))
    }

    /// The child with this key.
    #[must_use]
    pub fn child(&self, key: &str) -> Option<ActorRef<A::Msg>> {
        AnyRef(self.cell.node.child(&Key::from(key))?).downcast()
    }

    /// All children, in the order of their start.
    #[must_use]
    pub fn children(&self) -> Vec<ActorRef<A::Msg>> {
        let all = self.cell.node.children();
        all.into_iter()
            .filter_map(|cell| AnyRef(cell).downcast())
            .collect()
    }

    /// Ends a child for good and waits for its end; false if there is none with this key.
    pub async fn terminate_child(&self, key: &str) -> bool {
        let Some(cell) = self.cell.node.child(&Key::from(key)) else {
            return false;
        };
        self.end_child(cell).await;
        true
    }

    async fn end_child(&self, cell: Arc<dyn AnyCell>) {
        let kept = self.table.state.lock().children.remove(cell.node().id);
        drop(kept);
        run::end_child(&self.cell.node, &cell).await;
    }

    /// How many children there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cell.node.children.len()
    }

    /// Whether there is no child.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks the supervisor to stop, and so all its children.
    pub fn stop(&self) {
        self.erase().stop();
    }

    /// Waits for the supervisor's end, over all restarts.
    pub async fn stopped(&self) -> Exit {
        self.erase().stopped().await
    }

    /// Where the supervisor lives in the tree.
    #[must_use]
    pub fn path(&self) -> Path {
        self.cell.node.path()
    }

    /// The same address without its type.
    #[must_use]
    pub fn erase(&self) -> AnyRef {
        AnyRef(Arc::<Cell<DynamicMsg>>::clone(&self.cell))
    }
}

impl<A: Actor> From<&DynamicRef<A>> for AnyRef {
    fn from(dynamic: &DynamicRef<A>) -> Self {
        dynamic.erase()
    }
}

/// Puts the table where addresses without a type find it, and start children with it.
fn attach<A: Actor>(cell: &Cell<DynamicMsg>, table: &Arc<Table<A>>) {
    cell.node.children.open_to_others();
    cell.node.attach(Arc::<Table<A>>::clone(table));
}

/// The wait before the restart of a child is over.
pub(crate) struct DynamicMsg(ActorId);

/// The actor behind a [`DynamicRef`].
pub(crate) struct DynamicActor<A: Actor>(Arc<Table<A>>);

impl<A: Actor> Actor for DynamicActor<A> {
    type Msg = DynamicMsg;
    type Args = Arc<Table<A>>;
    type Error = Infallible;

    async fn pre_start(table: Arc<Table<A>>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        attach(&cx.cell(), &table);
        table.renew();
        table.forget();
        cx.node().oversee(Arc::<Table<A>>::clone(&table));
        cx.node().children.stop_together();
        Ok(Self(table))
    }

    async fn handle(
        &mut self,
        DynamicMsg(id): DynamicMsg,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let mut state = self.0.state.lock();
        let kept = state.children.get_mut(id);
        if let Some(kept) = kept.filter(|kept| !kept.fact.running) {
            kept.relaunch();
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::ChildEnded { actor, .. } = signal {
            self.child_ended(actor, cx);
        }
        Ok(())
    }
}

impl<A: Actor> Table<A> {
    /// Forgets the restarts of an earlier incarnation.
    fn renew(&self) {
        self.state.lock().policy = self.fresh.clone();
    }

    /// Forgets the children that have ended with an incarnation. Those that callers started since
    /// stay.
    fn forget(&self) {
        let mut state = self.state.lock();
        let ended = state.children.extract(|kept| kept.cell.node.is_over());
        drop(state);
        drop(ended);
    }
}

impl<A: Actor> Drop for DynamicActor<A> {
    fn drop(&mut self) {
        // Arguments may lead back to the table.
        self.0.forget();
    }
}

impl<A: Actor> Overseer for Table<A> {
    fn succeeds(
        &self,
        supervisor: &Node,
        child: &Node,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // A pause is the supervisor's to wait for; one that ends its children wants no new ones.
        if state.policy.pauses() || supervisor.children.is_shut() {
            return false;
        }
        let Some(kept) = state.children.get_mut(child.id) else {
            return false;
        };
        taken(&kept.args, take) && state.policy.succeeds(&mut kept.fact, exit, child)
    }

    fn keeps(&self, child: &Node) -> bool {
        self.state.lock().children.get_mut(child.id).is_some()
    }

    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> Answer {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // A pause is the supervisor's to wait for; one that ends its children wants no new ones.
        if state.policy.pauses() || supervisor.children.is_shut() {
            return Answer::Tell;
        }
        let Some(kept) = state.children.get_mut(child.node().id) else {
            return Answer::Tell;
        };
        // Without a pause there is nothing to draw.
        let (now, seed) = (|| supervisor.shared.now(), 0);
        match state.policy.judge(&mut kept.fact, exit, now, seed) {
            Verdict::Restart { .. } => {
                // Arguments are cloned, which is foreign code.
                let launched = catch_unwind(AssertUnwindSafe(|| kept.prepare()));
                kept.fact.running = true;
                drop(guard);
                Answer::to(launched)
            }
            Verdict::Escalate => {
                kept.fact.running = true;
                Answer::Tell
            }
            Verdict::Nothing | Verdict::Remove => {
                let kept = state.children.remove(child.node().id);
                drop(guard);
                drop(kept);
                cell::finish(child, exit, None);
                Answer::Done
            }
        }
    }
}

impl<A: Actor> DynamicActor<A> {
    fn child_ended(&self, id: ActorId, cx: &mut Context<Self>) {
        let mut guard = self.0.state.lock();
        let state = &mut *guard;
        let Some(kept) = state.children.get_mut(id) else {
            return;
        };
        let node = &kept.cell.node;
        if !kept.fact.running || node.phase() != Phase::Down {
            return;
        }
        let exit = node.last_exit().unwrap_or(Exit::Shutdown);
        let (now, seed) = (|| cx.now(), node.shared.next_seed());
        match state.policy.judge(&mut kept.fact, &exit, now, seed) {
            Verdict::Restart { after } if after.is_zero() => {
                kept.relaunch();
            }
            Verdict::Restart { after } => {
                cx.send_after(after, DynamicMsg(id));
            }
            Verdict::Nothing | Verdict::Remove => {
                let kept = state.children.remove(id);
                drop(guard);
                if let Some(kept) = kept {
                    let cell: Arc<dyn AnyCell> = kept.cell;
                    cell::finish(&cell, &exit, None);
                }
            }
            Verdict::Escalate => {
                let child = node.path();
                drop(guard);
                let node = cx.node();
                node.shared
                    .events
                    .emit(Count::Escalated, || Event::Escalated {
                        path: node.path(),
                        exit: exit.clone(),
                    });
                cx.leave(&Exit::Escalated {
                    child,
                    exit: Arc::new(exit),
                });
            }
        }
    }
}
