//! Events of an endpoint for its owner.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{BodyBuilder, DiscardReason};
#[cfg(doc)]
use super::{Endpoint, EndpointConfig};
use crate::association::{Association, AssociationId, NodeName, Recovery};
use crate::ie::Cause;
use crate::transaction::{RequestId, TransactionId};

/// An event for the owner of an [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An association was set up, for the first time or again.
    AssociationUp {
        /// The association that was set up.
        association: AssociationId,
        /// `true` if the sessions of the association stay, because it existed before with the same
        /// time stamp or the peer retained them. Otherwise its sessions end.
        kept: bool,
    },
    /// A setup that we requested was refused, was accepted with an answer that cannot be used
    /// (`invalid`), or was not answered (both are `None`).
    AssociationFailed {
        /// The peer that was asked.
        peer: SocketAddr,
        /// The cause in its answer.
        cause: Option<Cause>,
        /// The defect of its answer: the mandatory element that is missing or malformed, or the
        /// reason why its Node ID is not accepted.
        invalid: Option<String>,
    },
    /// A peer restarted and lost its sessions. It sent a setup, or confirmed the later stamp of a
    /// heartbeat.
    PeerRestarted {
        /// The association of the peer that restarted.
        association: AssociationId,
    },
    /// A heartbeat claimed that a peer restarted, and the peer denied it. Its sessions stay.
    RestartDenied {
        /// The association of the peer that denied the restart.
        association: AssociationId,
        /// The Recovery Time Stamp that was claimed.
        claim: Recovery,
    },
    /// A heartbeat has a later stamp, but its peer is known to restart only with a setup
    /// ([`EndpointConfig::restarts`]). Its sessions stay. Reported once for each association.
    StampIgnored {
        /// The association whose peer sent the stamp.
        association: AssociationId,
        /// The Recovery Time Stamp in the heartbeat.
        stamp: Recovery,
    },
    /// A peer stopped answering heartbeats. Its sessions stay, and heartbeats continue.
    PeerSilent {
        /// The association of the silent peer.
        association: AssociationId,
    },
    /// A silent peer is heard again.
    PeerHeard {
        /// The association of the peer that was heard again.
        association: AssociationId,
    },
    /// A peer changed its properties with an Association Update Request, or wants its association
    /// released.
    AssociationUpdated {
        /// The association that the peer updated.
        association: AssociationId,
        /// The encoded message.
        bytes: Arc<[u8]>,
    },
    /// A user plane peer wants its association released, within a time span if it gives one. Call
    /// [`Endpoint::release`] when its sessions have been deleted or moved.
    ReleaseWanted {
        /// The association that the peer wants to release.
        association: AssociationId,
        /// The time that the release may take.
        within: Option<Duration>,
    },
    /// A peer that was asked to release its association ([`Endpoint::request_release`]) or was sent
    /// its release ([`Endpoint::release`]) answered, sent an answer that cannot be used
    /// (`invalid`), or did not answer (both are `None`). In the first case the association exists
    /// until it is released, in the second it ends in any case.
    ReleaseAnswered {
        /// The association whose release was answered.
        association: AssociationId,
        /// The peer that was asked.
        peer: SocketAddr,
        /// The cause in the answer.
        cause: Option<Cause>,
        /// The defect of the answer.
        invalid: Option<String>,
    },
    /// A request, other than a setup, was refused because its Node ID belongs to another peer.
    ClaimRefused {
        /// The address of the sender.
        peer: SocketAddr,
        /// The Node ID.
        node: NodeName,
        /// The address that the Node ID belongs to.
        owner: SocketAddr,
        /// Number of refused requests of the host since the last event.
        count: u64,
    },
    /// A setup was refused because the Node ID does not belong to the sender, or because there is
    /// no room for more associations. Reported at most once per interval for each peer.
    SetupRefused {
        /// The sender of the setup.
        peer: SocketAddr,
        /// The Node ID that the sender claimed.
        node: NodeName,
        /// Number of refused setups of this peer since the last report, including this one.
        count: u64,
        /// The reason for the refusal.
        reason: String,
    },
    /// An association was released, with all its sessions.
    AssociationReleased {
        /// The association in its last state.
        association: Association,
    },
    /// A session-related request, to be answered with [`Endpoint::respond`].
    SessionRequest {
        /// The identifier of the request, for the answer.
        transaction: TransactionId,
        /// The sender of the request.
        peer: SocketAddr,
        /// The association that an establishment names by its Node ID, if the sender may act for
        /// that node. For other requests the session determines the association.
        association: Option<AssociationId>,
        /// The encoded message.
        bytes: Arc<[u8]>,
    },
    /// A node-related request that concerns more than its association, to be answered with
    /// [`Endpoint::respond`]. The user plane receives PFD management and session set requests, the
    /// control plane receives node reports.
    NodeRequest {
        /// The identifier of the request, for the answer.
        transaction: TransactionId,
        /// The association of the sender.
        association: AssociationId,
        /// The encoded message.
        bytes: Arc<[u8]>,
    },
    /// A peer exceeded its limits. The request is to be refused through [`Endpoint::refuse`], with
    /// Cause 74 (PFCP entity in congestion) and the elements of `overload`.
    OverLimit {
        /// The identifier of the request, for the answer.
        transaction: TransactionId,
        /// The encoded message.
        bytes: Arc<[u8]>,
        /// Overload Control Information, if the peer supports it. Empty otherwise.
        overload: BodyBuilder,
    },
    /// A request of ours was answered.
    Response {
        /// The request that was answered.
        request: RequestId,
        /// The peer that answered.
        peer: SocketAddr,
        /// The encoded message.
        bytes: Arc<[u8]>,
    },
    /// A request of ours was withdrawn, because its association has ended or the peer has restarted
    /// ([`Endpoint::request_about`]).
    RequestWithdrawn {
        /// The request that was withdrawn.
        request: RequestId,
        /// The bytes of the request, in the same allocation that [`Endpoint::poll_transmit`]
        /// returned. A datagram with them that has not been sent yet must not be sent.
        bytes: Arc<[u8]>,
    },
    /// A request of ours was not answered.
    RequestFailed {
        /// The request that got no answer.
        request: RequestId,
        /// The peer that did not answer.
        peer: SocketAddr,
    },
    /// A datagram or message was discarded. Reported at most once per interval for each kind and
    /// peer.
    Discarded {
        /// The kind of discard.
        kind: DiscardReason,
        /// Address and port of the sender.
        peer: SocketAddr,
        /// Number of occurrences since the last report, including this one.
        count: u64,
        /// The fault of this occurrence.
        detail: String,
    },
}

impl Event {
    /// Returns the event that a peer did not answer the release of its association.
    pub(super) const fn release_unanswered(association: AssociationId, peer: SocketAddr) -> Self {
        Self::ReleaseAnswered {
            association,
            peer,
            cause: None,
            invalid: None,
        }
    }
}
