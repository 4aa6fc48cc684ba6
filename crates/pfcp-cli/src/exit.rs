//! The end of a command: an exit status for scripts, and two lines for people.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// The result of a command.
pub type CliResult<T = ()> = Result<T, Failure>;

/// The exit statuses of the process, as `--help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The command ran, but a check or a measurement failed.
    Check = 1,
    /// Arguments, configuration or input that are invalid.
    Input = 2,
    /// Something outside is missing or refuses: a file, a port, a node.
    Outside = 3,
}

/// The reason why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The reader of the output is gone, so the error cannot be reported.
    Unread,
    /// Any other failure.
    Reported {
        /// The exit status of the process.
        status: ExitStatus,
        /// The description: what failed, where and why.
        what: String,
        /// The remedy, if there is one.
        hint: Option<String>,
    },
}

impl Failure {
    /// Creates the failure of a check.
    pub fn check(what: impl Into<String>) -> Self {
        Self::new(ExitStatus::Check, what)
    }

    /// Creates the failure for invalid input.
    pub fn input(what: impl Into<String>) -> Self {
        Self::new(ExitStatus::Input, what)
    }

    /// Creates the failure when something outside is missing or refuses.
    pub fn outside(what: impl Into<String>) -> Self {
        Self::new(ExitStatus::Outside, what)
    }

    /// Creates the failure for a file that cannot be read or written.
    #[must_use]
    pub fn file(path: &Path, error: &io::Error) -> Self {
        let failure = Self::outside(format!("{}: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::NotFound => failure.hint("check the path; `-` reads standard input"),
            _ => failure,
        }
    }

    /// Adds a hint about what the user can do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Reported { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    fn new(status: ExitStatus, what: impl Into<String>) -> Self {
        Self::Reported {
            status,
            what: what.into(),
            hint: None,
        }
    }

    /// Prints the failure and returns the exit status.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Unread => ExitCode::SUCCESS,
            Self::Reported { status, .. } => {
                // Standard error may be closed as well; the exit status is still delivered.
                let _ = writeln!(io::stderr(), "{self}");
                ExitCode::from(*status as u8)
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("output is no longer read"),
            Self::Reported { what, hint, .. } => {
                write!(f, "error: {what}")?;
                match hint {
                    Some(hint) => write!(f, "\nhint: {hint}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl From<io::Error> for Failure {
    /// Converts an error of standard output; files use [`Failure::file`], which names them.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::outside(format!("standard output: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_has_a_message_and_a_hint() {
        let failure = Failure::outside("port 8805 is taken").hint("use --port 0");
        let text = failure.to_string();
        assert_eq!(text, "error: port 8805 is taken\nhint: use --port 0");
    }

    #[test]
    fn closed_pipe_is_not_reported() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(failure, Failure::Unread));
    }

    #[test]
    fn missing_file_is_named_with_a_hint() {
        let error = io::Error::from(io::ErrorKind::NotFound);
        let text = Failure::file(Path::new("a.pcap"), &error).to_string();
        assert!(text.starts_with("error: a.pcap: "), "{text}");
        assert!(text.contains("\nhint: "), "{text}");
    }
}
