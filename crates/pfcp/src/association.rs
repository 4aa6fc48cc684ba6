//! Associations between a control-plane and a user-plane node, TS 29.244 §6.2.
//!
//! An association is known by the Node ID of the peer, which is bound to the source address that
//! set it up, first come: another address that claims it is refused. The Recovery Time Stamp of
//! the peer says whether it still knows its sessions: a newer one means that it restarted, and
//! that its sessions are gone; the same one means that a repeated setup changes nothing. Where a
//! heartbeat told of the restart before the setup did, requests of the earlier life may have come
//! in between, so that the first setup ends sessions once more.
//!
//! A setup is believed at once, because it replaces the association in any case. A heartbeat is
//! not: anybody on the peer's host can send one, so a later stamp in it is only a claim, which the
//! peer is asked to confirm at the address of its association (`Doubt`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::planted::{Bug, planted};

/// Identifies an association; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(NonZeroU64);

impl fmt::Display for AssociationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a node, as the octets of its Node ID, TS 29.244 §8.2.38.
///
/// A domain name is kept in lower case: names that differ in case alone are one name, RFC 4343.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Box<[u8]>);

impl NodeName {
    /// Reads the value of a Node ID. `None` when it is none: an unknown type, too few octets,
    /// labels that do not fit, or an empty name.
    #[must_use]
    pub fn from_value(value: &[u8]) -> Option<Self> {
        let (kind, rest) = value.split_first()?;
        let known = match kind & 0x0f {
            0 => rest.get(..4)?,
            1 => rest.get(..16)?,
            2 if labels(rest).is_some() => rest,
            _ => return None,
        };
        let mut octets = Vec::with_capacity(1 + known.len());
        octets.push(kind & 0x0f);
        octets.extend_from_slice(known);
        if kind & 0x0f == 2 {
            // The length of a label is no letter.
            octets.make_ascii_lowercase();
        }
        Some(Self(octets.into()))
    }

    /// Makes the name of a node from a domain name.
    ///
    /// `None` when it is empty, or a label is empty or longer than 63 octets, or all of it longer
    /// than 254.
    #[must_use]
    pub fn from_fqdn(name: &str) -> Option<Self> {
        let mut octets = vec![2];
        for label in name.trim_end_matches('.').split('.') {
            let length = u8::try_from(label.len())
                .ok()
                .filter(|length| (1..=63).contains(length))?;
            octets.push(length);
            octets.extend(label.bytes().map(|letter| letter.to_ascii_lowercase()));
        }
        (octets.len() <= 255).then(|| Self(octets.into()))
    }

    /// Returns the octets of the value of the Node ID.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.0
    }
}

impl From<IpAddr> for NodeName {
    fn from(address: IpAddr) -> Self {
        let mut octets = Vec::with_capacity(17);
        match address {
            IpAddr::V4(address) => {
                octets.push(0);
                octets.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                octets.push(1);
                octets.extend_from_slice(&address.octets());
            }
        }
        Self(octets.into())
    }
}

/// Returns the labels of a domain name; real peers also send it as plain text, which is one label.
fn labels(octets: &[u8]) -> Option<Vec<&[u8]>> {
    if octets.is_empty() {
        return None;
    }
    let (mut rest, mut labels) = (octets, Vec::new());
    while let Some((&length, tail)) = rest.split_first() {
        let Some((label, tail)) = tail.split_at_checked(usize::from(length)) else {
            return Some(vec![octets]);
        };
        if length == 0 {
            return (tail.is_empty() && !labels.is_empty()).then_some(labels);
        }
        labels.push(label);
        rest = tail;
    }
    Some(labels)
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((kind, rest)) = self.0.split_first() else {
            return Ok(());
        };
        match kind {
            0 => match <[u8; 4]>::try_from(rest) {
                Ok(octets) => Ipv4Addr::from(octets).fmt(f),
                Err(_) => Ok(()),
            },
            1 => match <[u8; 16]>::try_from(rest) {
                Ok(octets) => Ipv6Addr::from(octets).fmt(f),
                Err(_) => Ok(()),
            },
            _ => {
                let mut separator = "";
                for label in labels(rest).unwrap_or_default() {
                    write!(f, "{separator}{}", label.escape_ascii())?;
                    separator = ".";
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeName({self})")
    }
}

/// Seconds since 1900 at which a node started, TS 29.244 §8.2.65.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recovery(pub u32);

impl Recovery {
    /// Says that this time is after another one, over the wrap of the number in 2036 as well.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead != 0 && ahead < 1 << 31
    }
}

/// An association with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// Which one.
    pub id: AssociationId,
    /// The Node ID of the peer.
    pub node: NodeName,
    /// Where the peer sent its setup from, and where requests to it go.
    pub address: SocketAddr,
    /// When the peer started.
    pub recovery: Recovery,
    /// When the association was set up, first or again.
    pub since: Instant,
    /// Says that the peer did not answer the last heartbeat; its sessions stay.
    pub silent: bool,
    /// The value of CP Function Features or UP Function Features, as the peer has it; empty where
    /// it has not said.
    pub features: Box<[u8]>,
    /// Which of our addresses the peer set it up with, as [`Transmit`](crate::endpoint::Transmit)
    /// counts them; requests to the peer leave from there.
    pub local: Option<u16>,
    /// The time stamp of the last setup; heartbeats may have told a later one since.
    pub(crate) set_up_with: Recovery,
    /// When the next heartbeat is due, or its answer was missed.
    pub(crate) heartbeat: Heartbeat,
    /// The state of the question whether the peer has restarted.
    pub(crate) doubt: Doubt,
    /// Set once a later stamp was ignored and the owner was told so.
    pub(crate) ignores: bool,
}

/// Octets of features that are kept.
const FEATURES: usize = 32;

impl Association {
    /// Says that the peer, in the control plane, understands Overload Control Information: the
    /// feature OVRL of TS 29.244 §8.2.58.
    #[must_use]
    pub fn understands_overload(&self) -> bool {
        self.features.first().is_some_and(|first| first & 2 != 0)
    }

    /// Says that the peer, in the control plane, understands Load Control Information: the
    /// feature LOAD of TS 29.244 §8.2.58.
    #[must_use]
    pub fn understands_load(&self) -> bool {
        self.features.first().is_some_and(|first| first & 1 != 0)
    }
}

/// Where the heartbeats of an association stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// The next one is to be sent then.
    At(Instant),
    /// One was sent; its answer, or the end of its retransmissions, decides.
    Waiting,
    /// None are sent.
    Off,
}

/// The state of the question whether a peer has restarted, as a heartbeat claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// No heartbeat claims it.
    None,
    /// One does, and the peer is being asked.
    Asked(Recovery),
    /// The peer said that it has not. Other claims are not looked into before then, so that a flood
    /// of them costs a heartbeat for each T1.
    Denied(Instant),
}

/// The sign that a peer of the control plane, or of the user plane, has restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RestartSign {
    /// A later Recovery Time Stamp, in a setup or in heartbeats.
    #[default]
    Heartbeat,
    /// An association setup alone: for a peer whose stamp wanders without a restart.
    AssociationSetup,
}

/// Why a setup was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupRefused {
    /// The Node ID belongs to another address.
    #[error("the Node ID belongs to {owner}")]
    Claimed {
        /// Which address that is.
        owner: IpAddr,
    },
    /// There are as many associations as there may be.
    #[error("{limit} associations exist already")]
    Full {
        /// How many there may be.
        limit: usize,
    },
}

/// The answer of a peer that was asked whether it has restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It has.
    Restarted,
    /// It has not, although a heartbeat claimed this stamp.
    Denied(Recovery),
    /// The question is settled already.
    Nothing,
}

/// What a setup did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// There was no association with the node.
    New(AssociationId),
    /// There was one, and the peer has not restarted: its sessions stay.
    Same(AssociationId),
    /// There was one, and the peer has restarted: its sessions are gone.
    Restarted(AssociationId),
    /// There was one, and this is the first setup since a heartbeat told that the peer restarted:
    /// sessions that were established in between are those of late requests of its earlier life.
    Anew(AssociationId),
}

impl Setup {
    /// Returns which association it is about.
    #[must_use]
    pub const fn id(self) -> AssociationId {
        match self {
            Self::New(id) | Self::Same(id) | Self::Restarted(id) | Self::Anew(id) => id,
        }
    }
}

/// The associations of a node.
#[derive(Debug)]
pub struct Associations {
    limit: usize,
    heartbeat: Option<Duration>,
    next_id: NonZeroU64,
    all: BTreeMap<AssociationId, Association>,
    by_node: FxHashMap<NodeName, AssociationId>,
    by_address: FxHashMap<SocketAddr, AssociationId>,
}

impl Associations {
    /// Makes an empty table for at most `limit` associations, each with a heartbeat after every
    /// `heartbeat` without news.
    #[must_use]
    pub fn new(limit: usize, heartbeat: Option<Duration>) -> Self {
        Self {
            limit,
            heartbeat,
            next_id: NonZeroU64::MIN,
            all: BTreeMap::new(),
            by_node: FxHashMap::default(),
            by_address: FxHashMap::default(),
        }
    }

    /// Sets an association up, or sets it up again.
    ///
    /// # Errors
    /// When the Node ID belongs to another address, or there are too many associations.
    pub fn set_up(
        &mut self,
        now: Instant,
        node: NodeName,
        address: SocketAddr,
        recovery: Recovery,
    ) -> Result<Setup, SetupRefused> {
        let heartbeat = self
            .heartbeat
            .map_or(Heartbeat::Off, |after| Heartbeat::At(now + after));
        let Some(&id) = self.by_node.get(&node) else {
            if self.all.len() >= self.limit {
                return Err(SetupRefused::Full { limit: self.limit });
            }
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
                set_up_with: recovery,
                heartbeat,
                doubt: Doubt::None,
                ignores: false,
            };
            self.all.insert(id, association);
            return Ok(Setup::New(id));
        };
        let association = self
            .all
            .get_mut(&id)
            .expect("both maps have the same associations");
        if association.address.ip() != address.ip() {
            return Err(SetupRefused::Claimed {
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
        association.doubt = Doubt::None;
        let restarted = association.recovery != recovery;
        association.recovery = recovery;
        Ok(if restarted {
            Setup::Restarted(id)
        } else if set_up_with != recovery && !planted(Bug::LateSessionsKept) {
            Setup::Anew(id)
        } else {
            Setup::Same(id)
        })
    }

    /// Notes what a peer said besides when it set the association up, or updated it.
    pub(crate) fn note(&mut self, id: AssociationId, features: Option<&[u8]>, local: Option<u16>) {
        let Some(association) = self.all.get_mut(&id) else {
            return;
        };
        if let Some(features) = features {
            // Nobody has more features than that, and nobody makes us keep more.
            association.features = features.iter().copied().take(FEATURES).collect();
        }
        association.local = local.or(association.local);
    }

    /// Notes that a heartbeat claims a restart; returns `true` if the peer is to be asked about it.
    pub(crate) fn claimed(&mut self, now: Instant, id: AssociationId, claim: Recovery) -> bool {
        let Some(association) = self.all.get_mut(&id) else {
            return false;
        };
        let is_open = match association.doubt {
            Doubt::None => true,
            Doubt::Asked(_) => false,
            Doubt::Denied(until) => until <= now,
        };
        if is_open {
            association.doubt = Doubt::Asked(claim);
        }
        is_open
    }

    /// Notes that the peer was not asked about a restart after all, or did not answer.
    pub(crate) fn unanswered(&mut self, id: AssociationId) {
        if let Some(association) = self.all.get_mut(&id) {
            association.doubt = Doubt::None;
        }
    }

    /// Takes the stamp that the peer gave when it was asked about a restart, and ends the question.
    /// Other claims are not looked into before `until`, if the peer denies this one.
    pub(crate) fn said(&mut self, id: AssociationId, stamp: Recovery, until: Instant) -> Said {
        let Some(association) = self.all.get_mut(&id) else {
            return Said::Nothing;
        };
        let doubt = std::mem::replace(&mut association.doubt, Doubt::None);
        if stamp.is_after(association.recovery) {
            association.recovery = stamp;
            return Said::Restarted;
        }
        match doubt {
            Doubt::Asked(claim) => {
                association.doubt = Doubt::Denied(until);
                Said::Denied(claim)
            }
            // A setup has answered the question meanwhile.
            Doubt::None | Doubt::Denied(_) => Said::Nothing,
        }
    }

    /// Notes that a later stamp was ignored; returns `true` the first time.
    pub(crate) fn ignored(&mut self, id: AssociationId) -> bool {
        let association = self.all.get_mut(&id);
        association.is_some_and(|one| !std::mem::replace(&mut one.ignores, true))
    }

    /// Ends an association.
    pub fn remove(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.all.remove(&id)?;
        self.by_node.remove(&association.node);
        if self.by_address.get(&association.address) == Some(&id) {
            self.by_address.remove(&association.address);
        }
        Some(association)
    }

    /// Returns an association.
    #[must_use]
    pub fn get(&self, id: AssociationId) -> Option<&Association> {
        self.all.get(&id)
    }

    /// Returns the association with a node.
    #[must_use]
    pub fn with(&self, node: &NodeName) -> Option<&Association> {
        self.all.get(self.by_node.get(node)?)
    }

    /// Returns the association whose requests come from an address: the one that was set up from
    /// there, else the only one of that host.
    #[must_use]
    pub fn from_address(&self, address: SocketAddr) -> Option<&Association> {
        if let Some(id) = self.by_address.get(&address) {
            return self.all.get(id);
        }
        let mut of_host = self
            .all
            .values()
            .filter(|one| one.address.ip() == address.ip());
        of_host.next().filter(|_| of_host.next().is_none())
    }

    /// Counts the associations of a host.
    #[must_use]
    pub fn of_host(&self, host: IpAddr) -> usize {
        let of_it = self.all.values().filter(|one| one.address.ip() == host);
        of_it.count()
    }

    /// Says that an association belongs to a host.
    #[must_use]
    pub fn owns(&self, id: AssociationId, host: IpAddr) -> bool {
        self.all
            .get(&id)
            .is_some_and(|association| association.address.ip() == host)
    }

    /// Walks all associations, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Association> {
        self.all.values()
    }

    /// Returns how many associations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Says that there is no association.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Notes that the peer was heard: its next heartbeat is due a whole interval from now. Says
    /// whether it was silent before.
    pub(crate) fn heard(&mut self, now: Instant, id: AssociationId) -> bool {
        let Some(association) = self.all.get_mut(&id) else {
            return false;
        };
        association.heartbeat = match self.heartbeat {
            Some(after) => Heartbeat::At(now + after),
            None => Heartbeat::Off,
        };
        std::mem::take(&mut association.silent)
    }

    /// Makes the next heartbeat due now, unless the answer to one is awaited.
    pub(crate) fn hurry(&mut self, now: Instant, id: AssociationId) {
        let association = self.all.get_mut(&id);
        if let Some(association) = association
            && association.heartbeat != Heartbeat::Waiting
        {
            association.heartbeat = Heartbeat::At(now);
        }
    }

    /// Notes that the peer did not answer a heartbeat; the next one is due a whole interval from
    /// now. Says whether that is news.
    pub(crate) fn missed(&mut self, now: Instant, id: AssociationId) -> bool {
        let silent_before = self.heard(now, id);
        let Some(association) = self.all.get_mut(&id) else {
            return false;
        };
        association.silent = true;
        !silent_before
    }

    /// Returns an association whose heartbeat is due, and notes that it is sent.
    pub(crate) fn poll_heartbeat(&mut self, now: Instant) -> Option<(AssociationId, SocketAddr)> {
        let due = |one: &&mut Association| matches!(one.heartbeat, Heartbeat::At(at) if at <= now);
        let association = self.all.values_mut().find(due)?;
        association.heartbeat = Heartbeat::Waiting;
        Some((association.id, association.address))
    }

    /// Returns when the next heartbeat is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let at = |one: &Association| match one.heartbeat {
            Heartbeat::At(at) => Some(at),
            Heartbeat::Waiting | Heartbeat::Off => None,
        };
        self.all.values().filter_map(at).min()
    }
}
