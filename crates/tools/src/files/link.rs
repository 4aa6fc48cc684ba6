//! Explanations of absolute links, which the kernel refuses wherever they lead.

use std::path::{Component, Path, PathBuf};

use super::disk::Disk;
use super::error::{FileError, FileRule};
use super::path::{GivenPath, shown_path};

impl Disk {
    /// Explains a refused path: if it passes an absolute link into the root, the error names the
    /// link and the path to use instead.
    pub(super) fn explained(&self, error: FileError) -> FileError {
        let FileError::Refused {
            path,
            rule: FileRule::Outside,
        } = &error
        else {
            return error;
        };
        let given = GivenPath::new(path);
        let Ok(rooted) = self.rooted(&given) else {
            return error;
        };
        match self.absolute_link(rooted.path) {
            Some((link, target)) => FileError::AbsoluteLink {
                path: path.clone(),
                link: shown_path(&link),
                instead: shown_path(&target),
            },
            None => error,
        }
    }

    /// Finds the first absolute link that a path passes. Returns it, and where the path leads below
    /// the root, if it leads there.
    fn absolute_link(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let mut left: Vec<_> = path.components().rev().map(owned).collect();
        let (mut at, mut links) = (PathBuf::new(), 0);
        while let Some(part) = left.pop() {
            if part == Path::new("..") {
                if !at.pop() {
                    return None;
                }
                continue;
            }
            at.push(&part);
            let Ok(target) = self.root.read_link_contents(&at) else {
                continue; // It is not a link.
            };
            if target.is_absolute() {
                let below = target.strip_prefix(&self.root_path).ok()?;
                let rest: PathBuf = left.iter().rev().collect();
                return Some((at, below.join(rest).components().collect()));
            }
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            at.pop();
            left.extend(target.components().rev().map(owned));
        }
        None
    }
}

/// Links that are followed in search of an absolute one.
const MOST_LINKS: usize = 40;

fn owned(part: Component<'_>) -> PathBuf {
    PathBuf::from(part.as_os_str())
}
