//! Directories: a page of one, or all that is below one.

use std::collections::BinaryHeap;

use cap_std::fs::{Dir, ReadDir};

use super::disk::{Disk, Stop, kind};
use super::error::{FileError, Rule};
use super::message::{Entry, EntryKind, List, Listing, Tree, TreeEntry};
use super::read::detailed;

/// A list that is being made: as many entries at a time as its caller likes.
#[derive(Debug)]
pub(super) struct Lister {
    said: String,
    dir: Dir,
    entries: ReadDir,
    after: Option<String>,
    most: usize,
    details: bool,
    /// Entries that may still be looked at.
    left: usize,
    /// The smallest names so far, the largest of them on top: one more than a page.
    kept: BinaryHeap<(String, EntryKind)>,
}

impl Disk {
    /// Begins a list.
    pub(super) fn list(&self, list: &List) -> Result<Lister, FileError> {
        let place = self.place(&list.path)?;
        let dir = self.root.open_dir(place.path).map_err(place.failed())?;
        let entries = dir.entries().map_err(place.failed())?;
        Ok(Lister {
            said: list.path.clone(),
            dir,
            entries,
            after: list.after.clone(),
            most: list.most.unwrap_or(usize::MAX).min(self.limits.page),
            details: list.details,
            left: self.limits.scan,
            kept: BinaryHeap::new(),
        })
    }

    /// Lists a directory with what is below it.
    pub(super) fn tree(&self, tree: &Tree, stop: Stop<'_>) -> Result<TreeEntry, FileError> {
        let place = self.place(&tree.path)?;
        let dir = self.root.open_dir(place.path).map_err(place.failed())?;
        let mut climb = Climb {
            left: self.limits.page,
            scan: self.limits.scan,
            said: &tree.path,
            stop,
        };
        let depth = tree.depth.unwrap_or(usize::MAX).min(self.limits.depth);
        let mut top = TreeEntry {
            name: if tree.path.is_empty() {
                "."
            } else {
                &tree.path
            }
            .to_owned(),
            kind: EntryKind::Directory,
            entries: Vec::new(),
            cut: false,
        };
        climb.fill(&mut top, &dir, depth)?;
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
                return Err(FileError::Refused {
                    path: self.said.clone(),
                    rule: Rule::Scan,
                });
            }
            self.left -= 1;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if self.after.as_deref().is_some_and(|after| *name <= *after) {
                continue;
            }
            // One more than a page says that there are more.
            if self.kept.len() > self.most {
                if self.kept.peek().is_some_and(|(last, _)| **last <= *name) {
                    continue;
                }
                self.kept.pop();
            }
            let Ok(file_type) = entry.file_type() else {
                continue; // Somebody else removed it meanwhile.
            };
            self.kept.push((name.into_owned(), kind(file_type)));
        }
        Ok(false)
    }

    /// The page, when all entries were seen.
    pub(super) fn finish(self) -> Listing {
        let mut kept = self.kept.into_sorted_vec();
        let more = kept.len() > self.most;
        kept.truncate(self.most);
        let entries = kept.into_iter().map(|(name, kind)| {
            let bare = |name| Entry {
                name,
                kind,
                size: None,
                modified_ms: None,
                links: None,
            };
            if !self.details {
                return bare(name);
            }
            match self.dir.symlink_metadata(&name) {
                Ok(metadata) => detailed(name, &metadata),
                Err(_) => bare(name),
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
    stop: Stop<'a>,
}

impl Climb<'_> {
    /// Enters what is in a directory, and `depth` levels below it.
    fn fill(&mut self, parent: &mut TreeEntry, dir: &Dir, depth: usize) -> Result<(), FileError> {
        if depth == 0 {
            parent.cut = true;
            return Ok(());
        }
        let failed = |error| FileError::of(&error, self.said);
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
            let Ok(entry) = entry else { continue };
            let Ok(file_type) = entry.file_type() else {
                continue;
            };
            self.left -= 1;
            parent.entries.push(TreeEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                kind: kind(file_type),
                entries: Vec::new(),
                cut: false,
            });
        }
        parent.entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for entry in &mut parent.entries {
            if entry.kind != EntryKind::Directory {
                continue;
            }
            match dir.open_dir(&entry.name) {
                Ok(below) => self.fill(entry, &below, depth - 1)?,
                Err(_) => entry.cut = true,
            }
        }
        Ok(())
    }
}
