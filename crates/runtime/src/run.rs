//! One incarnation of an actor, from `pre_start` to `post_stop`.

mod stop;

use std::any::Any;
use std::future::{Future, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self, Poll};

use crate::actor::Actor;
use crate::cell::{self, ActorCell, ActorCore, ActorTypeInfo, ErasedCell, Owner, Phase};
use crate::context::Context;
use crate::event::Event;
use crate::exit::{BoxError, Exit, drop_caught, panic_message};
use crate::injection::{Hook, Injection, has_planned_faults, take_injection};
use crate::mailbox::{FastTake, HomedRunnable, MailboxState, ReceivedItem, SystemMessage};
use crate::metric::MetricEvent;
use crate::monitor::Signal;
use crate::path::ActorPath;
use crate::schedule::strand::{
    self, ActorIdentity, Behavior, NextStep, OpaqueMessage, Runnable, Strand, StrandGuard,
    StrandHost,
};
use crate::seeded_bug::{Bug, seeded};
use crate::supervision::{ExitOutcome, RestartPolicy};
use crate::trace;
use crate::wait_graph;
use stop::{request_stop, stop_children};
pub(crate) use stop::{stop_child, stop_incarnation, stop_root_actor};

/// Starts an incarnation.
pub(crate) fn launch<A: Actor>(cell: &Arc<ActorCell<A::Msg>>, args: A::Args) {
    if let Some((ready, place)) = prepare::<A>(cell, args) {
        cell.core.shared.scheduler.push(ready, place);
    }
}

/// Starts an incarnation that its spawner is likely to wait for: its first turn runs near the
/// caller.
pub(crate) fn launch_local<A: Actor>(cell: &Arc<ActorCell<A::Msg>>, args: A::Args) {
    if let Some((ready, place)) = prepare::<A>(cell, args) {
        cell.core.shared.scheduler.push_local(ready, place);
    }
}

/// Prepares an incarnation to run; the caller queues it.
pub(crate) fn prepare<A: Actor>(
    cell: &Arc<ActorCell<A::Msg>>,
    args: A::Args,
) -> Option<HomedRunnable> {
    let restarts = cell.core.begin_incarnation()?;
    cell.core.open_span();
    let scheduler = &cell.core.shared.scheduler;
    let place = if A::BLOCKING {
        scheduler.add_blocking_incarnation(|| cell.core.path())
    } else if restarts == 0 {
        scheduler.add_incarnation()
    } else {
        scheduler.readd_incarnation(cell.mailbox.strand().home())
    };
    let ready = strand::start(
        cell,
        place,
        MailboxState::begin_incarnation,
        |incarnation, cell| Incarnation::<A> {
            stage: IncarnationStage::NotStarted(args),
            cx: Context::new(cell, incarnation),
        },
    )?;
    Some((ready, place))
}

impl<M: Send + 'static> StrandHost for ActorCell<M> {
    type Data = MailboxState<M>;

    fn strand(&self) -> &Strand<MailboxState<M>> {
        self.mailbox.strand()
    }

    fn queue(&self, ready: Runnable, place: u32) {
        self.core.shared.scheduler.push(ready, place);
    }

    fn is_down(&self) -> bool {
        self.core.shared.scheduler.is_down()
    }

    #[inline]
    fn is_killed(&self) -> bool {
        self.core.is_killed()
    }

    #[inline]
    fn enter_turn<R>(&self, turn: impl FnOnce() -> R) -> R {
        let span = self.core.span();
        let _inside = span.as_ref().map(tracing::Span::enter);
        wait_graph::with_actor(&self.core, turn)
    }

    fn path(&self) -> ActorPath {
        self.core.path()
    }

    fn identity(&self) -> ActorIdentity {
        ActorIdentity {
            system: Arc::as_ptr(&self.core.shared).addr(),
            actor: self.core.id.to_bits(),
        }
    }

    fn take_remains(&self, state: StrandGuard<'_, MailboxState<M>>) -> Option<u64> {
        let last = !matches!(self.core.owner, Owner::Supervisor { .. });
        self.mailbox.end_incarnation(state, last)
    }

    fn on_incarnation_end(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32) {
        let any: Arc<dyn ErasedCell> = self;
        match exit {
            Some(exit) => report_exit(&any, exit, lost),
            // Its tokio runtime is shutting down.
            None => cell::end_actor(&any, &Exit::Killed, lost),
        }
        any.core().shared.scheduler.remove_incarnation(place);
    }
}

/// Returns the properties that all actors of this type share.
pub(crate) fn type_info<A: Actor>() -> ActorTypeInfo {
    ActorTypeInfo {
        name: std::any::type_name::<A>(),
        heap_bytes: strand::heap_bytes::<Incarnation<A>>(),
    }
}

/// The state that an incarnation keeps between two turns.
struct Incarnation<A: Actor> {
    stage: IncarnationStage<A>,
    cx: Context<A>,
}

enum IncarnationStage<A: Actor> {
    NotStarted(A::Args),
    Running(A),
    Finished,
}

/// Work of an incarnation besides plain message handling.
enum ControlTask<A: Actor> {
    /// Passes a signal to the actor.
    Signal(Signal),
    /// Handles a message while the actor is traced, or while a test injects a fault.
    TracedMessage(A::Msg, Injection),
}

impl<A: Actor> Behavior<ActorCell<A::Msg>> for Incarnation<A> {
    type Message = A::Msg;
    type Control = ControlTask<A>;
    type Error = A::Error;

    #[inline(always)]
    fn is_ready(&mut self, cell: &ActorCell<A::Msg>) -> bool {
        !self.is_special(cell) && self.cx.is_ready()
    }

    #[inline(always)]
    fn next(
        &mut self,
        cell: &ActorCell<A::Msg>,
        state: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
        message: &mut Option<OpaqueMessage<A::Msg>>,
        exit: &mut Option<Exit>,
    ) -> NextStep<ControlTask<A>> {
        // The last message has been handled.
        self.cx.handling = false;
        let mut more = state;
        if !self.is_special(cell) {
            match self.stage {
                // Messages that the last incarnation took out and left.
                IncarnationStage::Running(_) if more.is_none() && self.cx.is_ready() => {
                    return NextStep::Message;
                }
                IncarnationStage::Running(_) => match self.cx.try_take(more, message) {
                    FastTake::Message => {
                        self.cx.handling = true;
                        return NextStep::Message;
                    }
                    FastTake::Idle => return NextStep::Idle,
                    FastTake::More(state) => more = state,
                },
                IncarnationStage::NotStarted(_) => return NextStep::Start,
                IncarnationStage::Finished => {}
            }
        }
        let step = self.next_slow(cell, more, task, message, exit);
        self.cx.handling =
            message.is_some() || matches!(step, NextStep::Control(ControlTask::TracedMessage(..)));
        step
    }

    #[inline(always)]
    fn handle<'a>(
        &'a mut self,
        _: &'a ActorCell<A::Msg>,
        message: &mut Option<OpaqueMessage<A::Msg>>,
    ) -> Option<impl Future<Output = Result<(), A::Error>> + Send + use<'a, A>> {
        let IncarnationStage::Running(actor) = &mut self.stage else {
            return None;
        };
        let message = match message.take() {
            Some(message) => message,
            None => {
                self.cx.handling = true;
                self.cx.take()?
            }
        };
        Some(actor.handle(message.into_inner(), &mut self.cx))
    }

    fn into_exit(error: A::Error) -> Exit {
        Exit::failed(error)
    }

    async fn start(&mut self, _: &ActorCell<A::Msg>) -> Result<(), Exit> {
        let Self { stage, cx } = self;
        if let IncarnationStage::NotStarted(args) = mem::replace(stage, IncarnationStage::Finished)
        {
            *stage = IncarnationStage::Running(run_pre_start(args, cx).await?);
            // An actor that chose not to run goes from its start straight to its end, so that
            // nothing takes it for one that ran.
            if cx.requested_exit().is_none() {
                cx.node().enter(Phase::Running);
            }
        }
        Ok(())
    }

    async fn run_control(
        &mut self,
        _: &ActorCell<A::Msg>,
        errand: ControlTask<A>,
    ) -> Result<(), Exit> {
        let Self { stage, cx } = self;
        match (errand, stage) {
            (ControlTask::Signal(signal), IncarnationStage::Running(actor)) => {
                handle_signal(actor, signal, cx).await.map_err(Exit::failed)
            }
            (ControlTask::TracedMessage(message, injection), IncarnationStage::Running(actor)) => {
                injection.apply(cx.node()).await.map_err(Exit::failed)?;
                let traced = match cx.node().is_traced() {
                    true => trace::begin::<A>(cx.cell_ref(), &message),
                    false => None,
                };
                let result = actor.handle(message, cx).await;
                if let Some(began) = traced {
                    trace::end(cx.node(), *began, result.is_err());
                }
                result.map_err(Exit::failed)
            }
            (_, IncarnationStage::NotStarted(_) | IncarnationStage::Finished) => Err(Exit::Killed),
        }
    }

    fn begin_end(&mut self, cell: &ActorCell<A::Msg>, exit: &Exit) -> bool {
        let (cx, node) = (&self.cx, &cell.core);
        cx.set_exit_reason(exit);
        // An actor that never ran stays in its start until it is down: a task that waits for its
        // start would otherwise take it for one that ran.
        if node.phase() == Phase::Running {
            node.enter(Phase::Stopping);
        }
        let count = if cx.handling {
            cx.messages_at_risk()
        } else {
            0
        };
        if count > 0 && !seeded(Bug::DeadLetterNotReported) {
            let shared = &node.shared;
            shared
                .events
                .emit(MetricEvent::DeadLetters(count), || Event::DeadLetter {
                    path: node.path(),
                    count,
                    exit: exit.clone(),
                });
        }
        !node.children.close_if_empty() || cx.has_tasks()
    }

    async fn end(&mut self, cell: &ActorCell<A::Msg>, exit: Exit) -> Result<(), Exit> {
        // The reply to the last message may be held anywhere, so the message is not owed any more.
        cell.mailbox.mark_control_work();
        stop_children(&cell.core).await;
        // Aborted, so that they end at their next await: none of them waits for an actor.
        self.cx.end_tasks().await;
        self.end_quickly(cell, exit).await
    }

    async fn end_quickly(&mut self, cell: &ActorCell<A::Msg>, mut exit: Exit) -> Result<(), Exit> {
        let (Self { stage, cx }, node) = (self, &cell.core);
        if matches!(stage, IncarnationStage::Running(_)) && !runs_post_stop::<A>(node, &exit).await
        {
            drop_caught(mem::replace(stage, IncarnationStage::Finished));
        }
        if let IncarnationStage::Running(value) = mem::replace(stage, IncarnationStage::Finished) {
            {
                // Built where it is polled: the value is copied once.
                let hook = pin!(Some(value.post_stop(&exit, cx)));
                completed_or_log_panic(node, &poll_guarded(node, hook).await);
            }
            // The hook may have started tasks.
            if cx.has_tasks() {
                Box::pin(cx.end_tasks()).await;
            }
        }
        if node.is_killed() {
            exit = Exit::Killed;
        }
        cx.end();
        if !exit.is_orderly() {
            tracing::warn!(path = %node.path(), %exit, "actor ended");
        }
        Err(exit)
    }

    fn restart_in_place(
        &mut self,
        cell: &ActorCell<A::Msg>,
        exit: &mut Option<Exit>,
        may: bool,
    ) -> bool {
        let known = exit.as_ref().filter(|_| may);
        // Subscribers that count and log are foreign code.
        let will = known
            .map(|exit| catch_unwind(AssertUnwindSafe(|| self.next_incarnation_args(cell, exit))));
        let Some(Ok(Some((args, policy)))) = will else {
            self.cx.return_batch();
            return false;
        };
        self.stage = IncarnationStage::NotStarted(args);
        let node = &cell.core;
        // An order from here on is meant for the next incarnation.
        let stopped = self.cx.begin_next_incarnation();
        let unwanted = stopped && !policy.still_wanted(node) && !seeded(Bug::StopLostInRestart);
        let links = node.restart_in_place(exit.take().unwrap_or(Exit::Killed), policy);
        if !links.is_empty() {
            let exit = node.last_exit().unwrap_or(Exit::Killed);
            cell::notify_links(node, links, &exit);
        }
        // The actor may have been asked to stop just before it existed again: with all its
        // siblings, or alone, for good.
        if let Owner::Supervisor { cell: parent, .. } = &node.owner
            && (unwanted || parent.core().children.is_closed())
        {
            request_stop(cell, parent.core().is_killed());
        }
        true
    }
}

impl<A: Actor> Incarnation<A> {
    /// Returns the arguments for another incarnation that follows at once, and the policy that
    /// decided so; `None` if no incarnation follows at once.
    fn next_incarnation_args(
        &self,
        cell: &ActorCell<A::Msg>,
        exit: &Exit,
    ) -> Option<(A::Args, Arc<dyn RestartPolicy>)> {
        let node = &cell.core;
        let Owner::Supervisor { cell: parent, .. } = &node.owner else {
            return None;
        };
        let scheduler = &node.shared.scheduler;
        // A thread of its own ends with the incarnation, and so does a span.
        let bound = A::BLOCKING || node.has_span() || node.is_killed();
        if bound
            || !self.cx.is_released()
            || scheduler.is_down()
            || !scheduler.may_restart_in_place()
        {
            return None;
        }
        let mut args = None;
        let mut take = |known: &dyn Any| {
            args = known.downcast_ref::<A::Args>().cloned();
            args.is_some()
        };
        let policy = node.own_policy(parent.core())?;
        let again = policy.restart_in_place(parent.core(), node, exit, &mut take);
        args.filter(|_| again).map(|args| (args, policy))
    }

    /// Returns `true` if something other than the mailbox determines what to do.
    #[inline(always)]
    fn is_special(&self, cell: &ActorCell<A::Msg>) -> bool {
        self.cx.needs_slow_path() || cell.core.needs_slow_path() || has_planned_faults(&cell.core)
    }

    /// Decides what to do next, with everything taken into account.
    #[cold]
    fn next_slow(
        &mut self,
        cell: &ActorCell<A::Msg>,
        mut state: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
        to: &mut Option<OpaqueMessage<A::Msg>>,
        exit: &mut Option<Exit>,
    ) -> NextStep<ControlTask<A>> {
        let mut end = |why| {
            *exit = Some(why);
            NextStep::End
        };
        if cell.core.is_killed() {
            return end(Exit::Killed);
        }
        match self.stage {
            IncarnationStage::Running(_) => {}
            IncarnationStage::NotStarted(_) => return NextStep::Start,
            IncarnationStage::Finished => return end(Exit::Killed),
        }
        loop {
            if let Some(why) = self.cx.requested_exit() {
                return end(why);
            }
            if state.as_mut().is_some_and(|state| state.take_stop()) {
                return end(Exit::Shutdown);
            }
            let message = match self.cx.poll_next(state.take(), task) {
                Poll::Pending => return NextStep::Idle,
                Poll::Ready(
                    ReceivedItem::Message(message) | ReceivedItem::PipeOutput(_, message),
                ) => message,
                Poll::Ready(ReceivedItem::Expired(_)) => continue,
                Poll::Ready(ReceivedItem::Stop) => return end(Exit::Shutdown),
                Poll::Ready(ReceivedItem::System(news)) => match *news {
                    SystemMessage::Stop(why) => return end(why),
                    // Bypasses the panic hook: an ordered panic is no news.
                    SystemMessage::Panic(message) => {
                        resume_unwind(Box::new(String::from(&*message)))
                    }
                    news => match self.cx.signal(news) {
                        Some(signal) => return NextStep::Control(ControlTask::Signal(signal)),
                        None => continue,
                    },
                },
            };
            let injection = take_injection(&cell.core, Hook::Handle);
            if cell.core.is_traced() || injection.is_due() {
                return NextStep::Control(ControlTask::TracedMessage(message, injection));
            }
            *to = Some(OpaqueMessage::new(message));
            return NextStep::Message;
        }
    }
}

/// Builds the value of the actor.
async fn run_pre_start<A: Actor>(args: A::Args, cx: &mut Context<A>) -> Result<A, Exit> {
    let injected = take_injection(cx.node(), Hook::PreStart)
        .apply(cx.node())
        .await;
    injected.map_err(Exit::failed)?;
    match A::pre_start(args, cx).await {
        Ok(actor) => {
            if matches!(cx.requested_exit(), Some(Exit::Normal))
                && !seeded(Bug::IgnoredStartTreatedAsExit)
            {
                cx.request_exit(&Exit::Ignored);
            }
            Ok(actor)
        }
        // A supervisor that was stopped before all its children had started did not fail.
        Err(_) if matches!(cx.requested_exit(), Some(Exit::Shutdown)) => Err(Exit::Shutdown),
        Err(error) => Err(Exit::failed(error)),
    }
}

/// Passes a signal to the actor.
async fn handle_signal<A: Actor>(
    actor: &mut A,
    signal: Signal,
    cx: &mut Context<A>,
) -> Result<(), BoxError> {
    take_injection(cx.node(), Hook::Signal)
        .apply(cx.node())
        .await?;
    if cx.node().is_traced() {
        trace::signal(cx.node(), &signal);
    }
    actor.signal(signal, cx).await.map_err(Into::into)
}

/// Returns `true` if `post_stop` gets the value: not after a kill, and after a panic only if the
/// actor allows it.
async fn runs_post_stop<A: Actor>(node: &ActorCore, exit: &Exit) -> bool {
    let lost = matches!(exit, Exit::Panicked(_)) && !A::SURVIVES_PANIC;
    if lost || node.is_killed() {
        return false;
    }
    let injection = take_injection(node, Hook::PostStop);
    if !injection.is_due() {
        return true;
    }
    let injected = pin!(Some(injection.apply(node)));
    completed_or_log_panic(node, &poll_guarded(node, injected).await)
}

/// Returns `true` if the last hook completed. A panic is logged.
fn completed_or_log_panic<T>(node: &ActorCore, done: &Result<T, Exit>) -> bool {
    if let Err(Exit::Panicked(message)) = done {
        tracing::error!(path = %node.path(), panic = %message, "panic in post_stop");
    }
    done.is_ok()
}

/// Drives the last hook: a panic becomes an exit, and a kill ends it at its next await.
///
/// The future stays where its owner pinned it; otherwise there would be room for it twice.
async fn poll_guarded<F: Future>(
    node: &ActorCore,
    mut slot: Pin<&mut Option<F>>,
) -> Result<F::Output, Exit> {
    let result = poll_fn(|cx| {
        if node.is_killed() {
            return Poll::Ready(Err(Exit::Killed));
        }
        let Some(future) = slot.as_mut().as_pin_mut() else {
            return Poll::Ready(Err(Exit::Killed));
        };
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) if node.is_killed() => Poll::Ready(Err(Exit::Killed)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(payload) => Poll::Ready(Err(Exit::Panicked(panic_message(payload.as_ref())))),
        }
    })
    .await;
    // What a killed or panicked future still held may panic when it is dropped.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| slot.set(None))) {
        let panic = panic_message(payload.as_ref());
        tracing::error!(path = %node.path(), %panic, "panic while a hook was dropped");
    }
    result
}

/// Tells the owner about the end of an incarnation, or ends the actor for good if the owner has no
/// say.
pub(crate) fn report_exit(cell: &Arc<dyn ErasedCell>, exit: &Exit, lost: Option<u64>) {
    let node = cell.core();
    let ended = || Signal::ChildEnded {
        actor: node.id,
        key: node.key.to_shared(),
        exit: exit.clone(),
    };
    match &node.owner {
        Owner::System | Owner::Dynamic { .. } => cell::end_actor(cell, exit, lost),
        Owner::Parent {
            cell: parent,
            incarnation,
        } => {
            cell::end_actor(cell, exit, lost);
            parent.push_system(SystemMessage::Signal(ended()), Some(*incarnation));
        }
        Owner::Supervisor {
            cell: parent,
            incarnation,
        } => {
            cell::notify_links(node, node.record_exit(exit), exit);
            node.enter(Phase::Down);
            let policy = parent.core().child_policy();
            let answer = policy.map(|one| one.on_child_exit(parent.core(), cell, exit));
            match answer {
                Some(ExitOutcome::Restart((ready, place))) => {
                    // In a turn of its own: an actor that fails again and again must not occupy its
                    // worker.
                    node.shared.scheduler.push(ready, place);
                    // The actor may have been asked to stop just before it existed again.
                    if parent.core().children.is_closed() {
                        request_stop(&**cell, parent.core().is_killed());
                    }
                }
                Some(ExitOutcome::Done) => {}
                Some(ExitOutcome::NotifySupervisor) | None => {
                    // A supervisor that is ending its children restarts none, so nothing must wait
                    // for a restart.
                    let over = parent.core().children.is_closed();
                    if !over {
                        wait_graph::on_actor_down(node);
                    }
                    if over
                        || !parent.push_system(SystemMessage::Signal(ended()), Some(*incarnation))
                    {
                        cell::end_actor(cell, exit, None);
                    }
                }
            }
        }
    }
}

/// Runs a future; returns the message of a panic.
pub(crate) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, Arc<str>> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(panic_message(payload.as_ref()))),
        },
    )
    .await
}
