//! Messages of the files actor and their replies.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strowger::Request;

use super::error::FileError;

/// Reads bytes of a file: all, or `length` bytes from `offset` on. The answer is shorter at the end
/// of the file.
///
/// A range of more than [`FileLimits::file`](super::FileLimits::file) bytes is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// The path of the file.
    pub path: String,
    /// Offset of the first byte, from 0.
    #[serde(default)]
    pub offset: u64,
    /// Maximum number of bytes; all if absent.
    #[serde(default)]
    pub length: Option<u64>,
}

/// Reads lines of a text file of any size: all, the first, the last, or a range. The answer has the
/// bytes of the lines with their line ends.
///
/// Lines of more than [`FileLimits::file`](super::FileLimits::file) bytes together are refused, as
/// are `tail` with `from` or `head`, and a `from` of 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadLinesRequest {
    /// The path of the file.
    pub path: String,
    /// Number of the first line to return, from 1.
    #[serde(default)]
    pub from: Option<u64>,
    /// Maximum number of lines, from `from` or from the beginning.
    #[serde(default)]
    pub head: Option<u64>,
    /// Number of lines at the end to return; excludes `from` and `head`.
    #[serde(default)]
    pub tail: Option<u64>,
    /// Number of bytes of these lines to skip.
    #[serde(default)]
    pub offset: u64,
    /// Maximum number of bytes to return; without it, more than the limit is an error.
    #[serde(default)]
    pub length: Option<u64>,
}

/// Reads several files. Each succeeds or fails on its own. Together they have at most
/// [`FileLimits::file`](super::FileLimits::file) bytes; a file beyond that is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadManyRequest {
    /// The paths of the files, in the order of the replies.
    pub paths: Vec<String>,
}

/// Reads a file together with its media type, which is guessed from its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadMediaRequest {
    /// The path of the file.
    pub path: String,
}

/// A file and its media type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaFile {
    /// The media type, such as `image/png`; `application/octet-stream` if it is unknown.
    pub mime: String,
    /// Contents of the file.
    pub bytes: Bytes,
}

/// The way to replace a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WriteMode {
    /// Overwrites the file in place. A concurrent reader may see a partial write.
    #[default]
    InPlace,
    /// Replaces the file with a new one: a concurrent reader sees either the old or the new
    /// contents.
    Atomic,
    /// Like `Atomic`, and synced to the disk before the reply.
    Durable,
}

/// Writes a whole file, which is created if necessary. Its directory must exist.
///
/// Contents of more than [`FileLimits::file`](super::FileLimits::file) bytes, and additions beyond
/// the quota of bytes and entries, are refused; nothing is written then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteRequest {
    /// The path of the file.
    pub path: String,
    /// The new contents.
    pub bytes: Bytes,
    /// The way to replace an existing file.
    pub mode: WriteMode,
}

impl WriteRequest {
    /// Creates a request that writes in place.
    pub fn new(path: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self {
            path: path.into(),
            bytes: bytes.into(),
            mode: WriteMode::InPlace,
        }
    }

    /// Sets the way to replace the file.
    #[must_use]
    pub fn with_mode(mut self, mode: WriteMode) -> Self {
        self.mode = mode;
        self
    }
}

impl ReadRequest {
    /// Creates a request for the whole file.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

/// Appends to a file of any size, which is created if necessary. The limits are those of a
/// [`WriteRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppendRequest {
    /// The path of the file.
    pub path: String,
    /// The bytes to append.
    pub bytes: Bytes,
}

/// Begins to replace a file with one that is written in pieces: creates an empty temporary file,
/// which counts against the quota. [`AppendRequest`]s fill it, a [`CommitWriteRequest`] puts it in
/// the place of the file, and a [`DeleteRequest`] discards it. A later write removes one that is
/// left behind, an hour after its last piece.
///
/// Fails as a [`WriteRequest`] for the same path with [`WriteMode::Atomic`] would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginWriteRequest {
    /// The path of the file.
    pub path: String,
}

/// The temporary file of a [`BeginWriteRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilePart {
    /// The path or URI of the temporary file.
    pub part: String,
}

/// Replaces a file, or creates it, with the temporary file of a [`BeginWriteRequest`], by the rules
/// of [`WriteMode::Atomic`]: mode, owner and attributes of the file are kept, and a link is
/// followed.
///
/// Fails with [`FileError::InvalidArguments`] if the temporary file does not have `length` bytes.
/// The temporary file stays if the request fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitWriteRequest {
    /// The temporary file, as in [`FilePart`].
    pub part: String,
    /// The path of the file.
    pub path: String,
    /// Number of bytes that were appended.
    pub length: u64,
    /// `true` to sync the file to the disk before the reply, as with [`WriteMode::Durable`].
    #[serde(default)]
    pub durable: bool,
}

/// Edits text in a UTF-8 file. Either all changes are applied, in order, or none; the file is
/// replaced atomically.
///
/// Fails with [`FileError::NotText`] or [`FileError::NotOnce`], or is refused if the file exceeds
/// [`FileLimits::file`](super::FileLimits::file) bytes before or after the edit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditRequest {
    /// The path of the file.
    pub path: String,
    /// The changes, in order.
    pub changes: Vec<TextChange>,
    /// `true` to return the diff without changing the file.
    #[serde(default)]
    pub dry_run: bool,
}

/// A replacement of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextChange {
    /// The text to replace. It must occur exactly once, unless `all` is set.
    pub old: String,
    /// The new text.
    pub new: String,
    /// `true` to replace every occurrence; there must be at least one.
    #[serde(default)]
    pub all: bool,
}

/// The result of an [`EditRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EditOutcome {
    /// Number of replaced occurrences.
    #[serde(rename = "places")]
    pub replacements: usize,
    /// The changes as a unified diff.
    pub diff: String,
}

/// Lists a directory, one page at a time. A directory with more than
/// [`FileLimits::scan`](super::FileLimits::scan) entries is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListRequest {
    /// The path of the directory; the root if empty.
    #[serde(default)]
    pub path: String,
    /// Last name of the previous page, or its URI: the page starts after it. Requires the order by
    /// name.
    #[serde(default)]
    pub after: Option<String>,
    /// Maximum number of entries, up to [`FileLimits::page`](super::FileLimits::page), which is the
    /// default.
    #[serde(default, rename = "most")]
    pub max_entries: Option<usize>,
    /// `true` to include sizes and times, which costs a system call per entry.
    #[serde(default)]
    pub details: bool,
    /// The order of the entries.
    #[serde(default)]
    pub order: ListOrder,
}

/// The order of a [`ListRequest`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListOrder {
    /// By name; further pages are available by `after`.
    #[default]
    Name,
    /// Largest first; only one page is available.
    Size,
}

/// A page of a directory listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The entries, in the requested order.
    pub entries: Vec<EntryInfo>,
    /// `true` if more entries follow the last one.
    pub more: bool,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory, which may have entries.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device, which is listed but cannot be opened.
    Special,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryInfo {
    /// The name. If it is not UTF-8, it contains `�` and `uri` is set.
    pub name: String,
    /// The `file:` URI of the entry, if its name is not UTF-8 or has control characters. Every path
    /// may be given as a URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// Size in bytes, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Time of the last modification in milliseconds since 1970, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_ms: Option<u64>,
    /// Number of hard links, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
}

/// Describes an entry; links are followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatRequest {
    /// The path of the entry; the root if empty.
    #[serde(default)]
    pub path: String,
}

/// Lists a directory recursively. Links are not followed. A limit cuts the tree instead of failing
/// the request; see [`TreeEntry::cuts`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeRequest {
    /// The path of the directory; the root if empty.
    #[serde(default)]
    pub path: String,
    /// Number of levels, up to [`FileLimits::depth`](super::FileLimits::depth), which is the
    /// default.
    #[serde(default)]
    pub depth: Option<usize>,
    /// Patterns to exclude, as in a [`SearchRequest`].
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// A directory or file in a [`TreeRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeEntry {
    /// The name; for the top entry, the path as requested.
    pub name: String,
    /// The URI, as in [`EntryInfo`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// For the top entry, the limits at which the tree was cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<TreeCut>,
    /// The contents of a directory, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Self>,
    /// `true` if the directory contains more entries than the reply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The reason for `cut`: the limit `depth`, `page` or `scan`, or `unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_by: Option<&'static str>,
}

/// A limit at which a [`TreeRequest`] was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeCut {
    /// The name of the limit: `depth`, `page` or `scan`.
    pub by: &'static str,
    /// The value of the limit.
    pub limit: u64,
    /// Advice on how to see more.
    pub remedy: String,
}

/// Finds files and directories by name, and lines in files by pattern, in files of any size.
///
/// Links are found by name, but not followed. A binary file is searched up to its first NUL and
/// counted in [`SkipSummary::binary`]. A limit ends the search early instead of failing the
/// request; see [`SearchResults::cut`]. An invalid pattern fails with
/// [`FileError::InvalidPattern`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// The path of the directory or file to search; the root if empty.
    #[serde(default)]
    pub path: String,
    /// A glob for the paths relative to that directory, such as `**/*.rs`; all files if absent. If
    /// a path matches with `[`, `]`, `{` and `}` taken literally, they are.
    #[serde(default)]
    pub names: Option<String>,
    /// Files and directories to exclude, with everything below them: at most 64 globs as in
    /// `names`, or names without a slash, which match at every level.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// A regular expression for lines, in the syntax of the `regex` crate; if absent, files,
    /// directories and links are found by name alone.
    #[serde(default)]
    pub text: Option<String>,
    /// Maximum number of matches, up to [`FileLimits::matches`](super::FileLimits::matches), which
    /// is the default.
    #[serde(default, rename = "most")]
    pub max_matches: Option<usize>,
}

/// The result of a [`SearchRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SearchResults {
    /// The matches, by path, then by line.
    pub matches: Vec<SearchMatch>,
    /// Number of files searched completely, or, in a search by name, of files with a matching name.
    pub files: u64,
    /// Files and directories that were not fully searched.
    #[serde(skip_serializing_if = "SkipSummary::is_none")]
    pub skipped: SkipSummary,
    /// The limit that ended the search early: `matches`, `scan` or `searched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The value of that limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Advice on how to see more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Files and directories that a [`SearchRequest`] did not search fully, although the request did
/// not exclude them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkipSummary {
    /// Binary files, which were searched up to their first NUL.
    pub binary: u64,
    /// Files with lines longer than 1 MiB. Such lines are searched in pieces, and a match across
    /// pieces may be missed.
    pub long_lines: u64,
    /// Directories that are deeper than [`depth`](super::FileLimits::depth).
    pub deep: u64,
    /// Files and directories that could not be opened or read.
    pub unreadable: u64,
    /// Links, which are not followed.
    pub links: u64,
    /// FIFOs, sockets and devices.
    pub special: u64,
    /// The first 20 files and directories that were not fully searched.
    pub paths: Vec<SkippedPath>,
}

/// A file or directory that was not fully searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedPath {
    /// The path, relative to the root.
    pub path: String,
    /// The URI, as in [`EntryInfo`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The field of [`SkipSummary`] that counts it.
    pub why: &'static str,
}

impl SkipSummary {
    /// Returns `true` if nothing was skipped.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A matching entry, or a matching line in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SearchMatch {
    /// The path, relative to the root.
    pub path: String,
    /// The URI, as in [`EntryInfo`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The kind of the entry, in a search by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// Line number, from 1, in a search for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The text of the line, cut to 300 bytes around the match if it is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Creates a directory and its missing parents. An existing directory is left unchanged. Fails with
/// [`FileError::NotDirectory`] if a file is in the way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateDirectoryRequest {
    /// The path of the directory.
    pub path: String,
}

/// Renames or moves a file or directory below the root. Fails with [`FileError::Exists`] if the new
/// path exists and `replace` is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenameRequest {
    /// The current path.
    pub from: String,
    /// The new path.
    pub to: String,
    /// `true` to replace an existing entry at the new path.
    #[serde(default)]
    pub replace: bool,
}

/// Removes a file, a link or a directory. Fails with [`FileError::NotEmpty`] if a directory has
/// contents and `recursive` is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteRequest {
    /// The path of the entry.
    pub path: String,
    /// `true` to remove a directory together with its contents.
    #[serde(default)]
    pub recursive: bool,
}

/// Returns the root directory of the actor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct RootRequest;

/// The root directory of a files actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RootInfo {
    /// The absolute path. Paths in requests are relative to it, or begin with it.
    pub path: String,
    /// The URI, as in [`EntryInfo`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// `true` if nothing may be written.
    pub read_only: bool,
    /// Maximum number of bytes that one call reads or writes.
    pub file: u64,
}

/// Returns the stats of the actor and the use of its quota for additions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct FilesUsageRequest;

/// The stats of a files actor and its additions below the root, over all incarnations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilesUsage {
    /// Number of bytes added.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// Maximum number of bytes to add.
    #[serde(rename = "octets_limit")]
    pub bytes_limit: u64,
    /// Number of entries added.
    pub entries: u64,
    /// Maximum number of entries to add.
    pub entries_limit: u64,
    /// Number of directory entries scanned by lists, trees and searches, by removing and moving
    /// directories, and by the removal of abandoned temporary files. A read or a write scans none.
    #[serde(rename = "looked")]
    pub scanned: u64,
    /// Calls by verb.
    pub verbs: BTreeMap<&'static str, VerbUsage>,
}

/// Number of calls of one verb. All tools report their calls in this form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerbUsage {
    /// Number of calls, including refused and failed ones.
    pub calls: u64,
    /// Calls refused by a rule or a limit.
    pub refused: u64,
    /// Calls that failed for other reasons.
    pub failed: u64,
    /// Bytes of files that were read or written.
    #[serde(rename = "octets")]
    pub bytes: u64,
}

/// The outcome of a call.
type FileResult<T> = Result<T, FileError>;

macro_rules! replies {
    ($($request:ty => $reply:ty),+ $(,)?) => {
        $(impl Request for $request {
            type Reply = $reply;
        })+
    };
}

replies! {
    ReadRequest => FileResult<Bytes>,
    ReadLinesRequest => FileResult<Bytes>,
    ReadManyRequest => FileResult<Vec<FileResult<Bytes>>>,
    ReadMediaRequest => FileResult<MediaFile>,
    WriteRequest => FileResult<()>,
    AppendRequest => FileResult<()>,
    BeginWriteRequest => FileResult<FilePart>,
    CommitWriteRequest => FileResult<()>,
    EditRequest => FileResult<EditOutcome>,
    ListRequest => FileResult<Listing>,
    StatRequest => FileResult<EntryInfo>,
    TreeRequest => FileResult<TreeEntry>,
    SearchRequest => FileResult<SearchResults>,
    CreateDirectoryRequest => FileResult<()>,
    RenameRequest => FileResult<()>,
    DeleteRequest => FileResult<()>,
    RootRequest => FileResult<RootInfo>,
    FilesUsageRequest => FilesUsage,
}
