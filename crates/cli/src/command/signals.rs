//! The signals that end a command in order.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Done, Failure};

/// Ctrl-c and SIGTERM, listened to from the moment it is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> Done<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::outside(format!("no signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next of them.
    pub(crate) async fn end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
