//! Addresses that sessions hold: TEIDs of the user plane and addresses of UEs.
//!
//! A claim belongs to one session. What a peer chose is claimed as what the node allocated is, so
//! that two sessions never hold the same; what is given back may be allocated again.

mod holders;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::endpoint::Network;

use crate::config::Pools;
use holders::{Held, Holders};

/// Something that at most one session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// A TEID at an address of the user plane.
    Teid { teid: u32, address: IpAddr },
    /// The address of a UE; of IPv6, the first address of its prefix.
    Ue(IpAddr),
}

/// The claim that another session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) claim: Claim,
    pub(crate) holder: Seid,
}

/// The pools of a node, shared by its sessions.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    gtpu_v4: Option<Ipv4Addr>,
    gtpu_v6: Option<Ipv6Addr>,
    teids: (u32, u32),
    networks: Vec<Network>,
}

#[derive(Debug)]
struct State {
    holders: Holders,
    held: Held,
    next_teid: u32,
    /// For each network, the number of the address to try next.
    next_ue: Vec<u64>,
}

impl Pool {
    /// Makes the pools; `addresses` are told with allocated TEIDs where none are configured.
    pub(crate) fn new(pools: &Pools, addresses: &[IpAddr]) -> Self {
        let told = |of_family: fn(&IpAddr) -> bool| {
            pools.gtpu.iter().chain(addresses).copied().find(of_family)
        };
        let gtpu_v4 = match told(IpAddr::is_ipv4) {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        };
        let gtpu_v6 = match told(IpAddr::is_ipv6) {
            Some(IpAddr::V6(address)) => Some(address),
            _ => None,
        };
        let state = State {
            holders: Holders::default(),
            held: Held::default(),
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

    /// The addresses that go with an allocated TEID.
    pub(crate) fn gtpu(&self) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        (self.gtpu_v4, self.gtpu_v6)
    }

    /// Allocates a TEID that is free at every address of the user plane.
    pub(crate) fn allocate_teid(&self, session: Seid) -> Option<u32> {
        let (first, last) = self.teids;
        let addresses = [self.gtpu_v4.map(IpAddr::V4), self.gtpu_v6.map(IpAddr::V6)];
        let claims = |teid| {
            addresses
                .into_iter()
                .flatten()
                .map(move |address| Claim::Teid { teid, address })
        };
        let mut state = self.state.lock();
        let range = u64::from(last - first) + 1;
        // One more than are held is certain to be free.
        for _ in 0..range.min(state.holders.len() as u64 + 1) {
            let teid = state.next_teid;
            state.next_teid = if teid == last { first } else { teid + 1 };
            if claims(teid).all(|claim| state.holders.get(claim).is_none()) {
                for claim in claims(teid) {
                    state.hold(session, claim);
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

    /// Allocates an IPv6 prefix of 64 bits for a UE; returns its first address.
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
            let places = places(network);
            for _ in 0..places.min(state.holders.len() as u64 + 1) {
                let place = state.next_ue[index];
                state.next_ue[index] = if place >= places { 1 } else { place + 1 };
                let address = nth(network, place);
                let claim = Claim::Ue(address);
                if state.holders.get(claim).is_none() {
                    state.hold(session, claim);
                    return Some(address);
                }
            }
        }
        None
    }

    /// Makes `claims` all that the session holds: takes what is new, gives back what is missing.
    ///
    /// # Errors
    /// When another session holds one of them; then nothing has changed.
    pub(crate) fn replace(&self, session: Seid, mut claims: Vec<Claim>) -> Result<(), Taken> {
        claims.sort_unstable();
        claims.dedup();
        let mut state = self.state.lock();
        for &claim in &claims {
            match state.holders.get(claim) {
                Some(holder) if holder != session => return Err(Taken { claim, holder }),
                _ => {}
            }
        }
        state.give_back(session);
        for &claim in &claims {
            state.holders.insert(claim, session);
        }
        state.held.set(session, claims);
        Ok(())
    }

    /// Gives back all that the session holds.
    pub(crate) fn release(&self, session: Seid) {
        let mut state = self.state.lock();
        state.give_back(session);
    }

    /// The sessions that hold something.
    pub(crate) fn holders(&self) -> Vec<Seid> {
        self.state.lock().held.sessions().collect()
    }

    /// What all sessions hold, each in order.
    #[cfg(test)]
    pub(crate) fn all(&self) -> std::collections::BTreeMap<Seid, Vec<Claim>> {
        let state = self.state.lock();
        let held = state.held.sessions().map(|seid| {
            let mut claims = state.held.of(seid);
            claims.sort_unstable();
            claims.dedup();
            (seid, claims)
        });
        held.collect()
    }

    /// What the session holds.
    #[cfg(test)]
    pub(crate) fn held(&self, session: Seid) -> Vec<Claim> {
        self.state.lock().held.of(session)
    }
}

impl State {
    fn hold(&mut self, session: Seid, claim: Claim) {
        self.holders.insert(claim, session);
        let mut claims = self.held.of(session);
        claims.push(claim);
        self.held.set(session, claims);
    }

    fn give_back(&mut self, session: Seid) {
        for claim in self.held.of(session) {
            self.holders.remove(claim);
        }
        self.held.set(session, Vec::new());
    }
}

/// How many UEs a network has addresses for: IPv4 without its first and last address, IPv6 a prefix
/// of 64 bits each.
fn places(network: &Network) -> u64 {
    match network.address() {
        IpAddr::V4(_) => (1_u64 << (32 - u32::from(network.prefix()))).saturating_sub(2),
        IpAddr::V6(_) => 1_u64
            .checked_shl(64_u32.saturating_sub(network.prefix().into()))
            .unwrap_or(u64::MAX),
    }
}

/// The address of a place, counted from 1.
fn nth(network: &Network, place: u64) -> IpAddr {
    match network.address() {
        IpAddr::V4(first) => {
            let host = u32::MAX.checked_shr(network.prefix().into()).unwrap_or(0);
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            Ipv4Addr::from_bits((first.to_bits() & !host).wrapping_add(place)).into()
        }
        IpAddr::V6(first) => {
            let host = u128::MAX.checked_shr(network.prefix().into()).unwrap_or(0);
            let first = first.to_bits() & !host;
            Ipv6Addr::from_bits(first.wrapping_add(u128::from(place - 1) << 64)).into()
        }
    }
}

#[cfg(test)]
mod tests;
