//! The thread that moves the epochs of all engines on.
//!
//! It ticks only while a component computes: a host whose components are idle wakes nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::EngineWeak;

/// Ticks without a call after which the thread rests.
const IDLE: u32 = 40;

/// How often ticks come, and how many calls are under way.
#[derive(Debug)]
pub(crate) struct Ticks {
    period: Duration,
    calls: [Calls; LANES],
    resting: AtomicBool,
    ending: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

/// The calls that threads began, and how many of these have ended. Threads that call at the same
/// time count apart, so that no call waits for another's cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Calls {
    begun: AtomicU64,
    ended: AtomicU64,
}

const LANES: usize = 16;

impl Calls {
    /// Where this thread counts.
    fn lane() -> usize {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static LANE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % LANES;
        }
        // A thread that is ending may count with another.
        LANE.try_with(|lane| *lane).unwrap_or(0)
    }
}

/// A call under way; the epochs move on for as long as there is one.
#[derive(Debug)]
pub(crate) struct Busy<'a>(&'a Calls);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

impl Ticks {
    /// Says that a call is under way.
    pub(crate) fn busy(&self) -> Busy<'_> {
        let calls = &self.calls[Calls::lane()];
        calls.begun.fetch_add(1, Ordering::SeqCst);
        // Either the thread sees the call before it rests, or this sees that it rests.
        if self.resting.load(Ordering::SeqCst) {
            self.wake();
        }
        Busy(calls)
    }

    /// How far apart they come at least.
    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    /// The ticks that take this long.
    pub(crate) fn of(&self, span: Duration) -> u64 {
        let ticks = span.as_nanos().div_ceil(self.period.as_nanos().max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX / 2)
    }

    /// The calls that have begun, and whether one of them is under way.
    fn begun(&self) -> (u64, bool) {
        let sum = |read: fn(&Calls) -> u64| self.calls.iter().map(read).fold(0, u64::wrapping_add);
        let ended = sum(|calls| calls.ended.load(Ordering::Acquire));
        let begun = sum(|calls| calls.begun.load(Ordering::SeqCst));
        (begun, begun != ended)
    }

    fn wake(&self) {
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }
}

/// The thread; it ends with this.
#[derive(Debug)]
pub(super) struct Ticker {
    ticks: Arc<Ticks>,
    engines: Arc<Mutex<Vec<EngineList>>>,
    thread: Option<JoinHandle<()>>,
}

/// An engine that may have ended.
struct EngineList(EngineWeak);

impl std::fmt::Debug for EngineList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Ticker {
    pub(super) fn start(period: Duration) -> Result<Self, String> {
        let ticks = Arc::new(Ticks {
            period: period.max(Duration::from_micros(50)),
            calls: Default::default(),
            resting: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        let engines = Arc::new(Mutex::new(Vec::new()));
        let (shared, list) = (Arc::clone(&ticks), Arc::clone(&engines));
        let thread = thread::Builder::new()
            .name("component-ticks".to_owned())
            .spawn(move || run(&shared, &list))
            .map_err(|error| format!("no thread for deadlines: {error}"))?;
        *ticks.thread.lock() = Some(thread.thread().clone());
        Ok(Self {
            ticks,
            engines,
            thread: Some(thread),
        })
    }

    pub(super) fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    pub(super) fn add(&self, engine: EngineWeak) {
        self.engines.lock().push(EngineList(engine));
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.ticks.ending.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there is one of the engine; it was reported when it happened.
            drop(thread.join());
        }
    }
}

fn run(ticks: &Ticks, engines: &Mutex<Vec<EngineList>>) {
    let (mut idle, mut before) = (0, 0);
    while !ticks.ending.load(Ordering::SeqCst) {
        if idle >= IDLE {
            ticks.resting.store(true, Ordering::SeqCst);
            while ticks.begun() == (before, false) && !ticks.ending.load(Ordering::SeqCst) {
                thread::park();
            }
            ticks.resting.store(false, Ordering::SeqCst);
            idle = 0;
        }
        thread::sleep(ticks.period);
        for EngineList(engine) in &*engines.lock() {
            if let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
            }
        }
        let (begun, busy) = ticks.begun();
        idle = if begun == before && !busy {
            idle + 1
        } else {
            0
        };
        before = begun;
    }
}
