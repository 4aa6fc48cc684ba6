//! Why a call of the files actor came to nothing.

use std::io;

use serde_json::json;
use strowger::{Code, Fault};
use thiserror::Error;

/// Why a call came to nothing. Paths are as the caller gave them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// A rule forbids it; nothing was changed.
    #[error("`{path}` {} (rule: {})", .rule.says(), .rule.name())]
    Refused {
        /// What was to be reached.
        path: String,
        /// What forbids it.
        rule: Rule,
    },
    /// A limit forbids it; nothing was changed.
    #[error("`{path}` {} (rule: {})", .rule.says_of(*.most, *.used, *.wanted), .rule.name())]
    Limit {
        /// What was to be reached.
        path: String,
        /// What forbids it.
        rule: Rule,
        /// The limit: bytes or entries.
        most: u64,
        /// How much of it is used.
        used: u64,
        /// How much more was wanted.
        wanted: u64,
    },
    /// There is no such entry.
    #[error("`{path}`: there is no such file or directory")]
    NotFound {
        /// What was looked for.
        path: String,
    },
    /// There is an entry already.
    #[error("`{path}` is there already")]
    Exists {
        /// What is in the way.
        path: String,
    },
    /// It is a directory, where a file was asked for.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// The directory.
        path: String,
    },
    /// It is no directory.
    #[error("`{path}` is not a directory")]
    NotDirectory {
        /// What is none.
        path: String,
    },
    /// The directory holds something, and was not to be removed with it.
    #[error("`{path}` is not empty")]
    NotEmpty {
        /// The directory.
        path: String,
    },
    /// The file is not UTF-8.
    #[error("`{path}` is not UTF-8 (at octet {at})")]
    NotText {
        /// The file.
        path: String,
        /// Where it stops being text.
        at: usize,
    },
    /// What an edit looks for is not there once.
    #[error("`{path}`: edit {edit} matches {times} times, not once")]
    NotOnce {
        /// The file.
        path: String,
        /// Which edit, from 0.
        edit: usize,
        /// How often its text is there.
        times: usize,
    },
    /// A pattern cannot be understood.
    #[error("the pattern `{pattern}` cannot be understood: {why}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// Arguments that exclude one another, or say nothing.
    #[error("{what}")]
    Arguments {
        /// What is wrong with them, and what would be right.
        what: &'static str,
    },
    /// The caller gave up, or the actor ended.
    #[error("`{path}`: given up before it was done")]
    Cancelled {
        /// Where it had begun.
        path: String,
    },
    /// The file system refused.
    #[error("`{path}`: {kind}")]
    Io {
        /// What was to be reached.
        path: String,
        /// What it said.
        kind: io::ErrorKind,
    },
}

/// A rule that forbids a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A path stays below the root, whatever links it passes.
    Outside,
    /// A path is relative to the root, or begins with the root's own.
    Absolute,
    /// A path has no NUL, at most [`path`](crate::FileLimits::path) octets, and names something.
    Name,
    /// Only files and directories are read or written: no FIFO, socket or device.
    Special,
    /// A file with several links is not written in place: it may belong to somebody else.
    Linked,
    /// A root that is read-only is not written to.
    ReadOnly,
    /// The root itself is neither removed nor renamed nor replaced.
    Root,
    /// One call reads or writes at most [`file`](crate::FileLimits::file) bytes.
    Size,
    /// Calls add at most [`octets`](crate::FileLimits::octets) to what is below the root.
    Octets,
    /// Calls add at most [`entries`](crate::FileLimits::entries).
    Entries,
    /// A directory with more than [`scan`](crate::FileLimits::scan) entries is not listed.
    Scan,
    /// A path has at most [`depth`](crate::FileLimits::depth) levels.
    Depth,
    /// A path passes at most as many links as the system bears.
    Loop,
}

impl Rule {
    /// Its name, as it is in faults and audits.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Absolute => "absolute",
            Self::Name => "name",
            Self::Special => "special",
            Self::Linked => "linked",
            Self::ReadOnly => "read-only",
            Self::Root => "root",
            Self::Size => "size",
            Self::Octets => "octets",
            Self::Entries => "entries",
            Self::Scan => "scan",
            Self::Depth => "depth",
            Self::Loop => "loop",
        }
    }

    /// The rest of a sentence that begins with the path.
    const fn says(self) -> &'static str {
        match self {
            Self::Outside => "leaves the root",
            Self::Absolute => "is absolute, and not below the root",
            Self::Name => "is no path that can be used here",
            Self::Special => "is neither a file nor a directory",
            Self::Linked => "has several links, and is not written in place",
            Self::ReadOnly => "is below a read-only root",
            Self::Root => "is the root itself",
            Self::Size => "has more bytes than one call reads or writes",
            Self::Octets => "would add more bytes than may be added",
            Self::Entries => "would add more entries than may be added",
            Self::Scan => "has more entries than are listed",
            Self::Depth => "lies deeper than directories may",
            Self::Loop => "passes too many links",
        }
    }

    /// The same for a limit of which so much is used, with what helps.
    fn says_of(self, most: u64, used: u64, wanted: u64) -> String {
        let raise =
            |key: &str| format!("raise `{key}` in its [[tools.files]], or with --limit {key}=N");
        let quota = |key: &str, unit: &str| {
            format!(
                "needs {wanted} more {unit}, but {used} of the {most} that may be added below \
                 this directory are used: delete what is not needed, or {}",
                raise(key)
            )
        };
        match self {
            Self::Size => format!(
                "is {wanted} bytes, and one call reads or writes at most {most}: read it in parts \
                 (first or last lines, an offset and a length), append in parts, or {}",
                raise("file")
            ),
            Self::Octets => quota("octets", "bytes"),
            Self::Entries => quota("entries", "entries"),
            Self::Scan => format!(
                "has more than the {most} entries that one call looks at: {}",
                raise("scan")
            ),
            rule => rule.says().to_owned(),
        }
    }
}

impl FileError {
    /// What the system said of a path.
    pub(super) fn of(error: &io::Error, path: &str) -> Self {
        let path = path.to_owned();
        // cap-std raises this itself, without a number, when a path would leave its directory.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            let rule = Rule::Outside;
            return Self::Refused { path, rule };
        }
        let rule = match error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::XDEV) => Some(Rule::Outside),
            Some(rustix::io::Errno::LOOP) => Some(Rule::Loop),
            Some(rustix::io::Errno::NAMETOOLONG) => Some(Rule::Name),
            // What opening a FIFO without a reader says, or a socket.
            Some(rustix::io::Errno::NXIO) => Some(Rule::Special),
            _ => None,
        };
        if let Some(rule) = rule {
            return Self::Refused { path, rule };
        }
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            io::ErrorKind::IsADirectory => Self::IsDirectory { path },
            io::ErrorKind::NotADirectory => Self::NotDirectory { path },
            io::ErrorKind::DirectoryNotEmpty => Self::NotEmpty { path },
            kind => Self::Io { path, kind },
        }
    }

    /// One word for figures and audits.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Refused { rule, .. } | Self::Limit { rule, .. } => rule.name(),
            Self::NotFound { .. } => "not-found",
            Self::Exists { .. } => "exists",
            Self::IsDirectory { .. } => "is-directory",
            Self::NotDirectory { .. } => "not-directory",
            Self::NotEmpty { .. } => "not-empty",
            Self::NotText { .. } => "not-text",
            Self::NotOnce { .. } => "not-once",
            Self::Pattern { .. } => "pattern",
            Self::Arguments { .. } => "arguments",
            Self::Cancelled { .. } => "cancelled",
            Self::Io { .. } => "io",
        }
    }

    /// As those outside see it: what a rule forbids is `refused`, a pattern `bad-request`, the
    /// rest `failed`; `details` have the `reason`, and of a limit `most`, `used` and `wanted`.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Refused { .. } | Self::Limit { .. } => Code::Refused,
            Self::Pattern { .. } | Self::Arguments { .. } => Code::BadRequest,
            Self::Cancelled { .. } => Code::Cancelled,
            _ => Code::Failed,
        };
        let details = match self {
            Self::Limit {
                most, used, wanted, ..
            } => json!({
                "reason": self.name(), "most": most, "used": used, "wanted": wanted,
            }),
            _ => json!({ "reason": self.name() }),
        };
        Fault::new(code, self.to_string()).with_details(details)
    }
}
