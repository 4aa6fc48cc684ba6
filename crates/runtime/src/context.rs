//! What an incarnation can do: its own place in the system.

mod leaving;
mod pipe;

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::{Accepts, ActorRef, AnyRef};
use crate::cell::{self, ActorId, AnyCell, Cell, LaneSink, Link, Node, Owner};
use crate::clock;
use crate::exit::Exit;
use crate::expiry::expired;
use crate::mailbox::{Lanes, Look, Next, Receiver, System};
use crate::monitor::{MonitorId, Signal};
use crate::path::{Key, Path};
use crate::reply::{Completion, Lane};
use crate::run;
use crate::schedule::TaskHandle;
use crate::schedule::strand::{Held as Taken, Kept, Sole, Whole};
use crate::stream::{OwnedSources, Source, SourceSpec};
use crate::supervision::{Dynamic, DynamicRef, Supervisor, SupervisorRef};
use crate::system::{ActorSystem, StartError};
use crate::timer::{TimerKey, Timers};
use pipe::Pipes;
pub use pipe::{PipeId, TooManyPipes};

/// The actor's own side of the runtime, given to every hook.
///
/// All that is made through it (timers, tasks, monitors, links, children, lanes) belongs to the
/// incarnation and ends with it.
pub struct Context<A: Actor> {
    cell: Kept<Cell<A::Msg>>,
    incarnation: u32,
    /// Alone, so that contexts are shareable though messages need not be.
    receiver: Sole<Receiver<A::Msg>>,
    /// What most incarnations do not have, made when first needed.
    held: Option<Box<Held<A::Msg>>>,
    /// Set by the actor itself: end after this hook.
    leaving: bool,
    /// Whether a message is being handled, or was when the hook did not come back.
    pub(crate) handling: bool,
}

/// What an incarnation holds besides its mailbox.
struct Held<M> {
    timers: Sole<Timers<M>>,
    since_timers: u32,
    tasks: Vec<OwnedTask>,
    next_task: u64,
    pipes: Pipes,
    monitors: FxHashMap<MonitorId, Weak<dyn AnyCell>>,
    sources: OwnedSources,
    /// Why the actor itself wants to end, if that needs to be said.
    exit: Option<Exit>,
    /// How many messages an end in a handler loses.
    at_stake: u64,
}

impl<M> Default for Held<M> {
    fn default() -> Self {
        Self {
            timers: Sole::new(Timers::new()),
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

/// Timers are looked at after so many messages, or when none waits.
const TIMER_STRIDE: u32 = 64;

impl<A: Actor> fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({})", self.cell.node.path())
    }
}

impl<A: Actor> Context<A> {
    pub(crate) fn new(cell: Kept<Cell<A::Msg>>, incarnation: u32) -> Self {
        Self {
            incarnation,
            receiver: Sole::new(Receiver::new(cell.node.shared.scheduler.is_timed())),
            held: None,
            leaving: false,
            handling: false,
            cell,
        }
    }

    /// Whether what belonged to the incarnation was given back.
    pub(crate) const fn has_ended(&self) -> bool {
        self.held.is_none()
    }

    /// Makes this the context of the next incarnation, once the last one has ended. Returns `true`
    /// if that was told to stop on its way.
    pub(crate) fn renew(&mut self) -> bool {
        let (incarnation, stopped) = self.cell.mailbox.renew(self.receiver.get_mut());
        self.incarnation = incarnation;
        self.leaving = false;
        self.handling = false;
        stopped
    }

    fn held(&mut self) -> &mut Held<A::Msg> {
        self.held.get_or_insert_default()
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

    /// The actor's own address.
    #[must_use]
    pub fn me(&self) -> ActorRef<A::Msg> {
        ActorRef(self.cell.share())
    }

    /// The system in which the actor lives.
    #[must_use]
    pub fn system(&self) -> ActorSystem {
        ActorSystem::from_shared(&self.cell.node.shared)
    }

    /// The actor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.cell.node.id
    }

    /// Where the actor lives in the tree.
    #[must_use]
    pub fn path(&self) -> Path {
        self.cell.node.path()
    }

    /// The time of the system's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.cell.node.shared.now()
    }

    /// How many messages wait.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.cell.mailbox.figures().depth
    }

    /// Whether messages wait. Mostly costs less than [`Self::depth`], which asks the mailbox.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.cell.mailbox.has_more()
    }

    /// Starts a child. It ends before this actor does, and is not restarted; for that, give it a
    /// supervisor with [`Context::supervise`].
    ///
    /// # Errors
    /// When the key is taken, or this actor is ending.
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
    /// When the key is taken, this actor is ending, or a child ends while it starts.
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
    /// When the key is taken, or this actor is ending.
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

    /// Watches an actor: exactly one [`Signal::Down`] comes when it ends, or at once if it has.
    pub fn monitor(&mut self, actor: impl Into<AnyRef>) -> MonitorId {
        let AnyRef(target) = actor.into();
        let id = self.cell.node.shared.next_monitor();
        let any = self.any();
        self.held().monitors.insert(id, Arc::downgrade(&target));
        if let Some(exit) = target
            .node()
            .watch(id, Arc::downgrade(&any), self.incarnation)
        {
            let down = cell::down(id, target.node(), &exit);
            any.system(System::Signal(down), Some(self.incarnation));
        }
        id
    }

    /// Ends a monitor; no [`Signal::Down`] comes from it any more.
    pub fn demonitor(&mut self, id: MonitorId) {
        if let Some(target) = self
            .held()
            .monitors
            .remove(&id)
            .and_then(|weak| weak.upgrade())
        {
            target.node().unwatch(id);
        }
    }

    /// Ties this incarnation's fate to that of another actor: when an incarnation of either ends
    /// in disorder, the other ends too, with [`Exit::Linked`].
    pub fn link(&mut self, actor: impl Into<AnyRef>) {
        let AnyRef(other) = actor.into();
        let any = self.any();
        if other.node().id == any.node().id {
            return;
        }
        let mine = Link {
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
        let theirs = Link {
            id: other.node().id,
            cell: Arc::downgrade(&other),
            incarnation: other.incarnation(),
        };
        self.cell.node.link(theirs);
    }

    /// Unties what [`Context::link`] tied.
    pub fn unlink(&mut self, actor: impl Into<AnyRef>) {
        let AnyRef(other) = actor.into();
        other.node().unlink(self.id());
        self.cell.node.unlink(other.node().id);
    }

    /// Says how many messages are lost if this incarnation ends in a handler: one, unless it is
    /// said. An actor that keeps what it was handling for its next incarnation says 0 before it
    /// fails, one that had taken several says how many.
    pub fn set_at_stake(&mut self, messages: u64) {
        self.held().at_stake = messages;
    }

    /// How many messages the end of a handler loses.
    pub(crate) fn at_stake(&self) -> u64 {
        self.held.as_ref().map_or(1, |held| held.at_stake)
    }

    /// Delivers a message to this incarnation after a time.
    pub fn send_after<T>(&mut self, after: Duration, message: T) -> TimerKey
    where
        A::Msg: Accepts<T>,
    {
        let at = clock::later(self.now(), after);
        self.held().timers.get_mut().once(at, A::Msg::wrap(message))
    }

    /// Delivers a message to this incarnation again and again. Ticks that a busy actor missed
    /// are skipped.
    pub fn send_every<T>(
        &mut self,
        period: Duration,
        mut make: impl FnMut() -> T + Send + 'static,
    ) -> TimerKey
    where
        A::Msg: Accepts<T>,
    {
        let first = clock::later(self.now(), period);
        let make = move || A::Msg::wrap(make());
        self.held()
            .timers
            .get_mut()
            .every(first, period, Box::new(make))
    }

    /// Cancels a timer; whether it was still to come.
    pub fn cancel(&mut self, timer: TimerKey) -> bool {
        self.held().timers.get_mut().cancel(timer)
    }

    /// Runs a future beside the actor, as a task that ends with the incarnation at the latest.
    ///
    /// Its return is a [`Signal::TaskEnded`]; its panic is the actor's exit.
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
        self.held().tasks.push(OwnedTask {
            number,
            name,
            handle,
        });
    }

    /// Makes a source of replies whose answers come back to this incarnation as messages.
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

    /// Makes a stream, which this incarnation feeds and ends.
    #[must_use]
    pub fn source<T: Clone + Send + 'static>(&mut self, spec: SourceSpec) -> Source<T> {
        let owner = self.any();
        Source::new(spec, owner, &mut self.held().sources)
    }

    /// Says why the incarnation is ending, to be told to those who read from it.
    pub(crate) fn explain(&self, exit: &Exit) {
        if let Some(held) = &self.held {
            held.sources.explain(exit);
        }
    }

    /// A number for a task or a pipe.
    fn next_task(&mut self) -> u64 {
        let held = self.held();
        held.next_task += 1;
        held.next_task
    }

    /// Whether more than the mailbox has to be looked at.
    #[inline(always)]
    pub(crate) const fn is_special(&self) -> bool {
        self.leaving || self.held.is_some()
    }

    /// Whether there is a message to take, as far as the mailbox is concerned.
    #[inline(always)]
    pub(crate) fn is_ready(&mut self) -> bool {
        self.receiver.get_mut().is_ready(&self.cell.mailbox)
    }

    /// Takes the next message of those that are ready.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<Whole<A::Msg>> {
        self.receiver.get_mut().take(&self.cell.mailbox)
    }

    /// Looks for messages, where nothing else has to be looked at.
    #[inline(always)]
    pub(crate) fn look<'a>(
        &mut self,
        lanes: Option<Taken<'a, Lanes<A::Msg>>>,
        message: &mut Option<Whole<A::Msg>>,
    ) -> Look<'a, A::Msg> {
        let receiver = self.receiver.get_mut();
        receiver.look(&self.cell.mailbox, lanes, message)
    }

    /// Takes the next thing to do: signals first, then timers that are due, then messages.
    #[inline]
    pub(crate) fn poll_next(
        &mut self,
        lanes: Option<Taken<'_, Lanes<A::Msg>>>,
        task: &std::task::Context<'_>,
    ) -> Poll<Next<A::Msg>> {
        if self.held.is_some() {
            return self.poll_held(lanes, task);
        }
        let receiver = self.receiver.get_mut();
        match receiver.poll_next(&self.cell.mailbox, lanes, task) {
            Poll::Ready(Next::Expired(count)) => {
                expired(&self.cell.node, count);
                self.poll_held(None, task)
            }
            next => next,
        }
    }

    fn poll_held(
        &mut self,
        mut lanes: Option<Taken<'_, Lanes<A::Msg>>>,
        task: &std::task::Context<'_>,
    ) -> Poll<Next<A::Msg>> {
        loop {
            match self.poll_any(lanes.take(), task) {
                Poll::Ready(Next::Piped(number, message)) => {
                    if let Some(next) = self.piped(number, message) {
                        return Poll::Ready(next);
                    }
                }
                Poll::Ready(Next::Expired(count)) => expired(&self.cell.node, count),
                next => return next,
            }
        }
    }

    fn poll_any(
        &mut self,
        lanes: Option<Taken<'_, Lanes<A::Msg>>>,
        task: &std::task::Context<'_>,
    ) -> Poll<Next<A::Msg>> {
        let (mailbox, receiver) = (&self.cell.mailbox, self.receiver.get_mut());
        let Some(held) = &mut self.held else {
            return receiver.poll_next(mailbox, lanes, task);
        };
        let timers = held.timers.get_mut();
        if timers.is_empty() {
            return receiver.poll_next(mailbox, lanes, task);
        }
        // Timers are not looked at under the lock.
        let looks = lanes.is_some();
        drop(lanes);
        let shared = &self.cell.node.shared;
        if held.since_timers == 0
            && !mailbox.is_calling()
            && let Poll::Ready(message) = timers.poll_due(shared.now(), &shared.alarms, task)
        {
            mailbox.step_aside();
            held.since_timers = 1;
            return Poll::Ready(Next::Message(message));
        }
        let lanes = looks.then(|| mailbox.strand().lock());
        let next = receiver.poll_next(mailbox, lanes, task);
        if next.is_ready() {
            held.since_timers = (held.since_timers + 1) % TIMER_STRIDE;
            return next;
        }
        let due = timers.poll_due(shared.now(), &shared.alarms, task);
        held.since_timers = u32::from(due.is_ready());
        if due.is_ready() {
            mailbox.step_aside();
        }
        due.map(Next::Message)
    }

    /// Keeps the books; what the actor is told, unless it is out of date.
    pub(crate) fn signal(&mut self, news: System) -> Option<Signal> {
        match news {
            System::Signal(signal) => match &signal {
                Signal::Down { id, .. } => self.held.as_mut()?.monitors.remove(id).map(|_| signal),
                Signal::ChildEnded { .. }
                | Signal::TaskEnded { .. }
                | Signal::PipePanicked { .. } => Some(signal),
            },
            System::TaskEnded(number) => {
                let tasks = &mut self.held.as_mut()?.tasks;
                let place = tasks.iter().position(|task| task.number == number)?;
                let name = tasks.swap_remove(place).name;
                Some(Signal::TaskEnded { name })
            }
            System::PipePanicked(number, panic) => self.pipe_panicked(number, panic),
            System::Stop(_) | System::Panic(_) => None,
        }
    }

    /// Whether there are tasks or pipes to see the end of.
    pub(crate) fn has_tasks(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| !(held.tasks.is_empty() && held.pipes.is_empty()))
    }

    /// Aborts the incarnation's tasks and sees their end.
    pub(crate) async fn end_tasks(&mut self) {
        let Some(held) = &mut self.held else { return };
        for task in &held.tasks {
            task.handle.abort();
        }
        held.pipes.values().for_each(TaskHandle::abort);
        for task in held.tasks.drain(..) {
            task.handle.await;
        }
        while let Some((_, pipe)) = held.pipes.pop_first() {
            pipe.await;
        }
    }

    /// Gives back what belongs to the incarnation.
    pub(crate) fn end(&mut self) {
        if let Some(held) = self.held.take() {
            for (id, target) in held.monitors {
                if let Some(target) = target.upgrade() {
                    target.node().unwatch(id);
                }
            }
            held.timers.into_inner().end();
        }
    }

    /// Gives back what the incarnation took out of the mailbox and did not handle.
    pub(crate) fn give_back(&mut self) {
        self.receiver.get_mut().end(&self.cell.mailbox);
    }
}
