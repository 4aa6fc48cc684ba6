//! A watch over the thread that owns the database.
//!
//! The database waits without a limit in some situations: for a memtable to be written, which never
//! happens if its background thread has failed, and for compactions that lag behind. A disk may not
//! answer either. The thread that waits cannot tell, so another one looks at the clock: callers get
//! an error, and the log an event.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::seeded_bug::{Bug, seeded};

/// The progress of the thread that owns the database.
#[derive(Debug)]
pub(super) struct WriterProgress {
    opened: Instant,
    /// The time since `opened` at which the work under way began, in milliseconds plus one; 0 while
    /// there is none.
    began: AtomicU64,
    /// `true` while the watchdog sleeps until there is work.
    is_asleep: AtomicBool,
    is_closing: AtomicBool,
    watchdog: OnceLock<Thread>,
    /// The time for which the work under way has been going on, once it is beyond the deadline.
    stalled: watch::Sender<Option<Duration>>,
}

impl WriterProgress {
    fn new() -> Self {
        Self {
            opened: Instant::now(),
            began: AtomicU64::new(0),
            is_asleep: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            watchdog: OnceLock::new(),
            stalled: watch::Sender::new(None),
        }
    }

    /// Returns a receiver of the time for which a write has been going on beyond the deadline.
    pub(super) fn stalls(&self) -> watch::Receiver<Option<Duration>> {
        self.stalled.subscribe()
    }

    /// Called by the thread before it works.
    pub(super) fn begin(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.began.store(now.saturating_add(1), Ordering::SeqCst);
        // Either the watchdog sees the store above, or its flag is seen here.
        if self.is_asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Called by the thread when it has worked. Returns `true` if it had stalled.
    pub(super) fn end(&self) -> bool {
        self.began.store(0, Ordering::SeqCst);
        self.stalled
            .send_if_modified(|stalled| stalled.take().is_some())
    }

    fn wake(&self) {
        if let Some(watchdog) = self.watchdog.get() {
            watchdog.unpark();
        }
    }

    /// Returns the beginning of the work under way, and the time since.
    fn under_way(&self) -> Option<(u64, Duration)> {
        let began = self.began.load(Ordering::SeqCst).checked_sub(1)?;
        let since = self.opened.elapsed();
        Some((began, since.saturating_sub(Duration::from_millis(began))))
    }
}

/// The thread that looks at the clock. It sleeps while the store does nothing.
#[derive(Debug)]
pub(super) struct Watchdog {
    progress: Arc<WriterProgress>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread.
    pub(super) fn start(path: PathBuf, deadline: Duration) -> io::Result<Self> {
        let progress = Arc::new(WriterProgress::new());
        let thread = std::thread::Builder::new()
            .name("strowger-durable-watchdog".to_owned())
            .spawn({
                let progress = Arc::clone(&progress);
                move || watch(&progress, &path, deadline)
            })?;
        let _ = progress.watchdog.set(thread.thread().clone());
        Ok(Self {
            progress,
            thread: Some(thread),
        })
    }

    pub(super) const fn progress(&self) -> &Arc<WriterProgress> {
        &self.progress
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.progress.is_closing.store(true, Ordering::SeqCst);
        self.progress.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(progress: &WriterProgress, path: &Path, deadline: Duration) {
    // The work that was reported last, and the time after which it is reported again.
    let mut reported = None;
    while !progress.is_closing.load(Ordering::SeqCst) {
        let Some((began, waited)) = progress.under_way() else {
            progress.is_asleep.store(true, Ordering::SeqCst);
            let is_closing = progress.is_closing.load(Ordering::SeqCst);
            if progress.under_way().is_none() && !is_closing {
                std::thread::park();
            }
            progress.is_asleep.store(false, Ordering::SeqCst);
            continue;
        };
        let limit = match reported {
            Some((work, again)) if work == began => again,
            _ => deadline,
        };
        if waited < limit {
            std::thread::park_timeout((limit - waited).min(deadline));
            continue;
        }
        reported = Some((began, waited.saturating_mul(2)));
        tracing::error!(
            path = %path.display(),
            ?waited,
            "a write to the store does not end; check the disk for errors and for space, then \
             start the process again"
        );
        if !seeded(Bug::StallNotReported) {
            progress.stalled.send_replace(Some(waited));
        }
        // The write may have ended meanwhile.
        if progress.under_way().is_none_or(|(now, _)| now != began) {
            progress.stalled.send_replace(None);
        }
    }
}
