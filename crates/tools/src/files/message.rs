//! What a files actor is asked, and what it answers.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strowger::Request;

use super::error::FileError;

/// Reads octets of a file: all, or `length` from `offset` on. Fewer come where the file ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Which file.
    pub path: String,
    /// From where on, in octets.
    #[serde(default)]
    pub offset: u64,
    /// How many at most; all if it is not said.
    #[serde(default)]
    pub length: Option<u64>,
}

/// Reads lines of a text file, whatever its size: all, the first, the last, or some from a line on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadLines {
    /// Which file.
    pub path: String,
    /// The number of the first line that is wanted, from 1.
    #[serde(default)]
    pub from: Option<u64>,
    /// How many lines at most, from there or from the beginning.
    #[serde(default)]
    pub head: Option<u64>,
    /// So many lines at the end; goes with neither of the others.
    #[serde(default)]
    pub tail: Option<u64>,
}

/// Reads several files; one that fails does not spoil the others. All together they are no larger
/// than one file may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadMany {
    /// Which files, in the order of the answers.
    pub paths: Vec<String>,
}

/// Reads a file with the type of what it holds, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetMedia {
    /// Which file.
    pub path: String,
}

/// A file and the type of what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Media {
    /// Such as `image/png`; `application/octet-stream` where the name says nothing.
    pub mime: String,
    /// What it holds.
    pub octets: Bytes,
}

/// How a file is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WriteMode {
    /// The file itself is written over. One who reads meanwhile may see half.
    #[default]
    Inplace,
    /// A new file takes its place: a reader sees the old or the new one, whole.
    Atomic,
    /// Atomic, and on the disk before the answer.
    Durable,
}

/// Writes a whole file; makes it if need be. Its directory has to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Write {
    /// Which file.
    pub path: String,
    /// What it will hold.
    pub octets: Bytes,
    /// How.
    pub mode: WriteMode,
}

impl Write {
    /// Writes in place.
    pub fn new(path: impl Into<String>, octets: impl Into<Bytes>) -> Self {
        Self {
            path: path.into(),
            octets: octets.into(),
            mode: WriteMode::Inplace,
        }
    }

    /// Writes in another way.
    #[must_use]
    pub fn with_mode(mut self, mode: WriteMode) -> Self {
        self.mode = mode;
        self
    }
}

impl Read {
    /// Reads a whole file.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

/// Writes behind the end of a file; makes it if need be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Append {
    /// Which file.
    pub path: String,
    /// What is added.
    pub octets: Bytes,
}

/// Changes text in a file. All changes are made, in order, or none; the file is replaced as a
/// whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Which file.
    pub path: String,
    /// What is changed.
    pub changes: Vec<Change>,
    /// Only say what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// A change of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// What is there: once, unless `all` is set.
    pub old: String,
    /// What takes its place.
    pub new: String,
    /// Every place where it is there, at least one.
    #[serde(default)]
    pub all: bool,
}

/// What an [`Edit`] changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Edited {
    /// How many places.
    pub places: usize,
    /// As a unified diff.
    pub diff: String,
}

/// Lists a directory, a page at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Which directory; the root if it is empty.
    #[serde(default)]
    pub path: String,
    /// Only names behind this one: the last of the page before, or its URI.
    #[serde(default)]
    pub after: Option<String>,
    /// How many at most; a whole page if it is not said.
    #[serde(default)]
    pub most: Option<usize>,
    /// With sizes and times, which costs a call for each entry.
    #[serde(default)]
    pub details: bool,
    /// What comes first.
    #[serde(default)]
    pub order: ListOrder,
}

/// The order of a [`List`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListOrder {
    /// By name, a page after another.
    #[default]
    Name,
    /// The largest first, and of these one page.
    Size,
}

/// A page of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// In the order that was asked for.
    pub entries: Vec<Entry>,
    /// There are more behind the last one.
    pub more: bool,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device: it can be listed, and not opened.
    Special,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its name. One that is not UTF-8 has `�` in it, and a `uri`.
    pub name: String,
    /// Where the name is not UTF-8, what names the entry in its place: every path may be a URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// What it is.
    pub kind: EntryKind,
    /// Octets, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// When it was last written, in milliseconds since 1970, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_ms: Option<u64>,
    /// How many names a file has, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
}

/// Tells what an entry is; links are followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stat {
    /// Which one; the root if it is empty.
    #[serde(default)]
    pub path: String,
}

/// Lists a directory with what is below it. Links are not followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Which directory; the root if it is empty.
    #[serde(default)]
    pub path: String,
    /// How many levels; as many as the limit if it is not said.
    #[serde(default)]
    pub depth: Option<usize>,
    /// What is left out, as in a [`Search`].
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// A directory or file in a [`Tree`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeEntry {
    /// Its name; of the first one, the path that was asked for.
    pub name: String,
    /// As that of an [`Entry`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// What it is.
    pub kind: EntryKind,
    /// What is in a directory, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Self>,
    /// There is more in it than the answer has: it would be too long, or too deep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Finds files by name, and lines in them by pattern, whatever the size of the files. Links are not
/// followed, and a file is searched until it turns out to be no text; the answer counts these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Below which directory; the root if it is empty.
    #[serde(default)]
    pub path: String,
    /// Which files, as a glob of the path below that directory: `**/*.rs`. All if it is not said.
    #[serde(default)]
    pub names: Option<String>,
    /// Which files and directories are left out, with what is below them: globs as in `names`, or
    /// names without a slash, which fit at every level.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// What a line has to have, as a regular expression; without it files are found by name alone.
    #[serde(default)]
    pub text: Option<String>,
    /// How many matches at most; as many as the limit if it is not said.
    #[serde(default)]
    pub most: Option<usize>,
}

/// What a [`Search`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Found {
    /// By path, then by line.
    pub matches: Vec<Match>,
    /// How many files were searched to their end; of a search by name, how many had it.
    pub files: u64,
    /// What was not searched.
    #[serde(skip_serializing_if = "Skipped::is_none")]
    pub skipped: Skipped,
    /// Why there may be more: the limit that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// What a [`Search`] passed over, though it was not told to leave it out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// Files that were searched until they turned out to be no text.
    pub binary: u64,
    /// Files with lines that are longer than [`file`](crate::FileLimits::file); of these only the
    /// beginning was searched.
    pub long_lines: u64,
    /// Files and directories that could not be opened or read.
    pub unreadable: u64,
    /// Links, which are not followed.
    pub links: u64,
    /// FIFOs, sockets and devices.
    pub special: u64,
    /// The first of the files and directories that could not be searched to their end.
    pub paths: Vec<SkippedPath>,
}

/// A file or directory that was not searched to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedPath {
    /// Relative to the root.
    pub path: String,
    /// The member of [`Skipped`] that counts it.
    pub why: &'static str,
}

impl Skipped {
    /// Whether nothing was passed over.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A file, or a line in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Match {
    /// Relative to the root.
    pub path: String,
    /// As that of an [`Entry`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Which line, from 1, where a text was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What the line says, cut where it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Makes a directory, and those above it if need be. One that is there is left as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Make {
    /// Which directory.
    pub path: String,
}

/// Gives a file or directory another name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Which one.
    pub from: String,
    /// Its new path.
    pub to: String,
    /// A file that is there is replaced.
    #[serde(default)]
    pub replace: bool,
}

/// Removes a file, a link or a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// Which one.
    pub path: String,
    /// A directory goes with what is in it.
    #[serde(default)]
    pub recursive: bool,
}

/// Tells which directory is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct GetRoot;

/// The directory that a files actor reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Root {
    /// Absolute. Paths are relative to it, or begin with it.
    pub path: String,
    /// Nothing is written.
    pub read_only: bool,
}

/// Tells what was done, and how much of the quota is used: of what may be added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct GetUsage;

/// What a files actor did, and what it added below its root, over all incarnations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes that were added.
    pub octets: u64,
    /// How many may be.
    pub octets_limit: u64,
    /// Entries that were added.
    pub entries: u64,
    /// How many may be.
    pub entries_limit: u64,
    /// What was asked, by verb.
    pub verbs: BTreeMap<&'static str, VerbUsage>,
}

/// How often a verb was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerbUsage {
    /// Calls.
    pub calls: u64,
    /// Those that a rule forbade.
    pub refused: u64,
    /// Those that failed otherwise.
    pub failed: u64,
    /// Octets of files that were read or written.
    pub octets: u64,
}

/// What becomes of a call.
type Outcome<T> = Result<T, FileError>;

macro_rules! replies {
    ($($request:ty => $reply:ty),+ $(,)?) => {
        $(impl Request for $request {
            type Reply = $reply;
        })+
    };
}

replies! {
    Read => Outcome<Bytes>,
    ReadLines => Outcome<Bytes>,
    ReadMany => Outcome<Vec<Outcome<Bytes>>>,
    GetMedia => Outcome<Media>,
    Write => Outcome<()>,
    Append => Outcome<()>,
    Edit => Outcome<Edited>,
    List => Outcome<Listing>,
    Stat => Outcome<Entry>,
    Tree => Outcome<TreeEntry>,
    Search => Outcome<Found>,
    Make => Outcome<()>,
    Rename => Outcome<()>,
    Delete => Outcome<()>,
    GetRoot => Outcome<Root>,
    GetUsage => Usage,
}
