//! Who holds what, both ways.
//!
//! Nearly all sessions hold one tunnel at an IPv4 address and one IPv4 address of a UE. Those are
//! kept packed, the others as they are.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;

use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;

use super::Claim;
use crate::page_map::{PageMap, SeidMap};

/// A claim as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    /// An IPv4 address, and a TEID: those at one address follow one another.
    Tunnel(u64),
    /// An IPv4 address of a UE.
    User(u32),
    Other,
}

impl Packed {
    fn of(claim: Claim) -> Self {
        match claim {
            Claim::Teid {
                teid,
                address: IpAddr::V4(address),
            } => Self::Tunnel(u64::from(address.to_bits()) << 32 | u64::from(teid)),
            Claim::Ue(IpAddr::V4(address)) => Self::User(address.to_bits()),
            Claim::Teid { .. } | Claim::Ue(_) => Self::Other,
        }
    }
}

fn tunnel(key: u64) -> Claim {
    let [a0, a1, a2, a3, t0, t1, t2, t3] = key.to_be_bytes();
    Claim::Teid {
        teid: u32::from_be_bytes([t0, t1, t2, t3]),
        address: Ipv4Addr::from([a0, a1, a2, a3]).into(),
    }
}

fn user(key: u32) -> Claim {
    Claim::Ue(Ipv4Addr::from_bits(key).into())
}

/// The session that holds a claim. No session has the identifier 0.
#[derive(Debug, Default)]
pub(super) struct Holders {
    tunnels: PageMap<u64, NonZeroU64>,
    users: PageMap<u64, NonZeroU64>,
    others: FxHashMap<Claim, Seid>,
}

impl Holders {
    pub(super) fn len(&self) -> usize {
        self.tunnels.len() + self.users.len() + self.others.len()
    }

    pub(super) fn get(&self, claim: Claim) -> Option<Seid> {
        match Packed::of(claim) {
            Packed::Tunnel(key) => self.tunnels.get(key).map(|seid| Seid(seid.get())),
            Packed::User(key) => self.users.get(key.into()).map(|seid| Seid(seid.get())),
            Packed::Other => self.others.get(&claim).copied(),
        }
    }

    pub(super) fn insert(&mut self, claim: Claim, session: Seid) {
        let Some(seid) = NonZeroU64::new(session.0) else {
            return;
        };
        match Packed::of(claim) {
            Packed::Tunnel(key) => _ = self.tunnels.insert(key, seid),
            Packed::User(key) => _ = self.users.insert(key.into(), seid),
            Packed::Other => _ = self.others.insert(claim, session),
        }
    }

    pub(super) fn remove(&mut self, claim: Claim) {
        match Packed::of(claim) {
            Packed::Tunnel(key) => _ = self.tunnels.remove(key),
            Packed::User(key) => _ = self.users.remove(key.into()),
            Packed::Other => _ = self.others.remove(&claim),
        }
    }
}

/// The claims that a session holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    few: SeidMap<Few>,
    many: FxHashMap<Seid, Vec<Claim>>,
}

/// At most one of each.
#[derive(Clone, Copy, Debug, Default)]
struct Few {
    tunnel: u64,
    user: u32,
    has_tunnel: bool,
    has_user: bool,
}

impl Few {
    /// Packs claims, if there are so few.
    fn of(claims: &[Claim]) -> Option<Self> {
        let mut few = Self::default();
        for &claim in claims {
            match Packed::of(claim) {
                Packed::Tunnel(key) if !few.has_tunnel => {
                    (few.tunnel, few.has_tunnel) = (key, true);
                }
                Packed::User(key) if !few.has_user => (few.user, few.has_user) = (key, true),
                _ => return None,
            }
        }
        Some(few)
    }

    fn claims(self) -> impl Iterator<Item = Claim> {
        let tunnel = self.has_tunnel.then(|| tunnel(self.tunnel));
        let user = self.has_user.then(|| user(self.user));
        tunnel.into_iter().chain(user)
    }
}

impl Held {
    pub(super) fn of(&self, session: Seid) -> Vec<Claim> {
        match self.few.get(session) {
            Some(few) => few.claims().collect(),
            None => self.many.get(&session).cloned().unwrap_or_default(),
        }
    }

    /// Makes claims all that a session holds.
    pub(super) fn set(&mut self, session: Seid, mut claims: Vec<Claim>) {
        let few = Few::of(&claims).filter(|_| !claims.is_empty());
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

    /// The sessions that hold something.
    pub(super) fn sessions(&self) -> impl Iterator<Item = Seid> {
        let few = self.few.iter().map(|(seid, _)| seid);
        few.chain(self.many.keys().copied())
    }
}
