//! Policies: external decisions about the rules of sessions.
//!
//! A session sends the policy requests `session.establish` and `session.modify` after the request
//! has been validated and before anything is stored. The time for a decision is limited, and the
//! fallback is configurable. Policies run in an actor of the node, `/node/policy`. A request that
//! panics or hangs affects only its own decision.
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

/// A request for a policy decision about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyRequest {
    /// The procedure in progress.
    pub kind: PolicyRequestKind,
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

/// The procedure that a policy request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyRequestKind {
    /// `session.establish`: the session is about to be established.
    Establish,
    /// `session.modify`: the rules of the session are about to change.
    Modify,
}

impl PolicyRequestKind {
    /// Returns the name of the request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Establish => "session.establish",
            Self::Modify => "session.modify",
        }
    }
}

/// The decision of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyDecision {
    /// Admit the rules unchanged.
    Admit,
    /// Admit the rules with this modification, which is validated like one of a peer.
    Change(Box<SessionModificationRequest>),
    /// Refuse the request.
    Refuse(Cause),
    /// The policy cannot decide: the configured fallback applies.
    NoDecision,
}

/// The future of a policy's decision.
pub type DecisionFuture<'a> = Pin<Box<dyn Future<Output = PolicyDecision> + Send + 'a>>;

/// A policy that decides about sessions.
///
/// Requests are decided concurrently. A request that panics or takes longer than the configured
/// budget has failed.
pub trait Policy: fmt::Debug + Send + Sync + 'static {
    /// Decides about a request.
    fn decide<'a>(&'a self, question: &'a PolicyRequest) -> DecisionFuture<'a>;
}
