//! The errors that a client returns.

use std::net::SocketAddr;
use std::sync::Arc;

use strowger::{AskError, StartError};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Error, IeType, MessageType, Seid};

use crate::journal::JournalError;
use crate::load::MixError;
use crate::profile::ProfileError;
use crate::socket::BindError;

/// The error returned when a client operation fails.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The Node ID is neither an address nor a domain name.
    #[error("`node_id` \"{0}\" is neither an IP address nor a domain name")]
    NodeId(String),
    /// The profile of a load does not describe a valid session.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The mix of a load does not describe a valid procedure.
    #[error(transparent)]
    Mix(#[from] MixError),
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(Arc<BindError>),
    /// The journal of a load cannot be created.
    #[error(transparent)]
    Journal(Arc<JournalError>),
    /// The actor failed to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The peer refused the request.
    #[error("{peer} refused: cause {} ({cause})", .cause.0)]
    Refused {
        /// The peer that refused.
        peer: SocketAddr,
        /// The cause in the response.
        cause: Cause,
        /// The IE at fault.
        offending_ie: Option<IeType>,
    },
    /// The peer did not answer any transmission of the request.
    #[error("{peer} did not answer")]
    NoAnswer {
        /// The peer that was asked.
        peer: SocketAddr,
    },
    /// The response cannot be decoded.
    #[error("the answer of {peer} cannot be read: {error}")]
    Answer {
        /// The peer that answered.
        peer: SocketAddr,
        /// The decoding error.
        error: Error,
    },
    /// The response cannot be used.
    #[error("the answer of {peer} is invalid: {reason}")]
    InvalidAnswer {
        /// The peer that answered.
        peer: SocketAddr,
        /// The mandatory element that is missing or malformed, or another defect.
        reason: String,
    },
    /// The peer does not support the version of PFCP.
    #[error("{peer} does not support PFCP version 1")]
    Version {
        /// The peer that answered.
        peer: SocketAddr,
    },
    /// The control plane does not send requests of this type.
    #[error("the control plane does not send a message of the type {message_type}")]
    NotSent {
        /// The type of the request.
        message_type: MessageType,
    },
    /// The request cannot be encoded.
    #[error("the request cannot be written: {0}")]
    Request(#[from] Error),
    /// The peer lost the session, which is being established again. The session can be changed
    /// after [`ClientEvent::SessionRestored`](crate::ClientEvent::SessionRestored).
    #[error("{peer} lost session {seid}, which is being restored; ask again later")]
    Restoring {
        /// Address of the peer whose sessions are being restored.
        peer: SocketAddr,
        /// Our SEID of the session.
        seid: Seid,
    },
    /// The peer lost the session, so there is nothing to delete. The session will not be restored.
    #[error("{peer} lost session {seid}; it is not restored any more")]
    Lost {
        /// Address of the peer that was lost.
        peer: SocketAddr,
        /// Our SEID of the session.
        seid: Seid,
    },
    /// Too many requests are waiting for responses.
    #[error("too many requests wait for answers")]
    Busy,
    /// The client has stopped.
    #[error("the client has ended")]
    Ended,
}

impl ClientError {
    /// Returns the cause with which the peer refused the request.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self {
            Self::Refused { cause, .. } => Some(*cause),
            _ => None,
        }
    }
}

impl From<AskError> for ClientError {
    fn from(_: AskError) -> Self {
        Self::Ended
    }
}

/// Returns the error for the setup or release of an association that failed.
pub(crate) fn request_failed(
    peer: SocketAddr,
    cause: Option<Cause>,
    invalid: Option<String>,
) -> ClientError {
    match (invalid, cause) {
        (Some(reason), _) => ClientError::InvalidAnswer { peer, reason },
        (None, Some(cause)) => ClientError::Refused {
            peer,
            cause,
            offending_ie: None,
        },
        (None, None) => ClientError::NoAnswer { peer },
    }
}

/// Converts the failure of an actor that sends requests to `peer` on our behalf.
pub(crate) fn unanswered(error: &AskError, peer: SocketAddr) -> ClientError {
    match error {
        AskError::TimedOut => ClientError::NoAnswer { peer },
        AskError::Full => ClientError::Busy,
        _ => ClientError::Ended,
    }
}
