//! The messages of the actor behind a client.

use std::net::SocketAddr;
use std::sync::Arc;

use strowger::{Accepts, Ask, Request};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::{MessageType, Seid};

use super::sessions::RemoteSession;
use super::{ClientError, SessionRules};
use crate::restoration::OnLoss;
use crate::socket::Batch;

/// A request to set up an association with a peer.
#[derive(Debug)]
pub(super) struct Associate {
    pub(super) peer: SocketAddr,
}

impl Request for Associate {
    type Reply = Result<AssociationId, ClientError>;
}

/// A request to release an association.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) association: AssociationId,
    pub(super) peer: SocketAddr,
}

impl Request for Release {
    type Reply = Result<(), ClientError>;
}

/// The complete response message, or the error.
pub(super) type ClientReply = Result<Arc<[u8]>, ClientError>;

/// A request with an arbitrary body; the reply is the complete response message.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) peer: SocketAddr,
    pub(super) message_type: MessageType,
    pub(super) seid: Seid,
    pub(super) body: Vec<u8>,
}

impl Request for Exchange {
    type Reply = ClientReply;
}

/// A request to establish a session.
#[derive(Debug)]
pub(super) struct Establish {
    pub(super) peer: SocketAddr,
    pub(super) on_loss: OnLoss,
    pub(super) rules: SessionRules,
}

/// A session that a peer accepted.
#[derive(Debug)]
pub(super) struct EstablishedSession {
    pub(super) seid: Seid,
    pub(super) remote: Arc<RemoteSession>,
}

impl Request for Establish {
    type Reply = Result<EstablishedSession, ClientError>;
}

/// The identity of a session, as its handle knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionIdentity {
    pub(super) peer: SocketAddr,
    pub(super) seid: Seid,
    /// The peer's SEID, for a session that the client has forgotten.
    pub(super) remote: Seid,
}

/// A request to modify a session; the reply is the complete response message.
#[derive(Debug)]
pub(super) struct Modify {
    pub(super) session: SessionIdentity,
    pub(super) body: Vec<u8>,
}

impl Request for Modify {
    type Reply = ClientReply;
}

/// A request to delete a session; the reply is the complete response message.
#[derive(Debug)]
pub(super) struct Delete {
    pub(super) session: SessionIdentity,
    pub(super) body: Vec<u8>,
}

impl Request for Delete {
    type Reply = ClientReply;
}

/// The messages that the client actor accepts.
#[derive(Debug)]
pub(crate) enum ClientMsg {
    Received(Batch),
    Due,
    /// The time in which reports about a deleted session may arrive is over.
    Expired(Seid),
    Associate(Ask<Associate>),
    Release(Ask<Release>),
    Exchange(Ask<Exchange>),
    Establish(Ask<Establish>),
    Modify(Ask<Modify>),
    Delete(Ask<Delete>),
}

/// Generates the conversions from the accepted message types to [`ClientMsg`].
macro_rules! accepts {
    ($($variant:ident($type:ty);)*) => {
        $(impl Accepts<$type> for ClientMsg {
            fn wrap(message: $type) -> Self {
                Self::$variant(message)
            }
        })*
    };
}

accepts! {
    Received(Batch);
    Associate(Ask<Associate>);
    Release(Ask<Release>);
    Exchange(Ask<Exchange>);
    Establish(Ask<Establish>);
    Modify(Ask<Modify>);
    Delete(Ask<Delete>);
}
