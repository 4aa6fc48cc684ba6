//! A supervisor whose children have keys: carries out the decisions of the `strategy` module.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::AnyRef;
use crate::cell::{self, ActorCore, ActorId, ErasedCell, Owner, Phase, PhaseGoal};
use crate::context::Context;
use crate::exit::Exit;
use crate::mailbox::MailboxSpec;
use crate::monitor::Signal;
use crate::path::Key;
use crate::reply::Reply;
use crate::run;
use crate::seeded_bug::{Bug, seeded};
use crate::supervision::address::{ChildError, ChildInfo};
use crate::supervision::backoff::Backoff;
use crate::supervision::child::ChildSpec;
use crate::supervision::child_table::{ChildEntry, ChildTable, escalate, report_restart};
use crate::supervision::fair_exit_queue::FairExitQueue;
use crate::supervision::intensity::{DEFAULT_INTENSITY, RestartIntensity};
use crate::supervision::spec::{Restart, Strategy};
use crate::supervision::strategy::{ChildState, GroupDecision, SupervisionPolicy};
use crate::system::StartError;

/// The specification of a supervisor and its first children.
///
/// Children start in the order given, each after the previous one has started, and stop in the
/// reverse order. By default the supervisor allows three restarts within five seconds.
///
/// The exit of a child overtakes pending requests. After each exit that the supervisor has
/// answered, it serves one request before the next exit, so a child that fails again and again,
/// without a limit or a backoff, cannot prevent callers from terminating it. A stop takes
/// precedence over both.
#[derive(Debug, Clone)]
#[must_use = "a specification starts nothing by itself"]
pub struct Supervisor {
    strategy: Strategy,
    intensity: (u32, Duration),
    backoff: Backoff,
    children: Vec<ChildSpec>,
}

impl Supervisor {
    /// Creates the specification of a supervisor without children.
    pub const fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            intensity: DEFAULT_INTENSITY,
            backoff: Backoff::NONE,
            children: Vec::new(),
        }
    }

    /// Sets how many restarts the supervisor carries out within a period. One more ends its
    /// children and the supervisor itself. [`u32::MAX`] means no limit.
    pub const fn intensity(mut self, restarts: u32, period: Duration) -> Self {
        self.intensity = (restarts, period);
        self
    }

    /// Sets the delay before a restart.
    ///
    /// With [`Strategy::OneForOne`] the supervisor does not wait until a restarted child runs. With
    /// the other strategies it does, before it starts the next child or serves a request.
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

/// A request to a supervisor.
pub(crate) enum SupervisorMsg {
    Start(Box<ChildSpec>, Reply<Result<AnyRef, ChildError>>),
    StartEach(Vec<ChildSpec>, Reply<Vec<Result<AnyRef, ChildError>>>),
    StartAll(Vec<ChildSpec>, Reply<Result<Vec<AnyRef>, ChildError>>),
    Restart(Arc<str>, Reply<Result<AnyRef, ChildError>>),
    Terminate(Arc<str>, Reply<Result<(), ChildError>>),
    Delete(Arc<str>, Reply<Result<(), ChildError>>),
    ListChildren(Reply<Vec<ChildInfo>>),
    Count(Reply<usize>),
    /// The delay before a restart is over.
    RestartDue(u64),
}

/// The actor behind a [`SupervisorRef`].
pub(crate) struct SupervisorActor {
    table: Arc<ChildTable>,
    /// Exits of children that have yet to be answered.
    exits: FairExitQueue<(ActorId, Arc<str>)>,
    /// Delayed restarts: the number of each restart, and the places of the children to start.
    delayed_restarts: FxHashMap<u64, Vec<u64>>,
    next_delayed_restart: u64,
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMsg;
    type Args = Arc<Supervisor>;
    type Error = StartError;

    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    async fn pre_start(args: Arc<Supervisor>, cx: &mut Context<Self>) -> Result<Self, StartError> {
        let table = Arc::new(ChildTable::new(SupervisionPolicy {
            strategy: args.strategy,
            intensity: RestartIntensity::new(args.intensity),
            backoff: args.backoff,
        }));
        let this = Self {
            table: Arc::clone(&table),
            exits: FairExitQueue::new(),
            delayed_restarts: FxHashMap::default(),
            next_delayed_restart: 0,
        };
        cx.node().set_child_policy(table);
        for spec in &args.children {
            let place = this.add(spec.clone(), cx);
            match this.start(place, cx).await {
                Ok(_) | Err(StartError::Ignored { .. }) => {}
                Err(error) => {
                    if matches!(error, StartError::ParentEnding { .. }) {
                        cx.request_exit(&Exit::Shutdown);
                    }
                    return Err(error);
                }
            }
        }
        this.table.lock().supervisor_busy = false;
        Ok(this)
    }

    async fn handle(
        &mut self,
        message: SupervisorMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), StartError> {
        self.table.lock().supervisor_busy = true;
        match message {
            SupervisorMsg::Start(spec, reply) => reply.send(self.start_new(*spec, cx).await),
            SupervisorMsg::StartEach(specs, reply) => reply.send(self.start_each(specs, cx).await),
            SupervisorMsg::StartAll(specs, reply) => reply.send(self.start_all(specs, cx).await),
            SupervisorMsg::Restart(key, reply) => {
                reply.send(self.restart_on_request(&key, cx).await)
            }
            SupervisorMsg::Terminate(key, reply) => reply.send(self.terminate(&key, cx).await),
            SupervisorMsg::Delete(key, reply) => reply.send(self.delete(&key)),
            SupervisorMsg::ListChildren(reply) => reply.send(self.child_infos()),
            SupervisorMsg::Count(reply) => reply.send(self.table.lock().len()),
            SupervisorMsg::RestartDue(wait) => {
                if let Some(places) = self.delayed_restarts.remove(&wait) {
                    self.start_waiting(wait, places, cx).await;
                }
            }
        }
        self.exits.request_served();
        self.answer_exits(cx).await;
        self.table.lock().supervisor_busy = false;
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), StartError> {
        if let Signal::ChildEnded { actor, key, .. } = signal {
            self.exits.push((actor, key));
            self.table.lock().supervisor_busy = true;
            self.answer_exits(cx).await;
            self.table.lock().supervisor_busy = false;
        }
        Ok(())
    }
}

impl SupervisorActor {
    fn add(&self, spec: ChildSpec, cx: &Context<Self>) -> u64 {
        let place = cx.node().children.reserve();
        self.table.lock().add(place, spec);
        place
    }

    fn place(&self, key: &Arc<str>) -> Result<u64, ChildError> {
        let place = self.table.lock().index_of(key);
        place.ok_or_else(|| ChildError::Unknown {
            key: Arc::clone(key),
        })
    }

    /// Launches an incarnation of a child, in the child's cell if it has one.
    fn launch(&self, place: u64, cx: &Context<Self>) -> Result<Arc<dyn ErasedCell>, StartError> {
        let mut entries = self.table.lock();
        let entry = entries
            .get(place)
            .expect("children leave between two steps");
        let shared = &cx.node().shared;
        let cell = if let Some(cell) = &entry.cell {
            report_restart(cell.core(), None);
            Arc::clone(cell)
        } else {
            let owner = Owner::Supervisor {
                cell: cx.erased(),
                incarnation: cx.incarnation(),
            };
            let cell = entry.spec.create_cell(shared, owner, place)?;
            cell.core().report_started();
            entry.cell.insert(cell).clone()
        };
        if let Some((ready, place)) = entry.prepare_restart(&cell) {
            shared.scheduler.push(ready, place);
        }
        Ok(cell)
    }

    /// Starts an incarnation and waits until it is running, or until this supervisor is asked to
    /// stop: a child that hangs in its start must not prevent that.
    ///
    /// A failure is also the child's exit, which is reported to this supervisor by a signal. A
    /// child that chose not to run is dealt with here.
    async fn start(&self, place: u64, cx: &Context<Self>) -> Result<AnyRef, StartError> {
        let cell = self.launch(place, cx)?;
        let node = cell.core();
        if !wait_started(cx, node).await {
            return Err(StartError::ParentEnding { path: node.path() });
        }
        match node.phase() {
            Phase::Down | Phase::Ended => {
                let path = node.path();
                match node.last_exit().unwrap_or(Exit::Shutdown) {
                    Exit::Ignored => {
                        self.on_ignored(place, &cell);
                        Err(StartError::Ignored { path })
                    }
                    exit => Err(StartError::Failed { path, exit }),
                }
            }
            Phase::Starting | Phase::Running | Phase::Stopping => Ok(AnyRef(cell)),
        }
    }

    /// Ends the cell of a child that chose not to run, and removes the child if it is temporary.
    fn on_ignored(&self, place: u64, cell: &Arc<dyn ErasedCell>) {
        let mut entries = self.table.lock();
        let mut removed = None;
        if let Some(entry) = entries.get(place) {
            entry.state.running = false;
            let cell = entry.cell.take();
            removed = match entry.state.restart {
                Restart::Temporary => entries.remove(place),
                Restart::Permanent | Restart::Transient => None,
            };
            drop(cell);
        }
        drop(entries);
        drop(removed);
        cell::end_actor(cell, &Exit::Ignored, None);
    }

    /// Starts children in order, up to the first that fails; its exit then decides about the rest.
    ///
    /// With the one-for-one strategy the supervisor does not wait for any of them to start: a child
    /// that hangs in its start would keep the supervisor from its requests.
    async fn start_in_order(&self, places: &[u64], cx: &Context<Self>) {
        let alone = self.table.lock().policy.strategy == Strategy::OneForOne;
        for &place in places {
            let idle = self
                .table
                .lock()
                .get(place)
                .is_some_and(|entry| !entry.state.running);
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

    /// Answers exits while it is their turn. A stop comes first and ends children that are down.
    async fn answer_exits(&mut self, cx: &mut Context<Self>) {
        while cx.requested_exit().is_none() && !cx.has_stop_request() {
            let Some((actor, key)) = self.exits.next(|| cx.has_messages()) else {
                break;
            };
            self.child_ended(actor, &key, cx).await;
        }
    }

    /// Starts those of the children that still wait for this restart.
    async fn start_waiting(&self, wait: u64, mut places: Vec<u64>, cx: &Context<Self>) {
        {
            let mut entries = self.table.lock();
            places.retain(|&place| {
                let waits_for = entries.get(place).map(|entry| &mut entry.pending_restart);
                waits_for
                    .is_some_and(|waits_for| waits_for.take_if(|for_it| *for_it == wait).is_some())
            });
        }
        self.start_in_order(&places, cx).await;
    }

    async fn child_ended(&mut self, actor: ActorId, key: &str, cx: &mut Context<Self>) {
        let Some((place, cell)) = self.current_child_exit(actor, key) else {
            return;
        };
        let exit = cell.core().last_exit().unwrap_or(Exit::Shutdown);
        let (now, seed) = (cx.now(), cx.node().shared.next_seed());
        let (decision, places) = self.decide(place, &exit, now, seed);
        match decision {
            GroupDecision::Nothing => {
                if let Some(entry) = self.table.lock().get(place) {
                    entry.cell = None;
                }
                cell::end_actor(&cell, &exit, None);
            }
            GroupDecision::Remove => {
                self.table.lock().remove(place);
                cell::end_actor(&cell, &exit, None);
            }
            GroupDecision::Escalate { stop: _ } => {
                // The children are stopped together with this actor, the latest started first.
                escalate(cell.core().path(), exit, cx);
            }
            GroupDecision::Restart {
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

    /// Returns the place and cell of the child that ended. Returns `None` if this supervisor has
    /// stopped or restarted the child in the meantime, so that the exit is obsolete.
    fn current_child_exit(&self, actor: ActorId, key: &str) -> Option<(u64, Arc<dyn ErasedCell>)> {
        let mut entries = self.table.lock();
        let place = entries.index_of(key)?;
        let entry = entries.get(place)?;
        let cell = entry.cell.as_ref()?;
        let news = cell.core().id == actor && entry.state.running;
        (news && cell.core().phase() == Phase::Down).then(|| (place, Arc::clone(cell)))
    }

    /// Asks the strategy for a decision, whose indices refer to the returned list of places.
    fn decide(
        &self,
        place: u64,
        exit: &Exit,
        now: Instant,
        seed: u64,
    ) -> (GroupDecision, Vec<u64>) {
        let mut guard = self.table.lock();
        let entries = &mut *guard;
        let (places, mut states): (Vec<u64>, Vec<ChildState>) =
            if entries.policy.strategy == Strategy::OneForOne {
                let entry = entries.get(place).expect("it was just found");
                (vec![place], vec![entry.state.clone()])
            } else {
                let states = entries.iter();
                states
                    .map(|(place, entry)| (place, entry.state.clone()))
                    .unzip()
            };
        let failed = places.binary_search(&place).expect("it is one of them");
        let decision = entries.policy.decide(&mut states, failed, exit, now, seed);
        let entry = entries.get(place).expect("it was just found");
        entry.state = states.swap_remove(failed);
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
            let cell = self.table.lock().get(place).and_then(|entry| {
                // Before the child is stopped, so that its exit is not taken for a failure.
                entry.state.running = false;
                entry.cell.clone()
            });
            if let Some(cell) = cell
                && !seeded(Bug::IncarnationsOverlap)
            {
                run::stop_incarnation(cx.node(), &cell).await;
            }
        }
        for place in remove {
            let removed = self.table.lock().remove(place);
            if let Some(cell) = removed.and_then(|entry| entry.cell) {
                let exit = cell.core().last_exit().unwrap_or(Exit::Shutdown);
                cell::end_actor(&cell, &exit, None);
            }
        }
        let wait = (!after.is_zero()).then_some(self.next_delayed_restart);
        {
            let mut entries = self.table.lock();
            for &place in &start {
                if let Some(entry) = entries.get(place) {
                    entry.pending_restart = wait;
                }
            }
        }
        let Some(wait) = wait else {
            self.start_in_order(&start, cx).await;
            return;
        };
        self.next_delayed_restart += 1;
        self.delayed_restarts.insert(wait, start);
        cx.send_after(after, SupervisorMsg::RestartDue(wait));
    }

    async fn start_new(&self, spec: ChildSpec, cx: &Context<Self>) -> Result<AnyRef, ChildError> {
        if self.table.lock().index_of(&spec.key).is_some() {
            let path = cx.path().child(&Key::from(spec.key));
            return Err(StartError::KeyTaken { path }.into());
        }
        let place = self.add(spec, cx);
        let started = self.start(place, cx).await;
        if let Err(error) = &started
            && !matches!(error, StartError::Ignored { .. })
        {
            // Nobody relies on the child yet: the caller decides whether to try again.
            let removed = self.table.lock().remove(place);
            end_unstarted(removed.and_then(|entry| entry.cell));
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
                    self.remove_started(keys, cx).await;
                    return Err(error);
                }
            }
            keys.push(key);
        }
        Ok(started)
    }

    /// Ends children that were just started, the latest first, and removes them from the table.
    async fn remove_started(&self, keys: Vec<Arc<str>>, cx: &Context<Self>) {
        for key in keys.into_iter().rev() {
            let removed = {
                let mut entries = self.table.lock();
                let place = entries.index_of(&key);
                place.and_then(|place| entries.remove(place))
            };
            if let Some(cell) = removed.and_then(|entry| entry.cell) {
                run::stop_child(cx.node(), &cell).await;
            }
        }
    }

    async fn restart_on_request(
        &self,
        key: &Arc<str>,
        cx: &Context<Self>,
    ) -> Result<AnyRef, ChildError> {
        let place = self.place(key)?;
        let running = self
            .table
            .lock()
            .get(place)
            .is_some_and(|entry| entry.state.running || entry.pending_restart.is_some());
        if running {
            return Err(ChildError::Running {
                key: Arc::clone(key),
            });
        }
        let started = self.start(place, cx).await;
        if started.is_err() {
            // The caller gets the error and decides whether to try again.
            let cell = self.table.lock().get(place).and_then(|entry| {
                entry.state.running = false;
                entry.cell.take()
            });
            end_unstarted(cell);
        }
        Ok(started?)
    }

    async fn terminate(&self, key: &Arc<str>, cx: &Context<Self>) -> Result<(), ChildError> {
        let place = self.place(key)?;
        let (cell, temporary) = {
            let mut entries = self.table.lock();
            let entry = entries.get(place).expect("its key leads to it");
            entry.pending_restart = None;
            entry.state.running = false;
            let temporary = entry.state.restart == Restart::Temporary;
            (entry.cell.take(), temporary)
        };
        if let Some(cell) = cell {
            run::stop_child(cx.node(), &cell).await;
        }
        if temporary {
            self.table.lock().remove(place);
        }
        Ok(())
    }

    fn delete(&self, key: &Arc<str>) -> Result<(), ChildError> {
        let place = self.place(key)?;
        let mut entries = self.table.lock();
        if entries.get(place).is_some_and(|entry| entry.cell.is_some()) {
            return Err(ChildError::Running {
                key: Arc::clone(key),
            });
        }
        let removed = entries.remove(place);
        drop(entries);
        drop(removed);
        Ok(())
    }

    fn child_infos(&self) -> Vec<ChildInfo> {
        let entries = self.table.lock();
        let info = |(_, child): (u64, &ChildEntry)| ChildInfo {
            key: Arc::clone(&child.spec.key),
            restart: child.spec.restart,
            actor: child.cell.clone().map(AnyRef),
        };
        entries.iter().map(info).collect()
    }
}

/// Waits until a child runs or is down. Returns `false` if this supervisor is to stop first.
async fn wait_started(cx: &Context<SupervisorActor>, child: &ActorCore) -> bool {
    let me = cx.cell();
    let stop = me.mailbox.stop_request();
    let mut started = pin!(child.wait_for_phase(PhaseGoal::StartDecided));
    poll_fn(|task| match started.as_mut().poll(task) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending => stop.poll().map(|()| false),
    })
    .await
}

/// Ends the cell of a child that did not start. If the child is still starting, because this
/// supervisor is asked to stop, it ends with the supervisor instead.
fn end_unstarted(cell: Option<Arc<dyn ErasedCell>>) {
    if let Some(cell) = cell.filter(|cell| cell.core().phase() == Phase::Down) {
        let exit = cell.core().last_exit().unwrap_or(Exit::Shutdown);
        cell::end_actor(&cell, &exit, None);
    }
}
