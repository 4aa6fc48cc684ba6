//! Plain calls and instantiations of wasmtime, with the same fixture and a pool.

use std::thread;
use std::time::{Duration, Instant};

use strowger_bench::{Counted, Sample};
use wasmtime::component::{Component, ComponentType, InstancePre, Lift, Linker, Lower, TypedFunc};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use crate::{ECHO, cores, counted, pin, work};

/// `actor.reason`, as defined in the WIT.
#[derive(Debug, Clone, Copy, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
enum Reason {
    #[component(name = "fresh")]
    Fresh,
    #[component(name = "restart")]
    Restart,
    #[component(name = "upgrade")]
    Upgrade,
}

/// `actor.kind`, as defined in the WIT.
#[derive(Debug, Clone, Copy, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
enum Kind {
    #[component(name = "message")]
    Message,
    #[component(name = "request")]
    Request,
    #[component(name = "answer")]
    Answer,
    #[component(name = "failure")]
    Failure,
    #[component(name = "event")]
    Event,
    #[component(name = "timer")]
    Timer,
}

/// All reasons and kinds; the first of each is used in the calls here.
const REASONS: [Reason; 3] = [Reason::Fresh, Reason::Restart, Reason::Upgrade];
const KINDS: [Kind; 6] = [
    Kind::Message,
    Kind::Request,
    Kind::Answer,
    Kind::Failure,
    Kind::Event,
    Kind::Timer,
];

type Init = TypedFunc<(Reason, u32, u32, Option<Vec<u8>>), (Result<(), String>,)>;
type Handle = TypedFunc<(Kind, u64, Vec<u8>), (Result<Vec<u8>, String>,)>;

/// The fixture, ready to be instantiated.
struct ReadyFixture {
    engine: Engine,
    pre: InstancePre<()>,
}

/// An instance whose `init` has been called.
struct LiveInstance {
    store: Store<()>,
    handle: Handle,
}

const ACTOR: &str = "strowger:component/actor@0.1.0";
/// The interface that a guest in Rust imports to report panics.
const FAULT: &str = "strowger:component/fault@0.1.0";

impl ReadyFixture {
    fn new(instances: u32) -> wasmtime::Result<Self> {
        let mut pool = PoolingAllocationConfig::default();
        pool.total_component_instances(instances)
            .total_core_instances(4 * instances)
            .total_memories(instances)
            .total_tables(2 * instances)
            .max_memory_size(64 << 20);
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .concurrency_support(false)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config)?;
        let component = Component::new(&engine, ECHO.bytes)?;
        let mut linker = Linker::new(&engine);
        linker
            .instance(FAULT)?
            .func_wrap("fail", |_, (text,): (String,)| -> wasmtime::Result<()> {
                wasmtime::bail!("{text}")
            })?;
        let pre = linker.instantiate_pre(&component)?;
        Ok(Self { engine, pre })
    }

    fn live(&self) -> wasmtime::Result<LiveInstance> {
        let mut store = Store::new(&self.engine, ());
        let instance = self.pre.instantiate(&mut store)?;
        let actor = instance.get_export_index(&mut store, None, ACTOR);
        let mut find = |name: &str| {
            let found = instance.get_export_index(&mut store, actor.as_ref(), name);
            found.expect("the contract has it")
        };
        let (init, handle) = (find("init"), find("handle"));
        let init: Init = instance.get_typed_func(&mut store, init)?;
        let handle: Handle = instance.get_typed_func(&mut store, handle)?;
        let (said,) = init.call(&mut store, (REASONS[0], 0, 0, None))?;
        assert_eq!(said, Ok(()), "it is well");
        Ok(LiveInstance { store, handle })
    }
}

impl LiveInstance {
    fn call(&mut self) -> wasmtime::Result<bool> {
        let payload = vec![7; 64];
        let (answer,) = self.handle.call(&mut self.store, (KINDS[0], 0, payload))?;
        Ok(answer.is_ok_and(|answer| answer == [7; 64]))
    }
}

/// Calls in a loop; `each` calls are one operation.
pub fn calls(each: u64) -> Box<dyn FnMut(u64) -> Sample> {
    let mut live = ReadyFixture::new(4)
        .and_then(|ready| ready.live())
        .expect("it runs");
    Box::new(move |count| {
        let mut checked = 0;
        let start = Instant::now();
        for _ in 0..count * each {
            checked += u64::from(live.call().expect("it does not trap"));
        }
        let time = start.elapsed();
        assert_eq!(checked, count * each, "all were echoes");
        Sample {
            time,
            done: count,
            checked,
        }
    })
}

/// Creates a `Store` and an instance in it, and calls `init`.
pub fn instantiations() -> Box<dyn FnMut(u64) -> Sample> {
    let ready = ReadyFixture::new(4).expect("it runs");
    Box::new(move |count| {
        let mut time = Duration::ZERO;
        for _ in 0..count {
            let start = Instant::now();
            let live = ready.live();
            time += start.elapsed();
            assert!(live.is_ok(), "there is room");
        }
        Sample {
            time,
            done: count,
            checked: count,
        }
    })
}

/// Calls on one thread per processor, for a while.
pub fn sustained(milliseconds: u64) -> Counted {
    let span = Duration::from_millis(milliseconds);
    let work = |processor| {
        pin(processor);
        let mut live = ReadyFixture::new(4)
            .and_then(|ready| ready.live())
            .expect("it runs");
        let (start, mut count) = (Instant::now(), 0_u64);
        while start.elapsed() < span {
            for _ in 0..256 {
                count += u64::from(live.call().expect("it does not trap"));
            }
        }
        (count as f64 / start.elapsed().as_secs_f64(), count)
    };
    let done: Vec<(f64, u64)> = thread::scope(|scope| {
        let threads = (0..cores()).map(|n| scope.spawn(move || work(n)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|done| done.expect("it does not panic")).collect()
    });
    let count = done.iter().map(|(_, count)| count).sum();
    counted(done.iter().map(|(rate, _)| rate).sum(), count)
}

/// Returns the memory of an instance that has been called.
pub fn memory(count: u64) -> Counted {
    let instances = u32::try_from(count).unwrap_or(u32::MAX) + 8;
    let ready = ReadyFixture::new(instances).expect("it runs");
    let mut first = ready.live().expect("there is room");
    assert!(matches!(first.call(), Ok(true)), "an echo");
    let before = work::resident();
    let mut all = Vec::new();
    for _ in 0..count {
        let mut live = ready.live().expect("there is room");
        assert!(matches!(live.call(), Ok(true)), "an echo");
        all.push(live);
    }
    counted((work::resident() - before).max(0.0) / count as f64, count)
}
