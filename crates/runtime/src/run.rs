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
use crate::cell::{self, AnyCell, Cell, Kind, Node, Owner, Phase};
use crate::context::Context;
use crate::event::Event;
use crate::exit::{BoxError, Exit, discard_one, panic_text};
use crate::mailbox::{Idle, Lanes, Look, Next, System};
use crate::metric::Count;
use crate::monitor::Signal;
use crate::path::Path;
use crate::planted::{Bug, planted};
use crate::ring;
use crate::schedule::strand::{self, Held, Host, Life, Mark, Ready, Step, Strand, Whole};
use crate::strike::{Hook, Strike, strike, strikes};
use crate::supervision::{Answer, Overseer};
use crate::trace;
use stop::{ask_to_stop, end_children};
pub(crate) use stop::{down_child, end_child, end_top};

/// Starts an incarnation.
pub(crate) fn launch<A: Actor>(cell: &Arc<Cell<A::Msg>>, args: A::Args) {
    if let Some((ready, place)) = prepare::<A>(cell, args) {
        cell.node.shared.scheduler.push(ready, place);
    }
}

/// Starts an incarnation that its spawner is likely to wait for: its first turn comes near the
/// caller.
pub(crate) fn launch_near<A: Actor>(cell: &Arc<Cell<A::Msg>>, args: A::Args) {
    if let Some((ready, place)) = prepare::<A>(cell, args) {
        cell.node.shared.scheduler.push_near(ready, place);
    }
}

/// Makes an incarnation ready to run; whoever has it queues it.
pub(crate) fn prepare<A: Actor>(cell: &Arc<Cell<A::Msg>>, args: A::Args) -> Option<Idle> {
    let restarts = cell.node.rise()?;
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
        Lanes::begin,
        |incarnation, cell| Incarnation::<A> {
            stage: Stage::Fresh(args),
            cx: Context::new(cell, incarnation),
        },
    )?;
    Some((ready, place))
}

impl<M: Send + 'static> Host for Cell<M> {
    type Data = Lanes<M>;

    fn strand(&self) -> &Strand<Lanes<M>> {
        self.mailbox.strand()
    }

    fn queue(&self, ready: Ready, place: u32) {
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

    fn mark(&self) -> Mark {
        Mark {
            system: Arc::as_ptr(&self.node.shared).addr(),
            actor: self.node.id.to_bits(),
        }
    }

    fn ended(&self, lanes: Held<'_, Lanes<M>>) -> Option<u64> {
        let last = !matches!(self.node.owner, Owner::Supervisor { .. });
        self.mailbox.ended(lanes, last)
    }

    fn over(self: Arc<Self>, exit: Option<&Exit>, lost: Option<u64>, place: u32) {
        let any: Arc<dyn AnyCell> = self;
        match exit {
            Some(exit) => settle(&any, exit, lost),
            // Its tokio runtime is going down.
            None => cell::finish(&any, &Exit::Killed, lost),
        }
        any.node().shared.scheduler.release(place);
    }
}

/// What is the same for all actors of this type.
pub(crate) fn kind<A: Actor>() -> Kind {
    Kind {
        name: std::any::type_name::<A>(),
        apart: strand::apart::<Incarnation<A>>(),
    }
}

/// What an incarnation keeps between two turns.
struct Incarnation<A: Actor> {
    stage: Stage<A>,
    cx: Context<A>,
}

enum Stage<A: Actor> {
    Fresh(A::Args),
    Grown(A),
    Gone,
}

/// What an incarnation does besides handling messages.
enum Errand<A: Actor> {
    /// Tells the actor its news.
    Hear(Signal),
    /// Handles a message while somebody traces the actor, or a test lets it fail.
    Watched(A::Msg, Strike),
}

impl<A: Actor> Life<Cell<A::Msg>> for Incarnation<A> {
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
        lanes: Option<Held<'_, Lanes<A::Msg>>>,
        task: &task::Context<'_>,
        message: &mut Option<Whole<A::Msg>>,
        exit: &mut Option<Exit>,
    ) -> Step<Errand<A>> {
        // The last one was.
        self.cx.handling = false;
        let mut more = lanes;
        if !self.is_special(cell) {
            match self.stage {
                // What the last incarnation left.
                Stage::Grown(_) if more.is_none() && self.cx.is_ready() => return Step::Message,
                Stage::Grown(_) => match self.cx.look(more, message) {
                    Look::Message => {
                        self.cx.handling = true;
                        return Step::Message;
                    }
                    Look::Rest => return Step::Rest,
                    Look::More(lanes) => more = lanes,
                },
                Stage::Fresh(_) => return Step::Grow,
                Stage::Gone => {}
            }
        }
        let step = self.decide(cell, more, task, message, exit);
        self.cx.handling = message.is_some() || matches!(step, Step::Errand(Errand::Watched(..)));
        step
    }

    #[inline(always)]
    fn handle<'a>(
        &'a mut self,
        _: &'a Cell<A::Msg>,
        message: &mut Option<Whole<A::Msg>>,
    ) -> Option<impl Future<Output = Result<(), A::Error>> + Send + use<'a, A>> {
        let Stage::Grown(actor) = &mut self.stage else {
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

    async fn grow(&mut self, _: &Cell<A::Msg>) -> Result<(), Exit> {
        let Self { stage, cx } = self;
        if let Stage::Fresh(args) = mem::replace(stage, Stage::Gone) {
            *stage = Stage::Grown(grow(args, cx).await?);
            // One that chose not to run goes from its start to its end, and so nobody takes it for
            // one that ran.
            if cx.left().is_none() {
                cx.node().enter(Phase::Running);
            }
        }
        Ok(())
    }

    async fn run(&mut self, _: &Cell<A::Msg>, errand: Errand<A>) -> Result<(), Exit> {
        let Self { stage, cx } = self;
        match (errand, stage) {
            (Errand::Hear(signal), Stage::Grown(actor)) => {
                hear(actor, signal, cx).await.map_err(Exit::failed)
            }
            (Errand::Watched(message, strike), Stage::Grown(actor)) => {
                strike.suffer(cx.node()).await.map_err(Exit::failed)?;
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
            (_, Stage::Fresh(_) | Stage::Gone) => Err(Exit::Killed),
        }
    }

    fn begin_end(&mut self, cell: &Cell<A::Msg>, exit: &Exit) -> bool {
        let (cx, node) = (&self.cx, &cell.node);
        cx.explain(exit);
        // One that never ran is starting until it is down: whoever waits for its start would take
        // it for one that ran.
        if node.phase() == Phase::Running {
            node.enter(Phase::Stopping);
        }
        let count = if cx.handling { cx.at_stake() } else { 0 };
        if count > 0 && !planted(Bug::DeadLetterUnreported) {
            let shared = &node.shared;
            shared
                .events
                .emit(Count::DeadLetters(count), || Event::DeadLetter {
                    path: node.path(),
                    count,
                    exit: exit.clone(),
                });
        }
        !node.children.shut_if_none() || cx.has_tasks()
    }

    async fn end(&mut self, cell: &Cell<A::Msg>, exit: Exit) -> Result<(), Exit> {
        end_children(&cell.node).await;
        self.cx.end_tasks().await;
        self.last(cell, exit).await
    }

    async fn last(&mut self, cell: &Cell<A::Msg>, mut exit: Exit) -> Result<(), Exit> {
        let (Self { stage, cx }, node) = (self, &cell.node);
        if matches!(stage, Stage::Grown(_)) && !is_shown::<A>(node, &exit).await {
            discard_one(mem::replace(stage, Stage::Gone));
        }
        if let Stage::Grown(value) = mem::replace(stage, Stage::Gone) {
            {
                // Made where it is worked on: the value is copied once.
                let hook = pin!(Some(value.post_stop(&exit, cx)));
                is_whole(node, &guard(node, hook).await);
            }
            // It may have started some.
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
        // Those who count and log are foreign code.
        let will = known.map(|exit| catch_unwind(AssertUnwindSafe(|| self.inherit(cell, exit))));
        let Some(Ok(Some((args, overseer)))) = will else {
            self.cx.give_back();
            return false;
        };
        self.stage = Stage::Fresh(args);
        let node = &cell.node;
        // What it is told from here on is meant for the next one.
        let stopped = self.cx.renew();
        let unwanted = stopped && !overseer.keeps(node) && !planted(Bug::StopLostInRestart);
        let links = node.succeed(exit.take().unwrap_or(Exit::Killed), overseer);
        if !links.is_empty() {
            let exit = node.last_exit().unwrap_or(Exit::Killed);
            cell::part(node, links, &exit);
        }
        // It may have been asked to stop just before it was there again: with all its siblings, or
        // alone, for good.
        if let Owner::Supervisor { cell: parent, .. } = &node.owner
            && (unwanted || parent.node().children.is_shut())
        {
            ask_to_stop(cell, parent.node().is_killed());
        }
        true
    }
}

impl<A: Actor> Incarnation<A> {
    /// What another incarnation that follows at once is made from, and who said so; none if there
    /// is none.
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
        let again = overseer.succeeds(parent.node(), node, exit, &mut take);
        args.filter(|_| again).map(|args| (args, overseer))
    }

    /// Whether something else than its mailbox says what is to be done.
    #[inline(always)]
    fn is_special(&self, cell: &Cell<A::Msg>) -> bool {
        self.cx.is_special() || cell.node.is_marked() || strikes(&cell.node)
    }

    /// Decides what is to be done, whatever may be.
    #[cold]
    fn decide(
        &mut self,
        cell: &Cell<A::Msg>,
        mut lanes: Option<Held<'_, Lanes<A::Msg>>>,
        task: &task::Context<'_>,
        to: &mut Option<Whole<A::Msg>>,
        exit: &mut Option<Exit>,
    ) -> Step<Errand<A>> {
        let mut end = |why| {
            *exit = Some(why);
            Step::End
        };
        if cell.node.is_killed() {
            return end(Exit::Killed);
        }
        match self.stage {
            Stage::Grown(_) => {}
            Stage::Fresh(_) => return Step::Grow,
            Stage::Gone => return end(Exit::Killed),
        }
        loop {
            if let Some(why) = self.cx.left() {
                return end(why);
            }
            if lanes.as_mut().is_some_and(|lanes| lanes.take_stop()) {
                return end(Exit::Shutdown);
            }
            let message = match self.cx.poll_next(lanes.take(), task) {
                Poll::Pending => return Step::Rest,
                Poll::Ready(Next::Message(message) | Next::Piped(_, message)) => message,
                Poll::Ready(Next::Expired(_)) => continue,
                Poll::Ready(Next::Stop) => return end(Exit::Shutdown),
                Poll::Ready(Next::System(news)) => match *news {
                    System::Stop(why) => return end(why),
                    // Past the panic hook: an ordered panic is no news.
                    System::Panic(message) => resume_unwind(Box::new(String::from(&*message))),
                    news => match self.cx.signal(news) {
                        Some(signal) => return Step::Errand(Errand::Hear(signal)),
                        None => continue,
                    },
                },
            };
            let strike = strike(&cell.node, Hook::Handle);
            if cell.node.is_traced() || strike.is_due() {
                return Step::Errand(Errand::Watched(message, strike));
            }
            *to = Some(Whole::new(message));
            return Step::Message;
        }
    }
}

/// Makes the value.
async fn grow<A: Actor>(args: A::Args, cx: &mut Context<A>) -> Result<A, Exit> {
    let struck = strike(cx.node(), Hook::PreStart).suffer(cx.node()).await;
    struck.map_err(Exit::failed)?;
    match A::pre_start(args, cx).await {
        Ok(actor) => {
            if matches!(cx.left(), Some(Exit::Normal)) && !planted(Bug::IgnoredStartIsAnEnd) {
                cx.leave(&Exit::Ignored);
            }
            Ok(actor)
        }
        // A supervisor that was stopped before all children had started did not fail.
        Err(_) if matches!(cx.left(), Some(Exit::Shutdown)) => Err(Exit::Shutdown),
        Err(error) => Err(Exit::failed(error)),
    }
}

/// Tells the actor its news.
async fn hear<A: Actor>(
    actor: &mut A,
    signal: Signal,
    cx: &mut Context<A>,
) -> Result<(), BoxError> {
    strike(cx.node(), Hook::Signal).suffer(cx.node()).await?;
    if cx.node().is_traced() {
        trace::signal(cx.node(), &signal);
    }
    actor.signal(signal, cx).await.map_err(Into::into)
}

/// Whether `post_stop` gets the value: not after a kill, and after a panic if the actor says so.
async fn is_shown<A: Actor>(node: &Node, exit: &Exit) -> bool {
    let lost = matches!(exit, Exit::Panicked(_)) && !A::SURVIVES_PANIC;
    if lost || node.is_killed() {
        return false;
    }
    let strike = strike(node, Hook::PostStop);
    if !strike.is_due() {
        return true;
    }
    let struck = pin!(Some(strike.suffer(node)));
    is_whole(node, &guard(node, struck).await)
}

/// Whether the last hook came to its end. A panic is logged.
fn is_whole<T>(node: &Node, done: &Result<T, Exit>) -> bool {
    if let Err(Exit::Panicked(message)) = done {
        tracing::error!(path = %node.path(), panic = %message, "panic in post_stop");
    }
    done.is_ok()
}

/// Drives the last hook: a panic becomes an exit, and a kill ends it at its next await.
///
/// The future stays where its owner pinned it, or there would be room for it twice.
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

/// Tells the owner of the end of an incarnation, or ends the actor if the owner has no say.
pub(crate) fn settle(cell: &Arc<dyn AnyCell>, exit: &Exit, lost: Option<u64>) {
    let node = cell.node();
    let ended = || Signal::ChildEnded {
        actor: node.id,
        key: node.key.to_shared(),
        exit: exit.clone(),
    };
    match &node.owner {
        Owner::System | Owner::Keeper { .. } => cell::finish(cell, exit, lost),
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
            cell::part(node, node.fall(exit), exit);
            node.enter(Phase::Down);
            let overseer = parent.node().overseer();
            let answer = overseer.map(|one| one.child_down(parent.node(), cell, exit));
            match answer {
                Some(Answer::Again((ready, place))) => {
                    // On a turn of its own: one that fails again and again must not hold its
                    // worker.
                    node.shared.scheduler.push(ready, place);
                    // It may have been asked to stop just before it was there again.
                    if parent.node().children.is_shut() {
                        ask_to_stop(&**cell, parent.node().is_killed());
                    }
                }
                Some(Answer::Done) => {}
                Some(Answer::Tell) | None => {
                    // One that ends its children starts none again: nobody is to wait for it.
                    let over = parent.node().children.is_shut();
                    if over || !parent.system(System::Signal(ended()), Some(*incarnation)) {
                        cell::finish(cell, exit, None);
                    }
                }
            }
        }
    }
}

/// Runs a future; a panic comes back as its message.
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
