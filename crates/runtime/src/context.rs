//! The context of an incarnation: its access to the runtime.

mod exit;
mod pipe;
mod sources;

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::{Accepts, ActorRef, AnyRef};
use crate::cell::{self, ActorId, AnyCell, Cell, LaneSink, LinkEnd, Node, Owner};
use crate::clock;
use crate::exit::Exit;
use crate::mailbox::{LookResult, MailboxState, Receiver, System};
use crate::monitor::{MonitorId, Signal};
use crate::path::{Key, Path};
use crate::reply::{Completion, Lane};
use crate::run;
use crate::schedule::TaskHandle;
use crate::schedule::strand::{Exclusive, HostRef, OpaqueMessage, StrandGuard};
use crate::stream::{OwnedSources, Source, SourceSpec};
use crate::supervision::{Dynamic, DynamicRef, Supervisor, SupervisorRef};
use crate::system::{ActorSystem, StartError};
use crate::timer::{TimerKey, Timers};
use pipe::Pipes;
pub use pipe::{PipeId, TooManyPipes};

/// An actor's access to the runtime, passed to every hook.
///
/// Everything that is created through it (timers, tasks, monitors, links, children, lanes) belongs
/// to the incarnation and ends with it.
pub struct Context<A: Actor> {
    cell: HostRef<Cell<A::Msg>>,
    incarnation: u32,
    /// In an `Exclusive`, so that contexts are `Sync` even if messages are not.
    receiver: Exclusive<Receiver<A::Msg>>,
    /// State that most incarnations do not need, allocated on first use.
    state: Option<Box<IncarnationState<A::Msg>>>,
    /// Set by the actor itself: end after this hook.
    exit_requested: bool,
    /// Set while a message is being handled, and still set if the hook did not return.
    pub(crate) handling: bool,
}

/// Everything that an incarnation holds besides its mailbox.
struct IncarnationState<M> {
    timers: Exclusive<Timers<M>>,
    /// Number of items since the clock was last compared with the earliest timer, modulo
    /// `sources::TIMER_STRIDE`: at 0 it is compared before the next item.
    since_timers: u32,
    tasks: Vec<OwnedTask>,
    next_task: u64,
    pipes: Pipes,
    monitors: FxHashMap<MonitorId, Weak<dyn AnyCell>>,
    sources: OwnedSources,
    /// The exit that the actor itself asked for, unless it is [`Exit::Normal`].
    exit: Option<Exit>,
    /// Number of messages that are lost if the incarnation ends in a handler.
    at_stake: u64,
}

impl<M> Default for IncarnationState<M> {
    fn default() -> Self {
        Self {
            timers: Exclusive::new(Timers::new()),
            since_timers: 0,
            tasks: Vec::new(),
            next_task: 0,
            pipes: Pipes::new(),
            monitors: FxHashMap::default(),
            sources: OwnedSources::default(),
            exit: None,
            at_stake: 1,
        }
    }
}

struct OwnedTask {
    number: u64,
    name: Arc<str>,
    handle: TaskHandle,
}

impl<A: Actor> fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({})", self.cell.node.path())
    }
}

impl<A: Actor> Context<A> {
    pub(crate) fn new(cell: HostRef<Cell<A::Msg>>, incarnation: u32) -> Self {
        Self {
            incarnation,
            receiver: Exclusive::new(Receiver::new(cell.node.shared.scheduler.is_timed())),
            state: None,
            exit_requested: false,
            handling: false,
            cell,
        }
    }

    /// Returns `true` if everything that belonged to the incarnation was released.
    pub(crate) const fn has_ended(&self) -> bool {
        self.state.is_none()
    }

    /// Turns this into the context of the next incarnation, once the last one has ended. Returns
    /// `true` if the last one had been told to stop.
    pub(crate) fn renew(&mut self) -> bool {
        let (incarnation, stopped) = self.cell.mailbox.renew(self.receiver.get_mut());
        self.incarnation = incarnation;
        self.exit_requested = false;
        self.handling = false;
        stopped
    }

    fn state(&mut self) -> &mut IncarnationState<A::Msg> {
        self.state.get_or_insert_default()
    }

    pub(crate) fn node(&self) -> &Node {
        &self.cell.node
    }

    pub(crate) fn cell_ref(&self) -> &Cell<A::Msg> {
        &self.cell
    }

    pub(crate) fn cell(&self) -> Arc<Cell<A::Msg>> {
        self.cell.share()
    }

    pub(crate) const fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub(crate) fn any(&self) -> Arc<dyn AnyCell> {
        self.cell.share()
    }

    /// Returns the actor's own address.
    #[must_use]
    pub fn me(&self) -> ActorRef<A::Msg> {
        ActorRef(self.cell.share())
    }

    /// Returns the system that the actor belongs to.
    #[must_use]
    pub fn system(&self) -> ActorSystem {
        ActorSystem::from_shared(&self.cell.node.shared)
    }

    /// Returns the actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.cell.node.id
    }

    /// Returns the actor's path in the tree.
    #[must_use]
    pub fn path(&self) -> Path {
        self.cell.node.path()
    }

    /// Returns the current time of the system's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.cell.node.shared.now()
    }

    /// Returns the number of messages that wait.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.cell.mailbox.stats().depth
    }

    /// Returns `true` if messages wait. Usually cheaper than [`Self::depth`], which locks the
    /// mailbox.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.cell.mailbox.has_more()
    }

    /// Starts a child. The child ends before this actor does, and is not restarted; for that, give
    /// it a supervisor with [`Context::supervise`].
    ///
    /// # Errors
    /// Fails if the key is taken, or if this actor is ending.
    pub fn spawn<B: Actor>(
        &mut self,
        key: impl Into<Key>,
        args: B::Args,
    ) -> Result<ActorRef<B::Msg>, StartError> {
        let owner = Owner::Parent {
            cell: self.any(),
            incarnation: self.incarnation,
        };
        self.cell.node.shared.spawn::<B>(owner, &key.into(), args)
    }

    /// Starts a supervisor below this actor and waits until its children have started.
    ///
    /// # Errors
    /// Fails if the key is taken, if this actor is ending, or if a child ends while it starts.
    pub async fn supervise(
        &mut self,
        key: impl Into<Key>,
        supervisor: Supervisor,
    ) -> Result<SupervisorRef, StartError> {
        let owner = Owner::Parent {
            cell: self.any(),
            incarnation: self.incarnation,
        };
        let shared = Arc::clone(&self.cell.node.shared);
        shared.supervise(owner, &key.into(), supervisor).await
    }

    /// Starts a supervisor of many children of one kind below this actor.
    ///
    /// # Errors
    /// Fails if the key is taken, or if this actor is ending.
    pub fn dynamic<B: Actor>(
        &mut self,
        key: impl Into<Key>,
        dynamic: Dynamic<B>,
    ) -> Result<DynamicRef<B>, StartError> {
        let owner = Owner::Parent {
            cell: self.any(),
            incarnation: self.incarnation,
        };
        DynamicRef::start(&self.cell.node.shared, owner, &key.into(), dynamic)
    }

    /// Monitors an actor: exactly one [`Signal::Down`] arrives when it ends, or at once if it has
    /// ended.
    pub fn monitor(&mut self, actor: impl Into<AnyRef>) -> MonitorId {
        let AnyRef(target) = actor.into();
        let id = self.cell.node.shared.next_monitor();
        let any = self.any();
        self.state().monitors.insert(id, Arc::downgrade(&target));
        if let Some(exit) = target
            .node()
            .watch(id, Arc::downgrade(&any), self.incarnation)
        {
            let down = cell::down(id, target.node(), &exit);
            any.system(System::Signal(down), Some(self.incarnation));
        }
        id
    }

    /// Ends a monitor; it sends no further [`Signal::Down`].
    pub fn demonitor(&mut self, id: MonitorId) {
        if let Some(target) = self
            .state()
            .monitors
            .remove(&id)
            .and_then(|weak| weak.upgrade())
        {
            target.node().unwatch(id);
        }
    }

    /// Links this incarnation to another actor: when an incarnation of either ends abnormally, the
    /// other one ends too, with [`Exit::Linked`].
    pub fn link(&mut self, actor: impl Into<AnyRef>) {
        let AnyRef(other) = actor.into();
        let any = self.any();
        if other.node().id == any.node().id {
            return;
        }
        let mine = LinkEnd {
            id: self.id(),
            cell: Arc::downgrade(&any),
            incarnation: self.incarnation,
        };
        if let Some(exit) = other.node().link(mine) {
            if !exit.is_orderly() {
                let exit = Exit::Linked {
                    path: other.node().path(),
                    exit: Arc::new(exit),
                };
                any.system(System::Stop(exit), Some(self.incarnation));
            }
            return;
        }
        let theirs = LinkEnd {
            id: other.node().id,
            cell: Arc::downgrade(&other),
            incarnation: other.incarnation(),
        };
        self.cell.node.link(theirs);
    }

    /// Removes a link made by [`Context::link`].
    pub fn unlink(&mut self, actor: impl Into<AnyRef>) {
        let AnyRef(other) = actor.into();
        other.node().unlink(self.id());
        self.cell.node.unlink(other.node().id);
    }

    /// Sets how many messages are lost if this incarnation ends in a handler; the default is one.
    /// An actor that keeps the message that it is handling for its next incarnation sets 0 before
    /// it fails; an actor that took several messages sets their number.
    pub fn set_at_stake(&mut self, messages: u64) {
        self.state().at_stake = messages;
    }

    /// Returns the number of messages that are lost if a handler ends the incarnation.
    pub(crate) fn at_stake(&self) -> u64 {
        self.state.as_ref().map_or(1, |state| state.at_stake)
    }

    /// Sends a message to this incarnation after a delay.
    pub fn send_after<T>(&mut self, after: Duration, message: T) -> TimerKey
    where
        A::Msg: Accepts<T>,
    {
        let at = clock::saturating_add(self.now(), after);
        self.state()
            .timers
            .get_mut()
            .once(at, A::Msg::wrap(message))
    }

    /// Sends messages to this incarnation periodically. Ticks that a busy actor missed are skipped.
    pub fn send_every<T>(
        &mut self,
        period: Duration,
        mut make: impl FnMut() -> T + Send + 'static,
    ) -> TimerKey
    where
        A::Msg: Accepts<T>,
    {
        let first = clock::saturating_add(self.now(), period);
        let make = move || A::Msg::wrap(make());
        self.state()
            .timers
            .get_mut()
            .every(first, period, Box::new(make))
    }

    /// Cancels a timer. Returns `true` if it was still pending.
    pub fn cancel(&mut self, timer: TimerKey) -> bool {
        self.state().timers.get_mut().cancel(timer)
    }

    /// Runs a future beside the actor, as a task that ends with the incarnation at the latest.
    ///
    /// The actor receives [`Signal::TaskEnded`] when the task returns; a panic of the task ends the
    /// actor.
    pub fn task(
        &mut self,
        name: impl Into<Arc<str>>,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        let name = name.into();
        let cell = Arc::downgrade(&self.any());
        let incarnation = self.incarnation;
        let number = self.next_task();
        let place = || self.cell.node.path();
        let handle = self.cell.node.shared.scheduler.spawn(place, async move {
            let outcome = run::caught(AssertUnwindSafe(future)).await;
            let Some(cell) = cell.upgrade() else { return };
            let news = match outcome {
                Ok(()) => System::TaskEnded(number),
                Err(message) => System::Stop(Exit::Panicked(message)),
            };
            cell.system(news, Some(incarnation));
        });
        self.state().tasks.push(OwnedTask {
            number,
            name,
            handle,
        });
    }

    /// Creates a lane: a source of replies whose answers come back to this incarnation as messages.
    #[must_use]
    pub fn lane<T: Send + 'static>(&self) -> Lane<T>
    where
        A::Msg: Accepts<Completion<T>>,
    {
        Lane::new(Arc::new(LaneSink {
            cell: Arc::downgrade(&self.cell()),
            incarnation: self.incarnation,
            wrap: A::Msg::wrap,
        }))
    }

    /// Creates a stream that this incarnation feeds and ends.
    #[must_use]
    pub fn source<T: Clone + Send + 'static>(&mut self, spec: SourceSpec) -> Source<T> {
        let owner = self.any();
        Source::new(spec, owner, &mut self.state().sources)
    }

    /// Records why the incarnation is ending, for the readers of its streams.
    pub(crate) fn set_exit_reason(&self, exit: &Exit) {
        if let Some(state) = &self.state {
            state.sources.set_exit_reason(exit);
        }
    }

    /// Returns a new number for a task or a pipe.
    fn next_task(&mut self) -> u64 {
        let state = self.state();
        state.next_task += 1;
        state.next_task
    }

    /// Returns `true` if more than the mailbox has to be checked.
    #[inline(always)]
    pub(crate) const fn is_special(&self) -> bool {
        self.exit_requested || self.state.is_some()
    }

    /// Returns `true` if a message can be taken, as far as the mailbox is concerned.
    #[inline(always)]
    pub(crate) fn is_ready(&mut self) -> bool {
        self.receiver.get_mut().is_ready(&self.cell.mailbox)
    }

    /// Takes the next of the messages that are ready.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<OpaqueMessage<A::Msg>> {
        self.receiver.get_mut().take(&self.cell.mailbox)
    }

    /// Looks for messages, provided that nothing else has to be checked.
    #[inline(always)]
    pub(crate) fn look<'a>(
        &mut self,
        lanes: Option<StrandGuard<'a, MailboxState<A::Msg>>>,
        message: &mut Option<OpaqueMessage<A::Msg>>,
    ) -> LookResult<'a, A::Msg> {
        let receiver = self.receiver.get_mut();
        receiver.look(&self.cell.mailbox, lanes, message)
    }

    /// Updates the records of monitors, tasks and pipes. Returns the signal for the actor, or
    /// `None` if there is none to deliver, for example because it is out of date.
    pub(crate) fn signal(&mut self, news: System) -> Option<Signal> {
        match news {
            System::Signal(signal) => match &signal {
                Signal::Down { id, .. } => self.state.as_mut()?.monitors.remove(id).map(|_| signal),
                Signal::ChildEnded { .. }
                | Signal::TaskEnded { .. }
                | Signal::PipePanicked { .. } => Some(signal),
            },
            System::TaskEnded(number) => {
                let tasks = &mut self.state.as_mut()?.tasks;
                let place = tasks.iter().position(|task| task.number == number)?;
                let name = tasks.swap_remove(place).name;
                Some(Signal::TaskEnded { name })
            }
            System::PipePanicked(number, panic) => self.pipe_panicked(number, panic),
            System::Stop(_) | System::Panic(_) => None,
        }
    }

    /// Returns `true` if there are tasks or pipes that have not ended yet.
    pub(crate) fn has_tasks(&self) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| !(state.tasks.is_empty() && state.pipes.is_empty()))
    }

    /// Aborts the incarnation's tasks and pipes, and waits until they have ended.
    pub(crate) async fn end_tasks(&mut self) {
        let Some(state) = &mut self.state else { return };
        for task in &state.tasks {
            task.handle.abort();
        }
        state.pipes.values().for_each(TaskHandle::abort);
        for task in state.tasks.drain(..) {
            task.handle.await;
        }
        while let Some((_, pipe)) = state.pipes.pop_first() {
            pipe.await;
        }
    }

    /// Releases everything that belongs to the incarnation.
    pub(crate) fn end(&mut self) {
        if let Some(state) = self.state.take() {
            for (id, target) in state.monitors {
                if let Some(target) = target.upgrade() {
                    target.node().unwatch(id);
                }
            }
            state.timers.into_inner().end();
        }
    }

    /// Puts back the messages that the incarnation took out of the mailbox and did not handle.
    pub(crate) fn give_back(&mut self) {
        self.receiver.get_mut().end(&self.cell.mailbox);
    }
}
