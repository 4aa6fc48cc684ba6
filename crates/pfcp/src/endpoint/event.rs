//! What an endpoint tells its owner.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Discard, Elements};
#[cfg(doc)]
use super::{Endpoint, EndpointConfig};
use crate::association::{Association, AssociationId, Recovery};
use crate::ie::Cause;
use crate::transaction::{RequestId, TransactionId};

/// What happened, for the owner of an [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An association is there, new or once more.
    AssociationUp {
        /// Which one.
        association: AssociationId,
        /// Whether it was set up before with the same time stamp: then its sessions stay. Those of
        /// all others end.
        kept: bool,
    },
    /// A setup that we asked for was refused, or was not answered (`cause` is `None`).
    AssociationFailed {
        /// Whom we asked.
        peer: SocketAddr,
        /// What it said.
        cause: Option<Cause>,
    },
    /// A peer restarted: it knows none of its sessions any more. It said so in a setup, or
    /// confirmed the later stamp of a heartbeat.
    PeerRestarted {
        /// Which association it is.
        association: AssociationId,
    },
    /// A heartbeat claimed that a peer restarted, and the peer says that it has not: its sessions
    /// stay.
    RestartDenied {
        /// Which association it is.
        association: AssociationId,
        /// The Recovery Time Stamp that was claimed.
        claim: Recovery,
    },
    /// A heartbeat has a later stamp, and its peer is known to restart only with a setup
    /// ([`EndpointConfig::restarts`]): its sessions stay. Said once for each association.
    StampIgnored {
        /// Which association it is.
        association: AssociationId,
        /// The Recovery Time Stamp in the heartbeat.
        stamp: Recovery,
    },
    /// A peer does not answer heartbeats any more. Its sessions stay; heartbeats go on.
    PeerSilent {
        /// Which association it is.
        association: AssociationId,
    },
    /// A peer that was silent is heard again.
    PeerHeard {
        /// Which association it is.
        association: AssociationId,
    },
    /// A peer changed what it said when it set the association up, or wants it released.
    AssociationUpdated {
        /// Which association it is.
        association: AssociationId,
        /// The whole message.
        octets: Arc<[u8]>,
    },
    /// A peer in the user plane wants its association released within some time, if it says so:
    /// [`Endpoint::release`] does it, when its sessions are deleted or moved.
    ReleaseWanted {
        /// Which association it is.
        association: AssociationId,
        /// How long it may take.
        within: Option<Duration>,
    },
    /// An association was released, with all its sessions.
    AssociationReleased {
        /// What it was.
        association: Association,
    },
    /// A request about a session, to be answered with [`Endpoint::respond`].
    SessionRequest {
        /// Names the request in the answer.
        transaction: TransactionId,
        /// Who sent it.
        peer: SocketAddr,
        /// The association that an establishment names with its Node ID and that its sender may
        /// speak for; for other requests the session says which one it is.
        association: Option<AssociationId>,
        /// The whole message.
        octets: Arc<[u8]>,
    },
    /// A request of a node that concerns more than its association, to be answered with
    /// [`Endpoint::respond`]: PFD management and the sets of sessions come to the user plane, node
    /// reports to the control plane.
    NodeRequest {
        /// Names the request in the answer.
        transaction: TransactionId,
        /// The association of its sender.
        association: AssociationId,
        /// The whole message.
        octets: Arc<[u8]>,
    },
    /// A peer asks for more than it may. The request is to be refused, with Cause 74 (PFCP entity
    /// in congestion) and these elements, through [`Endpoint::refuse`].
    OverLimit {
        /// Names the request in the answer.
        transaction: TransactionId,
        /// The whole message.
        octets: Arc<[u8]>,
        /// Overload Control Information, if the peer understands it.
        overload: Elements,
    },
    /// A request of ours was answered.
    Response {
        /// Which request.
        request: RequestId,
        /// Who answered.
        peer: SocketAddr,
        /// The whole message.
        octets: Arc<[u8]>,
    },
    /// A request of ours is not sent again, because the association that it is about has ended or
    /// its peer has restarted ([`Endpoint::request_about`]).
    RequestWithdrawn {
        /// Which request.
        request: RequestId,
        /// Its bytes, the very ones that [`Endpoint::poll_transmit`] returned: a datagram of them
        /// that has not left yet is not to be sent.
        octets: Arc<[u8]>,
    },
    /// A request of ours was not answered.
    RequestFailed {
        /// Which request.
        request: RequestId,
        /// Who did not answer.
        peer: SocketAddr,
    },
    /// Something was discarded; said once for each kind and peer in a while.
    Discarded {
        /// What kind.
        kind: Discard,
        /// Who sent it.
        peer: SocketAddr,
        /// How many since it was last said, this one included.
        count: u64,
        /// What was wrong with this one.
        detail: String,
    },
}
