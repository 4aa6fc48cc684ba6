//! Node reports that the owner of the node sends to a peer.

use std::sync::Arc;
use std::time::Instant;

use strowger::{Reply, Request};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::RequestId;
use strowger_pfcp::{IeType, Message, MessageType, Seid};

use super::Endpoint;
use crate::node::NodeRequestError;

/// A request to send a Node Report Request with the given IEs to the peer with a Node ID.
#[derive(Debug)]
pub(crate) struct SendNodeReport {
    pub(crate) node: String,
    pub(crate) report: Vec<u8>,
}

/// The outcome of a [`SendNodeReport`].
pub(crate) type NodeReportResult = Result<(), NodeRequestError>;

impl Request for SendNodeReport {
    type Reply = NodeReportResult;
}

impl Endpoint {
    /// Sends a node report; the reply follows when the peer has responded.
    pub(super) fn send_node_report(
        &mut self,
        now: Instant,
        request: SendNodeReport,
        reply: Reply<NodeReportResult>,
    ) {
        let Some(association) = self.association_with(&request.node) else {
            let node = request.node;
            return reply.send(Err(NodeRequestError::UnknownPeer { node }));
        };
        let kind = MessageType::NODE_REPORT_REQUEST;
        let sent = self
            .protocol
            .request_about(now, association, kind, Seid(0), &request.report);
        match sent {
            Ok(sent) => _ = self.node_reports.insert(sent.request, reply),
            Err(_) => reply.send(Err(NodeRequestError::Busy)),
        }
    }

    /// Returns the association with the peer that has a Node ID, compared without regard to case.
    pub(super) fn association_with(&self, node: &str) -> Option<AssociationId> {
        let all = self.protocol.associations();
        let matches_change = |name: String| name.eq_ignore_ascii_case(node);
        let found = all.iter().find(|one| matches_change(one.node.to_string()));
        found.map(|one| one.id)
    }

    /// Passes the response of a peer, or the failure of the request, to the waiting owner.
    pub(super) fn node_report_completed(
        &mut self,
        request: RequestId,
        answer: Result<&Arc<[u8]>, NodeRequestError>,
    ) {
        let Some(reply) = self.node_reports.remove(&request) else {
            return;
        };
        let outcome = answer.and_then(|bytes| accepted(bytes));
        if let Err(
            error @ (NodeRequestError::Answer(_)
            | NodeRequestError::InvalidAnswer(_)
            | NodeRequestError::Version),
        ) = &outcome
        {
            tracing::warn!(%error, "invalid answer to a node report");
        }
        reply.send(outcome);
    }
}

fn accepted(bytes: &[u8]) -> NodeReportResult {
    let frame = strowger_pfcp::Frame::decode(bytes).map_err(NodeRequestError::Answer)?;
    if frame.header.message_type == MessageType::VERSION_NOT_SUPPORTED_RESPONSE {
        return Err(NodeRequestError::Version);
    }
    let mut tlvs = frame.tlvs().filter_map(Result::ok);
    let cause = tlvs.find(|tlv| tlv.ie == IeType::CAUSE);
    // The cause of a rejection counts even if mandatory IEs are missing, so it is checked first.
    match cause.and_then(|tlv| tlv.value.first().copied()).map(Cause) {
        Some(cause) if cause.is_rejection() => Err(NodeRequestError::Refused { cause }),
        // The value 0 is reserved, TS 29.244 §8.2.1.
        Some(Cause(0)) => Err(NodeRequestError::InvalidAnswer("Cause is 0".to_owned())),
        _ => {
            Message::decode(bytes).map_err(NodeRequestError::Answer)?;
            Ok(())
        }
    }
}
