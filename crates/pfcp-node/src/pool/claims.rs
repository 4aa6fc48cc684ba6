//! The claims of sessions, indexed by claim and by session.
//!
//! Nearly all sessions hold one tunnel at an IPv4 address and one IPv4 address of a UE. These are
//! stored in packed form, all others unpacked.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;

use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;

use super::{AddressClaim, InstanceKey};
use crate::paged_map::{PagedMap, SeidMap};

/// A claim in packed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackedClaim {
    /// An IPv4 address and a TEID. The address is in the upper half, so that the TEIDs of one
    /// address are neighbouring keys.
    Tunnel(u64),
    /// The IPv4 address of a UE.
    User(InstanceKey, u32),
    Other,
}

impl PackedClaim {
    fn of(claim: AddressClaim) -> Self {
        match claim {
            AddressClaim::Teid {
                teid,
                address: IpAddr::V4(address),
            } => Self::Tunnel(u64::from(address.to_bits()) << 32 | u64::from(teid)),
            AddressClaim::Ue { instance, address } => Self::User(instance, address.to_bits()),
            AddressClaim::Teid { .. } | AddressClaim::Prefix { .. } => Self::Other,
        }
    }
}

fn tunnel(key: u64) -> AddressClaim {
    let [a0, a1, a2, a3, t0, t1, t2, t3] = key.to_be_bytes();
    AddressClaim::Teid {
        teid: u32::from_be_bytes([t0, t1, t2, t3]),
        address: Ipv4Addr::from([a0, a1, a2, a3]).into(),
    }
}

fn user(instance: InstanceKey, key: u32) -> AddressClaim {
    let address = Ipv4Addr::from_bits(key);
    AddressClaim::Ue { instance, address }
}

/// The map from claims to the sessions that hold them. SEID 0 is not used.
#[derive(Debug, Default)]
pub(super) struct ClaimIndex {
    tunnels: PagedMap<u64, NonZeroU64>,
    /// TEIDs at IPv6 addresses.
    others: FxHashMap<AddressClaim, Seid>,
    /// The addresses of UEs, by network instance; only instances with a claim.
    instances: FxHashMap<InstanceKey, InstanceClaims>,
}

/// The addresses of UEs in a network instance.
#[derive(Debug, Default)]
struct InstanceClaims {
    users: PagedMap<u64, NonZeroU64>,
    /// The last address of each prefix and its session, by the first address. Prefixes of different
    /// sessions do not overlap, and a session holds no prefix within another of its own.
    prefixes: BTreeMap<u128, (u128, Seid)>,
}

impl InstanceClaims {
    fn is_empty(&self) -> bool {
        self.users.len() == 0 && self.prefixes.is_empty()
    }

    /// Returns the sessions with prefixes that overlap the addresses from `first` to `last`.
    fn overlapping(&self, first: u128, last: u128) -> impl Iterator<Item = Seid> {
        let before = self.prefixes.range(..first).next_back();
        let before = before.filter(|(_, (end, _))| *end >= first);
        let within = self.prefixes.range(first..=last);
        before.into_iter().chain(within).map(|(_, (_, seid))| *seid)
    }
}

impl ClaimIndex {
    /// Returns the session that holds a claim, or another session than `except` that holds a prefix
    /// which overlaps it.
    pub(super) fn holder(&self, claim: AddressClaim, except: Seid) -> Option<Seid> {
        let seid = |seid: &NonZeroU64| Seid(seid.get());
        match (PackedClaim::of(claim), claim) {
            (PackedClaim::Tunnel(key), _) => self.tunnels.get(key).map(seid),
            (PackedClaim::User(instance, key), _) => {
                let claims = self.instances.get(&instance)?;
                claims.users.get(key.into()).map(seid)
            }
            (PackedClaim::Other, AddressClaim::Prefix { instance, prefix }) => {
                let claims = self.instances.get(&instance)?;
                let mut holders = claims.overlapping(prefix.first(), prefix.last());
                holders.find(|&holder| holder != except)
            }
            (PackedClaim::Other, _) => self.others.get(&claim).copied(),
        }
    }

    pub(super) fn insert(&mut self, claim: AddressClaim, session: Seid) {
        let Some(seid) = NonZeroU64::new(session.0) else {
            return;
        };
        match (PackedClaim::of(claim), claim) {
            (PackedClaim::Tunnel(key), _) => _ = self.tunnels.insert(key, seid),
            (PackedClaim::User(instance, key), _) => {
                let claims = self.instances.entry(instance).or_default();
                claims.users.insert(key.into(), seid);
            }
            (PackedClaim::Other, AddressClaim::Prefix { instance, prefix }) => {
                let claims = self.instances.entry(instance).or_default();
                claims
                    .prefixes
                    .insert(prefix.first(), (prefix.last(), session));
            }
            (PackedClaim::Other, _) => _ = self.others.insert(claim, session),
        }
    }

    pub(super) fn remove(&mut self, claim: AddressClaim) {
        let instance = match (PackedClaim::of(claim), claim) {
            (PackedClaim::Tunnel(key), _) => {
                self.tunnels.remove(key);
                return;
            }
            (PackedClaim::User(instance, key), _) => {
                if let Some(claims) = self.instances.get_mut(&instance) {
                    claims.users.remove(key.into());
                }
                instance
            }
            (PackedClaim::Other, AddressClaim::Prefix { instance, prefix }) => {
                if let Some(claims) = self.instances.get_mut(&instance) {
                    claims.prefixes.remove(&prefix.first());
                }
                instance
            }
            (PackedClaim::Other, _) => {
                self.others.remove(&claim);
                return;
            }
        };
        // Peers choose the names, so their number must not grow for ever.
        let is_empty = |claims: &InstanceClaims| claims.is_empty();
        if self.instances.get(&instance).is_some_and(is_empty) {
            self.instances.remove(&instance);
        }
    }
}

/// The map from sessions to the claims that they hold.
#[derive(Debug, Default)]
pub(super) struct SessionClaims {
    few: SeidMap<PackedClaims>,
    many: FxHashMap<Seid, Vec<AddressClaim>>,
}

/// At most one tunnel and one UE address.
#[derive(Clone, Copy, Debug, Default)]
struct PackedClaims {
    tunnel: u64,
    instance: InstanceKey,
    user: u32,
    has_tunnel: bool,
    has_user: bool,
}

impl PackedClaims {
    /// Packs claims; returns `None` if they do not fit.
    fn of(claims: &[AddressClaim]) -> Option<Self> {
        let mut few = Self::default();
        for &claim in claims {
            match PackedClaim::of(claim) {
                PackedClaim::Tunnel(key) if !few.has_tunnel => {
                    (few.tunnel, few.has_tunnel) = (key, true);
                }
                PackedClaim::User(instance, key) if !few.has_user => {
                    (few.instance, few.user, few.has_user) = (instance, key, true);
                }
                _ => return None,
            }
        }
        Some(few)
    }

    fn claims(self) -> impl Iterator<Item = AddressClaim> {
        let tunnel = self.has_tunnel.then(|| tunnel(self.tunnel));
        let user = self.has_user.then(|| user(self.instance, self.user));
        tunnel.into_iter().chain(user)
    }
}

impl SessionClaims {
    pub(super) fn of(&self, session: Seid) -> Vec<AddressClaim> {
        match self.few.get(session) {
            Some(few) => few.claims().collect(),
            None => self.many.get(&session).cloned().unwrap_or_default(),
        }
    }

    /// Replaces all claims of a session.
    pub(super) fn set(&mut self, session: Seid, mut claims: Vec<AddressClaim>) {
        let few = PackedClaims::of(&claims).filter(|_| !claims.is_empty());
        match few {
            Some(few) => _ = self.few.insert(session, few),
            None => _ = self.few.remove(session),
        }
        if few.is_some() || claims.is_empty() {
            self.many.remove(&session);
        } else {
            claims.shrink_to_fit();
            self.many.insert(session, claims);
        }
    }

    /// Returns the sessions that hold claims.
    pub(super) fn sessions(&self) -> impl Iterator<Item = Seid> {
        let few = self.few.iter().map(|(seid, _)| seid);
        few.chain(self.many.keys().copied())
    }
}
