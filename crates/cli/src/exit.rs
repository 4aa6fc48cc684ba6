//! How a command ends: a number for scripts, and two lines for people.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// What a command returns.
pub(crate) type Done<T = ()> = Result<T, Failure>;

/// The numbers that the process ends with, as `--help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The command ran; what it checked or measured does not hold.
    Found = 1,
    /// Arguments, configuration or input that cannot be understood.
    Input = 2,
    /// Something outside is missing or refuses: a file, a port, a node.
    Outside = 3,
}

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read our output has gone away: nobody is left to tell.
    Unread,
    /// Anything else: what and where, and what to do about it.
    Told {
        status: Status,
        what: String,
        hint: Option<String>,
    },
}

impl Failure {
    /// A check that does not hold.
    pub(crate) fn found(what: impl Into<String>) -> Self {
        Self::told(Status::Found, what)
    }

    /// Input that cannot be understood.
    pub(crate) fn input(what: impl Into<String>) -> Self {
        Self::told(Status::Input, what)
    }

    /// Something outside that is missing or refuses.
    pub(crate) fn outside(what: impl Into<String>) -> Self {
        Self::told(Status::Outside, what)
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        let told = Self::outside(format!("{}: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::NotFound => told.hint("check the path; `-` reads standard input"),
            _ => told,
        }
    }

    /// Says what the user can do about it.
    #[must_use]
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Told { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    fn told(status: Status, what: impl Into<String>) -> Self {
        Self::Told {
            status,
            what: what.into(),
            hint: None,
        }
    }

    /// Prints the failure and returns the number of the process.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Unread => ExitCode::SUCCESS,
            Self::Told { status, .. } => {
                // Standard error may be closed as well; the number still tells.
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
            Self::Told { what, hint, .. } => {
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
    /// Turns an error of standard output; files use [`Failure::file`], which names them.
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
    fn failure_says_what_and_what_to_do() {
        let failure = Failure::outside("port 8805 is taken").hint("use --port 0");
        let text = failure.to_string();
        assert_eq!(text, "error: port 8805 is taken\nhint: use --port 0");
    }

    #[test]
    fn closed_pipe_is_no_failure_to_report() {
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
