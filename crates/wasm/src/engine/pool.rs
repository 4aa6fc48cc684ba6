//! The address space that the pools of the engines reserve, and how much the system grants.
//!
//! A pool reserves a slot for each memory that it may hold. With 4 GiB per slot, no address of
//! guest code reaches beyond the slot, and the code needs no bounds checks. A process has 128 TiB
//! at most, so pools with many slots reserve only the maximum size of a memory, and their code
//! checks bounds.

use std::fs;

use wasmtime::{Enabled, PoolingAllocationConfig};

use super::{CORES, Class, HostLimits, MAPS, WAITING_MAPS};

/// The range of a 32-bit address.
const WHOLE: u64 = 4 << 30;
/// Size of the guard region behind each slot, so that small offsets need no checks.
pub(super) const GUARD: u64 = 32 << 20;
/// Maximum size of a pool with slots of 4 GiB. The pools of all classes must fit beside each other,
/// and beside those of other hosts in the process.
const MOST: u64 = 16 << 40;
/// Number of pools of a host: components, components with fuel, and scripts.
const POOLS: u64 = 3;
/// Size of a table element in bytes.
const ELEMENT: u64 = 8;
const PAGE: u64 = 4096;
/// Number of bytes of a slot that stay in memory between two users, zeroed in place, so that their
/// pages need not be mapped again.
const RESIDENT: usize = 64 << 10;
/// The same for the engine for scripts: the part of its initial realm that a short script changes.
const SCRIPT_RESIDENT: usize = 512 << 10;

/// The error returned when the system does not grant what the limits of a host need.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The pools need more address space than the process may reserve.
    #[error(
        "{instances} instances need {} of address space in {pools} pools, but this process {}",
        size(*asked), may(*free)
    )]
    Address {
        /// [`HostLimits::instances`].
        instances: usize,
        /// Number of pools needed at the same time.
        pools: usize,
        /// Size that they reserve, in bytes.
        asked: u64,
        /// Size that the process may still reserve, in bytes, if known.
        free: Option<u64>,
        /// Maximum number of instances that would fit; 0 if not even one does.
        fits: usize,
        /// The error message of the system.
        text: String,
    },
    /// Live components need more memory mappings than the process may have.
    #[error(
        "{instances} instances, {waiting} of which wait, need {asked} memory mappings, but \
         components may use {granted}"
    )]
    Maps {
        /// [`HostLimits::instances`].
        instances: usize,
        /// [`HostLimits::waiting`].
        waiting: usize,
        /// Number of mappings used when all components are live.
        asked: usize,
        /// [`HostLimits::maps`].
        granted: usize,
        /// Maximum number of instances that would fit.
        fits: usize,
    },
}

fn may(free: Option<u64>) -> String {
    match free {
        Some(free) => format!("may reserve {}", size(free)),
        None => "may reserve less".to_owned(),
    }
}

/// Formats a size in the largest unit of which there is at least one.
fn size(bytes: u64) -> String {
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
pub(super) struct Slots {
    /// Size reserved for each memory, without the guard region behind it.
    pub(super) reservation: u64,
    /// Size that the process could reserve when the host was created, if known.
    free: Option<u64>,
}

impl Slots {
    /// Returns slots of 4 GiB if they fit, otherwise slots of the maximum memory size.
    pub(super) fn of(limits: &HostLimits) -> Self {
        let free = granted();
        let whole = Self {
            reservation: WHOLE,
            free,
        };
        let most = free.map_or(MOST, |free| MOST.min(free / POOLS));
        if whole.pool(limits, limits.instances, Class::SCRIPT) <= most {
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

    /// Returns the size of the address space of a pool for this number of instances, in bytes.
    fn pool(self, limits: &HostLimits, instances: usize, class: Class) -> u64 {
        let slots = slots(instances) as u64;
        let slot = self.reservation.max(limits.slot as u64) + GUARD;
        let table = (limits.slot_table as u64 * ELEMENT).next_multiple_of(PAGE);
        let stacks = stacks(limits, instances, class) as u64;
        let stack = class.stacks().1 as u64 + PAGE;
        let memories = slots.saturating_mul(slot).saturating_add(GUARD);
        let tables = slots.saturating_mul(2 * table);
        let stacks = stacks.saturating_mul(stack);
        memories.saturating_add(tables).saturating_add(stacks)
    }

    /// Returns the error for pools of these classes that could not be created.
    pub(super) fn refused(
        self,
        limits: &HostLimits,
        classes: &[Class],
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
            most(limits.instances, fits)
        });
        ReserveError::Address {
            instances: limits.instances,
            pools: classes.len(),
            asked: sum(self, limits.instances),
            free,
            fits,
            text,
        }
    }
}

/// Checks that there are enough mappings for the maximum number of live components.
pub(super) fn check_maps(limits: &HostLimits) -> Result<(), ReserveError> {
    let asked = |instances: usize| {
        let waiting = limits.waiting.min(instances);
        waiting
            .saturating_mul(WAITING_MAPS)
            .saturating_add((instances - waiting).saturating_mul(MAPS))
    };
    if asked(limits.instances) <= limits.maps {
        return Ok(());
    }
    Err(ReserveError::Maps {
        instances: limits.instances,
        waiting: limits.waiting,
        asked: asked(limits.instances),
        granted: limits.maps,
        fits: most(limits.instances, |instances| {
            asked(instances) <= limits.maps
        }),
    })
}

/// Returns the largest number up to `up_to` that fits. `fits` must be monotonic.
fn most(up_to: usize, fits: impl Fn(usize) -> bool) -> usize {
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
const fn slots(instances: usize) -> usize {
    instances.saturating_add(instances / 8 + 8)
}

/// Returns the number of stacks of a pool.
fn stacks(limits: &HostLimits, instances: usize, class: Class) -> usize {
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
pub(super) fn config(limits: &HostLimits, class: Class) -> PoolingAllocationConfig {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let instances = count(slots(limits.instances));
    let resident = match class.is_deep() {
        true => SCRIPT_RESIDENT,
        false => RESIDENT,
    };
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(2))
        .total_stacks(count(stacks(limits, limits.instances, class)))
        .max_core_instances_per_component(CORES)
        .max_memories_per_component(CORES)
        .max_tables_per_component(CORES)
        .max_memory_size(limits.slot)
        .table_elements(limits.slot_table)
        .linear_memory_keep_resident(resident)
        // Where the system can report dirty pages, only these are reset.
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(RESIDENT);
    pool
}

/// Returns the size of the address space that the process may still reserve, in bytes: up to its
/// limit if it has one, otherwise the largest hole between its mappings.
fn granted() -> Option<u64> {
    limit().or_else(hole)
}

#[cfg(target_os = "linux")]
fn limit() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))?;
    let size: u64 = size.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(limit.saturating_sub(size << 10))
}

#[cfg(not(target_os = "linux"))]
fn limit() -> Option<u64> {
    None
}

/// Returns the size of the largest hole in the address space of a 64-bit process.
fn hole() -> Option<u64> {
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
    fn slots_are_whole_until_there_are_too_many_of_them() {
        if limit().is_none() {
            assert_eq!(Slots::of(&limits(1000, 200)).reservation, WHOLE);
        }
        assert_eq!(Slots::of(&limits(10_000, 200)).reservation, 64 << 20);
    }

    #[test]
    fn what_is_refused_is_told_with_both_numbers_and_what_fits() {
        let classes = [Class::SMALL, Class::COUNTING];
        let asked_for = limits(1 << 30, 200);
        let slots = Slots::of(&asked_for);
        let refused = slots.refused(&asked_for, &classes, "no".to_owned());
        let ReserveError::Address {
            asked, free, fits, ..
        } = &refused
        else {
            panic!("{refused}");
        };
        if let Some(free) = free {
            assert!(asked > free, "{refused}");
            let two = |instances| {
                let small = Slots::of(&asked_for).small(&asked_for);
                2 * small.pool(&limits(instances, 200), instances, Class::SMALL)
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
    fn mappings_are_those_of_components_that_wait_and_of_others() {
        let mut asked = limits(1000, 200);
        asked.maps = 800 * MAPS + 200 * WAITING_MAPS;
        assert_eq!(check_maps(&asked), Ok(()));
        asked.maps -= 1;
        let refused = check_maps(&asked).expect_err("one too few");
        let ReserveError::Maps { fits, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(fits, 999);
    }

    #[test]
    fn sizes_are_in_units_for_people() {
        let sizes = [0, 1023, 1024, 5 << 30, 3 << 39, u64::MAX].map(size);
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
