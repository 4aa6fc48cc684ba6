//! Errors of the files actor.

use std::io;

use serde_json::json;
use strowger::{Fault, FaultCode};
use thiserror::Error;

/// The error returned when a call fails. Paths are as the caller gave them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// A rule forbids the call; nothing was changed.
    #[error("`{path}` {} (rule: {})", .rule.message(), .rule.name())]
    Refused {
        /// Path as the caller gave it.
        path: String,
        /// The rule that forbids it.
        rule: FileRule,
    },
    /// The path passes a link to an absolute path, which is refused also where it leads below the
    /// root; nothing was changed.
    #[error(
        "`{path}` passes `{link}`, a link to an absolute path (rule: outside): use `{instead}`, or \
         make the link relative"
    )]
    AbsoluteLink {
        /// Path as the caller gave it.
        path: String,
        /// The link, relative to the root.
        link: String,
        /// The same entry without the link, relative to the root.
        instead: String,
    },
    /// A limit forbids the call; nothing was changed.
    #[error("`{path}` {} (rule: {})", .rule.limit_message(*.limit, *.used, *.wanted), .rule.name())]
    Limit {
        /// Path as the caller gave it.
        path: String,
        /// The rule that sets the limit.
        rule: FileRule,
        /// The limit, in bytes or entries.
        limit: u64,
        /// The amount already used.
        used: u64,
        /// The additional amount requested.
        wanted: u64,
    },
    /// The entry does not exist.
    #[error("`{path}`: no such file or directory")]
    NotFound {
        /// Path as the caller gave it.
        path: String,
    },
    /// The entry already exists.
    #[error("`{path}` already exists")]
    Exists {
        /// The path of the existing entry.
        path: String,
    },
    /// The entry is a directory, but the call needs a file.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// Path of the directory.
        path: String,
    },
    /// The entry is not a directory.
    #[error("`{path}` is not a directory")]
    NotDirectory {
        /// Path that is not a directory.
        path: String,
    },
    /// The directory is not empty, and its removal was not recursive.
    #[error("`{path}` is not empty")]
    NotEmpty {
        /// Path of the directory.
        path: String,
    },
    /// The file is not UTF-8.
    #[error("`{path}` is not UTF-8 (at byte {at})")]
    NotText {
        /// Path of the file.
        path: String,
        /// Offset of the first byte that is not valid UTF-8.
        at: usize,
    },
    /// The text to replace does not occur exactly once.
    #[error("`{path}`: edit {edit} matches {matches} times instead of once{hint}")]
    NotOnce {
        /// Path of the file.
        path: String,
        /// Index of the edit, from 0.
        edit: usize,
        /// Number of matches.
        matches: usize,
        /// The lines of the matches, or the nearest text and its differences, with a remedy.
        hint: String,
    },
    /// A pattern is invalid.
    #[error("invalid pattern `{pattern}`: {reason}")]
    InvalidPattern {
        /// The pattern as given.
        pattern: String,
        /// The flaw of the pattern.
        reason: String,
    },
    /// The arguments exclude one another, or are incomplete.
    #[error("{message}")]
    InvalidArguments {
        /// A description of the problem and the remedy.
        message: &'static str,
    },
    /// The caller stopped waiting, or the actor ended.
    #[error("`{path}`: cancelled")]
    Cancelled {
        /// The path at which the operation began.
        path: String,
    },
    /// The file system reported an error.
    #[error("`{path}`: {kind}")]
    Io {
        /// Path as the caller gave it.
        path: String,
        /// The kind of error.
        kind: io::ErrorKind,
    },
}

/// A rule that a call can violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileRule {
    /// A path must stay below the root, even through links.
    Outside,
    /// A path must be relative to the root, or begin with the root's own path.
    Absolute,
    /// A path must have no NUL, at most [`path`](super::FileLimits::path) bytes, and name an entry.
    Name,
    /// Only files and directories are read or written: no FIFO, socket or device.
    Special,
    /// A file with several links is not written in place: another name may share its contents.
    Linked,
    /// A file whose mode lets nobody write it is not written.
    Mode,
    /// A read-only root is not written to.
    ReadOnly,
    /// The root itself is neither removed nor renamed nor replaced.
    Root,
    /// One call reads or writes at most [`file`](super::FileLimits::file) bytes.
    Size,
    /// Calls add at most [`bytes`](super::FileLimits::bytes) bytes below the root.
    Bytes,
    /// Calls add at most [`entries`](super::FileLimits::entries) entries below the root.
    Entries,
    /// A directory with more than [`scan`](super::FileLimits::scan) entries is not listed.
    Scan,
    /// A path has at most [`depth`](super::FileLimits::depth) levels.
    Depth,
    /// A path passes at most as many links as the system allows.
    Loop,
}

impl FileRule {
    /// All rules, in the order of their names in documents.
    pub const ALL: [Self; 14] = [
        Self::Outside,
        Self::Absolute,
        Self::Name,
        Self::Special,
        Self::Linked,
        Self::Mode,
        Self::ReadOnly,
        Self::Root,
        Self::Size,
        Self::Bytes,
        Self::Entries,
        Self::Scan,
        Self::Depth,
        Self::Loop,
    ];

    /// The name of the rule in faults and the audit log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Absolute => "absolute",
            Self::Name => "name",
            Self::Special => "special",
            Self::Linked => "linked",
            Self::Mode => "mode",
            Self::ReadOnly => "read-only",
            Self::Root => "root",
            Self::Size => "size",
            Self::Bytes => "octets",
            Self::Entries => "entries",
            Self::Scan => "scan",
            Self::Depth => "depth",
            Self::Loop => "loop",
        }
    }

    /// The message of a violation, which continues a sentence that begins with the path.
    const fn message(self) -> &'static str {
        match self {
            Self::Outside => "leads outside the root",
            Self::Absolute => "is absolute and not below the root",
            Self::Name => {
                "is not a valid path: it is empty, ends in `..`, contains NUL, or a name exceeds \
                 the limit of the file system"
            }
            Self::Special => "is neither a file nor a directory",
            Self::Linked => {
                "has several hard links and cannot be written in place: replace it (mode \
                 `atomic`, write_file), or remove the other links"
            }
            Self::Mode => {
                "has a mode without write permission, such as 0444: change its mode, or write \
                 another file"
            }
            Self::ReadOnly => {
                "is below a read-only root: write elsewhere, or open the root without `read_only`"
            }
            Self::Root => "is the root itself",
            Self::Size => "is larger than one call reads or writes",
            Self::Bytes => "would exceed the limit of bytes",
            Self::Entries => "would exceed the limit of entries",
            Self::Scan => "has more entries than one call lists",
            Self::Depth => "is nested too deeply: use a path with fewer levels",
            Self::Loop => {
                "follows too many symbolic links (limit of Linux: 40), or a cycle of them"
            }
        }
    }

    /// The message for a limit, with the amounts and a remedy.
    fn limit_message(self, limit: u64, used: u64, wanted: u64) -> String {
        let quota = |key: &str, unit: &str| {
            format!(
                "needs {wanted} more {unit}, but {used} of the limit of {limit} added below this \
                 directory are used: delete unneeded files, or {}",
                raise_limit_advice(key)
            )
        };
        match self {
            Self::Size if used > 0 => format!(
                "is {wanted} bytes, but {used} of the {limit} bytes of one call are used: read \
                 fewer files at a time, or {}",
                raise_limit_advice("file")
            ),
            Self::Size => format!(
                "is {wanted} bytes, but one call reads or writes at most {limit}: read it in parts \
                 (first or last lines, an offset and a length), append in parts, or {}",
                raise_limit_advice("file")
            ),
            Self::Bytes => quota("octets", "bytes"),
            Self::Entries => quota("entries", "entries"),
            Self::Scan => format!(
                "has more than the {limit} entries that one call examines: {}",
                raise_limit_advice("scan")
            ),
            Self::Depth => format!(
                "has {wanted} levels, limit is {limit}: use a path with fewer, or {}",
                raise_limit_advice("depth")
            ),
            Self::Name => format!(
                "is {wanted} bytes long, limit is {limit}: use a shorter path, or {}",
                raise_limit_advice("path")
            ),
            rule => rule.message().to_owned(),
        }
    }
}

/// Advice on how to raise a limit.
pub(super) fn raise_limit_advice(key: &str) -> String {
    format!("raise `{key}` in [[tools.files]] or with --limit {key}=N")
}

impl FileError {
    /// Converts an error of the system for a path.
    pub(super) fn from_io(error: &io::Error, path: &str) -> Self {
        let path = path.to_owned();
        // cap-std itself reports an escape from the directory this way, without an OS error number.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            let rule = FileRule::Outside;
            return Self::Refused { path, rule };
        }
        let rule = match error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::XDEV) => Some(FileRule::Outside),
            Some(rustix::io::Errno::LOOP) => Some(FileRule::Loop),
            Some(rustix::io::Errno::NAMETOOLONG) => Some(FileRule::Name),
            // The error of opening a FIFO without a reader, or a socket.
            Some(rustix::io::Errno::NXIO) => Some(FileRule::Special),
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

    /// A one-word name for stats and the audit log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Refused { rule, .. } | Self::Limit { rule, .. } => rule.name(),
            Self::AbsoluteLink { .. } => FileRule::Outside.name(),
            Self::NotFound { .. } => "not-found",
            Self::Exists { .. } => "exists",
            Self::IsDirectory { .. } => "is-directory",
            Self::NotDirectory { .. } => "not-directory",
            Self::NotEmpty { .. } => "not-empty",
            Self::NotText { .. } => "not-text",
            Self::NotOnce { .. } => "not-once",
            Self::InvalidPattern { .. } => "pattern",
            Self::InvalidArguments { .. } => "arguments",
            Self::Cancelled { .. } => "cancelled",
            Self::Io { .. } => "io",
        }
    }

    /// Converts the error to a fault for external callers.
    ///
    /// Violations of rules and limits are `refused`, invalid patterns and arguments `bad-request`,
    /// cancelled calls `cancelled`, others `failed`. The `details` have the `reason`; a limit adds
    /// `most`, `used` and `wanted`.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Refused { .. } | Self::AbsoluteLink { .. } | Self::Limit { .. } => {
                FaultCode::Refused
            }
            Self::InvalidPattern { .. } | Self::InvalidArguments { .. } => FaultCode::BadRequest,
            Self::Cancelled { .. } => FaultCode::Cancelled,
            _ => FaultCode::Failed,
        };
        let details = match self {
            Self::Limit {
                limit,
                used,
                wanted,
                ..
            } => json!({
                "reason": self.name(), "most": limit, "used": used, "wanted": wanted,
            }),
            _ => json!({ "reason": self.name() }),
        };
        Fault::new(code, self.to_string()).with_details(details)
    }
}
