//! The address space that the pools of the engines reserve, and how much the system grants.
//!
//! A pool reserves a slot for each memory that it may hold. With 4 GiB per slot, no address of
//! guest code reaches beyond the slot, and the code needs no bounds checks. A process has 128 TiB
//! at most, so pools with many slots reserve only the maximum size of a memory, and their code
//! checks bounds.

use std::fs;

use wasmtime::{Enabled, PoolingAllocationConfig};

use super::{
    EngineClass, HostLimits, MAPS_PER_INSTANCE, MAPS_PER_WAITING_INSTANCE, MAX_CORE_PARTS,
};

/// The range of a 32-bit address.
const FULL_SLOT: u64 = 4 << 30;
/// Size of the guard region behind each slot, so that small offsets need no checks.
pub(super) const GUARD_SIZE: u64 = 32 << 20;
/// Maximum size of a pool with slots of 4 GiB. The pools of all classes must fit beside each other,
/// and beside those of other hosts in the process.
const MAX_POOL_SIZE: u64 = 16 << 40;
/// Number of pools of a host: components, components with fuel, and scripts.
const POOL_COUNT: u64 = 3;
/// Size of a table element in bytes.
const TABLE_ELEMENT: u64 = 8;
const PAGE_SIZE: u64 = 4096;
/// Number of bytes of a slot that stay in memory between two users, zeroed in place, so that their
/// pages need not be mapped again.
const KEEP_RESIDENT: usize = 64 << 10;
/// The same for the engine for scripts: the part of its initial realm that a short script changes.
const SCRIPT_KEEP_RESIDENT: usize = 512 << 10;

/// The error returned when the system does not grant what the limits of a host need.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The pools need more address space than the process may reserve.
    #[error(
        "{instances} instances need {} of address space in {pools} pools, but this process {}",
        format_size(*requested), reservable(*free)
    )]
    Address {
        /// Value of [`HostLimits::instances`].
        instances: usize,
        /// Number of pools needed at the same time.
        pools: usize,
        /// Size that they reserve, in bytes.
        requested: u64,
        /// Size that the process may still reserve, in bytes, if known.
        free: Option<u64>,
        /// Maximum number of instances that would fit; 0 if not even one does.
        max_instances: usize,
        /// The error message of the system.
        text: String,
    },
    /// Live components need more memory mappings than the process may have.
    #[error(
        "{instances} instances, {waiting} of which wait, need {requested} memory mappings, but \
         components may use {granted}"
    )]
    Maps {
        /// Value of [`HostLimits::instances`].
        instances: usize,
        /// Value of [`HostLimits::waiting`].
        waiting: usize,
        /// Number of mappings used when all components are live.
        requested: usize,
        /// Value of [`HostLimits::maps`].
        granted: usize,
        /// Maximum number of instances that would fit.
        max_instances: usize,
    },
}

fn reservable(free: Option<u64>) -> String {
    match free {
        Some(free) => format!("may reserve {}", format_size(free)),
        None => "may reserve less".to_owned(),
    }
}

/// Formats a size in the largest unit of which there is at least one.
fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    match unit {
        0 => format!("{bytes} bytes"),
        unit => format!(
            "{:.1} {}",
            bytes as f64 / (1_u64 << (10 * unit)) as f64,
            UNITS[unit as usize]
        ),
    }
}

/// The layout of the slots of all pools of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotLayout {
    /// Size reserved for each memory, without the guard region behind it.
    pub(super) reservation: u64,
    /// Size that the process could reserve when the host was created, if known.
    free: Option<u64>,
}

impl SlotLayout {
    /// Returns slots of 4 GiB if they fit, otherwise slots of the maximum memory size.
    pub(super) fn of(limits: &HostLimits) -> Self {
        let free = available_address_space();
        let whole = Self {
            reservation: FULL_SLOT,
            free,
        };
        let most = free.map_or(MAX_POOL_SIZE, |free| MAX_POOL_SIZE.min(free / POOL_COUNT));
        if whole.pool(limits, limits.instances, EngineClass::SCRIPT) <= most {
            return whole;
        }
        whole.small(limits)
    }

    const fn small(self, limits: &HostLimits) -> Self {
        Self {
            reservation: limits.slot as u64,
            free: self.free,
        }
    }

    /// Returns `true` if the pool of a class leaves half of a limited address space to the rest of
    /// the process. Without a limit, the attempt tells whether a pool fits.
    pub(super) fn leaves_room(self, limits: &HostLimits, class: EngineClass) -> bool {
        let pool = self.pool(limits, limits.instances, class);
        address_space_limit().is_none_or(|limit| pool <= limit.free / 2)
    }

    /// Returns the size of the address space of a pool for this number of instances, in bytes.
    fn pool(self, limits: &HostLimits, instances: usize, class: EngineClass) -> u64 {
        let slots = slot_count(instances) as u64;
        let slot = self.reservation.max(limits.slot as u64) + GUARD_SIZE;
        let table = (limits.slot_table as u64 * TABLE_ELEMENT).next_multiple_of(PAGE_SIZE);
        let stacks = stack_count(limits, instances, class) as u64;
        let stack = class.stack_sizes().1 as u64 + PAGE_SIZE;
        let memories = slots.saturating_mul(slot).saturating_add(GUARD_SIZE);
        let tables = slots.saturating_mul(2 * table);
        let stacks = stacks.saturating_mul(stack);
        memories.saturating_add(tables).saturating_add(stacks)
    }

    /// Returns the error for pools of these classes that could not be created.
    pub(super) fn refused(
        self,
        limits: &HostLimits,
        classes: &[EngineClass],
        text: String,
    ) -> ReserveError {
        let sum = |slots: Self, instances| {
            let pools = classes
                .iter()
                .map(|class| slots.pool(limits, instances, *class));
            pools.fold(0, u64::saturating_add)
        };
        // Fewer instances might fit with 4 GiB slots again, but they fit with small ones as well. A
        // quarter is left for the rest of the process.
        let (small, free) = (self.small(limits), self.free);
        let fits = free.map_or(0, |free| {
            let fits = |instances: usize| sum(small, instances) <= free / 4 * 3;
            largest_fitting(limits.instances, fits)
        });
        ReserveError::Address {
            instances: limits.instances,
            pools: classes.len(),
            requested: sum(self, limits.instances),
            free,
            max_instances: fits,
            text,
        }
    }
}

/// Checks that there are enough mappings for the maximum number of live components.
pub(super) fn check_maps(limits: &HostLimits) -> Result<(), ReserveError> {
    let asked = |instances: usize| {
        let waiting = limits.waiting.min(instances);
        waiting
            .saturating_mul(MAPS_PER_WAITING_INSTANCE)
            .saturating_add((instances - waiting).saturating_mul(MAPS_PER_INSTANCE))
    };
    if asked(limits.instances) <= limits.maps {
        return Ok(());
    }
    Err(ReserveError::Maps {
        instances: limits.instances,
        waiting: limits.waiting,
        requested: asked(limits.instances),
        granted: limits.maps,
        max_instances: largest_fitting(limits.instances, |instances| {
            asked(instances) <= limits.maps
        }),
    })
}

/// Returns the largest number up to `up_to` that fits. `fits` must be monotonic.
fn largest_fitting(up_to: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, up_to);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Returns the number of slots for this number of instances. It is larger, because an upgrade
/// briefly needs two instances of one component.
const fn slot_count(instances: usize) -> usize {
    instances.saturating_add(instances / 8 + 8)
}

/// Returns the number of stacks of a pool.
fn stack_count(limits: &HostLimits, instances: usize, class: EngineClass) -> usize {
    let stacks = match class.is_deep() {
        true => instances,
        false => {
            let (waiting, heavy) = (limits.waiting, limits.heavy_stacks());
            waiting.min(instances) + heavy.min(instances)
        }
    };
    stacks.saturating_add(8)
}

/// Returns the pool configuration of a class.
pub(super) fn config(limits: &HostLimits, class: EngineClass) -> PoolingAllocationConfig {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let instances = count(slot_count(limits.instances));
    let resident = match class.is_deep() {
        true => SCRIPT_KEEP_RESIDENT,
        false => KEEP_RESIDENT,
    };
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(2))
        .total_stacks(count(stack_count(limits, limits.instances, class)))
        .max_core_instances_per_component(MAX_CORE_PARTS)
        .max_memories_per_component(MAX_CORE_PARTS)
        .max_tables_per_component(MAX_CORE_PARTS)
        .max_memory_size(limits.slot)
        .table_elements(limits.slot_table)
        .linear_memory_keep_resident(resident)
        // Where the system can report dirty pages, only these are reset.
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(KEEP_RESIDENT);
    pool
}

/// Returns the size of the address space that the process may still reserve, in bytes: up to its
/// limit if it has one, otherwise the largest hole between its mappings.
fn available_address_space() -> Option<u64> {
    address_space_limit()
        .map(|limit| limit.free)
        .or_else(largest_hole)
}

/// The limit of the address space of the process.
#[derive(Debug, Clone, Copy)]
struct AddressSpaceLimit {
    max: u64,
    /// Size that is not used, in bytes.
    free: u64,
}

#[cfg(target_os = "linux")]
fn address_space_limit() -> Option<AddressSpaceLimit> {
    let max = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))?;
    let size: u64 = size.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    let free = max.saturating_sub(size << 10);
    Some(AddressSpaceLimit { max, free })
}

#[cfg(not(target_os = "linux"))]
fn address_space_limit() -> Option<AddressSpaceLimit> {
    None
}

/// Returns `true` if the address space of the process is limited.
pub(super) fn is_limited() -> bool {
    address_space_limit().is_some()
}

/// Returns a message for an engine error if the system refused memory and the address space of the
/// process is limited.
pub(crate) fn explain_refused_memory(error: &wasmtime::Error) -> Option<String> {
    let root = error.root_cause().to_string();
    // Out of memory. The error may be of the standard library or of the engine's system calls.
    if !root.ends_with("(os error 12)") {
        return None;
    }
    let limit = address_space_limit()?;
    Some(format!(
        "{root}: {} of {} of address space are free; raise the limit (`ulimit -v`, LimitAS= of \
         systemd), or lower `components.instances` or `limits.memory`",
        format_size(limit.free),
        format_size(limit.max)
    ))
}

/// Returns the size of the largest hole in the address space of a 64-bit process.
fn largest_hole() -> Option<u64> {
    /// The end of the user address space on x86-64; other architectures have at least as much.
    const END: u64 = 1 << 47;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let (mut before, mut largest) = (1 << 16, 0_u64);
    for line in maps.lines() {
        let (from, rest) = line.split_once('-')?;
        let (to, _) = rest.split_once(' ')?;
        let from = u64::from_str_radix(from, 16).ok()?.min(END);
        largest = largest.max(from.saturating_sub(before));
        before = u64::from_str_radix(to, 16).ok()?.min(END);
    }
    Some(largest.max(END - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(instances: usize, waiting: usize) -> HostLimits {
        HostLimits {
            instances,
            waiting,
            ..HostLimits::default()
        }
    }

    #[test]
    fn full_slots_are_used_while_they_fit() {
        if address_space_limit().is_none() {
            assert_eq!(SlotLayout::of(&limits(1000, 200)).reservation, FULL_SLOT);
        }
        assert_eq!(SlotLayout::of(&limits(10_000, 200)).reservation, 64 << 20);
    }

    #[test]
    fn reserve_error_names_request_limit_and_fit() {
        let classes = [EngineClass::SMALL, EngineClass::COUNTING];
        let asked_for = limits(1 << 30, 200);
        let slots = SlotLayout::of(&asked_for);
        let refused = slots.refused(&asked_for, &classes, "no".to_owned());
        let ReserveError::Address {
            requested: asked,
            free,
            max_instances: fits,
            ..
        } = &refused
        else {
            panic!("{refused}");
        };
        if let Some(free) = free {
            assert!(asked > free, "{refused}");
            let two = |instances| {
                let small = SlotLayout::of(&asked_for).small(&asked_for);
                2 * small.pool(&limits(instances, 200), instances, EngineClass::SMALL)
            };
            assert!(two(*fits) <= *free && two(fits * 2) > *free, "{refused}");
        }
        let text = refused.to_string();
        assert!(
            text.contains("in 2 pools") && text.contains("TiB"),
            "{text}"
        );
    }

    #[test]
    fn mappings_count_waiting_and_other_components() {
        let mut asked = limits(1000, 200);
        asked.maps = 800 * MAPS_PER_INSTANCE + 200 * MAPS_PER_WAITING_INSTANCE;
        assert_eq!(check_maps(&asked), Ok(()));
        asked.maps -= 1;
        let refused = check_maps(&asked).expect_err("one too few");
        let ReserveError::Maps {
            max_instances: fits,
            ..
        } = refused
        else {
            panic!("{refused}");
        };
        assert_eq!(fits, 999);
    }

    #[test]
    fn sizes_are_formatted_with_units() {
        let sizes = [0, 1023, 1024, 5 << 30, 3 << 39, u64::MAX].map(format_size);
        let expected = [
            "0 bytes",
            "1023 bytes",
            "1.0 KiB",
            "5.0 GiB",
            "1.5 TiB",
            "16777216.0 TiB",
        ];
        assert_eq!(sizes, expected);
    }
}
