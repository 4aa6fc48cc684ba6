//! What a client tells about lost peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use strowger_pfcp::Seid;
use strowger_pfcp::ie::{Cause, CreatedPdr};

use crate::restoration::PeerLoss;

/// News of a peer that is lost or found, or of a session that its peer lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A peer is lost, and is looked for from now on.
    PeerLost {
        /// The peer.
        peer: SocketAddr,
        /// The reason.
        why: PeerLoss,
    },
    /// A peer that was lost is there again; sessions that are kept and that it lost are established
    /// again now.
    PeerFound {
        /// The peer.
        peer: SocketAddr,
        /// For how long it was lost.
        after: Duration,
        /// Sessions that are to be established again.
        sessions: usize,
    },
    /// A session that its peer had lost is established again.
    SessionRestored {
        /// Our identifier of the session, as before.
        seid: Seid,
        /// The peer.
        peer: SocketAddr,
        /// The peer's identifier of the session, which may be another one than before.
        remote: Seid,
        /// What the peer chose this time.
        created: Arc<[CreatedPdr]>,
    },
    /// A session that its peer had lost was refused, and is given up.
    SessionRefused {
        /// Our identifier of the session.
        seid: Seid,
        /// The peer.
        peer: SocketAddr,
        /// The reason.
        cause: Cause,
    },
    /// A session is no more: its peer lost it, and it was not to be kept, or could not be.
    SessionGone {
        /// Our identifier of the session.
        seid: Seid,
        /// The peer.
        peer: SocketAddr,
    },
    /// The last session of a peer that was to be established again is, or was refused.
    RestorationDone {
        /// The peer.
        peer: SocketAddr,
        /// Sessions that were established again.
        restored: u64,
        /// Sessions that were refused.
        refused: u64,
    },
}

/// Figures of a client: what it lost, found and restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientStats {
    /// Times that a peer was lost.
    pub peers_lost: u64,
    /// Times that a lost peer was found.
    pub peers_found: u64,
    /// Sessions that were acknowledged and that their peer lost.
    pub sessions_lost: u64,
    /// Of those, sessions that were established again.
    pub sessions_restored: u64,
    /// Of those, sessions that the peer refused to establish again.
    pub sessions_refused: u64,
    /// Of those, sessions that were not to be kept, or could not be.
    pub sessions_gone: u64,
    /// Events that nobody took.
    pub events_dropped: u64,
}
