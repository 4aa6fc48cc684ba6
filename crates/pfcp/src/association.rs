//! Associations between a control plane and a user plane node, TS 29.244 §6.2.
//!
//! An association is identified by the Node ID of the peer. The Node ID is bound to the source
//! address of the first setup; a setup from another address that claims the same Node ID is
//! refused. The peer at the known address then gets a heartbeat, and if it does not answer, the
//! next setup from another address takes the association over: the peer has moved, as a container
//! does that is started elsewhere. The Node ID of a [configured peer](NamedPeer) is bound to the
//! configured addresses before any setup arrives, and an association is always reserved for it.
//!
//! The Recovery Time Stamp shows whether the peer still has its sessions. A newer stamp means that
//! the peer restarted and lost its sessions; the same stamp means that the setup was repeated and
//! changes nothing. If a heartbeat reveals the restart before the setup does, requests of the
//! previous incarnation may arrive in between, so the first setup after such a heartbeat ends the
//! sessions once more.
//!
//! A setup is trusted at once, because it replaces the association in any case. A heartbeat is not:
//! any process on the peer's host can send one. A later stamp in a heartbeat is therefore only a
//! claim, which the peer is asked to confirm at the address of its association (`RestartInquiry`).

mod name;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

pub use name::NodeName;

use crate::endpoint::Network;
use crate::seeded_bug::{Bug, seeded};

/// The identifier of an association. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(NonZeroU64);

impl fmt::Display for AssociationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time at which a node started, in seconds since 1900, TS 29.244 §8.2.65.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recovery(pub u32);

impl Recovery {
    /// Returns `true` if this time is after `other`, also across the wrap of the number in 2036.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead != 0 && ahead < 1 << 31
    }
}

/// An association with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The identifier of the association.
    pub id: AssociationId,
    /// The Node ID of the peer.
    pub node: NodeName,
    /// The address that the setup came from, and to which requests are sent.
    pub address: SocketAddr,
    /// The time at which the peer started.
    pub recovery: Recovery,
    /// The time of the last setup.
    pub since: Instant,
    /// `true` if the peer did not answer the last heartbeat. Its sessions stay.
    pub silent: bool,
    /// The value of CP Function Features or UP Function Features, depending on the role of the
    /// peer. Empty if the peer did not send it.
    pub features: Box<[u8]>,
    /// The local address that the setup arrived at, numbered as in
    /// [`Transmit`](crate::endpoint::Transmit). Requests to the peer are sent from it.
    pub local: Option<u16>,
    /// The addresses that the configuration assigns to the peer. Empty if the configuration does
    /// not name it.
    addresses: Arc<[Network]>,
    /// The time stamp of the last setup. Heartbeats may have revealed a later one since.
    pub(crate) set_up_with: Recovery,
    /// The state of the heartbeat timer.
    pub(crate) heartbeat: HeartbeatTimer,
    /// The state of the inquiry whether the peer has restarted.
    pub(crate) inquiry: RestartInquiry,
    /// The time of the last heartbeat that another address caused by claiming the Node ID.
    pub(crate) claim_checked: Option<Instant>,
    /// Set once a later stamp has been ignored and reported to the owner.
    pub(crate) stamp_ignored: bool,
}

/// Maximum number of bytes of features that are kept.
const FEATURES: usize = 32;

impl Association {
    /// Returns `true` if `address` belongs to the peer: either the setup came from it, or the
    /// configuration assigns it to the peer.
    #[must_use]
    pub fn is_at(&self, address: IpAddr) -> bool {
        self.address.ip() == address || is_among(&self.addresses, address)
    }

    /// Returns `true` if the peer may set the association up from `address`: from its own
    /// addresses, or from any while it is silent, unless the configuration names it.
    fn accepts_setup_from(&self, address: IpAddr) -> bool {
        self.is_at(address) || (self.silent && self.addresses.is_empty())
    }

    /// Returns `true` if the peer, a control plane node, supports Overload Control Information: the
    /// feature OVRL of TS 29.244 §8.2.58.
    #[must_use]
    pub fn understands_overload(&self) -> bool {
        self.features.first().is_some_and(|first| first & 2 != 0)
    }

    /// Returns `true` if the peer, a control plane node, supports Load Control Information: the
    /// feature LOAD of TS 29.244 §8.2.58.
    #[must_use]
    pub fn understands_load(&self) -> bool {
        self.features.first().is_some_and(|first| first & 1 != 0)
    }
}

/// The state of the heartbeat timer of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeartbeatTimer {
    /// The next heartbeat is due at this time.
    At(Instant),
    /// A heartbeat was sent. Its answer, or the end of its retransmissions, decides.
    Waiting,
    /// No heartbeats are sent.
    Off,
}

/// The state of the inquiry whether a peer has restarted, as a heartbeat claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartInquiry {
    /// No heartbeat claims a restart.
    None,
    /// A heartbeat claims a restart with this stamp, and the peer is being asked.
    Asked(Recovery),
    /// The peer denied the restart. Other claims are not followed up before this time, so that a
    /// flood of claims costs one heartbeat for each T1.
    Denied(Instant),
}

/// The sign by which the restart of a peer is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RestartSign {
    /// A later Recovery Time Stamp, in a setup or in a heartbeat.
    #[default]
    Heartbeat,
    /// An association setup only, for a peer whose stamp changes without a restart.
    AssociationSetup,
}

/// A peer named in the configuration. No other peer may use its Node ID, and an association is
/// reserved for it however many others exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPeer {
    /// The Node ID of the peer.
    pub node: NodeName,
    /// The networks that the peer sends from.
    pub addresses: Vec<Network>,
}

fn is_among(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// The reason why a setup was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The Node ID belongs to another address.
    #[error("the Node ID belongs to {owner}, which keeps it if it answers a heartbeat")]
    Claimed {
        /// The address that the Node ID belongs to.
        owner: IpAddr,
    },
    /// The configuration gives the Node ID to other addresses.
    #[error("the configuration gives the Node ID to other addresses")]
    ReservedByConfig,
    /// The Node ID is the IP address of another host, and only that host may use it.
    #[error("the Node ID is the address of another host, which the configuration does not give it")]
    AddressOfOtherHost,
    /// The host has reached its limit of associations.
    #[error("host has reached its limit of {limit} associations")]
    HostFull {
        /// Maximum number of associations of the host.
        limit: usize,
    },
    /// The limit of associations has been reached.
    #[error("{limit} associations exist already, and {reserved} are reserved for named peers")]
    Full {
        /// Maximum number of associations.
        limit: usize,
        /// Number of associations reserved for peers named in the configuration.
        reserved: usize,
    },
}

/// The outcome of asking a peer whether it has restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InquiryOutcome {
    /// The peer has restarted.
    Restarted,
    /// The peer has not restarted, although a heartbeat claimed this stamp.
    Denied(Recovery),
    /// The inquiry was already settled.
    AlreadySettled,
}

/// The outcome of a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupOutcome {
    /// There was no association with the node.
    New(AssociationId),
    /// There was an association and the peer has not restarted. Its sessions stay.
    Unchanged(AssociationId),
    /// There was an association and the peer has restarted. Its sessions are gone.
    Restarted(AssociationId),
    /// There was an association, and this is the first setup since a heartbeat revealed that the
    /// peer restarted. Sessions established in between belong to late requests of its previous
    /// incarnation.
    FirstAfterRestart(AssociationId),
}

impl SetupOutcome {
    /// Returns the identifier of the association.
    #[must_use]
    pub const fn id(self) -> AssociationId {
        match self {
            Self::New(id)
            | Self::Unchanged(id)
            | Self::Restarted(id)
            | Self::FirstAfterRestart(id) => id,
        }
    }
}

/// The association table of a node.
#[derive(Debug)]
pub struct Associations {
    limit: usize,
    heartbeat: Option<Duration>,
    next_id: NonZeroU64,
    all: BTreeMap<AssociationId, Association>,
    by_node: FxHashMap<NodeName, AssociationId>,
    by_address: FxHashMap<SocketAddr, AssociationId>,
    /// The addresses of the peers named in the configuration.
    named: FxHashMap<NodeName, Arc<[Network]>>,
    /// Number of associations with peers that the configuration does not name.
    unnamed: usize,
}

impl Associations {
    /// Creates an empty table for at most `limit` associations. A heartbeat is sent to a peer when
    /// nothing has been heard from it for `heartbeat`.
    #[must_use]
    pub fn new(limit: usize, heartbeat: Option<Duration>) -> Self {
        Self {
            limit,
            heartbeat,
            next_id: NonZeroU64::MIN,
            all: BTreeMap::new(),
            by_node: FxHashMap::default(),
            by_address: FxHashMap::default(),
            named: FxHashMap::default(),
            unnamed: 0,
        }
    }

    /// Binds the Node IDs of the peers to their addresses, and reserves an association for each.
    #[must_use]
    pub fn with_named(mut self, peers: &[NamedPeer]) -> Self {
        for peer in peers {
            let addresses = peer.addresses.as_slice().into();
            self.named.insert(peer.node.clone(), addresses);
        }
        self
    }

    /// Returns `true` if the configuration names the peer with this Node ID.
    #[must_use]
    pub fn is_named(&self, node: &NodeName) -> bool {
        self.named.contains_key(node)
    }

    /// Sets up an association, or sets it up again.
    ///
    /// A peer named in the configuration may change from one of its addresses to another.
    ///
    /// # Errors
    /// Returns an error if the Node ID belongs to another address, or the limit of associations has
    /// been reached.
    pub fn set_up(
        &mut self,
        now: Instant,
        node: NodeName,
        address: SocketAddr,
        recovery: Recovery,
    ) -> Result<SetupOutcome, SetupError> {
        let heartbeat = self
            .heartbeat
            .map_or(HeartbeatTimer::Off, |after| HeartbeatTimer::At(now + after));
        let named = self.named.get(&node);
        if named.is_some_and(|addresses| !is_among(addresses, address.ip())) {
            return Err(SetupError::ReservedByConfig);
        }
        let Some(&id) = self.by_node.get(&node) else {
            let (limit, reserved) = (self.limit, self.named.len());
            let is_full = match named {
                Some(_) => self.all.len() >= limit,
                None => self.unnamed >= limit.saturating_sub(reserved),
            };
            if is_full {
                return Err(SetupError::Full { limit, reserved });
            }
            self.unnamed += usize::from(named.is_none());
            let addresses = named.map_or_else(|| Arc::from([]), Arc::clone);
            let id = AssociationId(self.next_id);
            self.next_id = self.next_id.saturating_add(1);
            self.by_node.insert(node.clone(), id);
            self.by_address.insert(address, id);
            let since = now;
            let association = Association {
                id,
                node,
                address,
                recovery,
                since,
                silent: false,
                features: Box::default(),
                local: None,
                addresses,
                set_up_with: recovery,
                heartbeat,
                inquiry: RestartInquiry::None,
                claim_checked: None,
                stamp_ignored: false,
            };
            self.all.insert(id, association);
            return Ok(SetupOutcome::New(id));
        };
        let association = self
            .all
            .get_mut(&id)
            .expect("both maps have the same associations");
        if !association.accepts_setup_from(address.ip()) {
            return Err(SetupError::Claimed {
                owner: association.address.ip(),
            });
        }
        if self.by_address.get(&association.address) == Some(&id) {
            self.by_address.remove(&association.address);
        }
        self.by_address.insert(address, id);
        association.address = address;
        association.since = now;
        let set_up_with = std::mem::replace(&mut association.set_up_with, recovery);
        association.silent = false;
        association.heartbeat = heartbeat;
        association.inquiry = RestartInquiry::None;
        let restarted = association.recovery != recovery;
        association.recovery = recovery;
        Ok(if restarted {
            SetupOutcome::Restarted(id)
        } else if set_up_with != recovery && !seeded(Bug::LateSessionsKept) {
            SetupOutcome::FirstAfterRestart(id)
        } else {
            SetupOutcome::Unchanged(id)
        })
    }

    /// Stores the features and the local address from a setup or an update.
    pub(crate) fn store_properties(
        &mut self,
        id: AssociationId,
        features: Option<&[u8]>,
        local: Option<u16>,
    ) {
        let Some(association) = self.all.get_mut(&id) else {
            return;
        };
        if let Some(features) = features {
            // No peer has more features than that, and none can make us keep more.
            association.features = features.iter().copied().take(FEATURES).collect();
        }
        association.local = local.or(association.local);
    }

    /// Records that a heartbeat claims a restart. Returns `true` if the peer should be asked about
    /// it.
    pub(crate) fn restart_claimed(
        &mut self,
        now: Instant,
        id: AssociationId,
        claim: Recovery,
    ) -> bool {
        let Some(association) = self.all.get_mut(&id) else {
            return false;
        };
        let is_open = match association.inquiry {
            RestartInquiry::None => true,
            RestartInquiry::Asked(_) => false,
            RestartInquiry::Denied(until) => until <= now,
        };
        if is_open {
            association.inquiry = RestartInquiry::Asked(claim);
        }
        is_open
    }

    /// Records that the peer could not be asked about a restart, or did not answer.
    pub(crate) fn inquiry_unanswered(&mut self, id: AssociationId) {
        if let Some(association) = self.all.get_mut(&id) {
            association.inquiry = RestartInquiry::None;
        }
    }

    /// Records the stamp that the peer gave when asked about a restart, and ends the inquiry. If
    /// the peer denies the restart, other claims are not followed up before `until`.
    pub(crate) fn inquiry_answered(
        &mut self,
        id: AssociationId,
        stamp: Recovery,
        until: Instant,
    ) -> InquiryOutcome {
        let Some(association) = self.all.get_mut(&id) else {
            return InquiryOutcome::AlreadySettled;
        };
        let inquiry = std::mem::replace(&mut association.inquiry, RestartInquiry::None);
        if stamp.is_after(association.recovery) {
            association.recovery = stamp;
            return InquiryOutcome::Restarted;
        }
        match inquiry {
            RestartInquiry::Asked(claim) => {
                association.inquiry = RestartInquiry::Denied(until);
                InquiryOutcome::Denied(claim)
            }
            // A setup has settled the inquiry in the meantime.
            RestartInquiry::None | RestartInquiry::Denied(_) => InquiryOutcome::AlreadySettled,
        }
    }

    /// Records that a later stamp was ignored. Returns `true` the first time.
    pub(crate) fn stamp_ignored(&mut self, id: AssociationId) -> bool {
        let association = self.all.get_mut(&id);
        association.is_some_and(|one| !std::mem::replace(&mut one.stamp_ignored, true))
    }

    /// Removes an association.
    pub fn remove(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.all.remove(&id)?;
        self.by_node.remove(&association.node);
        self.unnamed -= usize::from(!self.named.contains_key(&association.node));
        if self.by_address.get(&association.address) == Some(&id) {
            self.by_address.remove(&association.address);
        }
        Some(association)
    }

    /// Returns the association with this identifier.
    #[must_use]
    pub fn get(&self, id: AssociationId) -> Option<&Association> {
        self.all.get(&id)
    }

    /// Returns the association with the node.
    #[must_use]
    pub fn get_by_node(&self, node: &NodeName) -> Option<&Association> {
        self.all.get(self.by_node.get(node)?)
    }

    /// Returns the association that requests from an address belong to: the one set up from exactly
    /// this address, or else the only one of its host.
    #[must_use]
    pub fn from_address(&self, address: SocketAddr) -> Option<&Association> {
        if let Some(id) = self.by_address.get(&address) {
            return self.all.get(id);
        }
        let mut of_host = self.all.values().filter(|one| one.is_at(address.ip()));
        of_host.next().filter(|_| of_host.next().is_none())
    }

    /// Returns the number of associations of a host with peers that the configuration does not
    /// name.
    #[must_use]
    pub fn unnamed_count_of_host(&self, host: IpAddr) -> usize {
        let of_it = self.all.values().filter(|one| one.address.ip() == host);
        of_it.filter(|one| one.addresses.is_empty()).count()
    }

    /// Returns `true` if the association belongs to the host.
    #[must_use]
    pub fn owns(&self, id: AssociationId, host: IpAddr) -> bool {
        self.all
            .get(&id)
            .is_some_and(|association| association.is_at(host))
    }

    /// Returns an iterator over all associations, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Association> {
        self.all.values()
    }

    /// Returns the number of associations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns `true` if there are no associations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Records that the peer was heard, and schedules the next heartbeat one interval from now.
    /// Returns `true` if the peer was silent before.
    pub(crate) fn on_peer_alive(&mut self, now: Instant, id: AssociationId) -> bool {
        let Some(association) = self.all.get_mut(&id) else {
            return false;
        };
        association.heartbeat = match self.heartbeat {
            Some(after) => HeartbeatTimer::At(now + after),
            None => HeartbeatTimer::Off,
        };
        std::mem::take(&mut association.silent)
    }

    /// Makes the next heartbeat due now, unless the answer to one is pending.
    pub(crate) fn heartbeat_now(&mut self, now: Instant, id: AssociationId) {
        let association = self.all.get_mut(&id);
        if let Some(association) = association
            && association.heartbeat != HeartbeatTimer::Waiting
        {
            association.heartbeat = HeartbeatTimer::At(now);
        }
    }

    /// Makes a heartbeat to a peer due whose Node ID another address claims, at most once in
    /// `pause`.
    pub(crate) fn check_claimed(&mut self, now: Instant, node: &NodeName, pause: Duration) {
        let Some(&id) = self.by_node.get(node) else {
            return;
        };
        let association = self.all.get_mut(&id);
        if let Some(association) = association
            && association.claim_checked.is_none_or(|at| at + pause <= now)
        {
            association.claim_checked = Some(now);
            self.heartbeat_now(now, id);
        }
    }

    /// Records that the peer did not answer a heartbeat, and schedules the next one an interval
    /// from now. Returns `true` if the peer was not silent before.
    pub(crate) fn on_heartbeat_timeout(&mut self, now: Instant, id: AssociationId) -> bool {
        let silent_before = self.on_peer_alive(now, id);
        let Some(association) = self.all.get_mut(&id) else {
            return false;
        };
        association.silent = true;
        !silent_before
    }

    /// Returns an association whose heartbeat is due, and marks the heartbeat as sent.
    pub(crate) fn poll_heartbeat(&mut self, now: Instant) -> Option<(AssociationId, SocketAddr)> {
        let due =
            |one: &&mut Association| matches!(one.heartbeat, HeartbeatTimer::At(at) if at <= now);
        let association = self.all.values_mut().find(due)?;
        association.heartbeat = HeartbeatTimer::Waiting;
        Some((association.id, association.address))
    }

    /// Returns the time at which the next heartbeat is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let at = |one: &Association| match one.heartbeat {
            HeartbeatTimer::At(at) => Some(at),
            HeartbeatTimer::Waiting | HeartbeatTimer::Off => None,
        };
        self.all.values().filter_map(at).min()
    }
}
