//! The thread that moves the epochs of all engines on.
//!
//! It ticks only while a component computes: a host whose components are idle wakes nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::EngineWeak;

/// Ticks without a call after which the thread rests.
const IDLE: u32 = 40;

/// The count of ticks, and how many calls are under way.
#[derive(Debug)]
pub(crate) struct Ticks {
    period: Duration,
    count: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    resting: AtomicBool,
    ending: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

/// A call under way; the epochs move on for as long as there is one.
#[derive(Debug)]
pub(crate) struct Busy<'a>(&'a Ticks);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

impl Ticks {
    /// Says that a call is under way.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        // Either the thread sees the call before it rests, or this sees that it rests.
        if self.resting.load(Ordering::SeqCst) {
            self.wake();
        }
        Busy(self)
    }

    /// How many ticks there have been.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The ticks after which a span has passed for certain: the one under way does not count.
    pub(crate) fn of(&self, span: Duration) -> u64 {
        let ticks = span.as_nanos().div_ceil(self.period.as_nanos().max(1));
        u64::try_from(ticks)
            .unwrap_or(u64::MAX / 2)
            .saturating_add(1)
    }

    /// The calls that have begun, and whether one of them is under way.
    fn begun(&self) -> (u64, bool) {
        let ended = self.ended.load(Ordering::Acquire);
        let begun = self.begun.load(Ordering::SeqCst);
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
            count: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
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
        ticks.count.fetch_add(1, Ordering::Release);
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
