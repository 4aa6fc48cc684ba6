//! Directories: a page of one, or all that is below one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, ReadDir};
use globset::GlobSet;

use super::disk::{Disk, Stop, kind};
use super::error::{FileError, Rule};
use super::message::{Entry, EntryKind, List, ListOrder, Listing, Tree, TreeEntry};
use super::place::{Said, path_of_file_uri};
use super::read::{detailed, named};
use super::search::excluded;

/// A list that is being made: as many entries at a time as its caller likes.
#[derive(Debug)]
pub(super) struct Lister {
    said: String,
    /// The absolute path of the directory.
    path: PathBuf,
    dir: Dir,
    entries: ReadDir,
    after: Option<OsString>,
    most: usize,
    details: bool,
    by_size: bool,
    scan: usize,
    /// Entries that may still be looked at.
    left: usize,
    /// What comes first so far, the last of it on top: one more than a page.
    kept: BinaryHeap<Kept>,
}

/// An entry in the order of a page: by size, if that is what counts, then by name.
type Kept = (Reverse<u64>, OsString, EntryKind);

impl Disk {
    /// Begins a list.
    pub(super) fn list(&self, list: &List) -> Result<Lister, FileError> {
        let said = Said::new(&list.path);
        let place = self.place(&said)?;
        let by_size = list.order == ListOrder::Size;
        if by_size && list.after.is_some() {
            let what = "`after` goes with the order of names: by size there is one page";
            return Err(FileError::Arguments { what });
        }
        let after = list.after.as_deref().map(|after| {
            let path = path_of_file_uri(after);
            let name = path.as_deref().and_then(Path::file_name);
            name.map_or_else(|| OsString::from(after), ToOwned::to_owned)
        });
        let dir = self.root.open_dir(place.path).map_err(place.failed())?;
        let entries = dir.entries().map_err(place.failed())?;
        Ok(Lister {
            said: list.path.clone(),
            path: self.absolute(place),
            dir,
            entries,
            after,
            most: list.most.unwrap_or(usize::MAX).min(self.limits.page),
            details: list.details,
            by_size,
            scan: self.limits.scan,
            left: self.limits.scan,
            kept: BinaryHeap::new(),
        })
    }

    /// Lists a directory with what is below it.
    pub(super) fn tree(&self, tree: &Tree, stop: Stop<'_>) -> Result<TreeEntry, FileError> {
        let said = Said::new(&tree.path);
        let place = self.place(&said)?;
        let exclude = excluded(&tree.exclude)?;
        let dir = self.root.open_dir(place.path).map_err(place.failed())?;
        let mut climb = Climb {
            left: self.limits.page,
            scan: self.limits.scan,
            said: &tree.path,
            top: self.absolute(place),
            exclude,
            stop,
        };
        let depth = tree.depth.unwrap_or(usize::MAX).min(self.limits.depth);
        let name = match tree.path.as_str() {
            "" => ".",
            path => path,
        };
        let mut top = TreeEntry {
            name: name.to_owned(),
            uri: None,
            kind: EntryKind::Directory,
            entries: Vec::new(),
            cut: false,
        };
        climb.fill(&mut top, &dir, Path::new(""), depth)?;
        Ok(top)
    }
}

impl Lister {
    /// Looks at some more entries; true when all were seen.
    pub(super) fn step(&mut self, some: usize) -> Result<bool, FileError> {
        for _ in 0..some {
            let Some(entry) = self.entries.next() else {
                return Ok(true);
            };
            let entry = entry.map_err(|error| FileError::of(&error, &self.said))?;
            if self.left == 0 {
                return Err(FileError::Limit {
                    path: self.said.clone(),
                    rule: Rule::Scan,
                    most: self.scan as u64,
                    used: self.scan as u64,
                    wanted: 1,
                });
            }
            self.left -= 1;
            let name = entry.file_name();
            if self.after.as_ref().is_some_and(|after| name <= *after) {
                continue;
            }
            let Ok(file_type) = entry.file_type() else {
                continue; // Somebody else removed it meanwhile.
            };
            let size = match self.by_size {
                true => entry.metadata().map_or(0, |metadata| metadata.len()),
                false => 0,
            };
            let kept = (Reverse(size), name, kind(file_type));
            // One more than a page says that there are more.
            if self.kept.len() > self.most {
                if self.kept.peek().is_some_and(|last| *last <= kept) {
                    continue;
                }
                self.kept.pop();
            }
            self.kept.push(kept);
        }
        Ok(false)
    }

    /// The page, when all entries were seen.
    pub(super) fn finish(self) -> Listing {
        let mut kept = self.kept.into_sorted_vec();
        let more = kept.len() > self.most;
        kept.truncate(self.most);
        let entries = kept.into_iter().map(|(_, name, kind)| {
            let (text, uri) = named(&name, || self.path.join(&name));
            let metadata = match self.details {
                true => self.dir.symlink_metadata(&name).ok(),
                false => None,
            };
            match metadata {
                Some(metadata) => detailed(text, uri, &metadata),
                None => Entry {
                    name: text,
                    uri,
                    kind,
                    size: None,
                    modified_ms: None,
                    links: None,
                },
            }
        });
        Listing {
            entries: entries.collect(),
            more,
        }
    }
}

/// What a tree may still have and look at.
struct Climb<'a> {
    left: usize,
    scan: usize,
    said: &'a str,
    /// The absolute path of what it begins with.
    top: PathBuf,
    exclude: GlobSet,
    stop: Stop<'a>,
}

impl Climb<'_> {
    /// Enters what is in a directory, and `depth` levels below it; `path` is how one came there.
    fn fill(
        &mut self,
        parent: &mut TreeEntry,
        dir: &Dir,
        path: &Path,
        depth: usize,
    ) -> Result<(), FileError> {
        if depth == 0 {
            parent.cut = true;
            return Ok(());
        }
        let failed = |error| FileError::of(&error, self.said);
        let mut names = Vec::new();
        for entry in dir.entries().map_err(failed)? {
            if (self.stop)() {
                let path = self.said.to_owned();
                return Err(FileError::Cancelled { path });
            }
            if self.left == 0 || self.scan == 0 {
                parent.cut = true;
                break;
            }
            self.scan -= 1;
            let Ok(entry) = entry else {
                parent.cut = true;
                break;
            };
            let Ok(file_type) = entry.file_type() else {
                continue; // Somebody else removed it meanwhile.
            };
            let name = entry.file_name();
            if self.exclude.is_match(path.join(&name)) {
                continue;
            }
            self.left -= 1;
            names.push((name, kind(file_type)));
        }
        names.sort_unstable();
        for (name, kind) in names {
            let path = path.join(&name);
            let (text, uri) = named(&name, || self.top.join(&path));
            let mut entry = TreeEntry {
                name: text,
                uri,
                kind,
                entries: Vec::new(),
                cut: false,
            };
            if kind == EntryKind::Directory {
                match dir.open_dir(&name) {
                    Ok(below) => self.fill(&mut entry, &below, &path, depth - 1)?,
                    Err(_) => entry.cut = true,
                }
            }
            parent.entries.push(entry);
        }
        Ok(())
    }
}
