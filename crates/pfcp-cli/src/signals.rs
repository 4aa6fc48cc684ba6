//! Signals that shut a command down: the first in order, the second at once.

use std::io::Write;
use std::process;
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{CliResult, ExitStatus, Failure};

/// A listener for ctrl-c and SIGTERM, active from its creation. The first signal shuts the command
/// down in order. The second one ends the process at once, with 128 plus its number as exit status,
/// even if no thread of the command's runtime makes progress.
#[derive(Debug)]
pub struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
}

/// The time limit of an orderly shutdown, if the command sets one.
static LIMIT: OnceLock<Duration> = OnceLock::new();

/// Extra time that an orderly shutdown may take beyond the time of its actors, before the process
/// ends by force.
const GRACE: Duration = Duration::from_secs(2);

impl ShutdownSignals {
    /// Starts to listen.
    ///
    /// # Errors
    /// A [`Failure`] if the system refuses.
    pub fn new() -> CliResult<Self> {
        static WATCHED: OnceLock<Result<(), String>> = OnceLock::new();
        WATCHED
            .get_or_init(start_watcher)
            .clone()
            .map_err(|error| Failure::outside(format!("cannot listen for signals: {error}")))?;
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Like `new`, for a command that runs a node: an orderly shutdown that takes noticeably longer
    /// than `orderly`, the time that its actors have, is cut short.
    pub fn with_time_limit(orderly: Duration) -> CliResult<Self> {
        // Nothing else sets it: a process runs one command.
        let _ = LIMIT.set(orderly.saturating_add(GRACE));
        Self::new()
    }

    /// Waits for the next signal.
    pub async fn recv(&mut self) {
        next_signal(&mut self.interrupt, &mut self.terminate).await;
    }
}

fn listen(kind: SignalKind) -> CliResult<Signal> {
    signal(kind).map_err(|error| Failure::outside(format!("cannot listen for signals: {error}")))
}

/// Waits for one of two signals and returns its number.
async fn next_signal(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
    }
}

/// Starts the thread that ends the process. The thread has a runtime of its own, because the
/// runtime of the command may be what hangs. The thread ends with the process.
fn start_watcher() -> Result<(), String> {
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
                // The caller waits for this on `started`.
                let _ = ready.send(Err(error.to_string()));
                return;
            }
        };
        let _ = ready.send(Ok(()));
        next_signal(&mut interrupt, &mut terminate).await;
        let again = next_signal(&mut interrupt, &mut terminate);
        let limit = *LIMIT.get().unwrap_or(&Duration::MAX);
        match tokio::time::timeout(limit, again).await {
            Ok(number) => exit_now(128 + number, "second signal"),
            Err(_) => exit_now(ExitStatus::Check as i32, "shutdown time limit exceeded"),
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
fn exit_now(status: i32, why: &str) -> ! {
    // Standard error may be closed; the exit status is still delivered.
    let _ = writeln!(
        std::io::stderr(),
        "terminated before all actors had stopped: {why}"
    );
    process::exit(status)
}
