//! The root and the limits of a files actor.

use std::path::PathBuf;

use super::stats::FilesWatch;

/// The root directory of a [`Files`](super::Files) actor, and its limits.
///
/// The quota belongs to one actor: two actors over the same directory count separately. Existing
/// files do not count. Removals give back quota, up to the amount that the actor has used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FilesSpec {
    /// The root. It may itself be reached through links, but links below it must not lead out of
    /// it.
    pub root: PathBuf,
    /// `true` if nothing may be written.
    pub read_only: bool,
    /// The limits.
    pub limits: FileLimits,
    /// The handle that observes the stats of the actor.
    pub watch: FilesWatch,
}

impl FilesSpec {
    /// Creates a spec for a writable root with the default limits.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            read_only: false,
            limits: FileLimits::default(),
            watch: FilesWatch::default(),
        }
    }

    /// Makes the root read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// The limits of a files actor, with their defaults in parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLimits {
    /// Maximum number of bytes that one call reads or writes (16 MiB). Files of any size can be
    /// read in parts, appended to and searched.
    pub file: u64,
    /// Maximum number of bytes that calls may add below the root, over all incarnations (1 GiB).
    pub bytes: u64,
    /// Maximum number of entries that calls may add below the root, including directories
    /// (100 000).
    pub entries: u64,
    /// Maximum number of entries in one reply: a page of a list, or a tree (1000).
    pub page: usize,
    /// Maximum number of entries that a list, a tree or a search scans (200 000).
    pub scan: usize,
    /// Maximum number of bytes that a search reads (1 TiB). A search also ends at its caller's
    /// deadline.
    pub searched: u64,
    /// Maximum number of matches of a search (1000).
    pub matches: usize,
    /// Maximum number of directory levels, in a path and below the root (64).
    pub depth: usize,
    /// Maximum length of a path, in bytes (4096).
    pub path: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            file: 16 << 20,
            bytes: 1 << 30,
            entries: 100_000,
            page: 1000,
            scan: 200_000,
            searched: 1 << 40,
            matches: 1000,
            depth: 64,
            path: 4096,
        }
    }
}
