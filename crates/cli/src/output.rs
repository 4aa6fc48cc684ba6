//! Output of commands: lines for people, JSON objects for scripts, colours only on a terminal.

mod table;

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::OnceLock;

use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, reload};

pub(crate) use self::table::Table;
use crate::exit::CliResult;
use crate::log_ring;

/// The environment variable for the log filter, such as `info` or `strowger=debug`.
const LOG: &str = "STROWGER_LOG";

/// Sends the log to standard error, so that standard output contains only the result of the
/// command.
pub(crate) fn log_to_stderr() {
    let filter = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new("warn"));
    let (filter, handle) = reload::Layer::new(filter);
    let log = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !is_plain_requested())
        .with_filter(filter);
    let book = log_ring::LogRingLayer.with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(log).with(book).init();
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

/// The style of a text on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Bold,
    Faint,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl TextStyle {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Faint => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        }
    }
}

/// The output of a command.
pub(crate) struct Output {
    to: BufWriter<Box<dyn Write + Send>>,
    terminal: bool,
    colours: bool,
    /// `true` if the last line was drawn by [`Output::live`] and may be overwritten.
    has_live_line: bool,
}

impl Output {
    /// Creates an output that prints to standard output.
    pub(crate) fn stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            to: BufWriter::new(Box::new(io::stdout())),
            terminal,
            colours: terminal && !is_plain_requested(),
            has_live_line: false,
        }
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, line: impl Display) -> CliResult {
        if std::mem::take(&mut self.has_live_line) {
            writeln!(self.to)?;
        }
        writeln!(self.to, "{line}")?;
        Ok(())
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> CliResult {
        Ok(self.to.write_all(bytes)?)
    }

    /// Prints a JSON object on one line.
    pub(crate) fn json(&mut self, value: &Value) -> CliResult {
        self.line(value)
    }

    /// Draws a line over the one drawn before. Without a terminal, prints it as a line of its own.
    pub(crate) fn live(&mut self, line: impl Display) -> CliResult {
        if self.terminal {
            // Carriage return, then erase to the end: the previous line may have been longer.
            write!(self.to, "\r{line}\x1b[K")?;
            self.has_live_line = true;
        } else {
            writeln!(self.to, "{line}")?;
        }
        self.flush()
    }

    /// Styles a text, on a terminal.
    pub(crate) fn paint(&self, style: TextStyle, text: impl Display) -> String {
        if self.colours {
            format!("\x1b[{}m{text}\x1b[0m", style.code())
        } else {
            text.to_string()
        }
    }

    /// Flushes all output.
    pub(crate) fn flush(&mut self) -> CliResult {
        Ok(self.to.flush()?)
    }
}

/// Returns `true` if plain text is wanted: by <https://no-color.org>, or by a dumb terminal.
fn is_plain_requested() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
