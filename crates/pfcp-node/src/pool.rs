//! Addresses that sessions claim: TEIDs of the user plane and UE IP addresses.
//!
//! A claim belongs to one session. Addresses that a peer chose are claimed just like those that the
//! node allocated, so two sessions never hold the same address. The address of a UE is one in its
//! network instance. Released addresses may be allocated again.

mod claims;
mod free;
mod instance;
mod ue;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;

use crate::config::Pools;
use claims::{ClaimIndex, SessionClaims};
use free::FreeRanges;
pub(crate) use instance::{InstanceKey, instance_name};
use ue::UePool;

/// An address that at most one session can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AddressClaim {
    /// A TEID at a user plane address.
    Teid { teid: u32, address: IpAddr },
    /// The IPv4 address of a UE in a network instance.
    Ue {
        instance: InstanceKey,
        address: Ipv4Addr,
    },
    /// The IPv6 prefix of a UE in a network instance. Two sessions hold no prefixes that overlap.
    Prefix {
        instance: InstanceKey,
        prefix: Ipv6Prefix,
    },
}

impl fmt::Display for AddressClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Teid { teid, address } => write!(f, "TEID {teid:#x} at {address}"),
            Self::Ue { address, .. } => address.fmt(f),
            Self::Prefix { prefix, .. } => {
                let (first, length) = prefix.parts();
                write!(f, "{first}/{length}")
            }
        }
    }
}

/// An IPv6 prefix. The bits after it are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ipv6Prefix {
    first: u128,
    length: u8,
}

impl Ipv6Prefix {
    /// Returns the prefix of an address.
    pub(crate) fn new(address: Ipv6Addr, length: u8) -> Self {
        let first = address.to_bits() & !host_bits(length);
        Self { first, length }
    }

    const fn first(self) -> u128 {
        self.first
    }

    /// Returns the first address and the length.
    pub(crate) fn parts(self) -> (Ipv6Addr, u8) {
        (Ipv6Addr::from_bits(self.first), self.length)
    }

    fn last(self) -> u128 {
        self.first | host_bits(self.length)
    }

    fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last() <= self.last()
    }
}

/// Returns the bits of an address after a prefix.
fn host_bits(length: u8) -> u128 {
    u128::MAX.checked_shr(length.into()).unwrap_or(0)
}

/// The error returned when another session holds a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimConflict {
    pub(crate) claim: AddressClaim,
    pub(crate) holder: Seid,
}

/// The pools of a node, shared by its sessions.
#[derive(Debug)]
pub(crate) struct AddressPool {
    state: Mutex<AddressPoolState>,
    gtpu_v4: Option<Ipv4Addr>,
    gtpu_v6: Option<Ipv6Addr>,
}

#[derive(Debug)]
struct AddressPoolState {
    by_claim: ClaimIndex,
    by_session: SessionClaims,
    /// The user plane addresses that are sent with allocated TEIDs.
    gtpu: Vec<IpAddr>,
    /// The first and the last TEID, and those that are free at every user plane address.
    teids: (u32, u32),
    free_teids: FreeRanges,
    /// The pools of network instances that have their own, and that of all others.
    ue_pools: FxHashMap<InstanceKey, UePool>,
    common_ue_pool: UePool,
}

impl AddressPool {
    /// Creates the pools; `addresses` are sent with allocated TEIDs unless the configuration names
    /// others.
    pub(crate) fn new(pools: &Pools, addresses: &[IpAddr]) -> Self {
        let address_of = |of_family: fn(&IpAddr) -> bool| {
            pools.gtpu.iter().chain(addresses).copied().find(of_family)
        };
        let gtpu_v4 = match address_of(IpAddr::is_ipv4) {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        };
        let gtpu_v6 = match address_of(IpAddr::is_ipv6) {
            Some(IpAddr::V6(address)) => Some(address),
            _ => None,
        };
        let gtpu = [gtpu_v4.map(IpAddr::V4), gtpu_v6.map(IpAddr::V6)];
        let (first, last) = (pools.teid_first, pools.teid_last);
        let state = AddressPoolState {
            by_claim: ClaimIndex::default(),
            by_session: SessionClaims::default(),
            gtpu: gtpu.into_iter().flatten().collect(),
            teids: (first, last),
            free_teids: FreeRanges::new(first.into(), last.into()),
            ue_pools: pools
                .instances
                .iter()
                .map(|one| {
                    let key = InstanceKey::of(one.network_instance.as_bytes());
                    (key, UePool::new(&one.ue))
                })
                .collect(),
            common_ue_pool: UePool::new(&pools.ue),
        };
        Self {
            state: Mutex::new(state),
            gtpu_v4,
            gtpu_v6,
        }
    }

    /// Returns the user plane addresses that are sent with an allocated TEID.
    pub(crate) fn gtpu(&self) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        (self.gtpu_v4, self.gtpu_v6)
    }

    /// Allocates a TEID that is free at every user plane address.
    pub(crate) fn allocate_teid(&self, session: Seid) -> Option<u32> {
        let mut state = self.state.lock();
        let teid = u32::try_from(state.free_teids.allocate()?).ok()?;
        for at in 0..state.gtpu.len() {
            let address = state.gtpu[at];
            state.record(session, AddressClaim::Teid { teid, address });
        }
        Some(teid)
    }

    /// Allocates an IPv4 address for a UE.
    pub(crate) fn allocate_v4(&self, session: Seid, instance: InstanceKey) -> Option<Ipv4Addr> {
        let mut state = self.state.lock();
        let address = state.ue_pool(instance).allocate_v4()?;
        state.record(session, AddressClaim::Ue { instance, address });
        Some(address)
    }

    /// Allocates an IPv6 prefix for a UE, and returns its first address. A prefix longer than 64
    /// bits is alone in its 64 bits.
    pub(crate) fn allocate_v6(
        &self,
        session: Seid,
        instance: InstanceKey,
        length: u8,
    ) -> Option<Ipv6Addr> {
        let mut state = self.state.lock();
        let prefix = state.ue_pool(instance).allocate_v6(length)?;
        state.record(session, AddressClaim::Prefix { instance, prefix });
        Some(prefix.parts().0)
    }

    /// Returns the claims of a session whose addresses are from the pools of UE addresses.
    pub(crate) fn pool_addresses(&self, session: Seid) -> Vec<AddressClaim> {
        let mut state = self.state.lock();
        let mut claims = state.by_session.of(session);
        claims.retain(|&claim| match claim {
            AddressClaim::Teid { .. } => false,
            AddressClaim::Ue { instance, address } => state.ue_pool(instance).has_v4(address),
            AddressClaim::Prefix { instance, prefix } => state.ue_pool(instance).has_v6(prefix),
        });
        claims
    }

    /// Replaces the claims of a session by `claims`: acquires the new ones and releases the others.
    ///
    /// # Errors
    /// Returns an error if another session holds one of the claims; nothing has changed in that
    /// case.
    pub(crate) fn replace(
        &self,
        session: Seid,
        mut claims: Vec<AddressClaim>,
    ) -> Result<(), ClaimConflict> {
        claims.sort_unstable();
        // A prefix within another one of the session, which comes first, claims nothing more.
        claims.dedup_by(|claim, before| match (*before, *claim) {
            (
                AddressClaim::Prefix {
                    instance: same,
                    prefix: before,
                },
                AddressClaim::Prefix { instance, prefix },
            ) => same == instance && before.contains(prefix),
            (before, claim) => before == claim,
        });
        let mut state = self.state.lock();
        let mut held = state.by_session.of(session);
        held.sort_unstable();
        if held == claims {
            return Ok(());
        }
        // Nobody else has what the session holds already.
        let is_new = |claim: &AddressClaim| held.binary_search(claim).is_err();
        for claim in claims.iter().copied().filter(is_new) {
            match state.by_claim.holder(claim, session) {
                Some(holder) if holder != session => return Err(ClaimConflict { claim, holder }),
                _ => {}
            }
        }
        for &claim in &held {
            if claims.binary_search(&claim).is_err() {
                state.free(claim);
            }
        }
        for claim in claims.iter().copied().filter(is_new) {
            state.hold(claim, session);
        }
        state.by_session.set(session, claims);
        Ok(())
    }

    /// Releases all claims of a session.
    pub(crate) fn release(&self, session: Seid) {
        let mut state = self.state.lock();
        for claim in state.by_session.of(session) {
            state.free(claim);
        }
        state.by_session.set(session, Vec::new());
    }

    /// Returns the sessions that hold claims.
    pub(crate) fn holders(&self) -> Vec<Seid> {
        self.state.lock().by_session.sessions().collect()
    }

    /// Returns the claims of all sessions, sorted.
    #[cfg(test)]
    pub(crate) fn all(&self) -> std::collections::BTreeMap<Seid, Vec<AddressClaim>> {
        let state = self.state.lock();
        let held = state.by_session.sessions().map(|seid| {
            let mut claims = state.by_session.of(seid);
            claims.sort_unstable();
            claims.dedup();
            (seid, claims)
        });
        held.collect()
    }

    /// Returns the claims of a session.
    #[cfg(test)]
    pub(crate) fn held(&self, session: Seid) -> Vec<AddressClaim> {
        self.state.lock().by_session.of(session)
    }
}

impl AddressPoolState {
    fn ue_pool(&mut self, instance: InstanceKey) -> &mut UePool {
        let own = self.ue_pools.get_mut(&instance);
        own.unwrap_or(&mut self.common_ue_pool)
    }

    /// Records a claim that was allocated.
    fn record(&mut self, session: Seid, claim: AddressClaim) {
        self.by_claim.insert(claim, session);
        let mut claims = self.by_session.of(session);
        claims.push(claim);
        self.by_session.set(session, claims);
    }

    /// Records a claim of `replace`, so that it is not allocated.
    fn hold(&mut self, claim: AddressClaim, session: Seid) {
        self.by_claim.insert(claim, session);
        match claim {
            AddressClaim::Teid { teid, address } if self.gtpu.contains(&address) => {
                self.free_teids.take(teid.into(), teid.into());
            }
            AddressClaim::Teid { .. } => {}
            AddressClaim::Ue { instance, address } => self.ue_pool(instance).hold_v4(address),
            AddressClaim::Prefix { instance, prefix } => self.ue_pool(instance).hold_v6(prefix),
        }
    }

    /// Removes a claim, so that it may be allocated again.
    fn free(&mut self, claim: AddressClaim) {
        self.by_claim.remove(claim);
        match claim {
            AddressClaim::Teid { teid, .. } => {
                let (first, last) = self.teids;
                // The same TEID may still be in use at the other address.
                let is_used = self.gtpu.iter().any(|&address| {
                    let claim = AddressClaim::Teid { teid, address };
                    self.by_claim.holder(claim, Seid(0)).is_some()
                });
                if (first..=last).contains(&teid) && !is_used {
                    self.free_teids.put(teid.into(), teid.into());
                }
            }
            AddressClaim::Ue { instance, address } => self.ue_pool(instance).free_v4(address),
            AddressClaim::Prefix { instance, prefix } => self.ue_pool(instance).free_v6(prefix),
        }
    }
}

#[cfg(test)]
mod tests;
