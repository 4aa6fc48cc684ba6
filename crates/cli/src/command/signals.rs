//! The signals that end a command in order, and at once if they come again.

use std::io::Write;
use std::process;
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Done, Failure, Status};

/// Ctrl-c and SIGTERM, listened to from the moment it is made. The first of them ends the command
/// in order. The second one ends the process at once, with 128 and its number for a status: also
/// when no thread of the command's runtime does anything any more.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// How long an ordered end may take, where somebody said so.
static LIMIT: OnceLock<Duration> = OnceLock::new();

impl Signals {
    pub(crate) fn new() -> Done<Self> {
        static WATCHED: OnceLock<Result<(), String>> = OnceLock::new();
        WATCHED
            .get_or_init(watch)
            .clone()
            .map_err(|error| Failure::outside(format!("no signals: {error}")))?;
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// The same; an ordered end that takes longer than this becomes one at once.
    pub(crate) fn within(limit: Duration) -> Done<Self> {
        // Nobody else sets it: a process runs one command.
        let _ = LIMIT.set(limit);
        Self::new()
    }

    /// Waits for the next of them.
    pub(crate) async fn end(&mut self) {
        next(&mut self.interrupt, &mut self.terminate).await;
    }
}

fn listen(kind: SignalKind) -> Done<Signal> {
    signal(kind).map_err(|error| Failure::outside(format!("no signals: {error}")))
}

/// Waits for one of two signals; its number.
async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
    }
}

/// Starts the thread that ends the process. It has a runtime of its own, because that of the
/// command may be what has to be ended; it ends with the process.
fn watch() -> Result<(), String> {
    let (ready, started) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let ending = async move {
        let both = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        );
        let (mut interrupt, mut terminate) = match both {
            (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
            (Err(error), _) | (_, Err(error)) => {
                // Whoever started the thread waits for this.
                let _ = ready.send(Err(error.to_string()));
                return;
            }
        };
        let _ = ready.send(Ok(()));
        next(&mut interrupt, &mut terminate).await;
        let again = next(&mut interrupt, &mut terminate);
        let limit = *LIMIT.get().unwrap_or(&Duration::MAX);
        match tokio::time::timeout(limit, again).await {
            Ok(number) => end_at_once(128 + number, "a second signal came"),
            Err(_) => end_at_once(Status::Found as i32, "the time for an ordered end is over"),
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(ending))
        .map_err(|error| error.to_string())?;
    started.recv().map_err(|error| error.to_string())?
}

#[expect(
    clippy::exit,
    reason = "what would have to return for an ordered end does not"
)]
fn end_at_once(status: i32, why: &str) -> ! {
    // Standard error may be closed; the status still tells.
    let _ = writeln!(
        std::io::stderr(),
        "ended at once, before all actors had stopped: {why}"
    );
    process::exit(status)
}
