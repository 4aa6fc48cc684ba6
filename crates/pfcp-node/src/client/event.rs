//! The events of a client about lost peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use strowger_pfcp::Seid;
use strowger_pfcp::ie::{Cause, CreatedPdr};

use crate::restoration::PeerLoss;

/// An event about a peer that was lost or found, or about a session that its peer lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A peer was lost; the client starts to search for it.
    PeerLost {
        /// Address of the peer that was lost.
        peer: SocketAddr,
        /// The sign by which the client took it for lost.
        why: PeerLoss,
    },
    /// A lost peer was found; the sessions that it lost and that are to be restored are established
    /// again.
    PeerFound {
        /// Address of the peer that answers again.
        peer: SocketAddr,
        /// The time for which the peer was lost.
        after: Duration,
        /// Number of sessions to establish again.
        sessions: usize,
    },
    /// A session that its peer had lost was established again.
    SessionRestored {
        /// Our SEID of the session, which did not change.
        seid: Seid,
        /// Address of the peer that has the session again.
        peer: SocketAddr,
        /// The peer's SEID of the session, which may differ from the previous one.
        remote: Seid,
        /// The values that the peer chose this time.
        created: Arc<[CreatedPdr]>,
    },
    /// The peer refused to establish a lost session again; the client gives up on the session.
    SessionRefused {
        /// Our SEID of the session.
        seid: Seid,
        /// Address of the peer that refused the session.
        peer: SocketAddr,
        /// The cause in the response.
        cause: Cause,
    },
    /// A session ended because its peer lost it and it was not to be restored, or could not be.
    SessionGone {
        /// Our SEID of the session.
        seid: Seid,
        /// Address of the peer that had the session.
        peer: SocketAddr,
    },
    /// All lost sessions of a peer have been established again or refused.
    RestorationDone {
        /// Address of the peer whose sessions were restored.
        peer: SocketAddr,
        /// Number of sessions that were established again.
        restored: u64,
        /// Number of sessions that were refused.
        refused: u64,
    },
}

/// Counters of a client: peers and sessions that were lost, found and restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientStats {
    /// Number of times that a peer was lost.
    pub peers_lost: u64,
    /// Number of times that a lost peer was found.
    pub peers_found: u64,
    /// Number of acknowledged sessions that their peers lost.
    pub sessions_lost: u64,
    /// Number of lost sessions that were established again.
    pub sessions_restored: u64,
    /// Number of lost sessions that the peer refused to establish again.
    pub sessions_refused: u64,
    /// Number of lost sessions that were not to be restored, or could not be.
    pub sessions_gone: u64,
    /// Number of events that were dropped because the recipient did not accept them.
    pub events_dropped: u64,
    /// Number of messages from peers that were discarded as malformed.
    pub malformed: u64,
    /// Number of responses that matched no request: late, repeated, of the wrong type, or from
    /// another address.
    pub unexpected: u64,
}
