//! A path as a caller gave it, made relative to the root.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use super::error::{FileError, Rule};
use super::spec::FileLimits;

/// A path as a caller wrote it, read: text, or a `file:` URI, which can name what is not UTF-8.
#[derive(Debug)]
pub(super) struct Said<'a> {
    text: &'a str,
    path: Cow<'a, Path>,
}

impl<'a> Said<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let path = match path_of_file_uri(text) {
            Some(path) => Cow::Owned(path),
            None => Cow::Borrowed(Path::new(text)),
        };
        Self { text, path }
    }
}

/// The beginning of a URI that names a file of this machine (RFC 8089). As a path it would lead
/// below a directory of the name `file:`, which `./file:/` still reaches.
const FILE_URI: &str = "file:///";

/// The absolute path that a `file:///` URI names; `None` if the text is no such URI.
///
/// Octets that are not UTF-8 are percent-encoded in a URI, so every file has one.
///
/// ```
/// use std::path::Path;
///
/// let path = strowger_tools::path_of_file_uri("file:///srv/a%20b");
/// assert_eq!(path.as_deref(), Some(Path::new("/srv/a b")));
/// assert_eq!(strowger_tools::path_of_file_uri("srv/a%20b"), None);
/// ```
#[must_use]
pub fn path_of_file_uri(text: &str) -> Option<PathBuf> {
    let encoded = text.strip_prefix(FILE_URI)?;
    let digit = |octet: Option<&u8>| char::from(*octet?).to_digit(16);
    let (mut octets, mut rest) = (vec![b'/'], encoded.as_bytes());
    while let [first, after @ ..] = rest {
        match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                octets.push(u8::try_from(high * 16 + low).ok()?);
                rest = &after[2..];
            }
            _ => {
                octets.push(*first);
                rest = after;
            }
        }
    }
    Some(OsString::from_vec(octets).into())
}

/// The `file:///` URI of an absolute path.
///
/// ```
/// let uri = strowger_tools::file_uri("/srv/a b".as_ref());
/// assert_eq!(uri, "file:///srv/a%20b");
/// ```
#[must_use]
pub fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for octet in path.as_os_str().as_bytes() {
        match octet {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*octet));
            }
            _ => uri.push_str(&format!("%{octet:02X}")),
        }
    }
    uri
}

/// A path relative to the root, and how its caller wrote it. It may still lead anywhere: whether
/// it stays below the root is decided where it is opened, by the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// As the caller gave it.
    pub(super) said: &'a str,
    /// Relative to the root, which is `.`.
    pub(super) path: &'a Path,
}

impl<'a> Place<'a> {
    /// Checks a path; `root` is the absolute name of the root.
    pub(super) fn new(
        given: &'a Said<'_>,
        root: &Path,
        limits: &FileLimits,
    ) -> Result<Self, FileError> {
        let said = given.text;
        let refused = |rule| {
            let path = shortened(said);
            Err(FileError::Refused { path, rule })
        };
        let mut path: &Path = &given.path;
        let octets = path.as_os_str().as_bytes();
        if octets.len() > limits.path || octets.contains(&0) {
            return refused(Rule::Name);
        }
        if path.is_absolute() {
            // Whole components are compared: `/data-secret` is not below `/data`.
            let Ok(below) = path.strip_prefix(root) else {
                return refused(Rule::Absolute);
            };
            path = below;
        }
        if path.as_os_str().is_empty() {
            path = Path::new(".");
        }
        if path.components().count() > limits.depth {
            return refused(Rule::Depth);
        }
        Ok(Self { said, path })
    }

    /// Whether it names the root itself.
    pub(super) fn is_root(&self) -> bool {
        self.path
            .components()
            .all(|part| matches!(part, Component::CurDir))
    }

    /// The directory and the name in it, for what makes, removes or replaces an entry.
    pub(super) fn split(&self) -> Result<(&'a Path, &'a OsStr), FileError> {
        let rule = if self.is_root() {
            Rule::Root
        } else {
            Rule::Name
        };
        let Some(name) = self.path.file_name() else {
            return Err(self.refused(rule));
        };
        let parent = self.path.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        Ok((parent.unwrap_or_else(|| Path::new(".")), name))
    }

    /// The refusal of this path by a rule.
    pub(super) fn refused(&self, rule: Rule) -> FileError {
        FileError::Refused {
            path: self.said.to_owned(),
            rule,
        }
    }

    /// The refusal of this path by a limit of so much, of which so much is used.
    pub(super) fn beyond(&self, rule: Rule, most: u64, used: u64, wanted: u64) -> FileError {
        FileError::Limit {
            path: self.said.to_owned(),
            rule,
            most,
            used,
            wanted,
        }
    }

    /// What the system said of this path.
    pub(super) fn failed(&self) -> impl Fn(std::io::Error) -> FileError + use<'a> {
        let said = self.said;
        move |error| FileError::of(&error, said)
    }

    /// The same for an error of `rustix`.
    pub(super) fn failed_at(&self) -> impl Fn(rustix::io::Errno) -> FileError + use<'a> {
        let said = self.said;
        move |error| FileError::of(&error.into(), said)
    }
}

/// A path that is too long is not repeated whole.
fn shortened(said: &str) -> String {
    let cut = said[..said.floor_char_boundary(SHOWN)].replace('\0', "\\0");
    if said.len() > SHOWN { cut + "..." } else { cut }
}

/// Octets of a refused path that are repeated.
const SHOWN: usize = 200;
