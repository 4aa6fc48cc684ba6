//! What the owner of a node wants of a peer: that it releases its association, that it hears a
//! report about the node.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::{Reply, Request};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::RequestId;
use strowger_pfcp::{IeType, Message, MessageType, Seid};

use super::Endpoint;
use crate::node::OrderError;

/// What is wanted, and of whom, by its Node ID.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) node: String,
    pub(crate) wish: Wish,
}

/// What is wanted.
#[derive(Debug)]
pub(crate) enum Wish {
    /// The peer is to release its association, within some time if it is given.
    Release(Option<Duration>),
    /// The peer is to hear a Node Report Request with these elements.
    Report(Vec<u8>),
}

/// How it went.
pub(crate) type Obeyed = Result<(), OrderError>;

impl Request for Order {
    type Reply = Obeyed;
}

impl Endpoint {
    /// Sends what is wanted; a report is answered when the peer has answered.
    pub(super) fn order(&mut self, now: Instant, order: Order, reply: Reply<Obeyed>) {
        let all = self.protocol.associations();
        let is_meant = |name: String| name.eq_ignore_ascii_case(&order.node);
        let found = all.iter().find(|one| is_meant(one.node.to_string()));
        let Some(association) = found.map(|one| one.id) else {
            let node = order.node;
            return reply.send(Err(OrderError::UnknownPeer { node }));
        };
        match order.wish {
            Wish::Release(within) => reply.send(self.ask_release(now, association, within)),
            Wish::Report(body) => {
                let kind = MessageType::NODE_REPORT_REQUEST;
                let sent = self
                    .protocol
                    .request_about(now, association, kind, Seid(0), &body);
                match sent {
                    Ok(sent) => _ = self.orders.insert(sent.request, reply),
                    Err(_) => reply.send(Err(OrderError::Busy)),
                }
            }
        }
    }

    fn ask_release(
        &mut self,
        now: Instant,
        association: AssociationId,
        within: Option<Duration>,
    ) -> Obeyed {
        let asked = self.protocol.ask_release(now, association, within);
        asked.map_err(|_| OrderError::Busy)
    }

    /// Tells the owner what a peer answered, or why it did not, if it waits for it.
    pub(super) fn obeyed(&mut self, request: RequestId, answer: Result<&Arc<[u8]>, OrderError>) {
        let Some(reply) = self.orders.remove(&request) else {
            return;
        };
        // A rejection says what it has to say, whatever is missing beside its cause.
        reply.send(answer.and_then(|octets| {
            accepted(octets)?;
            Message::decode(octets).map_err(OrderError::Answer)?;
            Ok(())
        }));
    }
}

fn accepted(octets: &[u8]) -> Obeyed {
    let frame = strowger_pfcp::Frame::decode(octets).map_err(OrderError::Answer)?;
    let mut tlvs = frame.tlvs().filter_map(Result::ok);
    let cause = tlvs.find(|tlv| tlv.ie == IeType::CAUSE);
    match cause.and_then(|tlv| tlv.value.first().copied()).map(Cause) {
        Some(cause) if !cause.is_acceptance() => Err(OrderError::Refused { cause }),
        _ => Ok(()),
    }
}
