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
use crate::cell::{self, ActorCell, ActorCore, ActorId, ErasedCell, LaneSink, LinkEnd, Owner};
use crate::clock;
use crate::exit::Exit;
use crate::mailbox::{FastTake, MailboxState, Receiver, SystemMessage};
use crate::monitor::{MonitorId, Signal};
use crate::notifier::Notifier;
use crate::path::{ActorPath, Key};
use crate::reply::{Completion, ReplyLane};
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
    cell: HostRef<ActorCell<A::Msg>>,
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
    items_since_clock_check: u32,
    tasks: Vec<OwnedTask>,
    next_task: u64,
    pipes: Pipes,
    monitors: FxHashMap<MonitorId, Weak<dyn ErasedCell>>,
    sources: OwnedSources,
    /// The exit that the actor itself asked for, unless it is [`Exit::Normal`].
    exit: Option<Exit>,
    /// Number of messages that are lost if the incarnation ends in a handler.
    messages_at_risk: u64,
}

impl<M> Default for IncarnationState<M> {
    fn default() -> Self {
        Self {
            timers: Exclusive::new(Timers::new()),
            items_since_clock_check: 0,
            tasks: Vec::new(),
            next_task: 0,
            pipes: Pipes::new(),
            monitors: FxHashMap::default(),
            sources: OwnedSources::default(),
            exit: None,
            messages_at_risk: 1,
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
        write!(f, "Context({})", self.cell.core.path())
    }
}

impl<A: Actor> Context<A> {
    pub(crate) fn new(cell: HostRef<ActorCell<A::Msg>>, incarnation: u32) -> Self {
        Self {
            incarnation,
            receiver: Exclusive::new(Receiver::new(cell.core.shared.scheduler.has_beat())),
            state: None,
            exit_requested: false,
            handling: false,
            cell,
        }
    }

    /// Returns `true` if everything that belonged to the incarnation was released.
    pub(crate) const fn is_released(&self) -> bool {
        self.state.is_none()
    }

    /// Turns this into the context of the next incarnation, once the last one has ended. Returns
    /// `true` if the last one had been told to stop.
    pub(crate) fn begin_next_incarnation(&mut self) -> bool {
        let (incarnation, stopped) = self
            .cell
            .mailbox
            .begin_next_incarnation(self.receiver.get_mut());
        self.incarnation = incarnation;
        self.exit_requested = false;
        self.handling = false;
        stopped
    }

    fn state(&mut self) -> &mut IncarnationState<A::Msg> {
        self.state.get_or_insert_default()
    }

    pub(crate) fn node(&self) -> &ActorCore {
        &self.cell.core
    }

    pub(crate) fn cell_ref(&self) -> &ActorCell<A::Msg> {
        &self.cell
    }

    pub(crate) fn cell(&self) -> Arc<ActorCell<A::Msg>> {
        self.cell.share()
    }

    pub(crate) const fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub(crate) fn erased(&self) -> Arc<dyn ErasedCell> {
        self.cell.share()
    }

    /// Returns the actor's own address.
    #[must_use]
    pub fn actor_ref(&self) -> ActorRef<A::Msg> {
        ActorRef(self.cell.share())
    }

    /// Returns the system that the actor belongs to.
    #[must_use]
    pub fn system(&self) -> ActorSystem {
        ActorSystem::from_shared(&self.cell.core.shared)
    }

    /// Returns the actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.cell.core.id
    }

    /// Returns the actor's path in the tree.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.cell.core.path()
    }

    /// Returns the current time of the system's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.cell.core.shared.now()
    }

    /// Returns a seed for random numbers, such as the jitter of a backoff. All such seeds follow
    /// from the seed of the system, so a test that replays a schedule gets the same ones.
    #[must_use]
    pub fn next_seed(&self) -> u64 {
        self.cell.core.shared.next_seed()
    }

    /// Returns the number of messages that wait.
    #[must_use]
    pub fn mailbox_len(&self) -> usize {
        self.cell.mailbox.stats().depth
    }

    /// Returns `true` if messages wait. Usually cheaper than [`Self::mailbox_len`], which locks the
    /// mailbox.
    #[must_use]
    pub fn has_messages(&self) -> bool {
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
            cell: self.erased(),
            incarnation: self.incarnation,
        };
        self.cell.core.shared.spawn::<B>(owner, &key.into(), args)
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
            cell: self.erased(),
            incarnation: self.incarnation,
        };
        let shared = Arc::clone(&self.cell.core.shared);
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
            cell: self.erased(),
            incarnation: self.incarnation,
        };
        DynamicRef::start(&self.cell.core.shared, owner, &key.into(), dynamic)
    }

    /// Monitors an actor: exactly one [`Signal::Down`] arrives when it ends, or at once if it has
    /// ended.
    pub fn monitor(&mut self, actor: impl Into<AnyRef>) -> MonitorId {
        let AnyRef(target) = actor.into();
        let id = self.cell.core.shared.next_monitor();
        let any = self.erased();
        self.state().monitors.insert(id, Arc::downgrade(&target));
        if let Some(exit) = target
            .core()
            .add_monitor(id, Arc::downgrade(&any), self.incarnation)
        {
            let down = cell::down_signal(id, target.core(), &exit);
            any.push_system(SystemMessage::Signal(down), Some(self.incarnation));
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
            target.core().remove_monitor(id);
        }
    }

    /// Links this incarnation to another actor: when an incarnation of either ends abnormally, the
    /// other one ends too, with [`Exit::Linked`].
    pub fn link(&mut self, actor: impl Into<AnyRef>) {
        let AnyRef(other) = actor.into();
        let any = self.erased();
        if other.core().id == any.core().id {
            return;
        }
        let mine = LinkEnd {
            id: self.id(),
            cell: Arc::downgrade(&any),
            incarnation: self.incarnation,
        };
        if let Some(exit) = other.core().link(mine) {
            if !exit.is_orderly() {
                let exit = Exit::Linked {
                    path: other.core().path(),
                    exit: Arc::new(exit),
                };
                any.push_system(SystemMessage::Stop(exit), Some(self.incarnation));
            }
            return;
        }
        let theirs = LinkEnd {
            id: other.core().id,
            cell: Arc::downgrade(&other),
            incarnation: other.incarnation(),
        };
        self.cell.core.link(theirs);
    }

    /// Removes a link made by [`Context::link`].
    pub fn unlink(&mut self, actor: impl Into<AnyRef>) {
        let AnyRef(other) = actor.into();
        other.core().unlink(self.id());
        self.cell.core.unlink(other.core().id);
    }

    /// Sets how many messages are lost if this incarnation ends in a handler; the default is one.
    /// An actor that keeps the message that it is handling for its next incarnation sets 0 before
    /// it fails; an actor that took several messages sets their number.
    pub fn set_messages_at_risk(&mut self, messages: u64) {
        self.state().messages_at_risk = messages;
    }

    /// Returns the number of messages that are lost if a handler ends the incarnation.
    pub(crate) fn messages_at_risk(&self) -> u64 {
        self.state
            .as_ref()
            .map_or(1, |state| state.messages_at_risk)
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
        let cell = Arc::downgrade(&self.erased());
        let incarnation = self.incarnation;
        let number = self.next_task_number();
        let place = || self.cell.core.path();
        let handle = self.cell.core.shared.scheduler.spawn(place, async move {
            let outcome = run::catch_panic(AssertUnwindSafe(future)).await;
            let Some(cell) = cell.upgrade() else { return };
            let news = match outcome {
                Ok(()) => SystemMessage::TaskEnded(number),
                Err(message) => SystemMessage::Stop(Exit::Panicked(message)),
            };
            cell.push_system(news, Some(incarnation));
        });
        self.state().tasks.push(OwnedTask {
            number,
            name,
            handle,
        });
    }

    /// Returns a handle by which anybody can notify this incarnation, without a message.
    #[must_use]
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::downgrade(&self.erased()), self.incarnation)
    }

    /// Creates a lane: a source of replies whose answers come back to this incarnation as messages.
    #[must_use]
    pub fn lane<T: Send + 'static>(&self) -> ReplyLane<T>
    where
        A::Msg: Accepts<Completion<T>>,
    {
        ReplyLane::new(Arc::new(LaneSink {
            cell: Arc::downgrade(&self.cell()),
            incarnation: self.incarnation,
            wrap: A::Msg::wrap,
        }))
    }

    /// Creates a stream that this incarnation feeds and ends.
    #[must_use]
    pub fn source<T: Clone + Send + 'static>(&mut self, spec: SourceSpec) -> Source<T> {
        let owner = self.erased();
        Source::new(spec, owner, &mut self.state().sources)
    }

    /// Records why the incarnation is ending, for the readers of its streams.
    pub(crate) fn set_exit_reason(&self, exit: &Exit) {
        if let Some(state) = &self.state {
            state.sources.set_exit_reason(exit);
        }
    }

    /// Returns a new number for a task or a pipe.
    fn next_task_number(&mut self) -> u64 {
        let state = self.state();
        state.next_task += 1;
        state.next_task
    }

    /// Returns `true` if more than the mailbox has to be checked.
    #[inline(always)]
    pub(crate) const fn needs_slow_path(&self) -> bool {
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
    pub(crate) fn try_take<'a>(
        &mut self,
        state: Option<StrandGuard<'a, MailboxState<A::Msg>>>,
        message: &mut Option<OpaqueMessage<A::Msg>>,
    ) -> FastTake<'a, A::Msg> {
        let receiver = self.receiver.get_mut();
        receiver.take_fast(&self.cell.mailbox, state, message)
    }

    /// Updates the records of monitors, tasks and pipes. Returns the signal for the actor, or
    /// `None` if there is none to deliver, for example because it is out of date.
    pub(crate) fn signal(&mut self, news: SystemMessage) -> Option<Signal> {
        match news {
            SystemMessage::Signal(signal) => match &signal {
                Signal::Down { id, .. } => self.state.as_mut()?.monitors.remove(id).map(|_| signal),
                Signal::ChildEnded { .. }
                | Signal::TaskEnded { .. }
                | Signal::PipePanicked { .. }
                | Signal::Notified => Some(signal),
            },
            SystemMessage::TaskEnded(number) => {
                let tasks = &mut self.state.as_mut()?.tasks;
                let place = tasks.iter().position(|task| task.number == number)?;
                let name = tasks.swap_remove(place).name;
                Some(Signal::TaskEnded { name })
            }
            SystemMessage::PipePanicked(number, panic) => self.pipe_panicked(number, panic),
            SystemMessage::Notified => Some(Signal::Notified),
            SystemMessage::Stop(_) | SystemMessage::Panic(_) => None,
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
                    target.core().remove_monitor(id);
                }
            }
            state.timers.into_inner().discard();
        }
    }

    /// Puts back the messages that the incarnation took out of the mailbox and did not handle.
    pub(crate) fn return_batch(&mut self) {
        self.receiver.get_mut().return_batch(&self.cell.mailbox);
    }
}
