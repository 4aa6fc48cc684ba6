//! The memory that the rules of sessions take, in total and by host, and its limits.
//!
//! The store counts the sessions that it has. A request sets memory aside until the store has its
//! session, so that requests at the same time do not exceed a limit together.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger_pfcp::session::RuleSet;
use strowger_pfcp::usage::UsageMeter;

use crate::shared::{Shared, add, get};

/// Returns the memory that rules take, in bytes: encoded, and in a meter once all of them count.
pub(crate) fn memory_of(rules: &RuleSet) -> u64 {
    (rules.bytes().len() + UsageMeter::memory(rules)) as u64
}

/// Memory in bytes, in total and by host.
#[derive(Debug, Default)]
pub(crate) struct MemoryUse {
    total: u64,
    hosts: FxHashMap<IpAddr, u64>,
}

impl MemoryUse {
    pub(crate) fn add(&mut self, host: IpAddr, bytes: u64) {
        self.total += bytes;
        *self.hosts.entry(host).or_default() += bytes;
    }

    pub(crate) fn subtract(&mut self, host: IpAddr, bytes: u64) {
        self.total = self.total.saturating_sub(bytes);
        if let Some(of_host) = self.hosts.get_mut(&host) {
            *of_host = of_host.saturating_sub(bytes);
            if *of_host == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn of(&self, host: IpAddr) -> u64 {
        self.hosts.get(&host).copied().unwrap_or(0)
    }

    /// Returns the memory of the host that has the most.
    pub(crate) fn most(&self) -> u64 {
        self.hosts.values().copied().max().unwrap_or(0)
    }
}

/// Memory that is set aside for the rules of a session until the store has them.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    reserved: Arc<Mutex<MemoryUse>>,
    host: IpAddr,
    bytes: u64,
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.reserved.lock().subtract(self.host, self.bytes);
    }
}

impl Shared {
    /// Sets memory aside for the rules of a host. Returns `None` if it exceeds a limit.
    pub(crate) fn reserve_rule_memory(
        &self,
        host: IpAddr,
        bytes: u64,
    ) -> Option<MemoryReservation> {
        let mut reserved = self.reserved.lock();
        let (total, of_host) = self.store.rule_memory(host);
        let rows = [
            (
                "limits.rule_memory",
                total + reserved.total(),
                self.config.limits.rule_memory,
            ),
            (
                "peer.rule_memory",
                of_host + reserved.of(host),
                self.config.peer.rule_memory,
            ),
        ];
        let full = rows.iter().find(|(_, used, limit)| used + bytes > *limit);
        if let Some((key, used, limit)) = full {
            add(&self.counters.memory_refused);
            let refused = get(&self.counters.memory_refused);
            // A peer may try again and again; the log grows with the logarithm of that.
            if refused.is_power_of_two() {
                tracing::warn!(
                    %host,
                    bytes,
                    used,
                    limit,
                    refused,
                    "the rules of a session exceed `n4.{key}`, and are refused with cause 75: \
                     raise the limit, or provision fewer usage reporting rules"
                );
            }
            return None;
        }
        reserved.add(host, bytes);
        Some(MemoryReservation {
            reserved: Arc::clone(&self.reserved),
            host,
            bytes,
        })
    }
}
