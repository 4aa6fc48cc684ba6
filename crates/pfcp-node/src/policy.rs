//! Policy as a question: who else has a say in what sessions may do.
//!
//! A session asks `session.establish` and `session.modify` after the request was found sound and
//! before anything is kept. The answer is waited for only so long; what holds without one is
//! configured. Policies run in an actor of the node, `/node/policy`: a question that panics or
//! hangs costs that question its answer, and nothing else.
//!
//! ```text
//!  request ─▶ session: sound? ─▶ policy: admit, change or refuse ─▶ store ─▶ answer
//! ```

mod desk;
mod qos_cap;

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::session::RuleSet;

pub use desk::PolicyStats;
pub(crate) use desk::{Desk, PolicyActor};
pub use qos_cap::{QosCap, QosCaps};

/// What a policy is asked about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// What is about to happen.
    pub kind: QuestionKind,
    /// The node's identifier of the session.
    pub seid: Seid,
    /// The Node ID of the peer.
    pub node: String,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// How many sessions the peer would have; 0 for a modification, which makes no more.
    pub sessions: usize,
    /// The rules that the session has; `None` for an establishment.
    pub before: Option<RuleSet>,
    /// The rules that it would have.
    pub rules: RuleSet,
}

/// What is about to happen to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// `session.establish`: it is about to begin.
    Establish,
    /// `session.modify`: its rules are about to change.
    Modify,
}

impl QuestionKind {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Establish => "session.establish",
            Self::Modify => "session.modify",
        }
    }
}

/// What a policy answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it was asked.
    Admit,
    /// With this change of the rules, which has to be as sound as a peer's.
    Change(Box<SessionModificationRequest>),
    /// Not at all.
    Refuse(Cause),
    /// It cannot say: what is configured for a failure holds.
    Undecided,
}

/// The answer of a policy, on its way.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Decides about sessions.
///
/// Questions come one beside the other. One that panics, or takes longer than the budget, has
/// failed.
pub trait Policy: fmt::Debug + Send + Sync + 'static {
    /// Answers a question.
    fn decide<'a>(&'a self, question: &'a Question) -> Deciding<'a>;
}
