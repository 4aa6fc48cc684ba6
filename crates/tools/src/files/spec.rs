//! What a files actor may touch, and how much of it.

use std::path::PathBuf;

use super::figures::FilesWatch;

/// The one directory that a [`Files`](crate::Files) actor reaches, and its limits.
///
/// One actor owns a quota: two actors over one directory count each for itself. What is there
/// already is not counted; what the actor removes makes room for as much.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FilesSpec {
    /// The root. It may be reached through links; what is below it may not lead out of it.
    pub root: PathBuf,
    /// Nothing is written.
    pub read_only: bool,
    /// How much of it.
    pub limits: FileLimits,
    /// Where it is seen what the actor does.
    pub watch: FilesWatch,
}

impl FilesSpec {
    /// A root that may be written to, with the default limits.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            read_only: false,
            limits: FileLimits::default(),
            watch: FilesWatch::default(),
        }
    }

    /// Whether nothing is written.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// How much a files actor takes, gives and looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLimits {
    /// Bytes that one call reads or writes. Parts of files of any size are read, and any file is
    /// appended to and searched.
    pub file: u64,
    /// Bytes that calls may add to what is below the root, over all incarnations.
    pub octets: u64,
    /// Entries that calls may add below the root, directories among them.
    pub entries: u64,
    /// Entries of one answer: a page of a list, a tree.
    pub page: usize,
    /// Entries that a list, a tree or a search looks at.
    pub scan: usize,
    /// Octets that a search reads.
    pub searched: u64,
    /// Matches of one search.
    pub matches: usize,
    /// Levels of directories, in a path and below the root.
    pub depth: usize,
    /// Octets of a path.
    pub path: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            file: 16 << 20,
            octets: 1 << 30,
            entries: 100_000,
            page: 1000,
            scan: 200_000,
            searched: 256 << 20,
            matches: 1000,
            depth: 64,
            path: 4096,
        }
    }
}
