//! Paths of granted directories, resolved before they are compared.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::Manifest;

impl Manifest {
    /// Resolves the path of every granted directory, so that the path compared with other grants is
    /// the path that is opened.
    pub(crate) fn resolved(mut self) -> Self {
        self.grant.resolve();
        self
    }
}

/// Returns the absolute path of a directory, without links and without `..`. The part of the path
/// that exists is resolved by the file system, and the rest lexically.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    let Ok(whole) = std::path::absolute(path) else {
        return path.to_owned();
    };
    let mut place = PathBuf::new();
    for component in whole.components() {
        match component {
            Component::ParentDir => drop(place.pop()),
            other => {
                place.push(other);
                if let Ok(found) = fs::canonicalize(&place) {
                    place = found;
                }
            }
        }
    }
    place
}

/// Returns `true` if everything at or below `path` is at or below `folder`. A path that was not
/// resolved is only below itself.
pub(super) fn is_below(path: &Path, folder: &Path) -> bool {
    let plain = |path: &Path| {
        let mut components = path.components();
        path.is_absolute() && components.all(|one| one != Component::ParentDir)
    };
    path == folder || (plain(path) && plain(folder) && path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unresolved_paths_are_below_nothing() {
        let below = |path: &str, folder: &str| is_below(Path::new(path), Path::new(folder));
        assert!(below("/a/b", "/a") && below("/a", "/a") && below("/a", "/"));
        assert!(!below("/a", "/a/b") && !below("/ab", "/a"));
        assert!(!below("/a/../b", "/a"), "it leads out");
        assert!(!below("/", "") && !below("/a", ""), "an unknown directory");
        assert!(below("", "") && below("a", "a"), "the same is no more");
        assert!(!below("a/b", "a"));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_parents_resolve_as_the_system_does() {
        let folder = tempfile::tempdir().expect("a folder of our own");
        let real = fs::canonicalize(folder.path()).expect("it is there");
        fs::create_dir_all(real.join("in/deep")).expect("it is ours");
        std::os::unix::fs::symlink("in/deep", real.join("link")).expect("it is ours");
        let resolved = |path: &str| resolve(&real.join(path));
        assert_eq!(resolved("link"), real.join("in/deep"));
        assert_eq!(resolved("link/.."), real.join("in"), "not its own parent");
        assert_eq!(resolved("link/../new/x/.."), real.join("in/new"));
        assert_eq!(resolved("./none/../in"), real.join("in"));
        assert_eq!(resolve(Path::new("/../..")), Path::new("/"));
        assert_eq!(resolve(Path::new("")), Path::new(""));
    }
}
