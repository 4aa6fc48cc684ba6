//! The UE addresses of a network instance, or of all instances without a pool of their own.
//!
//! The addresses of a common pool are allocated to one session at a time, whatever its network
//! instance is. Several instances may hold one of them nevertheless, where peers chose it, and it
//! is free once the last of them has released it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustc_hash::FxHashMap;
use strowger_pfcp::endpoint::Network;

use super::{FreeRanges, Ipv6Prefix, host_bits};

/// A pool of UE addresses.
#[derive(Debug)]
pub(super) struct UePool {
    networks: Vec<UeNetwork>,
    /// The number of claims of an IPv4 address beyond the first.
    more_v4: FxHashMap<Ipv4Addr, usize>,
    /// The number of claims of each prefix that overlaps the networks.
    prefixes: BTreeMap<Ipv6Prefix, usize>,
    /// The number of different prefixes of each length.
    lengths: [usize; 129],
}

/// A network from which UEs get their addresses.
#[derive(Debug)]
struct UeNetwork {
    network: Network,
    /// The free host numbers of an IPv4 network, or the free prefixes of 64 bits of an IPv6
    /// network, numbered from 0.
    free: FreeRanges,
}

impl UePool {
    pub(super) fn new(networks: &[Network]) -> Self {
        Self {
            networks: networks.iter().copied().map(UeNetwork::new).collect(),
            more_v4: FxHashMap::default(),
            prefixes: BTreeMap::new(),
            lengths: [0; 129],
        }
    }

    /// Takes a free IPv4 address.
    pub(super) fn allocate_v4(&mut self) -> Option<Ipv4Addr> {
        let mut networks = self.networks.iter_mut();
        let address = networks.find_map(UeNetwork::allocate_v4)?;
        self.take_v4(address);
        Some(address)
    }

    /// Takes a free prefix.
    pub(super) fn allocate_v6(&mut self, length: u8) -> Option<Ipv6Prefix> {
        let mut networks = self.networks.iter_mut();
        let first = networks.find_map(|network| network.allocate_v6(length))?;
        let prefix = Ipv6Prefix::new(first, length);
        self.hold_v6(prefix);
        Some(prefix)
    }

    /// Returns `true` if an address may have been allocated from this pool.
    pub(super) fn has_v4(&self, address: Ipv4Addr) -> bool {
        let mut networks = self.networks.iter();
        networks.any(|network| network.number_of(address).is_some())
    }

    /// Returns `true` if a prefix overlaps this pool.
    pub(super) fn has_v6(&self, prefix: Ipv6Prefix) -> bool {
        let (first, last) = (prefix.first(), prefix.last());
        let mut networks = self.networks.iter();
        networks.any(|network| network.numbers_in(first, last).is_some())
    }

    fn take_v4(&mut self, address: Ipv4Addr) {
        for network in &mut self.networks {
            if let Some(number) = network.number_of(address) {
                network.free.take(number, number);
            }
        }
    }

    /// Counts a claim of an address that a peer chose.
    pub(super) fn hold_v4(&mut self, address: Ipv4Addr) {
        let is_taken = |network: &UeNetwork| {
            let number = network.number_of(address);
            number.is_some_and(|number| !network.free.contains(number))
        };
        if self.networks.iter().any(is_taken) {
            *self.more_v4.entry(address).or_default() += 1;
        } else {
            self.take_v4(address);
        }
    }

    pub(super) fn free_v4(&mut self, address: Ipv4Addr) {
        if let Some(more) = self.more_v4.get_mut(&address) {
            *more -= 1;
            if *more == 0 {
                self.more_v4.remove(&address);
            }
            return;
        }
        for network in &mut self.networks {
            if let Some(number) = network.number_of(address) {
                network.free.put(number, number);
            }
        }
    }

    /// Counts a claim of a prefix.
    pub(super) fn hold_v6(&mut self, prefix: Ipv6Prefix) {
        if !self.has_v6(prefix) {
            return;
        }
        let claims = self.prefixes.entry(prefix).or_default();
        *claims += 1;
        if *claims > 1 {
            return;
        }
        self.lengths[usize::from(prefix.length)] += 1;
        for network in &mut self.networks {
            if let Some((first, last)) = network.numbers_in(prefix.first(), prefix.last()) {
                network.free.take(first, last);
            }
        }
    }

    pub(super) fn free_v6(&mut self, prefix: Ipv6Prefix) {
        let Some(claims) = self.prefixes.get_mut(&prefix) else {
            return;
        };
        *claims -= 1;
        if *claims > 0 {
            return;
        }
        self.prefixes.remove(&prefix);
        self.lengths[usize::from(prefix.length)] -= 1;
        for (first, last) in self.unclaimed(prefix) {
            for network in &mut self.networks {
                if let Some((first, last)) = network.numbers_in(first, last) {
                    network.free.put(first, last);
                }
            }
        }
    }

    /// Returns the addresses, in whole prefixes of 64 bits, that a released prefix alone has
    /// claimed. Prefixes overlap if they are longer than 64 bits, or of different network
    /// instances.
    fn unclaimed(&self, prefix: Ipv6Prefix) -> Vec<(u128, u128)> {
        let around = |prefix: Ipv6Prefix| {
            Ipv6Prefix::new(Ipv6Addr::from_bits(prefix.first()), prefix.length.min(64))
        };
        let released = around(prefix);
        let address = Ipv6Addr::from_bits(released.first());
        let is_covered = (0..=released.length).any(|length| {
            self.lengths[usize::from(length)] > 0
                && self
                    .prefixes
                    .contains_key(&Ipv6Prefix::new(address, length))
        });
        let mut unclaimed = Vec::new();
        if is_covered {
            return unclaimed;
        }
        let mut from = Some(released.first());
        let at = |first, length| Ipv6Prefix { first, length };
        let (first, last) = (at(released.first(), 0), at(released.last(), u8::MAX));
        for (other, _) in self.prefixes.range(first..=last) {
            let other = around(*other);
            let Some(start) = from else {
                break;
            };
            if other.first() > start {
                unclaimed.push((start, other.first() - 1));
            }
            let after = other.last().checked_add(1);
            from = after.map(|after| after.max(start));
        }
        if let Some(start) = from.filter(|start| *start <= released.last()) {
            unclaimed.push((start, released.last()));
        }
        unclaimed
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

    /// Returns the numbers of the prefixes of 64 bits that overlap a range of addresses.
    fn numbers_in(&self, first: u128, last: u128) -> Option<(u64, u64)> {
        let IpAddr::V6(base) = self.network.address() else {
            return None;
        };
        // A network longer than 64 bits has one prefix, that around it.
        let own = Ipv6Prefix::new(base, self.network.prefix().min(64));
        let first = own.first().max(first);
        let last = own.last().min(last);
        let number = |address: u128| u64::try_from((address - own.first()) >> 64).ok();
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
