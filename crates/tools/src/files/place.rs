//! A path as a caller gave it, made relative to the root.

use std::ffi::OsStr;
use std::path::{Component, Path};

use super::error::{FileError, Rule};
use super::spec::FileLimits;

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
    pub(super) fn new(said: &'a str, root: &Path, limits: &FileLimits) -> Result<Self, FileError> {
        let refused = |rule| {
            let path = shortened(said);
            Err(FileError::Refused { path, rule })
        };
        if said.len() > limits.path || said.contains('\0') {
            return refused(Rule::Name);
        }
        let mut path = Path::new(said);
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
