//! The actor that each thread runs at this moment, for the monitor.

use std::cell::OnceCell;

use crate::schedule::strand::ActorIdentity;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Weakening, weaken};

/// Number of threads that are watched; further threads are not.
const MAX_WATCHED_THREADS: usize = 512;

#[cfg(not(strowger_loom))]
static THREAD_WATCHES: ThreadWatches<MAX_WATCHED_THREADS> = ThreadWatches::new();
// No model touches it, as it would outlive the model: each has its own.
#[cfg(strowger_loom)]
static THREAD_WATCHES: std::sync::LazyLock<ThreadWatches<MAX_WATCHED_THREADS>> =
    std::sync::LazyLock::new(ThreadWatches::new);

/// The watches of `MOST` threads.
pub(super) struct ThreadWatches<const MOST: usize> {
    all: [ThreadWatch; MOST],
    /// Number of watches that were ever claimed. A stale value hides a thread for one look.
    used: AtomicUsize,
}

/// The watch of one thread. Aligned so that two do not share a cache line.
///
/// Only its thread writes, and the monitor reads at any time, so the monitor may read a torn state:
/// the identity of the actor of either of two turns, with the number of either. This needs no
/// ordering. A report takes many looks in a row that see the same, and a write that is under way at
/// one look is done at the next: then all three values are of one turn.
#[repr(align(64))]
pub(super) struct ThreadWatch {
    /// Set if a thread has claimed the watch. The next thread continues to count where the last one
    /// stopped, because it would otherwise seem to be at the same turn.
    taken: AtomicBool,
    turns: AtomicUsize,
    system: AtomicUsize,
    actor: AtomicU64,
}

impl<const MOST: usize> ThreadWatches<MOST> {
    #[cfg(not(strowger_loom))]
    const fn new() -> Self {
        Self {
            all: [const { ThreadWatch::new() }; MOST],
            used: AtomicUsize::new(0),
        }
    }

    #[cfg(strowger_loom)]
    pub(super) fn new() -> Self {
        Self {
            all: std::array::from_fn(|_| ThreadWatch::new()),
            used: AtomicUsize::new(0),
        }
    }

    /// Claims a watch for a thread that has none, if one is free.
    #[cold]
    pub(super) fn claim(&self) -> Option<&ThreadWatch> {
        let number = self.all.iter().position(ThreadWatch::claim)?;
        self.used.fetch_max(number + 1, Ordering::Relaxed);
        Some(&self.all[number])
    }

    /// Returns what all threads run; the default `ActorIdentity` for those that run no actor.
    pub(super) fn samples(&self) -> impl Iterator<Item = WatchSample> {
        let used = self.used.load(Ordering::Relaxed);
        self.all[..used].iter().map(|watch| WatchSample {
            turns: watch.turns.load(Ordering::Relaxed),
            mark: watch.read(),
        })
    }
}

/// Returns the watch of this thread, if it has one; it is given back when the thread ends.
#[inline]
fn own_watch() -> Option<&'static ThreadWatch> {
    struct OwnWatch(OnceCell<Option<&'static ThreadWatch>>);

    impl Drop for OwnWatch {
        fn drop(&mut self) {
            if let Some(Some(watch)) = self.0.get() {
                watch.give_back();
            }
        }
    }

    thread_local! {
        static OWN_WATCH: OwnWatch = const { OwnWatch(OnceCell::new()) };
    }
    if cfg!(strowger_loom) {
        return None;
    }
    let watch = OWN_WATCH.try_with(|own| *own.0.get_or_init(|| THREAD_WATCHES.claim()));
    watch.ok().flatten()
}

/// A period in which this thread runs one actor after another, possibly inside the turn of another
/// actor.
pub(super) struct WatchGuard {
    watch: Option<&'static ThreadWatch>,
    outer: ActorIdentity,
}

impl WatchGuard {
    #[inline]
    pub(super) fn begin() -> Self {
        let watch = own_watch();
        let outer = watch.map_or_else(ActorIdentity::default, ThreadWatch::read);
        Self { watch, outer }
    }

    /// Records the actor whose turn begins.
    #[inline(always)]
    pub(super) fn begin_turn(&self, mark: ActorIdentity) {
        if let Some(watch) = self.watch {
            watch.write(mark);
        }
    }
}

impl Drop for WatchGuard {
    #[inline]
    fn drop(&mut self) {
        self.begin_turn(self.outer);
    }
}

impl ThreadWatch {
    #[cfg(not(strowger_loom))]
    const fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            turns: AtomicUsize::new(0),
            system: AtomicUsize::new(0),
            actor: AtomicU64::new(0),
        }
    }

    #[cfg(strowger_loom)]
    fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            turns: AtomicUsize::new(0),
            system: AtomicUsize::new(0),
            actor: AtomicU64::new(0),
        }
    }

    /// Claims the watch for this thread; returns `false` if another thread has it.
    fn claim(&self) -> bool {
        let acquire = weaken(Weakening::WatchClaimAcquire, Ordering::Acquire);
        self.taken
            .compare_exchange(false, true, acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives the watch back. The thread writes no more.
    pub(super) fn give_back(&self) {
        let release = weaken(Weakening::WatchGiveBackRelease, Ordering::Release);
        self.taken.store(false, release);
    }

    #[inline]
    fn read(&self) -> ActorIdentity {
        ActorIdentity {
            system: self.system.load(Ordering::Relaxed),
            actor: self.actor.load(Ordering::Relaxed),
        }
    }

    /// Records the actor whose turn begins.
    #[inline]
    pub(super) fn write(&self, mark: ActorIdentity) {
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        self.actor.store(mark.actor, Ordering::Relaxed);
        self.system.store(mark.system, Ordering::Relaxed);
    }
}

/// A thread at one moment: the number of its turn, and the actor whose turn it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WatchSample {
    pub(super) turns: usize,
    pub(super) mark: ActorIdentity,
}

/// Returns what all threads run.
pub(super) fn samples() -> impl Iterator<Item = WatchSample> {
    THREAD_WATCHES.samples()
}
