//! Addresses that sessions claim: TEIDs of the user plane and UE IP addresses.
//!
//! A claim belongs to one session. Addresses that a peer chose are claimed just like those that the
//! node allocated, so two sessions never hold the same address. Released addresses may be allocated
//! again.

mod claims;
mod free;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::endpoint::Network;

use crate::config::Pools;
use claims::{ClaimIndex, SessionClaims};
use free::FreeRanges;

/// An address that at most one session can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AddressClaim {
    /// A TEID at a user plane address.
    Teid { teid: u32, address: IpAddr },
    /// The IPv4 address of a UE.
    Ue(Ipv4Addr),
    /// The IPv6 prefix of a UE. Two sessions hold no prefixes that overlap.
    Prefix(Ipv6Prefix),
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
    networks: Vec<UeNetwork>,
}

/// A network from which UEs get their addresses.
#[derive(Debug)]
struct UeNetwork {
    network: Network,
    /// The free host numbers of an IPv4 network, or the free prefixes of 64 bits of an IPv6
    /// network, numbered from 0.
    free: FreeRanges,
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
            networks: pools.ue.iter().copied().map(UeNetwork::new).collect(),
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
            state.add_claim(session, AddressClaim::Teid { teid, address });
        }
        Some(teid)
    }

    /// Allocates an IPv4 address for a UE.
    pub(crate) fn allocate_v4(&self, session: Seid) -> Option<Ipv4Addr> {
        let mut state = self.state.lock();
        let mut networks = state.networks.iter_mut();
        let address = networks.find_map(UeNetwork::allocate_v4)?;
        state.add_claim(session, AddressClaim::Ue(address));
        Some(address)
    }

    /// Allocates an IPv6 prefix for a UE, and returns its first address. A prefix longer than 64
    /// bits is alone in its 64 bits.
    pub(crate) fn allocate_v6(&self, session: Seid, length: u8) -> Option<Ipv6Addr> {
        let mut state = self.state.lock();
        let mut networks = state.networks.iter_mut();
        let first = networks.find_map(|network| network.allocate_v6(length))?;
        let prefix = Ipv6Prefix::new(first, length);
        state.add_claim(session, AddressClaim::Prefix(prefix));
        Some(first)
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
            (AddressClaim::Prefix(before), AddressClaim::Prefix(claim)) => before.contains(claim),
            (before, claim) => before == claim,
        });
        let mut state = self.state.lock();
        let mut held = state.by_session.of(session);
        held.sort_unstable();
        if held == claims {
            return Ok(());
        }
        for &claim in &claims {
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
        for &claim in &claims {
            if held.binary_search(&claim).is_err() {
                state.hold(claim, session);
            }
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
    fn add_claim(&mut self, session: Seid, claim: AddressClaim) {
        self.hold(claim, session);
        let mut claims = self.by_session.of(session);
        claims.push(claim);
        self.by_session.set(session, claims);
    }

    /// Records a claim, so that it is not allocated.
    fn hold(&mut self, claim: AddressClaim, session: Seid) {
        self.by_claim.insert(claim, session);
        match claim {
            AddressClaim::Teid { teid, address } if self.gtpu.contains(&address) => {
                self.free_teids.take(teid.into(), teid.into());
            }
            AddressClaim::Teid { .. } => {}
            AddressClaim::Ue(address) => {
                for network in &mut self.networks {
                    if let Some(number) = network.number_of(address) {
                        network.free.take(number, number);
                    }
                }
            }
            AddressClaim::Prefix(prefix) => {
                for network in &mut self.networks {
                    if let Some((first, last)) = network.numbers_of(prefix) {
                        network.free.take(first, last);
                    }
                }
            }
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
            AddressClaim::Ue(address) => {
                for network in &mut self.networks {
                    if let Some(number) = network.number_of(address) {
                        network.free.put(number, number);
                    }
                }
            }
            AddressClaim::Prefix(prefix) => {
                // Longer prefixes may share their 64 bits with others.
                let around =
                    Ipv6Prefix::new(Ipv6Addr::from_bits(prefix.first), prefix.length.min(64));
                let (first, last) = (around.first(), around.last());
                if self.by_claim.overlapping(first, last).next().is_some() {
                    return;
                }
                for network in &mut self.networks {
                    if let Some((first, last)) = network.numbers_of(prefix) {
                        network.free.put(first, last);
                    }
                }
            }
        }
    }
}

impl UeNetwork {
    fn new(network: Network) -> Self {
        let capacity = capacity_of(&network);
        let free = match network.address() {
            IpAddr::V4(_) => FreeRanges::new(1, capacity),
            IpAddr::V6(_) => FreeRanges::new(0, capacity - 1),
        };
        Self { network, free }
    }

    /// Returns the host number of an IPv4 address, if it can be allocated.
    fn number_of(&self, address: Ipv4Addr) -> Option<u64> {
        let IpAddr::V4(base) = self.network.address() else {
            return None;
        };
        let host = u32::MAX.checked_shr(self.network.prefix().into());
        let host = host.unwrap_or(0);
        let number = u64::from(address.to_bits() & host);
        let is_inside = (base.to_bits() ^ address.to_bits()) & !host == 0;
        let capacity = capacity_of(&self.network);
        (is_inside && (1..=capacity).contains(&number)).then_some(number)
    }

    /// Returns the numbers of the prefixes of 64 bits that overlap a prefix.
    fn numbers_of(&self, prefix: Ipv6Prefix) -> Option<(u64, u64)> {
        let IpAddr::V6(base) = self.network.address() else {
            return None;
        };
        // A network longer than 64 bits has one prefix, that around it.
        let own = Ipv6Prefix::new(base, self.network.prefix().min(64));
        let first = own.first.max(prefix.first);
        let last = own.last().min(prefix.last());
        let number = |address: u128| u64::try_from((address - own.first) >> 64).ok();
        (first <= last)
            .then(|| number(first).zip(number(last)))
            .flatten()
    }

    fn allocate_v4(&mut self) -> Option<Ipv4Addr> {
        let IpAddr::V4(base) = self.network.address() else {
            return None;
        };
        let host = u32::MAX.checked_shr(self.network.prefix().into());
        let number = u32::try_from(self.free.allocate()?).ok()?;
        Some(Ipv4Addr::from_bits(
            base.to_bits() & !host.unwrap_or(0) | number,
        ))
    }

    fn allocate_v6(&mut self, length: u8) -> Option<Ipv6Addr> {
        let IpAddr::V6(base) = self.network.address() else {
            return None;
        };
        let number = match length {
            64.. => self.free.allocate()?,
            _ => self.free.allocate_block(u32::from(64 - length))?,
        };
        let first = base.to_bits() & !host_bits(self.network.prefix());
        Some(Ipv6Addr::from_bits(first + (u128::from(number) << 64)))
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

#[cfg(test)]
mod tests;
