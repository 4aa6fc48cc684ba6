//! The errors of a client.

use std::net::SocketAddr;
use std::sync::Arc;

use strowger::{AskError, StartError};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Error, IeType, Seid};

use crate::ledger::LedgerError;
use crate::socket::BindError;

/// Why a client did not get what it asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The Node ID is neither an address nor a domain name.
    #[error("`node_id` \"{0}\" is neither an IP address nor a domain name")]
    NodeId(String),
    /// The address cannot be listened on.
    #[error(transparent)]
    Bind(Arc<BindError>),
    /// The ledger of a load cannot be made.
    #[error(transparent)]
    Ledger(Arc<LedgerError>),
    /// The actor did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The peer refused.
    #[error("{peer} refused: cause {} ({cause})", .cause.0)]
    Refused {
        /// Who refused.
        peer: SocketAddr,
        /// Why.
        cause: Cause,
        /// The element at fault.
        offending_ie: Option<IeType>,
    },
    /// The peer did not answer, however often it was asked.
    #[error("{peer} did not answer")]
    NoAnswer {
        /// Who was asked.
        peer: SocketAddr,
    },
    /// The answer cannot be read.
    #[error("the answer of {peer} cannot be read: {error}")]
    Answer {
        /// Who answered.
        peer: SocketAddr,
        /// What is wrong with it.
        error: Error,
    },
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] Error),
    /// The peer lost the session, which is being established again: it can be changed when it is
    /// ([`ClientEvent::SessionRestored`](crate::ClientEvent::SessionRestored)).
    #[error("{peer} lost session {seid}, which is being restored; ask again later")]
    Restoring {
        /// The peer.
        peer: SocketAddr,
        /// Our identifier of the session.
        seid: Seid,
    },
    /// The peer lost the session, so that there is nothing to delete; it is not restored any more.
    #[error("{peer} lost session {seid}; it is not restored any more")]
    Lost {
        /// The peer.
        peer: SocketAddr,
        /// Our identifier of the session.
        seid: Seid,
    },
    /// Too many requests wait for answers.
    #[error("too many requests wait for answers")]
    Busy,
    /// The client has ended.
    #[error("the client has ended")]
    Ended,
}

impl ClientError {
    /// The cause with which the peer refused.
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

/// What an actor that asks `peer` in our place left unsaid.
pub(crate) fn unanswered(error: &AskError, peer: SocketAddr) -> ClientError {
    match error {
        AskError::TimedOut => ClientError::NoAnswer { peer },
        AskError::Full => ClientError::Busy,
        _ => ClientError::Ended,
    }
}
