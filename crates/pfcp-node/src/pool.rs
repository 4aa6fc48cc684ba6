//! Addresses that sessions claim: TEIDs of the user plane and UE IP addresses.
//!
//! A claim belongs to one session. Addresses that a peer chose are claimed just like those that the
//! node allocated, so two sessions never hold the same address. Released addresses may be allocated
//! again.

mod claims;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::endpoint::Network;

use crate::config::Pools;
use claims::{ClaimIndex, SessionClaims};

/// An address that at most one session can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AddressClaim {
    /// A TEID at a user plane address.
    Teid { teid: u32, address: IpAddr },
    /// The address of a UE; for IPv6, the first address of its prefix.
    Ue(IpAddr),
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
    teids: (u32, u32),
    networks: Vec<Network>,
}

#[derive(Debug)]
struct AddressPoolState {
    by_claim: ClaimIndex,
    by_session: SessionClaims,
    next_teid: u32,
    /// The index of the next address to try, for each network.
    next_ue: Vec<u64>,
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
        let state = AddressPoolState {
            by_claim: ClaimIndex::default(),
            by_session: SessionClaims::default(),
            next_teid: pools.teid_first,
            next_ue: vec![1; pools.ue.len()],
        };
        Self {
            state: Mutex::new(state),
            gtpu_v4,
            gtpu_v6,
            teids: (pools.teid_first, pools.teid_last),
            networks: pools.ue.clone(),
        }
    }

    /// Returns the user plane addresses that are sent with an allocated TEID.
    pub(crate) fn gtpu(&self) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        (self.gtpu_v4, self.gtpu_v6)
    }

    /// Allocates a TEID that is free at every user plane address.
    pub(crate) fn allocate_teid(&self, session: Seid) -> Option<u32> {
        let (first, last) = self.teids;
        let addresses = [self.gtpu_v4.map(IpAddr::V4), self.gtpu_v6.map(IpAddr::V6)];
        let claims = |teid| {
            addresses
                .into_iter()
                .flatten()
                .map(move |address| AddressClaim::Teid { teid, address })
        };
        let mut state = self.state.lock();
        let range = u64::from(last - first) + 1;
        // With `n` claims held, one of `n + 1` TEIDs is certainly free.
        for _ in 0..range.min(state.by_claim.len() as u64 + 1) {
            let teid = state.next_teid;
            state.next_teid = if teid == last { first } else { teid + 1 };
            if claims(teid).all(|claim| state.by_claim.get(claim).is_none()) {
                for claim in claims(teid) {
                    state.add_claim(session, claim);
                }
                return Some(teid);
            }
        }
        None
    }

    /// Allocates an IPv4 address for a UE.
    pub(crate) fn allocate_v4(&self, session: Seid) -> Option<Ipv4Addr> {
        self.allocate(session, IpAddr::is_ipv4)
            .and_then(|address| match address {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            })
    }

    /// Allocates an IPv6 prefix of 64 bits for a UE, and returns its first address.
    pub(crate) fn allocate_v6(&self, session: Seid) -> Option<Ipv6Addr> {
        self.allocate(session, IpAddr::is_ipv6)
            .and_then(|address| match address {
                IpAddr::V4(_) => None,
                IpAddr::V6(address) => Some(address),
            })
    }

    fn allocate(&self, session: Seid, of_family: fn(&IpAddr) -> bool) -> Option<IpAddr> {
        let mut state = self.state.lock();
        for (index, network) in self.networks.iter().enumerate() {
            if !of_family(&network.address()) {
                continue;
            }
            let capacity = capacity_of(network);
            for _ in 0..capacity.min(state.by_claim.len() as u64 + 1) {
                let number = state.next_ue[index];
                state.next_ue[index] = if number >= capacity { 1 } else { number + 1 };
                let address = nth(network, number);
                let claim = AddressClaim::Ue(address);
                if state.by_claim.get(claim).is_none() {
                    state.add_claim(session, claim);
                    return Some(address);
                }
            }
        }
        None
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
        claims.dedup();
        let mut state = self.state.lock();
        for &claim in &claims {
            match state.by_claim.get(claim) {
                Some(holder) if holder != session => return Err(ClaimConflict { claim, holder }),
                _ => {}
            }
        }
        state.release_claims(session);
        for &claim in &claims {
            state.by_claim.insert(claim, session);
        }
        state.by_session.set(session, claims);
        Ok(())
    }

    /// Releases all claims of a session.
    pub(crate) fn release(&self, session: Seid) {
        let mut state = self.state.lock();
        state.release_claims(session);
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
    fn add_claim(&mut self, session: Seid, claim: AddressClaim) {
        self.by_claim.insert(claim, session);
        let mut claims = self.by_session.of(session);
        claims.push(claim);
        self.by_session.set(session, claims);
    }

    fn release_claims(&mut self, session: Seid) {
        for claim in self.by_session.of(session) {
            self.by_claim.remove(claim);
        }
        self.by_session.set(session, Vec::new());
    }
}

/// Returns the number of UEs that a network has addresses for: IPv4 addresses without the first and
/// the last, or IPv6 prefixes of 64 bits.
fn capacity_of(network: &Network) -> u64 {
    match network.address() {
        IpAddr::V4(_) => (1_u64 << (32 - u32::from(network.prefix()))).saturating_sub(2),
        IpAddr::V6(_) => 1_u64
            .checked_shl(64_u32.saturating_sub(network.prefix().into()))
            .unwrap_or(u64::MAX),
    }
}

/// Returns the address with the given number, counted from 1.
fn nth(network: &Network, number: u64) -> IpAddr {
    match network.address() {
        IpAddr::V4(first) => {
            let host = u32::MAX.checked_shr(network.prefix().into()).unwrap_or(0);
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            Ipv4Addr::from_bits((first.to_bits() & !host).wrapping_add(number)).into()
        }
        IpAddr::V6(first) => {
            let host = u128::MAX.checked_shr(network.prefix().into()).unwrap_or(0);
            let first = first.to_bits() & !host;
            Ipv6Addr::from_bits(first.wrapping_add(u128::from(number - 1) << 64)).into()
        }
    }
}

#[cfg(test)]
mod tests;
