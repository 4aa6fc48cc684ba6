//! The machines that run components, and the clock that interrupts them.
//!
//! There is an engine for each class of components: those whose memory fits the slots of a pool,
//! which start in microseconds, and those that need more; each with and without the counting of
//! instructions. An engine is made when the first component of its class is loaded.

mod ticker;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use self::ticker::Ticker;
pub(crate) use self::ticker::{Busy, Ticks};
use crate::manifest::{Caps, Limits};

/// What a host may use up for all its components together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// The components that live at a time.
    pub instances: usize,
    /// Of these, how many may import `rpc`: each of them keeps a stack of its own.
    pub waiting: usize,
    /// The memory of a slot of the pool, in octets; a component whose manifest allows more gets
    /// its memory from the system.
    pub slot: usize,
    /// The elements of a table in the pool.
    pub slot_table: usize,
    /// The longest component, in octets.
    pub component: usize,
    /// How long a compilation may take.
    pub compilation: Duration,
    /// How many compilations may run at a time.
    pub compilations: usize,
    /// How often running components are looked at: a deadline holds to within two of these.
    pub tick: Duration,
    /// The octets of compiled code that are kept in memory for who wants them again, besides those
    /// of components that live; and as many in `cache`.
    pub cached: usize,
    /// A folder that keeps compiled code for the next process, if any. It must be the process's
    /// own: whoever writes in it runs code of his in the process.
    pub cache: Option<PathBuf>,
    /// The memory mappings of the process that components may use; each takes a few.
    pub maps: usize,
    /// The guest threads, on which components run that compute for long.
    pub threads: usize,
    /// How much their priority is below that of other threads, from 0 to 19, which is the lowest;
    /// on Linux. At 19 a thread that always has something to do gets about a seventieth of what
    /// one of the ordinary priority gets beside it.
    pub nice: u8,
    /// A call may take so many times its limit of processor time on the clock, and a second more,
    /// while it computes or its thread waits for a processor: guest threads have the lowest
    /// priority, which on a busy machine may be a hundredth of a processor.
    pub wall: u32,
    /// The most that a manifest may ask for.
    pub caps: Caps,
    /// What follows when a component uses more than its share of a processor.
    pub excess: Excess,
    /// How long a component may be beyond its share until it is in quarantine, if that follows.
    pub patience: Duration,
}

/// What follows when a component uses more than its share of a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// Its calls are delayed, so that it has its share.
    #[default]
    Throttle,
    /// The same, and one that stays beyond its share is put into quarantine.
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
            caps: Caps::default(),
            excess: Excess::Throttle,
            patience: Duration::from_secs(10),
        }
    }
}

/// The processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The mappings that the system grants a process.
fn system_maps() -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65_530)
}

/// The mappings that a live component takes, measured and rounded up.
pub(crate) const MAPS: usize = 5;
/// Those of one with a stack of its own besides.
pub(crate) const WAITING_MAPS: usize = 7;

/// The components that never wait and may still have a stack of their own, so that their calls make
/// way for others on guest threads. Those beyond keep a guest thread to the end of a call.
pub(crate) const HEAVY_STACKS: usize = 64;

/// The stack of a guest.
const STACK: usize = 512 << 10;
/// The stack of a guest that waits, with room for what the host runs on it.
const WAITING_STACK: usize = 2 << 20;
/// The stack of an engine for scripts: a script that calls itself takes much of it for each call.
const SCRIPT_STACK: usize = 3 << 20;
/// That stack, with room for what the host runs on it.
const SCRIPT_FIBER: usize = 4 << 20;
/// The modules, memories and tables of one component.
const CORES: u32 = 16;
/// How much of a slot stays in memory between two owners, made as it was by hand: what they use
/// need not be mapped anew, page by page.
const RESIDENT: usize = 64 << 10;
/// The same for an engine for scripts: what a short script changes of the realm it begins with.
const SCRIPT_RESIDENT: usize = 512 << 10;

/// Which engine a component needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    large: bool,
    fuel: bool,
    /// Whether its guests are deep: they run scripts that call themselves.
    deep: bool,
}

impl Class {
    /// The class of the engine for scripts.
    pub(crate) const SCRIPT: Self = Self {
        large: false,
        fuel: false,
        deep: true,
    };

    pub(crate) fn of(limits: &Limits, host: &HostLimits) -> Self {
        Self {
            large: limits.memory > host.slot || limits.table > host.slot_table,
            fuel: limits.fuel > 0,
            deep: false,
        }
    }

    /// For listings.
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
    made: [OnceLock<Result<Engine, String>>; 5],
    ticker: Ticker,
}

impl Engines {
    pub(crate) fn new(limits: &HostLimits) -> Result<Self, String> {
        Ok(Self {
            made: [const { OnceLock::new() }; 5],
            ticker: Ticker::start(limits.tick)?,
        })
    }

    pub(crate) fn ticks(&self) -> &Ticks {
        self.ticker.ticks()
    }

    /// The engine of a class.
    pub(crate) fn get(&self, class: Class, limits: &HostLimits) -> Result<&Engine, String> {
        let made = self.made[class.index()].get_or_init(|| {
            let engine = Engine::new(&config(class, limits)).map_err(|e| format!("{e:#}"))?;
            self.ticker.add(engine.weak());
            Ok(engine)
        });
        made.as_ref().map_err(Clone::clone)
    }
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engines")
    }
}

fn config(class: Class, limits: &HostLimits) -> Config {
    let (stack, fiber) = match class.deep {
        true => (SCRIPT_STACK, SCRIPT_FIBER),
        false => (STACK, WAITING_STACK),
    };
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .consume_fuel(class.fuel)
        .max_wasm_stack(stack)
        .async_stack_size(fiber)
        .concurrency_support(false)
        // A fault says what went wrong and not where: nobody walks the stack of a guest.
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false);
    if !class.large {
        let (waiting, resident) = match class.deep {
            true => (limits.instances, SCRIPT_RESIDENT),
            false => (limits.waiting.saturating_add(HEAVY_STACKS), RESIDENT),
        };
        let pool = pool(limits, waiting, resident);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

fn pool(limits: &HostLimits, waiting: usize, resident: usize) -> PoolingAllocationConfig {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // An upgrade holds two instances of one component for a moment.
    let instances = count(limits.instances.saturating_add(limits.instances / 8 + 8));
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(2))
        .total_stacks(count(waiting.saturating_add(8)))
        .max_core_instances_per_component(CORES)
        .max_memories_per_component(CORES)
        .max_tables_per_component(CORES)
        .max_memory_size(limits.slot)
        .table_elements(limits.slot_table)
        .linear_memory_keep_resident(resident)
        // Where the system can say which pages were written, only these are made as they were.
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(RESIDENT);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_gets_the_smallest_engine_that_will_do() {
        let host = HostLimits::default();
        let class = |memory, fuel| {
            let limits = Limits {
                memory,
                fuel,
                ..Limits::default()
            };
            Class::of(&limits, &host).name()
        };
        assert_eq!(class(1 << 20, 0), "pooled");
        assert_eq!(class(host.slot, 1), "pooled, counting");
        assert_eq!(class(host.slot + 1, 0), "large");
        assert_eq!(class(host.slot + 1, 1), "large, counting");
    }
}
