//! Output of commands: lines for people, JSON objects for scripts, colours only on a terminal.

mod table;

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::str::FromStr;

use serde_json::Value;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use self::table::Table;
use crate::exit::CliResult;

/// The environment variable for the log filter, such as `info` or `strowger=debug`.
pub const LOG: &str = "STROWGER_LOG";

/// Sends the log to standard error, so that standard output contains only the result of the
/// command.
pub fn log_to_stderr() {
    let log = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !is_plain_requested());
    // Filters by the fields of spans would link an engine for regular expressions.
    let filter = log_filter::<Targets>();
    tracing_subscriber::registry().with(log).with(filter).init();
}

/// Returns the log filter of the environment, or the default, which shows warnings and errors. A
/// filter that cannot be parsed is named on standard error.
#[must_use]
pub fn log_filter<F: FromStr<Err: Display + fmt::Debug>>() -> F {
    const DEFAULT: &str = "warn";
    let text = std::env::var(LOG).unwrap_or_else(|_| DEFAULT.to_owned());
    text.parse().unwrap_or_else(|error| {
        let warning = format!("{LOG}={text}: invalid log filter: {error}; using {DEFAULT}");
        // Without standard error there is no log either.
        let _ = writeln!(io::stderr(), "{warning}");
        DEFAULT.parse().expect("the default is a filter")
    })
}

/// The style of a text on a terminal.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
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
pub struct Output {
    to: BufWriter<Box<dyn Write + Send>>,
    terminal: bool,
    colours: bool,
    /// `true` if the last line was drawn by [`Output::live`] and may be overwritten.
    has_live_line: bool,
}

impl Output {
    /// Creates an output that prints to standard output.
    #[must_use]
    pub fn stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            to: BufWriter::new(Box::new(io::stdout())),
            terminal,
            colours: terminal && !is_plain_requested(),
            has_live_line: false,
        }
    }

    /// Prints one line.
    pub fn line(&mut self, line: impl Display) -> CliResult {
        if std::mem::take(&mut self.has_live_line) {
            writeln!(self.to)?;
        }
        writeln!(self.to, "{line}")?;
        Ok(())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> CliResult {
        Ok(self.to.write_all(bytes)?)
    }

    /// Prints a JSON object on one line.
    pub fn json(&mut self, value: &Value) -> CliResult {
        self.line(value)
    }

    /// Draws a line over the one drawn before. Without a terminal, prints it as a line of its own.
    pub fn live(&mut self, line: impl Display) -> CliResult {
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
    pub fn paint(&self, style: TextStyle, text: impl Display) -> String {
        if self.colours {
            format!("\x1b[{}m{text}\x1b[0m", style.code())
        } else {
            text.to_string()
        }
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> CliResult {
        Ok(self.to.flush()?)
    }
}

/// Returns `true` if plain text is wanted: by <https://no-color.org>, or by a dumb terminal.
#[must_use]
pub fn is_plain_requested() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Output");
        f.field("terminal", &self.terminal).finish_non_exhaustive()
    }
}
