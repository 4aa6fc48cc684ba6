//! A supervisor with children that are known by name: an actor that carries the decisions of
//! `strategy` out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::actor::Actor;
use crate::address::AnyRef;
use crate::cell::{self, ActorId, AnyCell, Node, Owner, Phase};
use crate::context::Context;
use crate::event::Event;
use crate::exit::Exit;
use crate::mailbox::MailboxSpec;
use crate::metric::Count;
use crate::monitor::Signal;
use crate::path::Path;
use crate::planted::{Bug, planted};
use crate::reply::Reply;
use crate::run;
use crate::supervision::address::{ChildError, ChildInfo};
use crate::supervision::backoff::Backoff;
use crate::supervision::child::ChildSpec;
use crate::supervision::intensity::Intensity;
use crate::supervision::spec::{Restart, Strategy};
use crate::supervision::strategy::{Child, Decision, Policy};
use crate::system::StartError;

/// What a supervisor does, and its first children.
///
/// Children start in this order, each when the one before has started, and stop in the reverse
/// order. Unless said otherwise, one restart more than three in five seconds is one too many.
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
    /// its children and itself.
    pub const fn intensity(mut self, restarts: u32, period: Duration) -> Self {
        self.intensity = (restarts, period);
        self
    }

    /// Says how long to wait before a restart.
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
    policy: Policy,
    children: Vec<Kept>,
    /// What `strategy` knows of each of `children`, in the same places.
    facts: Vec<Child>,
    /// Restarts whose wait is not over: a number, and the children to start.
    waiting: Vec<(u64, Vec<Arc<str>>)>,
    next_wait: u64,
}

struct Kept {
    spec: ChildSpec,
    /// Its place in the order of the tree, in which children stop.
    rank: u64,
    /// Absent while the child is stopped for good but keeps its place.
    cell: Option<Arc<dyn AnyCell>>,
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMsg;
    type Args = Arc<Supervisor>;
    type Error = StartError;

    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    async fn pre_start(args: Arc<Supervisor>, cx: &mut Context<Self>) -> Result<Self, StartError> {
        let (restarts, period) = args.intensity;
        let mut this = Self {
            policy: Policy {
                strategy: args.strategy,
                intensity: Intensity::new(restarts, period),
                backoff: args.backoff,
            },
            children: Vec::with_capacity(args.children.len()),
            facts: Vec::with_capacity(args.children.len()),
            waiting: Vec::new(),
            next_wait: 0,
        };
        for spec in &args.children {
            let place = this.add(spec.clone(), cx);
            if let Err(error) = this.start(place, cx).await {
                if matches!(error, StartError::Closed { .. }) {
                    cx.exit = Some(Exit::Shutdown);
                }
                return Err(error);
            }
        }
        Ok(this)
    }

    async fn handle(
        &mut self,
        message: SupervisorMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), StartError> {
        match message {
            SupervisorMsg::Start(spec, reply) => reply.send(self.start_new(*spec, cx).await),
            SupervisorMsg::Restart(key, reply) => reply.send(self.start_again(&key, cx).await),
            SupervisorMsg::Terminate(key, reply) => reply.send(self.terminate(&key, cx).await),
            SupervisorMsg::Delete(key, reply) => reply.send(self.delete(&key)),
            SupervisorMsg::Which(reply) => reply.send(self.which()),
            SupervisorMsg::Count(reply) => reply.send(self.children.len()),
            SupervisorMsg::Due(wait) => {
                if let Some(at) = self.waiting.iter().position(|(number, _)| *number == wait) {
                    let (_, keys) = self.waiting.swap_remove(at);
                    self.start_all(&keys, cx).await;
                }
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), StartError> {
        if let Signal::ChildEnded { actor, .. } = signal {
            self.child_ended(actor, cx).await;
        }
        Ok(())
    }
}

impl SupervisorActor {
    fn add(&mut self, spec: ChildSpec, cx: &Context<Self>) -> usize {
        let rank = cx.node().children.reserve();
        self.facts.push(Child::new(spec.restart));
        self.children.push(Kept {
            spec,
            rank,
            cell: None,
        });
        self.children.len() - 1
    }

    fn remove(&mut self, place: usize) -> Kept {
        self.facts.remove(place);
        self.children.remove(place)
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.children
            .iter()
            .position(|child| *child.spec.key == *key)
    }

    /// Starts an incarnation and waits until it runs, or until this supervisor is to stop: a
    /// child that hangs in its start must not keep it from that. A failure is also the child's
    /// exit, of which a signal tells.
    async fn start(&mut self, place: usize, cx: &Context<Self>) -> Result<AnyRef, StartError> {
        let kept = &mut self.children[place];
        let shared = &cx.node().shared;
        let cell = if let Some(cell) = &kept.cell {
            let exit = || cell.node().last_exit().unwrap_or(Exit::Shutdown);
            shared.events.emit(Count::Restarted, || Event::Restarted {
                path: cell.node().path(),
                exit: exit(),
            });
            Arc::clone(cell)
        } else {
            let owner = Owner::Supervisor {
                cell: cx.any(),
                incarnation: cx.incarnation(),
            };
            let cell = kept.spec.cell(shared, owner, kept.rank)?;
            shared.events.emit(Count::Started, || Event::Started {
                path: cell.node().path(),
            });
            kept.cell.insert(cell).clone()
        };
        self.facts[place].running = true;
        kept.spec.launch(&cell);
        let node = cell.node();
        if !started(cx, node).await {
            return Err(StartError::Closed { path: node.path() });
        }
        match node.phase() {
            Phase::Down | Phase::Ended => {
                let exit = node.last_exit().unwrap_or(Exit::Shutdown);
                Err(StartError::Failed {
                    path: node.path(),
                    exit,
                })
            }
            Phase::Starting | Phase::Running | Phase::Stopping => Ok(AnyRef(cell)),
        }
    }

    /// Starts children in order, up to the first that fails: its exit decides about the rest.
    async fn start_all(&mut self, keys: &[Arc<str>], cx: &Context<Self>) {
        for key in keys {
            let Some(place) = self.place(key) else {
                continue;
            };
            if !self.facts[place].running && self.start(place, cx).await.is_err() {
                break;
            }
        }
    }

    async fn child_ended(&mut self, actor: ActorId, cx: &mut Context<Self>) {
        let is_it = |child: &Kept| child.cell.as_ref().is_some_and(|c| c.node().id == actor);
        let Some(failed) = self.children.iter().position(is_it) else {
            return;
        };
        let Some(cell) = self.children[failed].cell.clone() else {
            return;
        };
        // A child that this supervisor stopped, or started again since, has no news.
        if !self.facts[failed].running || cell.node().phase() != Phase::Down {
            return;
        }
        let exit = cell.node().last_exit().unwrap_or(Exit::Shutdown);
        let (now, seed) = (cx.now(), cx.node().shared.next_seed());
        match self
            .policy
            .on_exit(&mut self.facts, failed, &exit, now, seed)
        {
            Decision::Nothing => {
                self.children[failed].cell = None;
                cell::finish(&cell, &exit);
            }
            Decision::Remove => {
                self.remove(failed);
                cell::finish(&cell, &exit);
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
                cx.exit = Some(Exit::Escalated {
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
                self.restart(stop, remove, start, after, cx).await;
            }
        }
    }

    async fn restart(
        &mut self,
        stop: Vec<usize>,
        mut remove: Vec<usize>,
        start: Vec<usize>,
        after: Duration,
        cx: &mut Context<Self>,
    ) {
        for place in stop {
            if let Some(cell) = &self.children[place].cell
                && !planted(Bug::IncarnationsOverlap)
            {
                run::down_child(cx.node(), cell).await;
            }
            self.facts[place].running = false;
        }
        let keys: Vec<Arc<str>> = start
            .into_iter()
            .map(|place| Arc::clone(&self.children[place].spec.key))
            .collect();
        remove.sort_unstable();
        for place in remove.into_iter().rev() {
            if let Some(cell) = self.remove(place).cell {
                let exit = cell.node().last_exit().unwrap_or(Exit::Shutdown);
                cell::finish(&cell, &exit);
            }
        }
        for (_, waiting) in &mut self.waiting {
            waiting.retain(|key| !keys.contains(key));
        }
        self.waiting.retain(|(_, keys)| !keys.is_empty());
        if after.is_zero() {
            self.start_all(&keys, cx).await;
        } else {
            let wait = self.next_wait;
            self.next_wait += 1;
            self.waiting.push((wait, keys));
            cx.send_after(after, SupervisorMsg::Due(wait));
        }
    }

    fn is_waiting(&self, key: &str) -> bool {
        self.waiting
            .iter()
            .any(|(_, keys)| keys.iter().any(|waiting| **waiting == *key))
    }

    async fn start_new(
        &mut self,
        spec: ChildSpec,
        cx: &Context<Self>,
    ) -> Result<AnyRef, ChildError> {
        if self.place(&spec.key).is_some() {
            let path = Path::from(format!("{}/{}", cx.path(), spec.key).as_str());
            return Err(StartError::Taken { path }.into());
        }
        let place = self.add(spec, cx);
        let started = self.start(place, cx).await;
        if started.is_err() {
            // Nobody relies on it yet: the caller decides whether to try again.
            discard(self.remove(place).cell);
        }
        Ok(started?)
    }

    async fn start_again(
        &mut self,
        key: &Arc<str>,
        cx: &Context<Self>,
    ) -> Result<AnyRef, ChildError> {
        let place = self.place(key).ok_or_else(|| ChildError::Unknown {
            key: Arc::clone(key),
        })?;
        if self.facts[place].running || self.is_waiting(key) {
            return Err(ChildError::Running {
                key: Arc::clone(key),
            });
        }
        let started = self.start(place, cx).await;
        if started.is_err() {
            // The caller is told, and decides whether to try again.
            self.facts[place].running = false;
            discard(self.children[place].cell.take());
        }
        Ok(started?)
    }

    async fn terminate(&mut self, key: &Arc<str>, cx: &Context<Self>) -> Result<(), ChildError> {
        let place = self.place(key).ok_or_else(|| ChildError::Unknown {
            key: Arc::clone(key),
        })?;
        for (_, waiting) in &mut self.waiting {
            waiting.retain(|waiting| waiting != key);
        }
        self.facts[place].running = false;
        if let Some(cell) = self.children[place].cell.take() {
            run::end_child(cx.node(), &cell).await;
        }
        if self.facts[place].restart == Restart::Temporary {
            self.remove(place);
        }
        Ok(())
    }

    fn delete(&mut self, key: &Arc<str>) -> Result<(), ChildError> {
        let place = self.place(key).ok_or_else(|| ChildError::Unknown {
            key: Arc::clone(key),
        })?;
        if self.children[place].cell.is_some() {
            return Err(ChildError::Running {
                key: Arc::clone(key),
            });
        }
        self.remove(place);
        Ok(())
    }

    fn which(&self) -> Vec<ChildInfo> {
        let info = |child: &Kept| ChildInfo {
            key: Arc::clone(&child.spec.key),
            restart: child.spec.restart,
            actor: child.cell.clone().map(AnyRef),
        };
        self.children.iter().map(info).collect()
    }
}

/// Waits until a child has started or ended; false when this supervisor is to stop before that.
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
        cell::finish(&cell, &exit);
    }
}
