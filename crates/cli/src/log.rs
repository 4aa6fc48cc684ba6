//! The log of the process: to standard error, and to the ring that `strowger logs` reads.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use strowger_pfcp_cli::output::{LOG, is_plain_requested, log_filter};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, reload};

use crate::log_ring::LogRingLayer;

/// Sends the log to standard error, so that standard output contains only the result of the
/// command.
pub(crate) fn log_to_stderr() {
    let (filter, handle) = reload::Layer::new(log_filter::<EnvFilter>());
    let log = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !is_plain_requested())
        .with_filter(filter);
    let ring = LogRingLayer.with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(log).with(ring).init();
    let set = move |filter| handle.reload(filter).is_ok();
    // Called once, by `main`.
    let _ = SET_FILTER.set(Box::new(set));
}

/// The function that changes the log filter while the process runs.
static SET_FILTER: OnceLock<Box<dyn Fn(EnvFilter) -> bool + Send + Sync>> = OnceLock::new();

/// Applies the log filter of a configuration, unless the environment sets one.
pub(crate) fn log_as_configured(filter: &str) {
    if std::env::var_os(LOG).is_some() {
        return;
    }
    if let (Some(set), Ok(filter)) = (SET_FILTER.get(), EnvFilter::try_new(filter)) {
        set(filter);
    }
}

/// Checks a log filter.
pub(crate) fn check_filter(filter: &str) -> Result<(), String> {
    let checked = EnvFilter::try_new(filter).map(drop);
    checked.map_err(|error| format!("invalid log filter \"{filter}\": {error}"))
}
