//! Decoding of responses.

use std::net::SocketAddr;

use strowger_pfcp::ie::{Cause, OffendingIe};
use strowger_pfcp::validate::{Deviation, tolerate};
use strowger_pfcp::{
    Error, Frame, Ie, IeType, Index, Interfaces, Message, MessageType, MessageView,
};

use super::{ClientError, accepted};
use crate::metric;

/// Decodes a response. The cause of a rejection is reported even if mandatory IEs are missing.
pub(super) fn read(peer: SocketAddr, bytes: &[u8]) -> Result<Message, ClientError> {
    match whole(bytes) {
        Ok(message)
            if message.header.message_type == MessageType::VERSION_NOT_SUPPORTED_RESPONSE =>
        {
            tracing::warn!(%peer, "the peer does not support PFCP version 1");
            Err(ClientError::Version { peer })
        }
        Ok(message) => Ok(message),
        Err(error) => match rejection(bytes) {
            Some((cause, offending_ie)) => {
                tracing::debug!(%peer, %error, %cause, "rejection lacks mandatory elements");
                metric::record_deviation(Deviation::BareRejection);
                accepted(peer, cause, offending_ie)?;
                Err(ClientError::Answer { peer, error })
            }
            None => {
                tracing::warn!(%peer, %error, "an answer cannot be read");
                Err(ClientError::Answer { peer, error })
            }
        },
    }
}

/// Decodes a complete message and counts its deviations from the specification.
fn whole(bytes: &[u8]) -> Result<Message, Error> {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index)?;
    let message = view.to_message()?;
    // Other faults are left to the caller to judge.
    let tolerated = tolerate(&view, Interfaces::ALL);
    for deviation in tolerated.map_or_else(|_| Vec::new(), |tolerated| tolerated.deviations) {
        metric::record_deviation(deviation);
    }
    Ok(message)
}

/// Finds the cause of a rejection, and the IE that it names.
fn rejection(bytes: &[u8]) -> Option<(Cause, Option<IeType>)> {
    let frame = Frame::decode(bytes).ok()?;
    let find = |ie| {
        let mut tlvs = frame.tlvs().map_while(Result::ok);
        tlvs.find(|tlv| tlv.ie == ie).map(|tlv| tlv.value)
    };
    let cause = find(IeType::CAUSE)?.first().copied().map(Cause)?;
    let offending = find(IeType::OFFENDING_IE).and_then(|value| OffendingIe::decode(value).ok());
    cause
        .is_rejection()
        .then_some((cause, offending.map(|offending| offending.ie())))
}
