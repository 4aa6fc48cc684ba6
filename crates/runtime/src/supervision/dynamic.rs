//! A supervisor of many children of one type that come and go.
//!
//! Its child table is shared with every address of the supervisor: starting a child is a call on
//! the table, not a message. The strategy is one-for-one, and a stop ends all children at once.

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
use crate::cell::{self, ActorCell, ActorCore, ActorId, ErasedCell, Owner, Phase};
use crate::context::Context;
use crate::exit::Exit;
use crate::mailbox::{HomedRunnable, MailboxSpec};
use crate::monitor::Signal;
use crate::path::{ActorPath, Key};
use crate::run;
use crate::supervision::backoff::Backoff;
use crate::supervision::child_table::{
    ExitOutcome, RestartPolicy, escalate, pass_args, report_restart,
};
use crate::supervision::indexed_slab::{HasActorId, IndexedSlab};
use crate::supervision::intensity::{DEFAULT_INTENSITY, RestartIntensity};
use crate::supervision::spec::{Restart, Shutdown, Strategy};
use crate::supervision::strategy::{ChildState, ChildVerdict, SupervisionPolicy};
use crate::system::{CellSettings, StartError, SystemState};

/// The specification of a dynamic supervisor with children of type `A`.
///
/// By default children are temporary, have five seconds to stop and are not limited in number, and
/// the supervisor allows three restarts within five seconds.
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
    /// Creates the specification of a dynamic supervisor.
    pub const fn new() -> Self {
        Self {
            restart: Restart::Temporary,
            shutdown: Shutdown::Graceful(Duration::from_secs(5)),
            intensity: DEFAULT_INTENSITY,
            backoff: Backoff::NONE,
            max_children: usize::MAX,
            mailbox: None,
            kind: std::marker::PhantomData,
        }
    }

    /// Sets the exits after which a child is restarted.
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Sets how long a child may take to stop.
    pub const fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Sets how many restarts the supervisor carries out within a period. One more ends its
    /// children and the supervisor itself. [`u32::MAX`] means no limit.
    pub const fn intensity(mut self, restarts: u32, period: Duration) -> Self {
        self.intensity = (restarts, period);
        self
    }

    /// Sets the delay before a restart.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Limits the number of children that exist at the same time.
    pub const fn max_children(mut self, limit: usize) -> Self {
        self.max_children = limit;
        self
    }

    /// Replaces the mailbox that the actor type of the children asks for.
    pub const fn mailbox(mut self, mailbox: MailboxSpec) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    pub(crate) fn into_table(self) -> Arc<DynamicTable<A>> {
        let policy = SupervisionPolicy {
            strategy: Strategy::OneForOne,
            intensity: RestartIntensity::new(self.intensity),
            backoff: self.backoff,
        };
        Arc::new(DynamicTable {
            restart: self.restart,
            settings: CellSettings {
                shutdown: self.shutdown,
                mailbox: self.mailbox.unwrap_or(A::MAILBOX),
                limit: self.max_children,
                place: None,
            },
            initial_policy: policy.clone(),
            state: Mutex::new(DynamicState {
                policy,
                children: IndexedSlab::default(),
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

/// The child table, shared by the supervisor and its addresses.
pub(crate) struct DynamicTable<A: Actor> {
    restart: Restart,
    settings: CellSettings,
    /// The policy that a new incarnation of the supervisor starts with.
    initial_policy: SupervisionPolicy,
    state: Mutex<DynamicState<A>>,
}

struct DynamicState<A: Actor> {
    policy: SupervisionPolicy,
    /// Holds only children that may be restarted; nothing is stored for temporary ones.
    children: IndexedSlab<DynamicChild<A>>,
}

struct DynamicChild<A: Actor> {
    cell: Arc<ActorCell<A::Msg>>,
    args: A::Args,
    state: ChildState,
}

impl<A: Actor> HasActorId for DynamicChild<A> {
    fn id(&self) -> ActorId {
        self.cell.core.id
    }
}

impl<A: Actor> DynamicChild<A> {
    /// Prepares the next incarnation, ready to be scheduled.
    fn prepare(&mut self) -> Option<HomedRunnable> {
        report_restart(&self.cell.core, None);
        let ready = run::prepare::<A>(&self.cell, self.args.clone());
        self.state.running = true;
        ready
    }

    fn relaunch(&mut self) {
        if let Some((ready, place)) = self.prepare() {
            self.cell.core.shared.scheduler.push(ready, place);
        }
    }
}

/// The address of a dynamic supervisor.
pub struct DynamicRef<A: Actor> {
    cell: Arc<ActorCell<DelayedRestart>>,
    table: Arc<DynamicTable<A>>,
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
        shared: &Arc<SystemState>,
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
        let cell = shared.create_cell::<DynamicActor<A>>(owner, key, &settings)?;
        cell.core.report_started();
        attach_table(&cell, &table);
        run::launch::<DynamicActor<A>>(&cell, Arc::clone(&table));
        Ok(Self { cell, table })
    }

    /// Returns the dynamic supervisor behind an address, if it is one with children of type `A`.
    pub(crate) fn from_ref(actor: &AnyRef) -> Option<Self> {
        let table = actor.0.core().extension()?.downcast().ok()?;
        let cell = Arc::clone(&actor.0).into_any().downcast().ok()?;
        Some(Self { cell, table })
    }

    /// Starts several children in one call, in order.
    ///
    /// Returns one result per child. A child that cannot be started does not affect the others; to
    /// start all or none, use [`DynamicRef::start_all`].
    ///
    /// # Errors
    /// The individual results are those of [`DynamicRef::start_child`].
    pub fn start_children<K: Into<Key>>(
        &self,
        children: impl IntoIterator<Item = (K, A::Args)>,
    ) -> Vec<Result<ActorRef<A::Msg>, StartError>> {
        let children = children.into_iter();
        children
            .map(|(key, args)| self.start_child(key, args))
            .collect()
    }

    /// Starts several children in one call, all or none.
    ///
    /// If one cannot be started, those started before it are ended, the latest first, and the call
    /// waits until each has ended.
    ///
    /// # Errors
    /// Returns the error of the child that could not be started, as in
    /// [`DynamicRef::start_child`].
    pub async fn start_all<K: Into<Key>>(
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

    /// Starts a child. Messages that are sent to it before it has started wait in its mailbox.
    ///
    /// This is a call, not a message: it waits neither for the supervisor nor for the child.
    /// [`ActorRef::started`] waits for the child and returns an error if it chose not to run. Such
    /// a child is removed whatever its restart kind, and its key is free again.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or taken, if there are too many children, or if the
    /// supervisor is stopping.
    pub fn start_child(
        &self,
        key: impl Into<Key>,
        args: A::Args,
    ) -> Result<ActorRef<A::Msg>, StartError> {
        charge();
        let table = &self.table;
        let cell: Arc<dyn ErasedCell> = Arc::<ActorCell<DelayedRestart>>::clone(&self.cell);
        let incarnation = self.cell.mailbox.incarnation();
        let temporary = table.restart == Restart::Temporary;
        let owner = if temporary {
            Owner::Dynamic { cell }
        } else {
            Owner::Supervisor { cell, incarnation }
        };
        let shared = &self.cell.core.shared;
        let child = shared.create_cell::<A>(owner, &key.into(), &table.settings)?;
        child.core.report_started();
        if temporary {
            run::launch_local::<A>(&child, args);
        } else {
            let mut state = ChildState::new(table.restart);
            state.running = true;
            let first = args.clone();
            let entry = DynamicChild {
                cell: Arc::clone(&child),
                args,
                state,
            };
            // Inserted before the child is launched, so that an early exit finds the entry.
            table.state.lock().children.insert(entry);
            run::launch_local::<A>(&child, first);
        }
        Ok(ActorRef(child))
    }

    /// Returns the child with this key.
    #[must_use]
    pub fn child(&self, key: &str) -> Option<ActorRef<A::Msg>> {
        AnyRef(self.cell.core.child(&Key::from(key))?).downcast()
    }

    /// Returns all children, in start order.
    #[must_use]
    pub fn children(&self) -> Vec<ActorRef<A::Msg>> {
        let all = self.cell.core.children();
        all.into_iter()
            .filter_map(|cell| AnyRef(cell).downcast())
            .collect()
    }

    /// Ends a child for good and waits for it to end. Returns `false` if there is no child with
    /// this key.
    pub async fn terminate_child(&self, key: &str) -> bool {
        let Some(cell) = self.cell.core.child(&Key::from(key)) else {
            return false;
        };
        self.end_child(cell).await;
        true
    }

    async fn end_child(&self, cell: Arc<dyn ErasedCell>) {
        let entry = self.table.state.lock().children.remove(cell.core().id);
        drop(entry);
        run::stop_child(&self.cell.core, &cell).await;
    }

    /// Returns the number of children.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cell.core.children.len()
    }

    /// Returns `true` if there are no children.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks the supervisor to stop, and with it all its children.
    pub fn stop(&self) {
        self.erase().stop();
    }

    /// Waits until the supervisor has ended for good; restarts do not count as its end.
    pub async fn stopped(&self) -> Exit {
        self.erase().stopped().await
    }

    /// Returns the path of the supervisor in the tree.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.cell.core.path()
    }

    /// Returns the same address without its message type.
    #[must_use]
    pub fn erase(&self) -> AnyRef {
        AnyRef(Arc::<ActorCell<DelayedRestart>>::clone(&self.cell))
    }
}

impl<A: Actor> From<&DynamicRef<A>> for AnyRef {
    fn from(dynamic: &DynamicRef<A>) -> Self {
        dynamic.erase()
    }
}

/// Attaches the table to the cell, so that untyped addresses can find it and start children with
/// it.
fn attach_table<A: Actor>(cell: &ActorCell<DelayedRestart>, table: &Arc<DynamicTable<A>>) {
    cell.core.children.allow_concurrent_starts();
    cell.core
        .set_extension(Arc::<DynamicTable<A>>::clone(table));
}

/// Sent by the supervisor to itself when the delay before a child's restart is over.
pub(crate) struct DelayedRestart(ActorId);

/// The actor behind a [`DynamicRef`].
pub(crate) struct DynamicActor<A: Actor>(Arc<DynamicTable<A>>);

impl<A: Actor> Actor for DynamicActor<A> {
    type Msg = DelayedRestart;
    type Args = Arc<DynamicTable<A>>;
    type Error = Infallible;

    async fn pre_start(
        table: Arc<DynamicTable<A>>,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        attach_table(&cx.cell(), &table);
        table.reset_policy();
        table.remove_ended();
        cx.node()
            .set_child_policy(Arc::<DynamicTable<A>>::clone(&table));
        cx.node().children.stop_together();
        Ok(Self(table))
    }

    async fn handle(
        &mut self,
        DelayedRestart(id): DelayedRestart,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let mut state = self.0.state.lock();
        let entry = state.children.get_mut(id);
        if let Some(entry) = entry.filter(|entry| !entry.state.running) {
            entry.relaunch();
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

impl<A: Actor> DynamicTable<A> {
    /// Resets the restart policy for a new incarnation of the supervisor.
    fn reset_policy(&self) {
        self.state.lock().policy = self.initial_policy.clone();
    }

    /// Removes the children that ended with an earlier incarnation of the supervisor. Children that
    /// callers have started since then stay.
    fn remove_ended(&self) {
        let mut state = self.state.lock();
        let ended = state.children.extract(|entry| entry.cell.core.is_ending());
        drop(state);
        drop(ended);
    }
}

impl<A: Actor> Drop for DynamicActor<A> {
    fn drop(&mut self) {
        // The arguments of a child may hold a reference to the table.
        self.0.remove_ended();
    }
}

impl<A: Actor> RestartPolicy for DynamicTable<A> {
    fn restart_in_place(
        &self,
        supervisor: &ActorCore,
        child: &ActorCore,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // Only the supervisor itself can wait out a backoff, and a supervisor that is ending its
        // children must not get new ones.
        if state.policy.has_backoff() || supervisor.children.is_closed() {
            return false;
        }
        let Some(entry) = state.children.get_mut(child.id) else {
            return false;
        };
        pass_args(&entry.args, take) && state.policy.restart_in_place(&mut entry.state, exit, child)
    }

    fn still_wanted(&self, child: &ActorCore) -> bool {
        self.state.lock().children.get_mut(child.id).is_some()
    }

    fn on_child_exit(
        &self,
        supervisor: &ActorCore,
        child: &Arc<dyn ErasedCell>,
        exit: &Exit,
    ) -> ExitOutcome {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // Only the supervisor itself can wait out a backoff, and a supervisor that is ending its
        // children must not get new ones.
        if state.policy.has_backoff() || supervisor.children.is_closed() {
            return ExitOutcome::NotifySupervisor;
        }
        let Some(entry) = state.children.get_mut(child.core().id) else {
            return ExitOutcome::NotifySupervisor;
        };
        // The seed is only used for the jitter of a backoff, and there is none here.
        let (now, seed) = (|| supervisor.shared.now(), 0);
        match state.policy.decide_child(&mut entry.state, exit, now, seed) {
            ChildVerdict::Restart { .. } => {
                // Preparing clones the arguments, which is user code and may panic.
                let launched = catch_unwind(AssertUnwindSafe(|| entry.prepare()));
                entry.state.running = true;
                drop(guard);
                ExitOutcome::from_launch(launched)
            }
            ChildVerdict::Escalate => {
                entry.state.running = true;
                ExitOutcome::NotifySupervisor
            }
            ChildVerdict::LeaveStopped | ChildVerdict::Remove => {
                let entry = state.children.remove(child.core().id);
                drop(guard);
                drop(entry);
                cell::end_actor(child, exit, None);
                ExitOutcome::Done
            }
        }
    }
}

impl<A: Actor> DynamicActor<A> {
    fn child_ended(&self, id: ActorId, cx: &mut Context<Self>) {
        let mut guard = self.0.state.lock();
        let state = &mut *guard;
        let Some(entry) = state.children.get_mut(id) else {
            return;
        };
        let node = &entry.cell.core;
        if !entry.state.running || node.phase() != Phase::Down {
            return;
        }
        let exit = node.last_exit().unwrap_or(Exit::Shutdown);
        let (now, seed) = (|| cx.now(), node.shared.next_seed());
        match state
            .policy
            .decide_child(&mut entry.state, &exit, now, seed)
        {
            ChildVerdict::Restart { after } if after.is_zero() => {
                entry.relaunch();
            }
            ChildVerdict::Restart { after } => {
                cx.send_after(after, DelayedRestart(id));
            }
            ChildVerdict::LeaveStopped | ChildVerdict::Remove => {
                let entry = state.children.remove(id);
                drop(guard);
                if let Some(entry) = entry {
                    let cell: Arc<dyn ErasedCell> = entry.cell;
                    cell::end_actor(&cell, &exit, None);
                }
            }
            ChildVerdict::Escalate => {
                let child = node.path();
                drop(guard);
                escalate(child, exit, cx);
            }
        }
    }
}
