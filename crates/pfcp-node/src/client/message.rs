//! The messages of the actor behind a client.

use std::net::SocketAddr;
use std::sync::Arc;

use strowger::{Accepts, Ask, Request};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::{MessageType, Seid};

use super::record::Live;
use super::{ClientError, Rules};
use crate::restoration::OnLoss;
use crate::socket::Batch;

/// Asks for an association with a peer.
#[derive(Debug)]
pub(super) struct Associate {
    pub(super) peer: SocketAddr,
}

impl Request for Associate {
    type Reply = Result<AssociationId, ClientError>;
}

/// Asks to end an association.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) association: AssociationId,
    pub(super) peer: SocketAddr,
}

impl Request for Release {
    type Reply = Result<(), ClientError>;
}

/// The whole message of an answer.
pub(super) type Answer = Result<Arc<[u8]>, ClientError>;

/// Asks a peer anything; the answer is the whole message.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) peer: SocketAddr,
    pub(super) message_type: MessageType,
    pub(super) seid: Seid,
    pub(super) body: Vec<u8>,
}

impl Request for Exchange {
    type Reply = Answer;
}

/// Asks to establish a session.
#[derive(Debug)]
pub(super) struct Establish {
    pub(super) peer: SocketAddr,
    pub(super) on_loss: OnLoss,
    pub(super) rules: Rules,
}

/// A session that a peer accepted.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) seid: Seid,
    pub(super) live: Arc<Live>,
}

impl Request for Establish {
    type Reply = Result<Opened, ClientError>;
}

/// A session as its handle knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) peer: SocketAddr,
    pub(super) seid: Seid,
    /// The peer's identifier, for a session that the client has forgotten.
    pub(super) remote: Seid,
}

/// Asks to change a session; the answer is the whole message.
#[derive(Debug)]
pub(super) struct Modify {
    pub(super) session: Named,
    pub(super) body: Vec<u8>,
}

impl Request for Modify {
    type Reply = Answer;
}

/// Asks to delete a session; the answer is the whole message.
#[derive(Debug)]
pub(super) struct Delete {
    pub(super) session: Named,
    pub(super) body: Vec<u8>,
}

impl Request for Delete {
    type Reply = Answer;
}

/// What the actor takes.
#[derive(Debug)]
pub(crate) enum ClientMsg {
    Received(Batch),
    Due,
    /// No reports about a session that was deleted come any more.
    Expired(Seid),
    Associate(Ask<Associate>),
    Release(Ask<Release>),
    Exchange(Ask<Exchange>),
    Establish(Ask<Establish>),
    Modify(Ask<Modify>),
    Delete(Ask<Delete>),
}

/// Writes how the actor's own enum is made from what others send.
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
