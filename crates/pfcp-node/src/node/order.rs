//! What a node can be told to ask of its peers, and what its peers told it.

use std::time::Duration;

use strowger_pfcp::Error;
use strowger_pfcp::ie::{Cause, Ie as _, NodeId};
use strowger_pfcp::message::NodeReportRequest;

use super::{ENDPOINT, NodeHandle, SUPERVISOR};
use crate::client::body_of;
use crate::endpoint::{EndpointMsg, Order, Wish};
use crate::pfd::ApplicationPfds;

/// Why a peer was not told, or did not do, what was wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// There is no association with the node.
    #[error("there is no association with {node}")]
    UnknownPeer {
        /// The Node ID that was given.
        node: String,
    },
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(Error),
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Answer(Error),
    /// The peer refused.
    #[error("the peer refused: cause {} ({cause})", .cause.0)]
    Refused {
        /// Why.
        cause: Cause,
    },
    /// The peer did not answer, however often it was asked.
    #[error("the peer did not answer")]
    NoAnswer,
    /// The association was released, or the peer restarted, before it answered.
    #[error("the association ended before the peer answered; ask again when it is set up anew")]
    AssociationEnded,
    /// Too many requests wait for answers.
    #[error("too many requests wait for answers")]
    Busy,
    /// The node has ended.
    #[error("the node has ended")]
    Ended,
}

impl NodeHandle {
    /// The packet flow descriptions that peers have provisioned, in the order of the applications.
    #[must_use]
    pub fn pfds(&self) -> Vec<ApplicationPfds> {
        self.shared.pfds.list()
    }

    /// Asks the peer with a Node ID to release its association, within some time if it is given,
    /// TS 29.244 §6.2.8.3. The peer decides when it does; its sessions end with it.
    ///
    /// # Errors
    /// When there is no such peer, or it cannot be asked now.
    pub async fn ask_release(
        &self,
        node: &str,
        within: Option<Duration>,
    ) -> Result<(), OrderError> {
        self.order(node, Wish::Release(within)).await
    }

    /// Reports something about the node to the peer with a Node ID, TS 29.244 §6.2.9, and waits for
    /// its answer. The Node ID in the report becomes that of this node.
    ///
    /// # Errors
    /// When there is no such peer, or it refuses or does not answer.
    pub async fn report(&self, node: &str, report: NodeReportRequest) -> Result<(), OrderError> {
        let own = NodeId::decode(self.shared.name.value()).map_err(OrderError::Request)?;
        let report = NodeReportRequest {
            node_id: own,
            ..report
        };
        let body = body_of(report).map_err(OrderError::Request)?;
        self.order(node, Wish::Report(body)).await
    }

    async fn order(&self, node: &str, wish: Wish) -> Result<(), OrderError> {
        let path = format!("/{SUPERVISOR}/{ENDPOINT}");
        let endpoint = self.system.find(strowger::Path::from(path.as_str()));
        let endpoint = endpoint.and_then(|actor| actor.downcast::<EndpointMsg>());
        let endpoint = endpoint.ok_or(OrderError::Ended)?;
        let timers = &self.shared.config.timers;
        // All retransmissions, and a little more.
        let patience = timers.t1.saturating_mul(timers.n1) + Duration::from_secs(1);
        let node = node.to_owned();
        let asked = endpoint.ask_within(Order { node, wish }, patience).await;
        asked.unwrap_or(Err(OrderError::NoAnswer))
    }
}
