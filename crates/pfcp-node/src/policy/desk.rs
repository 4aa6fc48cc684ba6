//! The actor that asks a policy, and what holds when it does not answer.

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

use super::{Policy, Question, QuestionKind, Verdict};
use crate::config::OnFailure;
use crate::shared::{Shared, add, get};

/// Where sessions ask.
#[derive(Debug)]
pub(crate) struct Desk {
    policy: Arc<dyn Policy>,
    budget: Duration,
    on_failure: OnFailure,
    actor: Mutex<Option<ActorRef<PolicyMsg>>>,
    /// The last answers, by peer and question.
    last: Mutex<FxHashMap<(String, QuestionKind), Verdict>>,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    admitted: AtomicU64,
    changed: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
    busy: AtomicU64,
}

/// How a policy was asked and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyStats {
    /// Answers that admitted.
    pub admitted: u64,
    /// Answers that changed rules.
    pub changed: u64,
    /// Answers that refused.
    pub refused: u64,
    /// Questions that were not answered within the budget.
    pub late: u64,
    /// Questions whose policy panicked, was stopped, could not say, or answered with a change that
    /// is not sound.
    pub failed: u64,
    /// Questions that were not put because as many wait as may.
    pub busy: u64,
}

impl Desk {
    pub(crate) fn new(policy: Arc<dyn Policy>, budget: Duration, on_failure: OnFailure) -> Self {
        Self {
            policy,
            budget,
            on_failure,
            actor: Mutex::new(None),
            last: Mutex::new(FxHashMap::default()),
            counters: Counters::default(),
        }
    }

    /// Asks, and says what holds if nobody answers.
    pub(crate) async fn ask(&self, question: Question) -> Verdict {
        let actor = self.actor.lock().clone();
        let key = (question.node.clone(), question.kind);
        let answer = match actor {
            None => Err(AskError::Closed),
            Some(actor) => {
                let question = Arc::new(question);
                actor.ask_within(Put(question), self.budget).await
            }
        };
        match answer {
            Ok(Verdict::Undecided) => {
                add(&self.counters.failed);
                let (node, question) = (&key.0, key.1.name());
                tracing::debug!(node, question, "the policy cannot say");
                self.without_answer(&key)
            }
            Ok(verdict) => {
                add(match &verdict {
                    Verdict::Change(_) => &self.counters.changed,
                    Verdict::Refuse(_) => &self.counters.refused,
                    _ => &self.counters.admitted,
                });
                // Bounded: there are as many peers as associations.
                if self.on_failure == OnFailure::LastGood {
                    self.last.lock().insert(key, verdict.clone());
                }
                verdict
            }
            Err(error) => {
                add(match &error {
                    AskError::TimedOut => &self.counters.late,
                    AskError::Full => &self.counters.busy,
                    _ => &self.counters.failed,
                });
                let (node, question) = (&key.0, key.1.name());
                tracing::warn!(node, question, %error, "no answer of the policy");
                self.without_answer(&key)
            }
        }
    }

    fn without_answer(&self, key: &(String, QuestionKind)) -> Verdict {
        let denied = Verdict::Refuse(Cause::SYSTEM_FAILURE);
        match self.on_failure {
            OnFailure::Deny => denied,
            OnFailure::Allow => Verdict::Admit,
            OnFailure::LastGood => self.last.lock().get(key).cloned().unwrap_or(denied),
        }
    }

    /// Notes that a change which the policy answered with is not sound.
    pub(crate) fn unsound(&self) {
        add(&self.counters.failed);
    }

    /// Forgets what a peer was answered that has gone.
    pub(crate) fn forget(&self, node: &str) {
        self.last.lock().retain(|(name, _), _| name != node);
    }

    pub(crate) fn stats(&self) -> PolicyStats {
        let counters = &self.counters;
        PolicyStats {
            admitted: get(&counters.admitted),
            changed: get(&counters.changed),
            refused: get(&counters.refused),
            late: get(&counters.late),
            failed: get(&counters.failed),
            busy: get(&counters.busy),
        }
    }
}

/// Puts a question.
#[derive(Debug)]
pub(crate) struct Put(Arc<Question>);

impl Request for Put {
    type Reply = Verdict;
}

/// What the actor takes.
#[derive(Debug)]
pub(crate) enum PolicyMsg {
    Put(Ask<Put>),
    /// A question was answered, or its time is over.
    Done(Done),
}

#[derive(Debug)]
pub(crate) struct Done;

impl Accepts<Ask<Put>> for PolicyMsg {
    fn wrap(ask: Ask<Put>) -> Self {
        Self::Put(ask)
    }
}

impl Accepts<Done> for PolicyMsg {
    fn wrap(done: Done) -> Self {
        Self::Done(done)
    }
}

/// The actor: each question runs beside it.
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
        let desk = shared.policy.as_ref().expect("started only with a policy");
        *desk.actor.lock() = Some(cx.me());
        Ok(Self {
            policy: Arc::clone(&desk.policy),
            budget: desk.budget,
        })
    }

    fn describe(message: &PolicyMsg) -> Cow<'static, str> {
        match message {
            PolicyMsg::Put(ask) => ask.request.0.kind.name().into(),
            PolicyMsg::Done(_) => "the end of a question".into(),
        }
    }

    async fn handle(
        &mut self,
        message: PolicyMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let PolicyMsg::Put(Ask { request, reply }) = message else {
            return Ok(());
        };
        let (policy, budget) = (Arc::clone(&self.policy), self.budget);
        let deciding = async move {
            // One that never ends is dropped, but only when nobody waits for it any more: who asked
            // shall find it late.
            let deciding = policy.decide(&request.0);
            if let Ok(verdict) = tokio::time::timeout(budget * 2, deciding).await {
                reply.send(verdict);
            }
        };
        // With as many questions at work as may be, the reply is dropped, and that is the answer.
        if cx.pipe(deciding, |()| Done).is_err() {
            tracing::debug!("too many questions at work");
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::PipePanicked { .. } = signal {
            tracing::warn!("the policy panicked over a question");
        }
        Ok(())
    }
}
