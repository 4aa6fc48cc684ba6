//! The tools of a node: what of it agents and plug-ins may use.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_tools::{FileLimits, FilesSpec, StreamLimits, StreamsSpec};

use super::code::{CodeSection, ProgramsSection};
use super::{Problem, span};

/// All tools. There are none unless they are configured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsSection {
    /// Directories that are reached, each by an actor of its own.
    pub(crate) files: Vec<FilesSection>,
    /// Streams from producers to readers.
    pub(crate) streams: StreamsSection,
    /// Code of others.
    pub(crate) code: CodeSection,
    /// Code that is published under an address.
    pub(crate) programs: ProgramsSection,
    /// Whether the engine for code is compiled when it is first needed, so that whoever starts
    /// tools for a short while does not wait for it.
    #[serde(skip)]
    pub(crate) on_demand: bool,
}

/// Streams, and how much they hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StreamsSection {
    /// Whether there are any.
    pub(crate) enabled: bool,
    /// The most streams at a time.
    pub(crate) streams: usize,
    /// The most readers of one stream.
    pub(crate) readers: usize,
    /// The most octets of one piece.
    pub(crate) piece: usize,
    /// The most pieces that wait for one reader.
    pub(crate) window: u32,
    /// The most pieces that later readers get.
    pub(crate) replay: usize,
    /// The most pieces that wait until the readers have room.
    pub(crate) waiting: usize,
    /// How long a reader may stand still while others wait for it.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) stall: Duration,
    /// How long a producer may be silent.
    #[serde(deserialize_with = "span::deserialize")]
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
    /// What their actor is made from.
    pub(crate) fn spec(&self) -> StreamsSpec {
        StreamsSpec::new(self.limits())
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

/// One directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesSection {
    /// The directory; from the folder of the configuration.
    pub(crate) root: PathBuf,
    /// Its actor's name.
    #[serde(default = "usual_name")]
    pub(crate) name: String,
    /// Whether nothing is written.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// The most bytes that one call reads or writes.
    #[serde(default = "usual::file")]
    pub(crate) file: u64,
    /// The most bytes that are added.
    #[serde(default = "usual::octets")]
    pub(crate) octets: u64,
    /// The most entries that are added, directories among them.
    #[serde(default = "usual::entries")]
    pub(crate) entries: u64,
    /// The most entries of one answer.
    #[serde(default = "usual::page")]
    pub(crate) page: usize,
    /// The most entries that a list, a tree or a search looks at.
    #[serde(default = "usual::scan")]
    pub(crate) scan: usize,
    /// The most octets that a search reads.
    #[serde(default = "usual::searched")]
    pub(crate) searched: u64,
    /// The most matches of a search.
    #[serde(default = "usual::matches")]
    pub(crate) matches: usize,
    /// The most levels of directories.
    #[serde(default = "usual::depth")]
    pub(crate) depth: usize,
    /// The longest path, in octets.
    #[serde(default = "usual::path")]
    pub(crate) path: usize,
}

/// The name of a root that has none.
fn usual_name() -> String {
    "files".to_owned()
}

/// The limits of a root that says nothing of them.
mod usual {
    use strowger_tools::FileLimits;

    macro_rules! limits {
        ($($key:ident: $kind:ty),+) => {
            $(pub(super) fn $key() -> $kind {
                FileLimits::default().$key
            })+
        };
    }

    limits! {
        file: u64,
        octets: u64,
        entries: u64,
        page: usize,
        scan: usize,
        searched: u64,
        matches: usize,
        depth: usize,
        path: usize
    }
}

/// The keys of limits.
const LIMITS: &str = "file, octets, entries, page, scan, searched, matches, depth and path";

/// Names of other tools.
const RESERVED: [&str; 3] = ["code", "programs", "streams"];

impl ToolsSection {
    /// What types cannot refuse.
    pub(super) fn problem(&self, instances: usize) -> Option<Problem> {
        if let Some(said) = self.said() {
            return Some(Problem::at("tools.files", &said));
        }
        let programs = || self.programs.problem(instances);
        self.code.problem().or_else(programs)
    }

    /// The same in words.
    pub(crate) fn said(&self) -> Option<String> {
        for (at, section) in self.files.iter().enumerate() {
            let FilesSection { name, .. } = section;
            let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            if name.is_empty() || name.len() > 64 || !name.chars().all(letter) {
                let what = "letters, digits, - and _ make a name";
                return Some(format!("names a root {name:?}; {what}"));
            }
            if RESERVED.contains(&name.as_str()) {
                let what = "which is the name of another tool";
                return Some(format!("names a root {name:?}, {what}"));
            }
            if self.files[..at].iter().any(|other| other.name == *name) {
                return Some(format!("has two roots of the name {name:?}"));
            }
            for (key, value) in [("page", section.page), ("scan", section.scan)] {
                if value == 0 {
                    return Some(format!("lets the root {name:?} have a `{key}` of 0"));
                }
            }
        }
        None
    }

    /// Finds directories from the folder of the configuration.
    pub(super) fn found_from(&mut self, folder: &Path) {
        for section in &mut self.files {
            section.root = folder.join(&section.root);
        }
    }
}

impl FilesSection {
    /// A directory that may be written to, with the default limits.
    pub(crate) fn new(root: PathBuf) -> Self {
        let limits = FileLimits::default();
        Self {
            root,
            name: usual_name(),
            read_only: false,
            file: limits.file,
            octets: limits.octets,
            entries: limits.entries,
            page: limits.page,
            scan: limits.scan,
            searched: limits.searched,
            matches: limits.matches,
            depth: limits.depth,
            path: limits.path,
        }
    }

    /// Sets a limit by its key, which a configuration has as well; why not if it cannot be set.
    pub(crate) fn set_limit(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn number<N: std::str::FromStr>(to: &mut N, value: &str) -> Result<(), String> {
            let wrong = |_| format!("\"{value}\" is no whole number");
            *to = value.parse().map_err(wrong)?;
            Ok(())
        }
        match key {
            "file" => number(&mut self.file, value),
            "octets" => number(&mut self.octets, value),
            "entries" => number(&mut self.entries, value),
            "page" => number(&mut self.page, value),
            "scan" => number(&mut self.scan, value),
            "searched" => number(&mut self.searched, value),
            "matches" => number(&mut self.matches, value),
            "depth" => number(&mut self.depth, value),
            "path" => number(&mut self.path, value),
            _ => Err(format!("there is no limit \"{key}\"; they are {LIMITS}")),
        }
    }

    /// What its actor is made from.
    pub(crate) fn spec(&self) -> FilesSpec {
        let mut spec = FilesSpec::new(&self.root).with_limits(self.limits());
        spec.read_only = self.read_only;
        spec
    }

    fn limits(&self) -> FileLimits {
        let mut limits = FileLimits::default();
        limits.file = self.file;
        limits.octets = self.octets;
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
