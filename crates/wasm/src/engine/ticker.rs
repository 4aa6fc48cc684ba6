//! The thread that increments the epochs of all engines.
//!
//! It ticks only while a component computes; a host with idle components causes no wakeups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::EngineWeak;

use super::calls::CallCounters;

/// Number of ticks without a call after which the thread parks.
const IDLE_TICKS: u32 = 40;

/// The interval of ticks, and the calls in progress.
#[derive(Debug)]
pub(crate) struct TickerShared {
    period: Duration,
    calls: CallCounters<LANES>,
    ending: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

/// Number of lanes; more threads than this share them.
const LANES: usize = 16;

/// Returns the lane in which this thread counts its calls.
fn lane() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % LANES;
    }
    // A thread that is ending counts in lane 0.
    LANE.try_with(|lane| *lane).unwrap_or(0)
}

/// A guard for a call in progress; epochs advance while at least one exists.
#[derive(Debug)]
pub(crate) struct CallGuard<'a> {
    calls: &'a CallCounters<LANES>,
    lane: usize,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.calls.end(self.lane);
    }
}

impl TickerShared {
    /// Marks a call as in progress.
    pub(crate) fn begin_call(&self) -> CallGuard<'_> {
        let lane = lane();
        if self.calls.begin(lane) {
            self.wake();
        }
        CallGuard {
            calls: &self.calls,
            lane,
        }
    }

    /// Returns the minimum interval of ticks.
    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    /// Returns the number of ticks in this time span, rounded up.
    pub(crate) fn of(&self, span: Duration) -> u64 {
        let ticks = span.as_nanos().div_ceil(self.period.as_nanos().max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX / 2)
    }

    fn wake(&self) {
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }
}

/// The owner of the ticker thread; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Ticker {
    ticks: Arc<TickerShared>,
    engines: Arc<Mutex<Vec<WeakEngine>>>,
    thread: Option<JoinHandle<()>>,
}

/// A weak reference to an engine.
struct WeakEngine(EngineWeak);

impl std::fmt::Debug for WeakEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Ticker {
    pub(super) fn start(period: Duration) -> Result<Self, String> {
        let ticks = Arc::new(TickerShared {
            period: period.max(Duration::from_micros(50)),
            calls: CallCounters::new(),
            ending: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        let engines = Arc::new(Mutex::new(Vec::new()));
        let (shared, list) = (Arc::clone(&ticks), Arc::clone(&engines));
        let thread = thread::Builder::new()
            .name("component-ticks".to_owned())
            .spawn(move || run(&shared, &list))
            .map_err(|error| format!("cannot start the thread for deadlines: {error}"))?;
        *ticks.thread.lock() = Some(thread.thread().clone());
        Ok(Self {
            ticks,
            engines,
            thread: Some(thread),
        })
    }

    pub(super) fn ticks(&self) -> &TickerShared {
        &self.ticks
    }

    pub(super) fn add(&self, engine: EngineWeak) {
        self.engines.lock().push(WeakEngine(engine));
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.ticks.ending.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there is one of the engine, and was reported when it happened.
            drop(thread.join());
        }
    }
}

fn run(ticks: &TickerShared, engines: &Mutex<Vec<WeakEngine>>) {
    let (mut idle, mut before) = (0, 0);
    while !ticks.ending.load(Ordering::SeqCst) {
        if idle >= IDLE_TICKS {
            // The drop sets `ending` before it unparks the thread, so the park does not miss it.
            let is_over = || ticks.ending.load(Ordering::SeqCst);
            ticks.calls.park_until_call(before, is_over, thread::park);
            idle = 0;
        }
        thread::sleep(ticks.period);
        for WeakEngine(engine) in &*engines.lock() {
            if let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
            }
        }
        let (begun, busy) = ticks.calls.count();
        idle = if begun == before && !busy {
            idle + 1
        } else {
            0
        };
        before = begun;
    }
}
