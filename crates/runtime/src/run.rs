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
use crate::cell::{self, ActorKind, AnyCell, Cell, Node, Owner, Phase};
use crate::context::Context;
use crate::event::Event;
use crate::exit::{BoxError, Exit, discard_one, panic_text};
use crate::injection::{Hook, Injection, any_planned, planned};
use crate::mailbox::{LookResult, MailboxState, PlacedRunnable, Received, System};
use crate::metric::Count;
use crate::monitor::Signal;
use crate::path::Path;
use crate::ring;
use crate::schedule::strand::{
    self, ActorMark, Behavior, Host, NextStep, OpaqueMessage, Runnable, Strand, StrandGuard,
};
use crate::seeded_bug::{Bug, seeded};
use crate::supervision::{ExitOutcome, Overseer};
use crate::trace;
use stop::{ask_to_stop, end_children};
pub(crate) use stop::{down_child, end_child, end_top};

/// Starts an incarnation.
pub(crate) fn launch<A: Actor>(cell: &Arc<Cell<A::Msg>>, args: A::Args) {
    if let Some((ready, place)) = prepare::<A>(cell, args) {
        cell.node.shared.scheduler.push(ready, place);
    }
}

/// Starts an incarnation that its spawner is likely to wait for: its first turn runs near the
/// caller.
pub(crate) fn launch_local<A: Actor>(cell: &Arc<Cell<A::Msg>>, args: A::Args) {
    if let Some((ready, place)) = prepare::<A>(cell, args) {
        cell.node.shared.scheduler.push_local(ready, place);
    }
}

/// Prepares an incarnation to run; the caller queues it.
pub(crate) fn prepare<A: Actor>(cell: &Arc<Cell<A::Msg>>, args: A::Args) -> Option<PlacedRunnable> {
    let restarts = cell.node.begin_incarnation()?;
    cell.node.open_span();
    let scheduler = &cell.node.shared.scheduler;
    let place = if A::BLOCKING {
        scheduler.admit_blocking(|| cell.node.path())
    } else if restarts == 0 {
        scheduler.admit()
    } else {
        scheduler.admit_again(cell.mailbox.strand().place())
    };
    let ready = strand::start(
        cell,
        place,
        MailboxState::begin_incarnation,
        |incarnation, cell| Incarnation::<A> {
            stage: Stage::Args(args),
            cx: Context::new(cell, incarnation),
        },
    )?;
    Some((ready, place))
}

impl<M: Send + 'static> Host for Cell<M> {
    type Data = MailboxState<M>;

    fn strand(&self) -> &Strand<MailboxState<M>> {
        self.mailbox.strand()
    }

    fn queue(&self, ready: Runnable, place: u32) {
        self.node.shared.scheduler.push(ready, place);
    }

    fn is_down(&self) -> bool {
        self.node.shared.scheduler.is_down()
    }

    #[inline]
    fn is_killed(&self) -> bool {
        self.node.is_killed()
    }

    #[inline]
    fn during<R>(&self, turn: impl FnOnce() -> R) -> R {
        let span = self.node.span();
        let _inside = span.as_ref().map(tracing::Span::enter);
        ring::inside(&self.node, turn)
    }

    fn path(&self) -> Path {
        self.node.path()
    }

    fn mark(&self) -> ActorMark {
        ActorMark {
            system: Arc::as_ptr(&self.node.shared).addr(),
            actor: self.node.id.to_bits(),
        }
    }

    fn ended(&self, lanes: StrandGuard<'_, MailboxState<M>>) -> Option<u64> {
        let last = !matches!(self.node.owner, Owner::Supervisor { .. });
        self.mailbox.end_incarnation(lanes, last)
    }

    fn over(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32) {
        let any: Arc<dyn AnyCell> = self;
        match exit {
            Some(exit) => report_exit(&any, exit, lost),
            // Its tokio runtime is shutting down.
            None => cell::finish(&any, &Exit::Killed, lost),
        }
        any.node().shared.scheduler.release(place);
    }
}

/// Returns the properties that all actors of this type share.
pub(crate) fn kind<A: Actor>() -> ActorKind {
    ActorKind {
        name: std::any::type_name::<A>(),
        heap_bytes: strand::heap_bytes::<Incarnation<A>>(),
    }
}

/// The state that an incarnation keeps between two turns.
struct Incarnation<A: Actor> {
    stage: Stage<A>,
    cx: Context<A>,
}

enum Stage<A: Actor> {
    Args(A::Args),
    Actor(A),
    Gone,
}

/// Work of an incarnation besides plain message handling.
enum Errand<A: Actor> {
    /// Passes a signal to the actor.
    Hear(Signal),
    /// Handles a message while the actor is traced, or while a test injects a fault.
    Watched(A::Msg, Injection),
}

impl<A: Actor> Behavior<Cell<A::Msg>> for Incarnation<A> {
    type Message = A::Msg;
    type Errand = Errand<A>;
    type Failure = A::Error;

    #[inline(always)]
    fn is_ready(&mut self, cell: &Cell<A::Msg>) -> bool {
        !self.is_special(cell) && self.cx.is_ready()
    }

    #[inline(always)]
    fn next(
        &mut self,
        cell: &Cell<A::Msg>,
        lanes: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
        message: &mut Option<OpaqueMessage<A::Msg>>,
        exit: &mut Option<Exit>,
    ) -> NextStep<Errand<A>> {
        // The last message has been handled.
        self.cx.handling = false;
        let mut more = lanes;
        if !self.is_special(cell) {
            match self.stage {
                // Messages that the last incarnation took out and left.
                Stage::Actor(_) if more.is_none() && self.cx.is_ready() => {
                    return NextStep::Message;
                }
                Stage::Actor(_) => match self.cx.look(more, message) {
                    LookResult::Message => {
                        self.cx.handling = true;
                        return NextStep::Message;
                    }
                    LookResult::Idle => return NextStep::Idle,
                    LookResult::More(lanes) => more = lanes,
                },
                Stage::Args(_) => return NextStep::Start,
                Stage::Gone => {}
            }
        }
        let step = self.decide(cell, more, task, message, exit);
        self.cx.handling =
            message.is_some() || matches!(step, NextStep::Errand(Errand::Watched(..)));
        step
    }

    #[inline(always)]
    fn handle<'a>(
        &'a mut self,
        _: &'a Cell<A::Msg>,
        message: &mut Option<OpaqueMessage<A::Msg>>,
    ) -> Option<impl Future<Output = Result<(), A::Error>> + Send + use<'a, A>> {
        let Stage::Actor(actor) = &mut self.stage else {
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

    fn exit(error: A::Error) -> Exit {
        Exit::failed(error)
    }

    async fn start(&mut self, _: &Cell<A::Msg>) -> Result<(), Exit> {
        let Self { stage, cx } = self;
        if let Stage::Args(args) = mem::replace(stage, Stage::Gone) {
            *stage = Stage::Actor(build(args, cx).await?);
            // An actor that chose not to run goes from its start straight to its end, so that
            // nothing takes it for one that ran.
            if cx.requested_exit().is_none() {
                cx.node().enter(Phase::Running);
            }
        }
        Ok(())
    }

    async fn run(&mut self, _: &Cell<A::Msg>, errand: Errand<A>) -> Result<(), Exit> {
        let Self { stage, cx } = self;
        match (errand, stage) {
            (Errand::Hear(signal), Stage::Actor(actor)) => {
                hear(actor, signal, cx).await.map_err(Exit::failed)
            }
            (Errand::Watched(message, injection), Stage::Actor(actor)) => {
                injection.carry_out(cx.node()).await.map_err(Exit::failed)?;
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
            (_, Stage::Args(_) | Stage::Gone) => Err(Exit::Killed),
        }
    }

    fn begin_end(&mut self, cell: &Cell<A::Msg>, exit: &Exit) -> bool {
        let (cx, node) = (&self.cx, &cell.node);
        cx.set_exit_reason(exit);
        // An actor that never ran stays in its start until it is down: a task that waits for its
        // start would otherwise take it for one that ran.
        if node.phase() == Phase::Running {
            node.enter(Phase::Stopping);
        }
        let count = if cx.handling { cx.at_stake() } else { 0 };
        if count > 0 && !seeded(Bug::DeadLetterUnreported) {
            let shared = &node.shared;
            shared
                .events
                .emit(Count::DeadLetters(count), || Event::DeadLetter {
                    path: node.path(),
                    count,
                    exit: exit.clone(),
                });
        }
        !node.children.close_if_empty() || cx.has_tasks()
    }

    async fn end(&mut self, cell: &Cell<A::Msg>, exit: Exit) -> Result<(), Exit> {
        // The reply to the last message may be held anywhere, so the message is not owed any more.
        cell.mailbox.note_other_work();
        end_children(&cell.node).await;
        // Aborted, so that they end at their next await: none of them waits for an actor.
        self.cx.end_tasks().await;
        self.end_now(cell, exit).await
    }

    async fn end_now(&mut self, cell: &Cell<A::Msg>, mut exit: Exit) -> Result<(), Exit> {
        let (Self { stage, cx }, node) = (self, &cell.node);
        if matches!(stage, Stage::Actor(_)) && !is_shown::<A>(node, &exit).await {
            discard_one(mem::replace(stage, Stage::Gone));
        }
        if let Stage::Actor(value) = mem::replace(stage, Stage::Gone) {
            {
                // Built where it is polled: the value is copied once.
                let hook = pin!(Some(value.post_stop(&exit, cx)));
                is_whole(node, &guard(node, hook).await);
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

    fn renew(&mut self, cell: &Cell<A::Msg>, exit: &mut Option<Exit>, may: bool) -> bool {
        let known = exit.as_ref().filter(|_| may);
        // Subscribers that count and log are foreign code.
        let will = known.map(|exit| catch_unwind(AssertUnwindSafe(|| self.inherit(cell, exit))));
        let Some(Ok(Some((args, overseer)))) = will else {
            self.cx.give_back();
            return false;
        };
        self.stage = Stage::Args(args);
        let node = &cell.node;
        // An order from here on is meant for the next incarnation.
        let stopped = self.cx.renew();
        let unwanted = stopped && !overseer.is_wanted(node) && !seeded(Bug::StopLostInRestart);
        let links = node.restart_in_place(exit.take().unwrap_or(Exit::Killed), overseer);
        if !links.is_empty() {
            let exit = node.last_exit().unwrap_or(Exit::Killed);
            cell::notify_links(node, links, &exit);
        }
        // The actor may have been asked to stop just before it existed again: with all its
        // siblings, or alone, for good.
        if let Owner::Supervisor { cell: parent, .. } = &node.owner
            && (unwanted || parent.node().children.is_closed())
        {
            ask_to_stop(cell, parent.node().is_killed());
        }
        true
    }
}

impl<A: Actor> Incarnation<A> {
    /// Returns the arguments for another incarnation that follows at once, and the overseer that
    /// decided so; `None` if no incarnation follows at once.
    fn inherit(&self, cell: &Cell<A::Msg>, exit: &Exit) -> Option<(A::Args, Arc<dyn Overseer>)> {
        let node = &cell.node;
        let Owner::Supervisor { cell: parent, .. } = &node.owner else {
            return None;
        };
        let scheduler = &node.shared.scheduler;
        // A thread of its own ends with the incarnation, and so does a span.
        let bound = A::BLOCKING || node.has_span() || node.is_killed();
        if bound || !self.cx.has_ended() || scheduler.is_down() || !scheduler.may_renew() {
            return None;
        }
        let mut args = None;
        let mut take = |known: &dyn Any| {
            args = known.downcast_ref::<A::Args>().cloned();
            args.is_some()
        };
        let overseer = node.overseen_by(parent.node())?;
        let again = overseer.restarts_in_place(parent.node(), node, exit, &mut take);
        args.filter(|_| again).map(|args| (args, overseer))
    }

    /// Returns `true` if something other than the mailbox determines what to do.
    #[inline(always)]
    fn is_special(&self, cell: &Cell<A::Msg>) -> bool {
        self.cx.is_special() || cell.node.has_flag() || any_planned(&cell.node)
    }

    /// Decides what to do next, with everything taken into account.
    #[cold]
    fn decide(
        &mut self,
        cell: &Cell<A::Msg>,
        mut lanes: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
        to: &mut Option<OpaqueMessage<A::Msg>>,
        exit: &mut Option<Exit>,
    ) -> NextStep<Errand<A>> {
        let mut end = |why| {
            *exit = Some(why);
            NextStep::End
        };
        if cell.node.is_killed() {
            return end(Exit::Killed);
        }
        match self.stage {
            Stage::Actor(_) => {}
            Stage::Args(_) => return NextStep::Start,
            Stage::Gone => return end(Exit::Killed),
        }
        loop {
            if let Some(why) = self.cx.requested_exit() {
                return end(why);
            }
            if lanes.as_mut().is_some_and(|lanes| lanes.take_stop()) {
                return end(Exit::Shutdown);
            }
            let message = match self.cx.poll_next(lanes.take(), task) {
                Poll::Pending => return NextStep::Idle,
                Poll::Ready(Received::Message(message) | Received::Piped(_, message)) => message,
                Poll::Ready(Received::Expired(_)) => continue,
                Poll::Ready(Received::Stop) => return end(Exit::Shutdown),
                Poll::Ready(Received::System(news)) => match *news {
                    System::Stop(why) => return end(why),
                    // Bypasses the panic hook: an ordered panic is no news.
                    System::Panic(message) => resume_unwind(Box::new(String::from(&*message))),
                    news => match self.cx.signal(news) {
                        Some(signal) => return NextStep::Errand(Errand::Hear(signal)),
                        None => continue,
                    },
                },
            };
            let injection = planned(&cell.node, Hook::Handle);
            if cell.node.is_traced() || injection.is_due() {
                return NextStep::Errand(Errand::Watched(message, injection));
            }
            *to = Some(OpaqueMessage::new(message));
            return NextStep::Message;
        }
    }
}

/// Builds the value of the actor.
async fn build<A: Actor>(args: A::Args, cx: &mut Context<A>) -> Result<A, Exit> {
    let injected = planned(cx.node(), Hook::PreStart)
        .carry_out(cx.node())
        .await;
    injected.map_err(Exit::failed)?;
    match A::pre_start(args, cx).await {
        Ok(actor) => {
            if matches!(cx.requested_exit(), Some(Exit::Normal))
                && !seeded(Bug::IgnoredStartIsAnEnd)
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
async fn hear<A: Actor>(
    actor: &mut A,
    signal: Signal,
    cx: &mut Context<A>,
) -> Result<(), BoxError> {
    planned(cx.node(), Hook::Signal)
        .carry_out(cx.node())
        .await?;
    if cx.node().is_traced() {
        trace::signal(cx.node(), &signal);
    }
    actor.signal(signal, cx).await.map_err(Into::into)
}

/// Returns `true` if `post_stop` gets the value: not after a kill, and after a panic only if the
/// actor allows it.
async fn is_shown<A: Actor>(node: &Node, exit: &Exit) -> bool {
    let lost = matches!(exit, Exit::Panicked(_)) && !A::SURVIVES_PANIC;
    if lost || node.is_killed() {
        return false;
    }
    let injection = planned(node, Hook::PostStop);
    if !injection.is_due() {
        return true;
    }
    let injected = pin!(Some(injection.carry_out(node)));
    is_whole(node, &guard(node, injected).await)
}

/// Returns `true` if the last hook completed. A panic is logged.
fn is_whole<T>(node: &Node, done: &Result<T, Exit>) -> bool {
    if let Err(Exit::Panicked(message)) = done {
        tracing::error!(path = %node.path(), panic = %message, "panic in post_stop");
    }
    done.is_ok()
}

/// Drives the last hook: a panic becomes an exit, and a kill ends it at its next await.
///
/// The future stays where its owner pinned it; otherwise there would be room for it twice.
async fn guard<F: Future>(node: &Node, mut slot: Pin<&mut Option<F>>) -> Result<F::Output, Exit> {
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
            Err(payload) => Poll::Ready(Err(Exit::Panicked(panic_text(payload.as_ref())))),
        }
    })
    .await;
    // What a killed or panicked future still held may panic when it is dropped.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| slot.set(None))) {
        let panic = panic_text(payload.as_ref());
        tracing::error!(path = %node.path(), %panic, "panic while a hook was dropped");
    }
    result
}

/// Tells the owner about the end of an incarnation, or ends the actor for good if the owner has no
/// say.
pub(crate) fn report_exit(cell: &Arc<dyn AnyCell>, exit: &Exit, lost: Option<u64>) {
    let node = cell.node();
    let ended = || Signal::ChildEnded {
        actor: node.id,
        key: node.key.to_shared(),
        exit: exit.clone(),
    };
    match &node.owner {
        Owner::System | Owner::Dynamic { .. } => cell::finish(cell, exit, lost),
        Owner::Parent {
            cell: parent,
            incarnation,
        } => {
            cell::finish(cell, exit, lost);
            parent.system(System::Signal(ended()), Some(*incarnation));
        }
        Owner::Supervisor {
            cell: parent,
            incarnation,
        } => {
            cell::notify_links(node, node.record_exit(exit), exit);
            node.enter(Phase::Down);
            let overseer = parent.node().overseer();
            let answer = overseer.map(|one| one.child_down(parent.node(), cell, exit));
            match answer {
                Some(ExitOutcome::Restart((ready, place))) => {
                    // In a turn of its own: an actor that fails again and again must not occupy its
                    // worker.
                    node.shared.scheduler.push(ready, place);
                    // The actor may have been asked to stop just before it existed again.
                    if parent.node().children.is_closed() {
                        ask_to_stop(&**cell, parent.node().is_killed());
                    }
                }
                Some(ExitOutcome::Handled) => {}
                Some(ExitOutcome::NotifySupervisor) | None => {
                    // A supervisor that is ending its children restarts none, so nothing must wait
                    // for a restart.
                    let over = parent.node().children.is_closed();
                    if !over {
                        ring::went_down(node);
                    }
                    if over || !parent.system(System::Signal(ended()), Some(*incarnation)) {
                        cell::finish(cell, exit, None);
                    }
                }
            }
        }
    }
}

/// Runs a future; returns the message of a panic.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Arc<str>> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(panic_text(payload.as_ref()))),
        },
    )
    .await
}
