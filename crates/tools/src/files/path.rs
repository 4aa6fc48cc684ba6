//! Paths as given by callers, and their form relative to the root.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use super::error::{FileError, FileRule};
use super::spec::FileLimits;

/// A parsed path as a caller wrote it: text, or a `file:` URI, which can also name paths that are
/// not UTF-8.
#[derive(Debug)]
pub(super) struct GivenPath<'a> {
    text: &'a str,
    path: Cow<'a, Path>,
}

impl<'a> GivenPath<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let path = match path_of_file_uri(text) {
            Some(path) => Cow::Owned(path),
            None => Cow::Borrowed(Path::new(text)),
        };
        Self { text, path }
    }
}

/// The prefix of a URI for a file on this machine (RFC 8089). As a plain path it would lead into a
/// directory named `file:`, which is still reachable as `./file:/`.
const FILE_URI: &str = "file:///";

/// Returns the absolute path of a `file:///` URI, or `None` if the text is not such a URI.
///
/// Bytes that are not UTF-8 are percent-encoded in a URI, so every file has one.
///
/// ```
/// use std::path::Path;
///
/// let path = strowger_tools::files::path_of_file_uri("file:///srv/a%20b");
/// assert_eq!(path.as_deref(), Some(Path::new("/srv/a b")));
/// assert_eq!(strowger_tools::files::path_of_file_uri("srv/a%20b"), None);
/// ```
#[must_use]
pub fn path_of_file_uri(text: &str) -> Option<PathBuf> {
    let encoded = text.strip_prefix(FILE_URI)?;
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let (mut bytes, mut rest) = (vec![b'/'], encoded.as_bytes());
    while let [first, after @ ..] = rest {
        match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).ok()?);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Some(OsString::from_vec(bytes).into())
}

/// Returns the `file:///` URI of an absolute path.
///
/// ```
/// let uri = strowger_tools::files::file_uri("/srv/a b".as_ref());
/// assert_eq!(uri, "file:///srv/a%20b");
/// ```
#[must_use]
pub fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns a path as text that fits on one line: unchanged, or as its `file:` URI if it is not
/// UTF-8 or has characters that could be mistaken for more than a name. Both forms are valid paths
/// in requests.
///
/// ```
/// use strowger_tools::files::shown_path;
///
/// assert_eq!(shown_path("/srv/a b".as_ref()), "/srv/a b");
/// assert_eq!(shown_path("/srv/a\nb".as_ref()), "file:///srv/a%0Ab");
/// ```
#[must_use]
pub fn shown_path(path: &Path) -> String {
    match path.to_str() {
        Some(text) if is_plain(text) => text.to_owned(),
        _ => file_uri(path),
    }
}

/// Returns `true` if a text has no characters that break the line or change the direction of text
/// when it is displayed.
pub(super) fn is_plain(text: &str) -> bool {
    let is_odd = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
            || matches!(
                letter,
                '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}'
            )
    };
    !text.contains(is_odd)
}

/// A path relative to the root, with its original text. It may still lead anywhere: the kernel
/// decides whether it stays below the root when it is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootedPath<'a> {
    /// The path as the caller gave it.
    pub(super) given: &'a str,
    /// The path relative to the root, which is `.`.
    pub(super) path: &'a Path,
}

impl<'a> RootedPath<'a> {
    /// Validates a path; `root` is the absolute path of the root.
    pub(super) fn new(
        given: &'a GivenPath<'_>,
        root: &Path,
        limits: &FileLimits,
    ) -> Result<Self, FileError> {
        let text = given.text;
        let refused = |rule| {
            let path = shortened(text);
            Err(FileError::Refused { path, rule })
        };
        let mut path: &Path = &given.path;
        let bytes = path.as_os_str().as_bytes();
        let over_limit = |rule, limit: usize, wanted: usize| {
            Err(FileError::Limit {
                path: shortened(text),
                rule,
                limit: limit as u64,
                used: 0,
                wanted: wanted as u64,
            })
        };
        if bytes.len() > limits.path {
            return over_limit(FileRule::Name, limits.path, bytes.len());
        }
        if bytes.contains(&0) {
            return refused(FileRule::Name);
        }
        if path.is_absolute() {
            // Whole components are compared: `/data-secret` is not below `/data`.
            let Ok(below) = path.strip_prefix(root) else {
                return refused(FileRule::Absolute);
            };
            path = below;
        }
        if path.as_os_str().is_empty() {
            path = Path::new(".");
        }
        let levels = path.components().count();
        if levels > limits.depth {
            return over_limit(FileRule::Depth, limits.depth, levels);
        }
        Ok(Self { given: text, path })
    }

    /// Returns `true` if the path is the root itself.
    pub(super) fn is_root(&self) -> bool {
        self.path
            .components()
            .all(|part| matches!(part, Component::CurDir))
    }

    /// Splits the path into its directory and its name, for operations that create, remove or
    /// replace an entry.
    pub(super) fn split(&self) -> Result<(&'a Path, &'a OsStr), FileError> {
        let rule = if self.is_root() {
            FileRule::Root
        } else {
            FileRule::Name
        };
        let Some(name) = self.path.file_name() else {
            return Err(self.refused(rule));
        };
        let parent = self.path.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        Ok((parent.unwrap_or_else(|| Path::new(".")), name))
    }

    /// Builds the error for a violation of a rule by this path.
    pub(super) fn refused(&self, rule: FileRule) -> FileError {
        FileError::Refused {
            path: self.given.to_owned(),
            rule,
        }
    }

    /// Builds the error for a violation of a limit by this path.
    pub(super) fn over_limit(
        &self,
        rule: FileRule,
        limit: u64,
        used: u64,
        wanted: u64,
    ) -> FileError {
        FileError::Limit {
            path: self.given.to_owned(),
            rule,
            limit,
            used,
            wanted,
        }
    }

    /// Returns a function that converts errors of the system for this path.
    pub(super) fn failed(&self) -> impl Fn(std::io::Error) -> FileError + use<'a> {
        let given = self.given;
        move |error| FileError::from_io(&error, given)
    }

    /// Like [`failed`](Self::failed), for errors of `rustix`.
    pub(super) fn failed_at(&self) -> impl Fn(rustix::io::Errno) -> FileError + use<'a> {
        let given = self.given;
        move |error| FileError::from_io(&error.into(), given)
    }
}

/// Shortens a long path for an error message.
fn shortened(given: &str) -> String {
    let cut = given[..given.floor_char_boundary(MAX_SHOWN_PATH)].replace('\0', "\\0");
    if given.len() > MAX_SHOWN_PATH {
        cut + "..."
    } else {
        cut
    }
}

/// Maximum number of bytes of a refused path to repeat.
const MAX_SHOWN_PATH: usize = 200;
