//! The engines that run components, and the ticker that interrupts them.
//!
//! Each class of components has its own engine. Components whose memory fits the slots of a pool
//! start in microseconds; the others allocate their memory from the system. Both kinds exist with
//! and without counting of instructions (fuel). An engine is created when the first component of
//! its class is loaded.

mod calls;
mod pool;
mod ticker;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use wasmtime::{Config, Engine, InstanceAllocationStrategy};

pub use self::pool::ReserveError;
pub(crate) use self::pool::explain_refused_memory;
use self::pool::{GUARD_SIZE, SlotLayout};
use self::ticker::Ticker;
pub(crate) use self::ticker::{CallGuard, TickerShared};
use crate::manifest::{ComponentLimits, ManifestCaps};
use crate::trust::TrustPolicy;

/// The limits of a host, for all its components together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// Maximum number of live components.
    pub instances: usize,
    /// Maximum number of live components that import `rpc`: each of them has its own stack.
    pub waiting: usize,
    /// Size of a memory slot in the pool, in bytes. A component whose manifest allows more gets its
    /// memory from the system.
    pub slot: usize,
    /// Number of elements of a table in the pool.
    pub slot_table: usize,
    /// Maximum size of a component, in bytes.
    pub component: usize,
    /// Maximum duration of a compilation.
    pub compilation: Duration,
    /// Maximum number of concurrent compilations.
    pub compilations: usize,
    /// Interval of the checks on running components; a deadline is accurate to two intervals.
    pub tick: Duration,
    /// Maximum size of the compiled code that is kept in memory for later use, in bytes, not
    /// counting the code of live components. `cache` may hold as much on disk.
    pub cached: usize,
    /// A directory that keeps compiled code for the next process, if any. It must be private to the
    /// user of the process: anyone who can write to it can run code in the process.
    pub cache: Option<PathBuf>,
    /// Number of memory mappings of the process that components may use; each component takes a
    /// few.
    pub maps: usize,
    /// Number of guest threads, which run the components that compute for long.
    pub threads: usize,
    /// Nice value of the guest threads on Linux, from 0 to 19, the lowest priority. At 19 a busy
    /// thread gets about a seventieth of the processor time of a thread with ordinary priority
    /// beside it.
    pub nice: u8,
    /// Bound of a call on the clock, as a multiple of its limit of processor time; one second is
    /// added. It applies while the call computes or its thread waits for a processor. Guest threads
    /// have the lowest priority, which on a busy machine may mean a hundredth of a processor.
    pub wall: u32,
    /// Upper bounds of what a manifest may ask for.
    pub caps: ManifestCaps,
    /// The trusted signers of components, and whether upgrades may widen access.
    pub trust: TrustPolicy,
    /// The measure against a component that exceeds its share of a processor.
    pub excess: OverBudgetAction,
    /// Time that a component may exceed its share before it is quarantined, if `excess` says so.
    pub patience: Duration,
}

impl HostLimits {
    /// Number of components that never wait and may still have a stack of their own, so that their
    /// calls can yield to others on guest threads. Calls of the other components occupy a guest
    /// thread until they end.
    pub(crate) fn heavy_stacks(&self) -> usize {
        self.instances
            .min(self.maps / MAPS_PER_HEAVY_STACK)
            .min(MAX_HEAVY_STACKS)
    }
}

/// The measure against a component that exceeds its share of a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverBudgetAction {
    /// Its calls are delayed so that it keeps to its share.
    #[default]
    Throttle,
    /// Its calls are delayed, and it is quarantined if it continues to exceed its share.
    Quarantine,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            instances: 1000,
            waiting: 200,
            slot: 64 << 20,
            slot_table: 20_000,
            component: 32 << 20,
            compilation: Duration::from_secs(60),
            compilations: 1,
            tick: Duration::from_micros(250),
            cached: 256 << 20,
            cache: None,
            maps: system_maps() * 4 / 5,
            threads: processors(),
            nice: 19,
            wall: 100,
            caps: ManifestCaps::default(),
            trust: TrustPolicy::default(),
            excess: OverBudgetAction::Throttle,
            patience: Duration::from_secs(10),
        }
    }
}

/// Returns the number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of memory mappings that the system allows a process.
fn system_maps() -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65_530)
}

/// Number of memory mappings of a live component, measured and rounded up.
pub(crate) const MAPS_PER_INSTANCE: usize = 5;
/// Number of memory mappings of a live component that has its own stack.
pub(crate) const MAPS_PER_WAITING_INSTANCE: usize = 7;

/// Number of mappings per stack of a heavy component. The pool maps all its stacks when it is
/// created, used or not, so a node with many instances gets only one stack for every
/// `MAPS_PER_HEAVY_STACK` mappings that components may use.
const MAPS_PER_HEAVY_STACK: usize = 32;

/// Maximum number of such stacks, whatever `maps` is: all are mapped when the engine is created.
const MAX_HEAVY_STACKS: usize = 2048;

/// Stack size of a guest.
const GUEST_STACK: usize = 512 << 10;
/// Stack size of a guest that waits, including space for host code that runs on it.
const GUEST_FIBER: usize = 2 << 20;
/// Stack size of the engine for scripts: a recursive script needs much of it for each call.
const SCRIPT_STACK: usize = 3 << 20;
/// The same, including space for host code that runs on it.
const SCRIPT_FIBER: usize = 4 << 20;
/// Address space that a memory without a pool reserves to grow, if the process has little.
const GROWTH_RESERVATION: u64 = 1 << 20;
/// Maximum number of modules, memories and tables of one component.
const MAX_CORE_PARTS: u32 = 16;

/// The class of a component, which selects its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EngineClass {
    large: bool,
    fuel: bool,
    /// `true` if the guests need deep stacks: they run scripts, which may be recursive.
    deep: bool,
}

impl EngineClass {
    /// The class of the engine for scripts.
    pub(crate) const SCRIPT: Self = Self {
        large: false,
        fuel: false,
        deep: true,
    };

    /// The class of most components.
    pub(crate) const SMALL: Self = Self {
        large: false,
        fuel: false,
        deep: false,
    };

    /// The class of components whose instructions are counted.
    pub(crate) const COUNTING: Self = Self {
        fuel: true,
        ..Self::SMALL
    };

    pub(crate) fn of(limits: &ComponentLimits, host: &HostLimits) -> Self {
        Self {
            large: limits.memory > host.slot || limits.table > host.slot_table,
            fuel: limits.fuel > 0,
            deep: false,
        }
    }

    const fn is_deep(self) -> bool {
        self.deep
    }

    /// Returns the stack size of a guest, and that of a guest that waits.
    const fn stack_sizes(self) -> (usize, usize) {
        match self.deep {
            true => (SCRIPT_STACK, SCRIPT_FIBER),
            false => (GUEST_STACK, GUEST_FIBER),
        }
    }

    /// Returns the name of the class for listings.
    pub(crate) const fn name(self) -> &'static str {
        if self.deep {
            return "scripts";
        }
        match (self.large, self.fuel) {
            (false, false) => "pooled",
            (false, true) => "pooled, counting",
            (true, false) => "large",
            (true, true) => "large, counting",
        }
    }

    pub(crate) const fn index(self) -> usize {
        (self.deep as usize) * 4 + (self.large as usize) * 2 + self.fuel as usize
    }
}

/// All engines of a host.
pub(crate) struct Engines {
    engines: [OnceLock<Result<Engine, String>>; 5],
    ticker: Ticker,
    slots: SlotLayout,
}

impl Engines {
    pub(crate) fn new(limits: &HostLimits) -> Result<Self, String> {
        Ok(Self {
            engines: [const { OnceLock::new() }; 5],
            ticker: Ticker::start(limits.tick)?,
            slots: SlotLayout::of(limits),
        })
    }

    pub(crate) fn ticks(&self) -> &TickerShared {
        self.ticker.ticks()
    }

    /// Returns the engine of a class, and creates it at the first use. If the address space of the
    /// process is limited and a pool would take most of it, components get their memory from the
    /// system.
    pub(crate) fn get(&self, class: EngineClass, limits: &HostLimits) -> Result<&Engine, String> {
        if let Some(engine) = self.engines[class.index()].get() {
            return engine.as_ref().map_err(Clone::clone);
        }
        let source = match class.large || !self.slots.leaves_room(limits, class) {
            true => MemorySource::System,
            false => MemorySource::Pool,
        };
        self.get_or_create(class, limits, source)
    }

    fn get_or_create(
        &self,
        class: EngineClass,
        limits: &HostLimits,
        source: MemorySource,
    ) -> Result<&Engine, String> {
        let engine = self.engines[class.index()].get_or_init(|| {
            let engine = Engine::new(&config(class, limits, self.slots, source));
            let engine = engine.map_err(|error| {
                let text = format!("{error:#}");
                match source {
                    MemorySource::System => text,
                    MemorySource::Pool => {
                        let refused = self.slots.refused(limits, &[class], text.clone());
                        format!("{refused} (`components.instances`): {text}")
                    }
                }
            })?;
            if source == MemorySource::System && !class.large {
                let class = class.name();
                tracing::info!(class, "limited address space: no pool of component memory");
            }
            self.ticker.add(engine.weak());
            Ok(engine)
        });
        engine.as_ref().map_err(Clone::clone)
    }

    /// Creates the pools of these classes now, so that their address space is reserved.
    pub(crate) fn reserve(
        &self,
        classes: &[EngineClass],
        limits: &HostLimits,
    ) -> Result<(), ReserveError> {
        pool::check_maps(limits)?;
        for class in classes {
            let engine = self.get_or_create(*class, limits, MemorySource::Pool);
            engine.map_err(|text| self.slots.refused(limits, classes, text))?;
        }
        Ok(())
    }
}

/// The source of the memories, tables and stacks of an engine's guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemorySource {
    /// A pool, which is reserved when the engine is created.
    Pool,
    /// The system, at each instantiation.
    System,
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engines")
    }
}

fn config(
    class: EngineClass,
    limits: &HostLimits,
    slots: SlotLayout,
    source: MemorySource,
) -> Config {
    let (stack, fiber) = class.stack_sizes();
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .consume_fuel(class.fuel)
        .max_wasm_stack(stack)
        .async_stack_size(fiber)
        .concurrency_support(false)
        // A fault says what went wrong and not where, so no stack of a guest is ever walked.
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false);
    match source {
        MemorySource::Pool => {
            config
                .memory_reservation(slots.reservation)
                .memory_guard_size(GUARD_SIZE)
                .allocation_strategy(InstanceAllocationStrategy::Pooling(pool::config(
                    limits, class,
                )));
        }
        // Otherwise each memory reserves 4 GiB. It grows by copying, and its code checks bounds.
        MemorySource::System if pool::is_limited() => {
            config
                .memory_reservation(0)
                .memory_reservation_for_growth(GROWTH_RESERVATION)
                .memory_guard_size(0)
                .guard_before_linear_memory(false);
        }
        MemorySource::System => {}
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_stacks_are_limited_by_mappings() {
        let host = |instances| HostLimits {
            instances,
            maps: 52_424,
            ..HostLimits::default()
        };
        let stacks = [100, 1000, 20_000].map(|instances| host(instances).heavy_stacks());
        assert_eq!(stacks, [100, 1000, 1638]);
    }

    #[test]
    fn smallest_sufficient_engine_is_chosen() {
        let host = HostLimits::default();
        let class = |memory, fuel| {
            let limits = ComponentLimits {
                memory,
                fuel,
                ..ComponentLimits::default()
            };
            EngineClass::of(&limits, &host).name()
        };
        assert_eq!(class(1 << 20, 0), "pooled");
        assert_eq!(class(host.slot, 1), "pooled, counting");
        assert_eq!(class(host.slot + 1, 0), "large");
        assert_eq!(class(host.slot + 1, 1), "large, counting");
    }
}
