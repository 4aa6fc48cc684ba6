//! Requests of the node's owner to peers, and the packet flow descriptions that peers provisioned.

use std::time::Duration;

use strowger::{ActorPath, ActorRef, AskError};
use strowger_pfcp::Error;
use strowger_pfcp::ie::{Cause, Ie as _, NodeId};
use strowger_pfcp::message::NodeReportRequest;

use super::{ENDPOINT, NodeHandle, SUPERVISOR};
use crate::client::body_of;
use crate::endpoint::{EndpointMsg, RequestRelease, SendNodeReport};
use crate::pfd::ApplicationPfds;

/// The error returned when a request of the node's owner to a peer fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeRequestError {
    /// No association exists with the node.
    #[error("there is no association with {node}")]
    UnknownPeer {
        /// The given Node ID.
        node: String,
    },
    /// The request cannot be encoded.
    #[error("the request cannot be written: {0}")]
    Request(Error),
    /// The response cannot be decoded.
    #[error("the answer cannot be read: {0}")]
    Answer(Error),
    /// The response cannot be used, for the given reason.
    #[error("the answer is invalid: {0}")]
    InvalidAnswer(String),
    /// The peer does not support the version of PFCP.
    #[error("the peer does not support PFCP version 1")]
    Version,
    /// The peer refused the request.
    #[error("the peer refused: cause {} ({cause})", .cause.0)]
    Refused {
        /// The cause in the response.
        cause: Cause,
    },
    /// The peer did not answer any transmission of the request.
    #[error("the peer did not answer")]
    NoAnswer,
    /// The association was released, or the peer restarted, before the peer answered.
    #[error("the association ended before the peer answered; ask again when it is set up anew")]
    AssociationEnded,
    /// Too many requests are waiting for responses.
    #[error("too many requests wait for answers")]
    Busy,
    /// The node has stopped.
    #[error("the node has ended")]
    Ended,
}

/// The result of asking a peer to release its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseReport {
    /// The outcome of the release.
    pub outcome: ReleaseOutcome,
    /// Number of sessions of the association: those that ended with it, or those that still exist.
    pub sessions: usize,
}

/// The outcome of asking a peer to release its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The association is released.
    Released,
    /// The peer agreed, and no time limit was given: the peer releases the association when it
    /// chooses.
    Agreed,
    /// The peer agreed, but did not release the association in time.
    Overdue,
    /// The peer refused.
    Refused(Cause),
    /// The peer did not answer, either in time or to any transmission.
    Unanswered,
}

impl ReleaseOutcome {
    /// Returns the name of the outcome in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Agreed => "agreed",
            Self::Overdue => "overdue",
            Self::Refused(_) => "refused",
            Self::Unanswered => "unanswered",
        }
    }
}

/// The longest Graceful Release Period that can be encoded, TS 29.244 §8.2.78.
const MAX_RELEASE_PERIOD: Duration = Duration::from_secs(31 * 36_000);

impl NodeHandle {
    /// Returns the packet flow descriptions that peers have provisioned, in the order of the
    /// applications.
    #[must_use]
    pub fn pfds(&self) -> Vec<ApplicationPfds> {
        self.shared.pfds.list()
    }

    /// Asks the peer with the given Node ID to release its association, TS 29.244 §6.2.8.3.
    ///
    /// With a time limit, waits until the association is released or the time is over; otherwise
    /// waits for the response of the peer. The peer decides when to release the association, which
    /// ends its sessions.
    ///
    /// # Errors
    /// Returns an error if there is no such peer, if it cannot be asked now, or if it restarts in
    /// the meantime.
    pub async fn request_release(
        &self,
        node: &str,
        within: Option<Duration>,
    ) -> Result<ReleaseReport, NodeRequestError> {
        let within = within.map(|within| within.min(MAX_RELEASE_PERIOD));
        let patience =
            self.response_timeout().max(within.unwrap_or_default()) + Duration::from_secs(1);
        let node = node.to_owned();
        let force = false;
        let order = RequestRelease {
            node,
            within,
            force,
        };
        let asked = self.endpoint()?.ask_within(order, patience).await;
        asked.unwrap_or(Err(NodeRequestError::Ended))
    }

    /// Ends the association of the peer with the given Node ID, and its sessions, without asking
    /// the peer: for one that is gone and does not come back. Its Node ID is free for another
    /// address. A peer that is still there gets Cause 72, and sets up its association again.
    ///
    /// # Errors
    /// Returns an error if there is no such peer.
    pub async fn force_release(&self, node: &str) -> Result<ReleaseReport, NodeRequestError> {
        let order = RequestRelease {
            node: node.to_owned(),
            within: None,
            force: true,
        };
        let patience = self.response_timeout() + Duration::from_secs(1);
        let asked = self.endpoint()?.ask_within(order, patience).await;
        asked.unwrap_or(Err(NodeRequestError::Ended))
    }

    /// Sends a node report to the peer with the given Node ID, TS 29.244 §6.2.9, and waits for the
    /// response. The Node ID in the report is replaced by that of this node.
    ///
    /// # Errors
    /// Returns an error if there is no such peer, or if it refuses or does not answer.
    pub async fn report(
        &self,
        node: &str,
        report: NodeReportRequest,
    ) -> Result<(), NodeRequestError> {
        let own = NodeId::decode(self.shared.name.value()).map_err(NodeRequestError::Request)?;
        let report = NodeReportRequest {
            node_id: own,
            ..report
        };
        let body = body_of(report).map_err(NodeRequestError::Request)?;
        let order = SendNodeReport {
            node: node.to_owned(),
            report: body,
        };
        let patience = self.response_timeout() + Duration::from_secs(1);
        let asked = self.endpoint()?.ask_within(order, patience).await;
        asked.unwrap_or_else(|error| {
            Err(match error {
                AskError::TimedOut => NodeRequestError::NoAnswer,
                _ => NodeRequestError::Ended,
            })
        })
    }

    fn endpoint(&self) -> Result<ActorRef<EndpointMsg>, NodeRequestError> {
        let path = format!("/{SUPERVISOR}/{ENDPOINT}");
        let endpoint = self.system.find(ActorPath::from(path.as_str()));
        let endpoint = endpoint.and_then(|actor| actor.downcast::<EndpointMsg>());
        endpoint.ok_or(NodeRequestError::Ended)
    }

    /// Returns the time after which a request counts as unanswered: all retransmissions.
    fn response_timeout(&self) -> Duration {
        let timers = &self.shared.config.timers;
        timers.t1.saturating_mul(timers.n1)
    }
}
