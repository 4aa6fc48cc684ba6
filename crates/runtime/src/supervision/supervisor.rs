//! A supervisor with children that are known by name: an actor that carries the decisions of
//! `strategy` out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::AnyRef;
use crate::cell::{self, ActorId, AnyCell, Node, Owner, Phase};
use crate::context::Context;
use crate::event::Event;
use crate::exit::Exit;
use crate::mailbox::MailboxSpec;
use crate::metric::Count;
use crate::monitor::Signal;
use crate::path::Key;
use crate::planted::{Bug, planted};
use crate::reply::Reply;
use crate::run;
use crate::supervision::address::{ChildError, ChildInfo};
use crate::supervision::backoff::Backoff;
use crate::supervision::child::ChildSpec;
use crate::supervision::fair::FairExits;
use crate::supervision::intensity::Intensity;
use crate::supervision::roster::{Kept, Roster, restarted};
use crate::supervision::spec::{Restart, Strategy};
use crate::supervision::strategy::{Child, Decision, Policy};
use crate::system::StartError;

/// What a supervisor does, and its first children.
///
/// Children start in this order, each when the one before has started, and stop in the reverse
/// order. Unless said otherwise, one restart more than three in five seconds is one too many.
///
/// The exit of a child overtakes the requests that wait for the supervisor. After each exit that it
/// answered, one request comes before the next exit: a child that fails again and again, without a
/// limit or a pause, keeps nobody from terminating it. A stop comes before both.
#[derive(Debug, Clone)]
#[must_use = "a specification starts nothing by itself"]
pub struct Supervisor {
    strategy: Strategy,
    intensity: (u32, Duration),
    backoff: Backoff,
    children: Vec<ChildSpec>,
}

impl Supervisor {
    /// A supervisor without children.
    pub const fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            intensity: (3, Duration::from_secs(5)),
            backoff: Backoff::NONE,
            children: Vec::new(),
        }
    }

    /// Says how many restarts within a period the supervisor carries out; with one more it ends
    /// its children and itself. [`u32::MAX`] is no limit.
    pub const fn intensity(mut self, restarts: u32, period: Duration) -> Self {
        self.intensity = (restarts, period);
        self
    }

    /// Says how long to wait before a restart.
    ///
    /// With [`Strategy::OneForOne`] the supervisor does not wait until a child that is restarted
    /// runs; otherwise it does, before it starts the next one or serves a request.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Adds a child.
    pub fn child(mut self, child: ChildSpec) -> Self {
        self.children.push(child);
        self
    }

    /// Adds a child that is a supervisor.
    pub fn supervisor(self, key: impl Into<Arc<str>>, supervisor: Self) -> Self {
        self.child(ChildSpec::supervisor(key, supervisor))
    }
}

/// What a supervisor is told to do.
pub(crate) enum SupervisorMsg {
    Start(Box<ChildSpec>, Reply<Result<AnyRef, ChildError>>),
    StartEach(Vec<ChildSpec>, Reply<Vec<Result<AnyRef, ChildError>>>),
    StartAll(Vec<ChildSpec>, Reply<Result<Vec<AnyRef>, ChildError>>),
    Restart(Arc<str>, Reply<Result<AnyRef, ChildError>>),
    Terminate(Arc<str>, Reply<Result<(), ChildError>>),
    Delete(Arc<str>, Reply<Result<(), ChildError>>),
    Which(Reply<Vec<ChildInfo>>),
    Count(Reply<usize>),
    /// The wait before a restart is over.
    Due(u64),
}

/// The actor behind a [`SupervisorRef`].
pub(crate) struct SupervisorActor {
    roster: Arc<Roster>,
    /// Exits of children that are still to be answered.
    exits: FairExits<(ActorId, Arc<str>)>,
    /// Restarts whose wait is not over: a number, and the places of the children to start.
    waiting: FxHashMap<u64, Vec<u64>>,
    next_wait: u64,
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMsg;
    type Args = Arc<Supervisor>;
    type Error = StartError;

    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    async fn pre_start(args: Arc<Supervisor>, cx: &mut Context<Self>) -> Result<Self, StartError> {
        let (restarts, period) = args.intensity;
        let roster = Arc::new(Roster::new(Policy {
            strategy: args.strategy,
            intensity: Intensity::new(restarts, period),
            backoff: args.backoff,
        }));
        let this = Self {
            roster: Arc::clone(&roster),
            exits: FairExits::new(),
            waiting: FxHashMap::default(),
            next_wait: 0,
        };
        cx.node().oversee(roster);
        for spec in &args.children {
            let place = this.add(spec.clone(), cx);
            match this.start(place, cx).await {
                Ok(_) | Err(StartError::Ignored { .. }) => {}
                Err(error) => {
                    if matches!(error, StartError::Closed { .. }) {
                        cx.leave(&Exit::Shutdown);
                    }
                    return Err(error);
                }
            }
        }
        this.roster.lock().busy = false;
        Ok(this)
    }

    async fn handle(
        &mut self,
        message: SupervisorMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), StartError> {
        self.roster.lock().busy = true;
        match message {
            SupervisorMsg::Start(spec, reply) => reply.send(self.start_new(*spec, cx).await),
            SupervisorMsg::StartEach(specs, reply) => reply.send(self.start_each(specs, cx).await),
            SupervisorMsg::StartAll(specs, reply) => reply.send(self.start_all(specs, cx).await),
            SupervisorMsg::Restart(key, reply) => reply.send(self.start_again(&key, cx).await),
            SupervisorMsg::Terminate(key, reply) => reply.send(self.terminate(&key, cx).await),
            SupervisorMsg::Delete(key, reply) => reply.send(self.delete(&key)),
            SupervisorMsg::Which(reply) => reply.send(self.which()),
            SupervisorMsg::Count(reply) => reply.send(self.roster.lock().len()),
            SupervisorMsg::Due(wait) => {
                if let Some(places) = self.waiting.remove(&wait) {
                    self.start_waiting(wait, places, cx).await;
                }
            }
        }
        self.exits.request_served();
        self.answer_exits(cx).await;
        self.roster.lock().busy = false;
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), StartError> {
        if let Signal::ChildEnded { actor, key, .. } = signal {
            self.exits.push((actor, key));
            self.roster.lock().busy = true;
            self.answer_exits(cx).await;
            self.roster.lock().busy = false;
        }
        Ok(())
    }
}

impl SupervisorActor {
    fn add(&self, spec: ChildSpec, cx: &Context<Self>) -> u64 {
        let place = cx.node().children.reserve();
        self.roster.lock().add(place, spec);
        place
    }

    fn place(&self, key: &Arc<str>) -> Result<u64, ChildError> {
        let place = self.roster.lock().place(key);
        place.ok_or_else(|| ChildError::Unknown {
            key: Arc::clone(key),
        })
    }

    /// Launches an incarnation of a child, in its cell if it has one.
    fn launch(&self, place: u64, cx: &Context<Self>) -> Result<Arc<dyn AnyCell>, StartError> {
        let mut entries = self.roster.lock();
        let kept = entries
            .get(place)
            .expect("children leave between two steps");
        let shared = &cx.node().shared;
        let cell = if let Some(cell) = &kept.cell {
            restarted(cell.node(), None);
            Arc::clone(cell)
        } else {
            let owner = Owner::Supervisor {
                cell: cx.any(),
                incarnation: cx.incarnation(),
            };
            let cell = kept.spec.cell(shared, owner, place)?;
            cell.node().started();
            kept.cell.insert(cell).clone()
        };
        if let Some((ready, place)) = kept.relaunch(&cell) {
            shared.scheduler.push(ready, place);
        }
        Ok(cell)
    }

    /// Starts an incarnation and waits until it runs, or until this supervisor is to stop: a
    /// child that hangs in its start must not keep it from that. A failure is also the child's
    /// exit, of which a signal tells. One that chose not to run is seen to here.
    async fn start(&self, place: u64, cx: &Context<Self>) -> Result<AnyRef, StartError> {
        let cell = self.launch(place, cx)?;
        let node = cell.node();
        if !started(cx, node).await {
            return Err(StartError::Closed { path: node.path() });
        }
        match node.phase() {
            Phase::Down | Phase::Ended => {
                let path = node.path();
                match node.last_exit().unwrap_or(Exit::Shutdown) {
                    Exit::Ignored => {
                        self.ignored(place, &cell);
                        Err(StartError::Ignored { path })
                    }
                    exit => Err(StartError::Failed { path, exit }),
                }
            }
            Phase::Starting | Phase::Running | Phase::Stopping => Ok(AnyRef(cell)),
        }
    }

    /// Ends the cell of a child that chose not to run. It keeps its place, unless it is temporary.
    fn ignored(&self, place: u64, cell: &Arc<dyn AnyCell>) {
        let mut entries = self.roster.lock();
        let mut removed = None;
        if let Some(kept) = entries.get(place) {
            kept.fact.running = false;
            let cell = kept.cell.take();
            removed = match kept.fact.restart {
                Restart::Temporary => entries.remove(place),
                Restart::Permanent | Restart::Transient => None,
            };
            drop(cell);
        }
        drop(entries);
        drop(removed);
        cell::finish(cell, &Exit::Ignored, None);
    }

    /// Starts children in order, up to the first that fails: its exit decides about the rest.
    ///
    /// Children that do not share their fate wait for nobody. Nor does anybody wait for them, or
    /// one that hangs in its start would keep the supervisor from its requests.
    async fn start_in_order(&self, places: &[u64], cx: &Context<Self>) {
        let alone = self.roster.lock().policy.strategy == Strategy::OneForOne;
        for &place in places {
            let idle = self
                .roster
                .lock()
                .get(place)
                .is_some_and(|kept| !kept.fact.running);
            if !idle {
                continue;
            }
            let started = match alone {
                true => self.launch(place, cx).map(drop),
                false => self.start(place, cx).await.map(drop),
            };
            if started.is_err_and(|error| !matches!(error, StartError::Ignored { .. })) {
                break;
            }
        }
    }

    /// Answers to exits, as far as it is their turn. A stop comes before them: what is down then
    /// ends with the supervisor.
    async fn answer_exits(&mut self, cx: &mut Context<Self>) {
        while cx.left().is_none() && !cx.is_told_to_stop() {
            let Some((actor, key)) = self.exits.next(|| cx.has_more()) else {
                break;
            };
            self.child_ended(actor, &key, cx).await;
        }
    }

    /// Starts those children that still wait for this restart.
    async fn start_waiting(&self, wait: u64, mut places: Vec<u64>, cx: &Context<Self>) {
        {
            let mut entries = self.roster.lock();
            places.retain(|&place| {
                let waits_for = entries.get(place).map(|kept| &mut kept.waits_for);
                waits_for
                    .is_some_and(|waits_for| waits_for.take_if(|for_it| *for_it == wait).is_some())
            });
        }
        self.start_in_order(&places, cx).await;
    }

    async fn child_ended(&mut self, actor: ActorId, key: &str, cx: &mut Context<Self>) {
        let Some((place, cell)) = self.fallen(actor, key) else {
            return;
        };
        let exit = cell.node().last_exit().unwrap_or(Exit::Shutdown);
        let (now, seed) = (cx.now(), cx.node().shared.next_seed());
        let (decision, places) = self.decide(place, &exit, now, seed);
        match decision {
            Decision::Nothing => {
                if let Some(kept) = self.roster.lock().get(place) {
                    kept.cell = None;
                }
                cell::finish(&cell, &exit, None);
            }
            Decision::Remove => {
                self.roster.lock().remove(place);
                cell::finish(&cell, &exit, None);
            }
            Decision::Escalate { stop: _ } => {
                let child = cell.node().path();
                let node = cx.node();
                node.shared
                    .events
                    .emit(Count::Escalated, || Event::Escalated {
                        path: node.path(),
                        exit: exit.clone(),
                    });
                // The children stop with this actor, the latest started first.
                cx.leave(&Exit::Escalated {
                    child,
                    exit: Arc::new(exit),
                });
            }
            Decision::Restart {
                stop,
                remove,
                start,
                after,
            } => {
                let of = |numbers: Vec<usize>| numbers.into_iter().map(|at| places[at]).collect();
                self.restart(of(stop), of(remove), of(start), after, cx)
                    .await;
            }
        }
    }

    /// The child that ended. One that this supervisor stopped, or started again since, has no
    /// news.
    fn fallen(&self, actor: ActorId, key: &str) -> Option<(u64, Arc<dyn AnyCell>)> {
        let mut entries = self.roster.lock();
        let place = entries.place(key)?;
        let kept = entries.get(place)?;
        let cell = kept.cell.as_ref()?;
        let news = cell.node().id == actor && kept.fact.running;
        (news && cell.node().phase() == Phase::Down).then(|| (place, Arc::clone(cell)))
    }

    /// Asks the strategy; its numbers stand for places in the list that comes with the answer.
    fn decide(&self, place: u64, exit: &Exit, now: Instant, seed: u64) -> (Decision, Vec<u64>) {
        let mut guard = self.roster.lock();
        let entries = &mut *guard;
        let (places, mut facts): (Vec<u64>, Vec<Child>) =
            if entries.policy.strategy == Strategy::OneForOne {
                let kept = entries.get(place).expect("it was just found");
                (vec![place], vec![kept.fact.clone()])
            } else {
                let facts = entries.iter();
                facts
                    .map(|(place, kept)| (place, kept.fact.clone()))
                    .unzip()
            };
        let failed = places.binary_search(&place).expect("it is one of them");
        let decision = entries.policy.on_exit(&mut facts, failed, exit, now, seed);
        let kept = entries.get(place).expect("it was just found");
        kept.fact = facts.swap_remove(failed);
        (decision, places)
    }

    async fn restart(
        &mut self,
        stop: Vec<u64>,
        remove: Vec<u64>,
        start: Vec<u64>,
        after: Duration,
        cx: &mut Context<Self>,
    ) {
        for place in stop {
            let cell = self.roster.lock().get(place).and_then(|kept| {
                // Before it is stopped, so that its end is no news.
                kept.fact.running = false;
                kept.cell.clone()
            });
            if let Some(cell) = cell
                && !planted(Bug::IncarnationsOverlap)
            {
                run::down_child(cx.node(), &cell).await;
            }
        }
        for place in remove {
            let removed = self.roster.lock().remove(place);
            if let Some(cell) = removed.and_then(|kept| kept.cell) {
                let exit = cell.node().last_exit().unwrap_or(Exit::Shutdown);
                cell::finish(&cell, &exit, None);
            }
        }
        let wait = (!after.is_zero()).then_some(self.next_wait);
        {
            let mut entries = self.roster.lock();
            for &place in &start {
                if let Some(kept) = entries.get(place) {
                    kept.waits_for = wait;
                }
            }
        }
        let Some(wait) = wait else {
            self.start_in_order(&start, cx).await;
            return;
        };
        self.next_wait += 1;
        self.waiting.insert(wait, start);
        cx.send_after(after, SupervisorMsg::Due(wait));
    }

    async fn start_new(&self, spec: ChildSpec, cx: &Context<Self>) -> Result<AnyRef, ChildError> {
        if self.roster.lock().place(&spec.key).is_some() {
            let path = cx.path().below(&Key::from(spec.key));
            return Err(StartError::Taken { path }.into());
        }
        let place = self.add(spec, cx);
        let started = self.start(place, cx).await;
        if let Err(error) = &started
            && !matches!(error, StartError::Ignored { .. })
        {
            // Nobody relies on it yet: the caller decides whether to try again.
            let removed = self.roster.lock().remove(place);
            discard(removed.and_then(|kept| kept.cell));
        }
        Ok(started?)
    }

    async fn start_each(
        &self,
        specs: Vec<ChildSpec>,
        cx: &Context<Self>,
    ) -> Vec<Result<AnyRef, ChildError>> {
        let mut results = Vec::with_capacity(specs.len());
        for spec in specs {
            results.push(self.start_new(spec, cx).await);
        }
        results
    }

    async fn start_all(
        &self,
        specs: Vec<ChildSpec>,
        cx: &Context<Self>,
    ) -> Result<Vec<AnyRef>, ChildError> {
        let mut started = Vec::with_capacity(specs.len());
        let mut keys = Vec::with_capacity(specs.len());
        for spec in specs {
            let key = Arc::clone(&spec.key);
            match self.start_new(spec, cx).await {
                Ok(child) => started.push(child),
                Err(ChildError::Start(StartError::Ignored { .. })) => {}
                Err(error) => {
                    self.undo(keys, cx).await;
                    return Err(error);
                }
            }
            keys.push(key);
        }
        Ok(started)
    }

    /// Ends children that were just started, the latest first, and takes their places away.
    async fn undo(&self, keys: Vec<Arc<str>>, cx: &Context<Self>) {
        for key in keys.into_iter().rev() {
            let removed = {
                let mut entries = self.roster.lock();
                let place = entries.place(&key);
                place.and_then(|place| entries.remove(place))
            };
            if let Some(cell) = removed.and_then(|kept| kept.cell) {
                run::end_child(cx.node(), &cell).await;
            }
        }
    }

    async fn start_again(&self, key: &Arc<str>, cx: &Context<Self>) -> Result<AnyRef, ChildError> {
        let place = self.place(key)?;
        let running = self
            .roster
            .lock()
            .get(place)
            .is_some_and(|kept| kept.fact.running || kept.waits_for.is_some());
        if running {
            return Err(ChildError::Running {
                key: Arc::clone(key),
            });
        }
        let started = self.start(place, cx).await;
        if started.is_err() {
            // The caller is told, and decides whether to try again.
            let cell = self.roster.lock().get(place).and_then(|kept| {
                kept.fact.running = false;
                kept.cell.take()
            });
            discard(cell);
        }
        Ok(started?)
    }

    async fn terminate(&self, key: &Arc<str>, cx: &Context<Self>) -> Result<(), ChildError> {
        let place = self.place(key)?;
        let (cell, temporary) = {
            let mut entries = self.roster.lock();
            let kept = entries.get(place).expect("its key leads to it");
            kept.waits_for = None;
            kept.fact.running = false;
            let temporary = kept.fact.restart == Restart::Temporary;
            (kept.cell.take(), temporary)
        };
        if let Some(cell) = cell {
            run::end_child(cx.node(), &cell).await;
        }
        if temporary {
            self.roster.lock().remove(place);
        }
        Ok(())
    }

    fn delete(&self, key: &Arc<str>) -> Result<(), ChildError> {
        let place = self.place(key)?;
        let mut entries = self.roster.lock();
        if entries.get(place).is_some_and(|kept| kept.cell.is_some()) {
            return Err(ChildError::Running {
                key: Arc::clone(key),
            });
        }
        let removed = entries.remove(place);
        drop(entries);
        drop(removed);
        Ok(())
    }

    fn which(&self) -> Vec<ChildInfo> {
        let entries = self.roster.lock();
        let info = |(_, child): (u64, &Kept)| ChildInfo {
            key: Arc::clone(&child.spec.key),
            restart: child.spec.restart,
            actor: child.cell.clone().map(AnyRef),
        };
        entries.iter().map(info).collect()
    }
}

/// Waits until a child runs or is down; false when this supervisor is to stop before that.
async fn started(cx: &Context<SupervisorActor>, child: &Node) -> bool {
    let me = cx.cell();
    let mut started = pin!(child.reached(|phase| !matches!(phase, Phase::Starting)));
    poll_fn(|task| match started.as_mut().poll(task) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending => me.mailbox.poll_stop().map(|()| false),
    })
    .await
}

/// Ends the cell of a child that did not start. One that still tries to, as its supervisor is to
/// stop, ends with the supervisor.
fn discard(cell: Option<Arc<dyn AnyCell>>) {
    if let Some(cell) = cell.filter(|cell| cell.node().phase() == Phase::Down) {
        let exit = cell.node().last_exit().unwrap_or(Exit::Shutdown);
        cell::finish(&cell, &exit, None);
    }
}
