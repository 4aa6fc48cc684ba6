//! The tools of a node, for agents and components.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_tools::files::{FileLimits, FilesSpec};
use strowger_tools::stream::{StreamLimits, StreamsSpec};

use super::code::{CodeSection, ProgramsSection};
use super::limit::{self, LimitSet};
use crate::config::{Problem, minimum_problem, range_problem};

/// All tools. None exist unless they are configured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsSection {
    /// Directories that tools reach, each with an actor of its own.
    pub(crate) files: Vec<FilesSection>,
    /// Streams from producers to readers.
    pub(crate) streams: StreamsSection,
    /// Code of agents.
    pub(crate) code: CodeSection,
    /// Programs: code published under an address.
    pub(crate) programs: ProgramsSection,
    /// Compiles the engine for code on first use, so that tools that run only for a short while
    /// start without waiting for it.
    #[serde(skip)]
    pub(crate) on_demand: bool,
}

/// Streams, with their limits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StreamsSection {
    /// Set to `true` to enable streams.
    pub(crate) enabled: bool,
    /// Maximum number of streams at a time.
    pub(crate) streams: usize,
    /// Maximum number of readers of one stream.
    pub(crate) readers: usize,
    /// Maximum size of one piece, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) piece: usize,
    /// Maximum number of pieces that wait for one reader.
    pub(crate) window: u32,
    /// Maximum number of pieces that are replayed to later readers.
    pub(crate) replay: usize,
    /// Maximum number of pieces that wait until the readers have room.
    pub(crate) waiting: usize,
    /// Time for which a reader may stall while others wait for it.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) stall: Duration,
    /// Time for which a producer may be silent.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) idle: Duration,
}

impl Default for StreamsSection {
    fn default() -> Self {
        let limits = StreamLimits::default();
        Self {
            enabled: false,
            streams: limits.streams,
            readers: limits.readers,
            piece: limits.piece,
            window: limits.window,
            replay: limits.replay,
            waiting: limits.waiting,
            stall: limits.stall,
            idle: limits.idle,
        }
    }
}

impl StreamsSection {
    /// Returns the specification of the actor of streams.
    pub(crate) fn spec(&self) -> StreamsSpec {
        StreamsSpec::new(self.limits())
    }

    /// Returns the first problem that the types cannot rule out.
    fn problem(&self) -> Option<Problem> {
        let numbers = [
            ("tools.streams.streams", self.streams, 1),
            ("tools.streams.readers", self.readers, 1),
            ("tools.streams.piece", self.piece, 1),
            ("tools.streams.waiting", self.waiting, 1),
            ("tools.streams.window", self.window as usize, 1),
        ];
        let durations = [
            ("tools.streams.stall", self.stall),
            ("tools.streams.idle", self.idle),
        ];
        minimum_problem(numbers).or_else(|| range_problem(durations))
    }

    fn limits(&self) -> StreamLimits {
        let mut limits = StreamLimits::default();
        limits.streams = self.streams;
        limits.readers = self.readers;
        limits.piece = self.piece;
        limits.window = self.window;
        limits.replay = self.replay;
        limits.waiting = self.waiting;
        limits.stall = self.stall;
        limits.idle = self.idle;
        limits
    }
}

/// A directory for tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesSection {
    /// The directory, relative to that of the configuration.
    pub(crate) root: PathBuf,
    /// The name of the actor.
    #[serde(default = "default_name")]
    pub(crate) name: String,
    /// Set to `true` to forbid all writing.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Maximum number of bytes that one call reads or writes.
    #[serde(
        default = "defaults::file",
        deserialize_with = "strowger::deserialize_size"
    )]
    pub(crate) file: u64,
    /// Maximum number of bytes that calls may add.
    #[serde(
        rename = "octets",
        default = "defaults::bytes",
        deserialize_with = "strowger::deserialize_size"
    )]
    pub(crate) bytes: u64,
    /// Maximum number of entries that calls may add, including directories.
    #[serde(default = "defaults::entries")]
    pub(crate) entries: u64,
    /// Maximum number of entries in one answer.
    #[serde(default = "defaults::page")]
    pub(crate) page: usize,
    /// Maximum number of entries that a list, a tree or a search visits.
    #[serde(default = "defaults::scan")]
    pub(crate) scan: usize,
    /// Maximum number of bytes that a search reads.
    #[serde(
        default = "defaults::searched",
        deserialize_with = "strowger::deserialize_size"
    )]
    pub(crate) searched: u64,
    /// Maximum number of matches of a search.
    #[serde(default = "defaults::matches")]
    pub(crate) matches: usize,
    /// Maximum depth of directories.
    #[serde(default = "defaults::depth")]
    pub(crate) depth: usize,
    /// Maximum length of a path, in bytes.
    #[serde(
        default = "defaults::path",
        deserialize_with = "strowger::deserialize_size"
    )]
    pub(crate) path: usize,
}

/// The default name of a root.
fn default_name() -> String {
    "files".to_owned()
}

/// The default limits of a root.
mod defaults {
    use strowger_tools::files::FileLimits;

    macro_rules! limits {
        ($($key:ident: $kind:ty),+) => {
            $(pub(super) fn $key() -> $kind {
                FileLimits::default().$key
            })+
        };
    }

    limits! {
        file: u64,
        entries: u64,
        page: usize,
        scan: usize,
        searched: u64,
        matches: usize,
        depth: usize,
        path: usize
    }

    pub(super) fn bytes() -> u64 {
        FileLimits::default().bytes
    }
}

/// The keys of limits.
pub(crate) const FILE_LIMITS: [&str; 9] = [
    "file", "octets", "entries", "page", "scan", "searched", "matches", "depth", "path",
];

/// Names that other tools use.
const RESERVED: [&str; 3] = ["code", "programs", "streams"];

impl ToolsSection {
    /// Returns `true` if a tool runs code in a sandbox.
    pub(crate) const fn runs_code(&self) -> bool {
        self.code.enabled || self.programs.enabled
    }

    /// Returns the first problem that the types cannot rule out.
    pub(super) fn problem(&self, instances: usize) -> Option<Problem> {
        if let Some(problem) = self.streams.problem() {
            return Some(problem);
        }
        if let Some(text) = self.problem_text() {
            return Some(Problem::at("tools.files", &text));
        }
        let programs = || self.programs.problem(instances);
        self.code.problem().or_else(programs)
    }

    /// Returns the same problem of `tools.files` as text.
    pub(crate) fn problem_text(&self) -> Option<String> {
        for (at, section) in self.files.iter().enumerate() {
            let FilesSection { name, .. } = section;
            let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            if name.is_empty() || name.len() > 64 || !name.chars().all(letter) {
                let what = "use letters, digits, - and _";
                return Some(format!("invalid root name {name:?}; {what}"));
            }
            if RESERVED.contains(&name.as_str()) {
                let what = "it is the name of another tool";
                return Some(format!("invalid root name {name:?}, {what}"));
            }
            if self.files[..at].iter().any(|other| other.name == *name) {
                return Some(format!("has two roots named {name:?}"));
            }
            for (key, value) in [("page", section.page), ("scan", section.scan)] {
                if value == 0 {
                    return Some(format!("sets `{key}` of the root {name:?} to 0"));
                }
            }
        }
        None
    }

    /// Resolves directories relative to the directory of the configuration.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for section in &mut self.files {
            section.root = folder.join(&section.root);
        }
    }
}

impl FilesSection {
    /// Creates a section for a writable directory with the default limits.
    pub(crate) fn new(root: PathBuf) -> Self {
        let limits = FileLimits::default();
        Self {
            root,
            name: default_name(),
            read_only: false,
            file: limits.file,
            bytes: limits.bytes,
            entries: limits.entries,
            page: limits.page,
            scan: limits.scan,
            searched: limits.searched,
            matches: limits.matches,
            depth: limits.depth,
            path: limits.path,
        }
    }

    /// Sets a limit by its key.
    pub(crate) fn set_limit(&mut self, key: &str, value: &str) -> LimitSet {
        match key {
            "file" => limit::set_size(&mut self.file, value),
            "octets" => limit::set_size(&mut self.bytes, value),
            "entries" => limit::set_number(&mut self.entries, value),
            "page" => limit::set_number(&mut self.page, value),
            "scan" => limit::set_number(&mut self.scan, value),
            "searched" => limit::set_size(&mut self.searched, value),
            "matches" => limit::set_number(&mut self.matches, value),
            "depth" => limit::set_number(&mut self.depth, value),
            "path" => limit::set_size(&mut self.path, value),
            _ => None,
        }
    }

    /// Returns the specification of the actor of this directory.
    pub(crate) fn spec(&self) -> FilesSpec {
        let mut spec = FilesSpec::new(&self.root).with_limits(self.limits());
        spec.read_only = self.read_only;
        spec
    }

    fn limits(&self) -> FileLimits {
        let mut limits = FileLimits::default();
        limits.file = self.file;
        limits.bytes = self.bytes;
        limits.entries = self.entries;
        limits.page = self.page;
        limits.scan = self.scan;
        limits.searched = self.searched;
        limits.matches = self.matches;
        limits.depth = self.depth;
        limits.path = self.path;
        limits
    }
}
