//! The actor that runs a policy, and the fallback when the policy does not answer.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, Context, MailboxSpec, Overflow, Request, Signal,
};
use strowger_pfcp::ie::Cause;

use super::{Policy, PolicyDecision, PolicyRequest, PolicyRequestKind};
use crate::config::OnFailure;
use crate::shared::{Shared, add, get};

/// The interface through which sessions ask the policy.
#[derive(Debug)]
pub(crate) struct PolicyClient {
    policy: Arc<dyn Policy>,
    budget: Duration,
    on_failure: OnFailure,
    actor: Mutex<Option<ActorRef<PolicyMsg>>>,
    /// The last decisions, by peer and kind of request.
    last: Mutex<FxHashMap<(String, PolicyRequestKind), PolicyDecision>>,
    counters: PolicyCounters,
}

#[derive(Debug, Default)]
struct PolicyCounters {
    admitted: AtomicU64,
    changed: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
    failed: AtomicU64,
    busy: AtomicU64,
}

/// Counters of policy requests and decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyStats {
    /// Number of answers that admitted the rules unchanged.
    pub admitted: u64,
    /// Number of answers that changed the rules.
    pub changed: u64,
    /// Number of answers that refused.
    pub refused: u64,
    /// Number of requests that were not decided within the budget.
    pub timed_out: u64,
    /// Number of requests whose policy panicked, was stopped, could not decide, or answered with
    /// an invalid modification.
    pub failed: u64,
    /// Number of requests that were dropped because too many were already waiting.
    pub busy: u64,
}

impl PolicyClient {
    pub(crate) fn new(policy: Arc<dyn Policy>, budget: Duration, on_failure: OnFailure) -> Self {
        Self {
            policy,
            budget,
            on_failure,
            actor: Mutex::new(None),
            last: Mutex::new(FxHashMap::default()),
            counters: PolicyCounters::default(),
        }
    }

    /// Asks the policy, and applies the fallback if it does not answer.
    pub(crate) async fn ask(&self, question: PolicyRequest) -> PolicyDecision {
        let actor = self.actor.lock().clone();
        let key = (question.node.clone(), question.kind);
        let answer = match actor {
            None => Err(AskError::Closed),
            Some(actor) => {
                let question = Arc::new(question);
                actor.ask_within(Decide(question), self.budget).await
            }
        };
        match answer {
            Ok(PolicyDecision::NoDecision) => {
                add(&self.counters.failed);
                let (node, question) = (&key.0, key.1.name());
                tracing::debug!(node, question, "policy made no decision");
                self.fallback(&key)
            }
            Ok(verdict) => {
                add(match &verdict {
                    PolicyDecision::Change(_) => &self.counters.changed,
                    PolicyDecision::Refuse(_) => &self.counters.refused,
                    _ => &self.counters.admitted,
                });
                // The map is bounded: it has at most one entry per association and kind of
                // request.
                if self.on_failure == OnFailure::LastGood {
                    self.last.lock().insert(key, verdict.clone());
                }
                verdict
            }
            Err(error) => {
                add(match &error {
                    AskError::TimedOut => &self.counters.timed_out,
                    AskError::Full => &self.counters.busy,
                    _ => &self.counters.failed,
                });
                let (node, question) = (&key.0, key.1.name());
                tracing::warn!(node, question, %error, "policy did not answer");
                self.fallback(&key)
            }
        }
    }

    fn fallback(&self, key: &(String, PolicyRequestKind)) -> PolicyDecision {
        let denied = PolicyDecision::Refuse(Cause::SYSTEM_FAILURE);
        match self.on_failure {
            OnFailure::Deny => denied,
            OnFailure::Allow => PolicyDecision::Admit,
            OnFailure::LastGood => self.last.lock().get(key).cloned().unwrap_or(denied),
        }
    }

    /// Counts a modification by the policy that is invalid.
    pub(crate) fn count_invalid_change(&self) {
        add(&self.counters.failed);
    }

    /// Forgets the answers to a peer whose association was released.
    pub(crate) fn forget(&self, node: &str) {
        self.last.lock().retain(|(name, _), _| name != node);
    }

    pub(crate) fn stats(&self) -> PolicyStats {
        let counters = &self.counters;
        PolicyStats {
            admitted: get(&counters.admitted),
            changed: get(&counters.changed),
            refused: get(&counters.refused),
            timed_out: get(&counters.timed_out),
            failed: get(&counters.failed),
            busy: get(&counters.busy),
        }
    }
}

/// A request to the actor for a decision.
#[derive(Debug)]
pub(crate) struct Decide(Arc<PolicyRequest>);

impl Request for Decide {
    type Reply = PolicyDecision;
}

/// The messages that the policy actor accepts.
#[derive(Debug)]
pub(crate) enum PolicyMsg {
    Decide(Ask<Decide>),
    /// A request was decided or timed out.
    Done(DecisionDone),
}

#[derive(Debug)]
pub(crate) struct DecisionDone;

impl Accepts<Ask<Decide>> for PolicyMsg {
    fn wrap(ask: Ask<Decide>) -> Self {
        Self::Decide(ask)
    }
}

impl Accepts<DecisionDone> for PolicyMsg {
    fn wrap(done: DecisionDone) -> Self {
        Self::Done(done)
    }
}

/// The actor that runs the policy; each request is a concurrent task.
#[derive(Debug)]
pub(crate) struct PolicyActor {
    policy: Arc<dyn Policy>,
    budget: Duration,
}

impl Actor for PolicyActor {
    type Msg = PolicyMsg;
    type Args = Arc<Shared>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1024).overflow(Overflow::Fail);

    async fn pre_start(shared: Arc<Shared>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let client = shared.policy.as_ref().expect("started only with a policy");
        *client.actor.lock() = Some(cx.actor_ref());
        Ok(Self {
            policy: Arc::clone(&client.policy),
            budget: client.budget,
        })
    }

    fn describe(message: &PolicyMsg) -> Cow<'static, str> {
        match message {
            PolicyMsg::Decide(ask) => ask.request.0.kind.name().into(),
            PolicyMsg::Done(_) => "the end of a question".into(),
        }
    }

    async fn handle(
        &mut self,
        message: PolicyMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let PolicyMsg::Decide(Ask { request, reply }) = message else {
            return Ok(());
        };
        let (policy, budget) = (Arc::clone(&self.policy), self.budget);
        let deciding = async move {
            // A decision that never completes is dropped at twice the budget, so that the caller
            // times out first and counts the request as timed out.
            let deciding = policy.decide(&request.0);
            if let Ok(verdict) = tokio::time::timeout(budget * 2, deciding).await {
                reply.send(verdict);
            }
        };
        // If too many requests are in progress, dropping the reply tells the caller.
        if cx.pipe(deciding, |()| DecisionDone).is_err() {
            tracing::debug!("too many pending policy requests");
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::PipePanicked { .. } = signal {
            tracing::warn!("policy panicked");
        }
        Ok(())
    }
}
