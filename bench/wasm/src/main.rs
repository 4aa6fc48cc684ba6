//! Components as actors beside native actors and plain calls, in one process.
//!
//! Every figure runs real WebAssembly: the fixtures of the repository, whose names and hashes are
//! in the rows. `wasmtime` in a row is the plain call with 64 bytes, or the plain instantiation,
//! that the row builds on.

mod beside;
mod component;
mod native;
mod plain;
mod work;

use std::future::Future;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use strowger_bench::{Case, Counted, Estimate, Plan, Sample};
use strowger_wasm::Payload;
use strowger_wasm::load::Digest;
use tokio::runtime::Runtime;

use crate::work::LifecyclePart;

/// The payload of every message.
pub fn payload() -> Payload {
    Payload::from([7_u8; 64])
}

/// A runtime with one worker per processor.
#[derive(Clone)]
pub struct Workers(Arc<Runtime>);

impl Workers {
    fn start() -> Self {
        let started = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores())
            .enable_all()
            .on_thread_start(move || pin(started.fetch_add(1, Ordering::Relaxed)))
            .build()
            .expect("threads can be had");
        Self(Arc::new(runtime))
    }

    /// Runs work as a task on a worker, not on the calling thread.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let done = self.0.block_on(self.0.spawn(work));
        done.expect("the work does not panic")
    }
}

/// Returns the number of processors.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Pins this thread to one of the processors. Otherwise the scheduler of a virtual machine may put
/// two busy threads on the same one. Without `taskset`, the thread stays unpinned.
pub fn pin(number: usize) {
    let thread = std::fs::read_link("/proc/thread-self");
    let Some(thread) = thread
        .ok()
        .and_then(|path| Some(path.file_name()?.to_owned()))
    else {
        return;
    };
    let mut pin = Command::new("taskset");
    pin.args(["-cp", &(number % cores()).to_string()])
        .arg(thread);
    let _without = pin.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A fixture of the repository.
pub struct Fixture {
    /// The name of the fixture.
    pub name: &'static str,
    /// The bytes of the fixture.
    pub bytes: &'static [u8],
}

macro_rules! fixture {
    ($name:literal) => {
        Fixture {
            name: $name,
            bytes: include_bytes!(concat!("../../../fixtures/components/", $name, ".wasm")),
        }
    };
}

/// Answers with the payload of the call.
pub const ECHO: Fixture = fixture!("echo");
/// Asks another component the requested number of times.
pub const RELAY: Fixture = fixture!("relay");
/// Counts, keeps state, and panics on request.
pub const COUNTER: Fixture = fixture!("counter");

/// The fixture of each row, and the figure that the documents give for it, which was measured
/// without any WebAssembly.
const ROWS: &[(&str, &Fixture, f64)] = &[
    ("routed_and_handled", &ECHO, 1050.0),
    ("request_response", &RELAY, 3180.0),
    ("instantiate", &ECHO, 286.0),
    ("first_message", &ECHO, f64::NAN),
    ("lifecycle", &ECHO, 1490.0),
    ("restart_after_trap", &COUNTER, f64::NAN),
    ("upgrade_pause", &COUNTER, f64::NAN),
    ("fan_out_100", &ECHO, 85_200.0),
    ("sustained", &ECHO, 6_120_000.0),
    ("sustained_batched", &ECHO, 6_120_000.0),
    ("rss_per_instance", &ECHO, f64::NAN),
];

/// Rows of a native actor beside components that compute all the time, with the number of such
/// components per processor.
const HOG_ROWS: &[(&str, usize)] = &[
    ("neighbour_p99_alone", 0),
    ("neighbour_p99_hogs_1", 1),
    ("neighbour_p99_hogs_10", 10),
];

fn main() {
    native::silence_injected_panics();
    let plan = Plan::from_args(&["wasm"], Estimate::Median);
    let workers = Workers::start();
    memory(&plan, &workers);
    let bench = Arc::new(workers.run(async { component::Bench::start().await }));
    let native = Arc::new(workers.run(async { native::Bench::start().await }));
    let row = |id, ours, other, plain| {
        let cases = [("strowger", ours), ("native", other), ("wasmtime", plain)];
        let cases = cases.map(|(subject, work): (_, Timed)| Case::new(id, subject, work));
        run(&plan, id, cases);
    };
    row(
        "routed_and_handled",
        timed(&workers, &bench, component::routed),
        timed(&workers, &native, native::routed),
        plain::calls(1),
    );
    row(
        "request_response",
        timed(&workers, &bench, component::requests),
        timed(&workers, &native, native::requests),
        plain::calls(1),
    );
    for (id, life) in [
        ("instantiate", LifecyclePart::Start),
        ("first_message", LifecyclePart::Answer),
        ("lifecycle", LifecyclePart::Whole),
    ] {
        let (component, other) = (Arc::clone(&bench), Arc::clone(&native));
        let (there, here) = (workers.clone(), workers.clone());
        row(
            id,
            Box::new(move |count| there.run(component::lives(Arc::clone(&component), life, count))),
            Box::new(move |count| here.run(native::lives(Arc::clone(&other), life, count))),
            plain::instantiations(),
        );
    }
    row(
        "restart_after_trap",
        timed(&workers, &bench, component::restarts),
        timed(&workers, &native, native::restarts),
        plain::instantiations(),
    );
    upgrade(&plan, timed(&workers, &bench, component::upgrades));
    row(
        "fan_out_100",
        timed(&workers, &bench, component::fan_out),
        timed(&workers, &native, native::fan_out),
        plain::calls(100),
    );
    for (id, batch) in [("sustained", 1), ("sustained_batched", 64)] {
        sustained(&plan, &workers, id, batch);
    }
    for (id, each) in HOG_ROWS {
        beside(&plan, &workers, id, each * cores());
    }
}

fn beside(plan: &Plan, workers: &Workers, id: &'static str, hogs: usize) {
    let span = if plan.is_quick() { 500 } else { 3000 };
    let there = workers.clone();
    let lacking = "a native actor is trusted not to hold its worker";
    let plain = "a plain call holds its thread";
    plan.run(vec![
        Case::counted(id, "strowger", "us", move || {
            there.run(beside::p99(hogs, span))
        }),
        Case::lacking(id, "native", "us", lacking),
        Case::lacking(id, "wasmtime", "us", plain),
    ]);
}

/// Runs the cases of a row, each with the fixture it runs and the figure of the document.
fn run(plan: &Plan, id: &str, cases: [Case; 3]) {
    let (_, fixture, document) = ROWS
        .iter()
        .find(|(row, ..)| *row == id)
        .expect("it is a row");
    let named = |name: &str, bytes| format!("{name}.wasm sha256:{}", Digest::of(bytes));
    let fixture = named(fixture.name, fixture.bytes);
    let [ours, native, plain] = cases;
    let mut ours = ours.with_note("fixture", fixture);
    if !document.is_nan() {
        ours = ours.with_note("document", *document);
    }
    let plain = plain.with_note("fixture", named(ECHO.name, ECHO.bytes));
    plan.run(vec![ours, native, plain]);
}

fn upgrade(plan: &Plan, ours: Timed) {
    let id = "upgrade_pause";
    let lacking = "the code of a program is not exchanged";
    let cases = [
        Case::new(id, "strowger", ours),
        Case::lacking(id, "native", "ns", lacking),
        Case::new(id, "wasmtime", plain::instantiations()),
    ];
    run(plan, id, cases);
}

fn sustained(plan: &Plan, workers: &Workers, id: &'static str, batch: usize) {
    let span = if plan.is_quick() { 200 } else { 2000 };
    let (there, here) = (workers.clone(), workers.clone());
    let rate = "messages/s";
    let cases = [
        Case::counted(id, "strowger", rate, move || {
            there.run(component::sustained(batch, span))
        }),
        Case::counted(id, "native", rate, move || {
            here.run(native::sustained(span))
        }),
        Case::counted(id, "wasmtime", rate, move || plain::sustained(span)),
    ];
    run(plan, id, cases);
}

/// Measures the memory of many instances, before anything else has left free pages behind.
fn memory(plan: &Plan, workers: &Workers) {
    let (id, unit) = ("rss_per_instance", "bytes");
    let count = if plan.is_quick() { 200 } else { 1000 };
    let (there, here) = (workers.clone(), workers.clone());
    let cases = [
        Case::counted(id, "strowger", unit, move || {
            there.run(component::memory(count))
        }),
        Case::counted(id, "native", unit, move || here.run(native::memory(count))),
        Case::counted(id, "wasmtime", unit, move || plain::memory(count)),
    ];
    run(plan, id, cases);
}

type Timed = Box<dyn FnMut(u64) -> Sample>;

/// Combines work with the actors started for it, and runs it on the workers.
fn timed<B, F>(workers: &Workers, bench: &Arc<B>, work: fn(Arc<B>, u64) -> F) -> Timed
where
    B: Send + Sync + 'static,
    F: Future<Output = Sample> + Send + 'static,
{
    let (workers, bench) = (workers.clone(), Arc::clone(bench));
    Box::new(move |count| workers.run(work(Arc::clone(&bench), count)))
}

/// Returns a figure with the number of operations behind it.
pub fn counted(figure: f64, of: u64) -> Counted {
    Ok((figure, of))
}
