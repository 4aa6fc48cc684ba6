//! Policies: external decisions about the rules of sessions.
//!
//! A session asks the questions `session.establish` and `session.modify` after the request has been
//! validated and before anything is stored. The time for an answer is limited, and the fallback
//! without an answer is configurable. Policies run in an actor of the node, `/node/policy`. A
//! question that panics or hangs affects only its own answer.
//!
//! ```text
//!  request ─▶ session: valid? ─▶ policy: admit, change or refuse ─▶ store ─▶ response
//! ```

mod client;
mod qos_cap;

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::session::RuleSet;

pub use client::PolicyStats;
pub(crate) use client::{PolicyActor, PolicyClient};
pub use qos_cap::{QosCap, QosCaps};

/// A question to a policy about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// The procedure in progress.
    pub kind: QuestionKind,
    /// The node's SEID of the session.
    pub seid: Seid,
    /// The Node ID of the peer.
    pub node: String,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// Number of sessions that the peer would have; 0 for a modification, which does not add any.
    pub sessions: usize,
    /// The current rules of the session; `None` for an establishment.
    pub before: Option<RuleSet>,
    /// The rules that the session would have.
    pub rules: RuleSet,
}

/// The procedure that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// `session.establish`: the session is about to be established.
    Establish,
    /// `session.modify`: the rules of the session are about to change.
    Modify,
}

impl QuestionKind {
    /// Returns the name of the question.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Establish => "session.establish",
            Self::Modify => "session.modify",
        }
    }
}

/// The answer of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Admit the rules unchanged.
    Admit,
    /// Admit the rules with this modification, which is validated like one of a peer.
    Change(Box<SessionModificationRequest>),
    /// Refuse the request.
    Refuse(Cause),
    /// The policy cannot decide: the configured fallback applies.
    Undecided,
}

/// The future of a policy's answer.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// A policy that decides about sessions.
///
/// Questions are answered concurrently. A question that panics or takes longer than the configured
/// budget has failed.
pub trait Policy: fmt::Debug + Send + Sync + 'static {
    /// Answers a question.
    fn decide<'a>(&'a self, question: &'a Question) -> Deciding<'a>;
}
