//! Directory listings: a page of one directory, or a whole tree.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, ReadDir};
use globset::GlobSet;

use super::disk::{Disk, StopCheck, entry_kind};
use super::error::{FileError, FileRule, raise_limit_advice};
use super::message::{
    EntryInfo, EntryKind, ListOrder, ListRequest, Listing, TreeCut, TreeEntry, TreeRequest,
};
use super::path::{GivenPath, path_of_file_uri};
use super::read::{detailed_entry, display_name};
use super::search::compile_excludes;

/// A listing in progress, which scans as many entries per step as its caller requests.
#[derive(Debug)]
pub(super) struct Lister {
    given: String,
    /// The absolute path of the directory.
    path: PathBuf,
    dir: Dir,
    entries: ReadDir,
    after: Option<OsString>,
    page_size: usize,
    details: bool,
    by_size: bool,
    scan: usize,
    /// Number of entries that may still be scanned.
    left: usize,
    scanned: Arc<AtomicU64>,
    /// The first entries in page order, with the last of them on top of the heap: one more than a
    /// page, to tell if there are more.
    page: BinaryHeap<PageEntry>,
}

/// An entry in page order: by size if requested, then by name.
type PageEntry = (Reverse<u64>, OsString, EntryKind);

impl Disk {
    /// Starts a listing.
    pub(super) fn list(&self, list: &ListRequest) -> Result<Lister, FileError> {
        let given = GivenPath::new(&list.path);
        let rooted = self.rooted(&given)?;
        let by_size = list.order == ListOrder::Size;
        if by_size && list.after.is_some() {
            let message = "`after` requires the order by name: the order by size has one page";
            return Err(FileError::InvalidArguments { message });
        }
        let after = list.after.as_deref().map(|after| {
            let path = path_of_file_uri(after);
            let name = path.as_deref().and_then(Path::file_name);
            name.map_or_else(|| OsString::from(after), ToOwned::to_owned)
        });
        let dir = self.root.open_dir(rooted.path).map_err(rooted.failed())?;
        let entries = dir.entries().map_err(rooted.failed())?;
        Ok(Lister {
            given: list.path.clone(),
            path: self.absolute(rooted),
            dir,
            entries,
            after,
            page_size: list.max_entries.unwrap_or(usize::MAX).min(self.limits.page),
            details: list.details,
            by_size,
            scan: self.limits.scan,
            left: self.limits.scan,
            scanned: Arc::clone(&self.scanned),
            page: BinaryHeap::new(),
        })
    }

    /// Lists a directory recursively.
    pub(super) fn tree(
        &self,
        tree: &TreeRequest,
        stop: StopCheck<'_>,
    ) -> Result<TreeEntry, FileError> {
        let given = GivenPath::new(&tree.path);
        let rooted = self.rooted(&given)?;
        let exclude = compile_excludes(&tree.exclude)?;
        let dir = self.root.open_dir(rooted.path).map_err(rooted.failed())?;
        let mut tree_walk = TreeWalk {
            left: self.limits.page,
            scan: self.limits.scan,
            scanned: &self.scanned,
            given: &tree.path,
            top: self.absolute(rooted),
            exclude,
            cuts: BTreeSet::new(),
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
            cuts: Vec::new(),
            entries: Vec::new(),
            cut: false,
            cut_by: None,
        };
        tree_walk.list_into(&mut top, &dir, Path::new(""), depth)?;
        let cuts = tree_walk.cuts.into_iter();
        top.cuts = cuts.map(|by| self.tree_cut(by, depth)).collect();
        Ok(top)
    }

    /// Describes the limit that cut a tree of `depth` levels, with a remedy.
    fn tree_cut(&self, by: &'static str, depth: usize) -> TreeCut {
        let limits = &self.limits;
        let limit = match by {
            "depth" => depth,
            "page" => limits.page,
            _ => limits.scan,
        };
        let remedy = match by {
            "depth" if depth < limits.depth => {
                "raise `depth`, or list a directory below".to_owned()
            }
            _ => format!(
                "list a directory below or fewer levels, exclude directories, or {}",
                raise_limit_advice(by)
            ),
        };
        TreeCut {
            by,
            limit: limit as u64,
            remedy,
        }
    }
}

impl Lister {
    /// Scans up to `some` more entries. Returns `true` once all were scanned.
    pub(super) fn step(&mut self, some: usize) -> Result<bool, FileError> {
        for _ in 0..some {
            let Some(entry) = self.entries.next() else {
                return Ok(true);
            };
            let entry = entry.map_err(|error| FileError::from_io(&error, &self.given))?;
            if self.left == 0 {
                return Err(FileError::Limit {
                    path: self.given.clone(),
                    rule: FileRule::Scan,
                    limit: self.scan as u64,
                    used: self.scan as u64,
                    wanted: 1,
                });
            }
            self.left -= 1;
            self.scanned.fetch_add(1, Ordering::Relaxed);
            let name = entry.file_name();
            if self.after.as_ref().is_some_and(|after| name <= *after) {
                continue;
            }
            let Ok(file_type) = entry.file_type() else {
                continue; // Another process removed it meanwhile.
            };
            let size = match self.by_size {
                true => entry.metadata().map_or(0, |metadata| metadata.len()),
                false => 0,
            };
            let listed = (Reverse(size), name, entry_kind(file_type));
            // One entry more than a page shows that more follow.
            if self.page.len() > self.page_size {
                if self.page.peek().is_some_and(|last| *last <= listed) {
                    continue;
                }
                self.page.pop();
            }
            self.page.push(listed);
        }
        Ok(false)
    }

    /// Returns the page, once all entries were seen.
    pub(super) fn finish(self) -> Listing {
        let mut page = self.page.into_sorted_vec();
        let more = page.len() > self.page_size;
        page.truncate(self.page_size);
        let entries = page.into_iter().map(|(_, name, kind)| {
            let (text, uri) = display_name(&name, || self.path.join(&name));
            let metadata = match self.details {
                true => self.dir.symlink_metadata(&name).ok(),
                false => None,
            };
            match metadata {
                Some(metadata) => detailed_entry(text, uri, &metadata),
                None => EntryInfo {
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

/// The state and remaining limits of a tree in progress.
struct TreeWalk<'a> {
    left: usize,
    scan: usize,
    scanned: &'a AtomicU64,
    given: &'a str,
    /// The absolute path of the top directory.
    top: PathBuf,
    exclude: GlobSet,
    /// The limits that cut the tree.
    cuts: BTreeSet<&'static str>,
    stop: StopCheck<'a>,
}

impl TreeEntry {
    fn mark_cut(&mut self, why: &'static str) {
        self.cut = true;
        self.cut_by = Some(why);
    }
}

impl TreeWalk<'_> {
    /// Adds the entries of a directory, down to `depth` levels; `path` is its path relative to the
    /// top.
    fn list_into(
        &mut self,
        parent: &mut TreeEntry,
        dir: &Dir,
        path: &Path,
        depth: usize,
    ) -> Result<(), FileError> {
        if depth == 0 {
            parent.mark_cut("depth");
            self.cuts.insert("depth");
            return Ok(());
        }
        let failed = |error| FileError::from_io(&error, self.given);
        let mut names = Vec::new();
        let entries = match dir.entries() {
            Ok(entries) => entries,
            Err(error) if path.as_os_str().is_empty() => return Err(failed(error)),
            Err(_) => {
                parent.mark_cut("unreadable");
                return Ok(());
            }
        };
        for entry in entries {
            if (self.stop)() {
                let path = self.given.to_owned();
                return Err(FileError::Cancelled { path });
            }
            if self.left == 0 || self.scan == 0 {
                let limit = if self.left == 0 { "page" } else { "scan" };
                parent.mark_cut(limit);
                self.cuts.insert(limit);
                break;
            }
            self.scan -= 1;
            self.scanned.fetch_add(1, Ordering::Relaxed);
            let Ok(entry) = entry else {
                parent.mark_cut("unreadable");
                break;
            };
            let Ok(file_type) = entry.file_type() else {
                continue; // Another process removed it meanwhile.
            };
            let name = entry.file_name();
            if self.exclude.is_match(path.join(&name)) {
                continue;
            }
            self.left -= 1;
            names.push((name, entry_kind(file_type)));
        }
        names.sort_unstable();
        for (name, kind) in names {
            let path = path.join(&name);
            let (text, uri) = display_name(&name, || self.top.join(&path));
            let mut entry = TreeEntry {
                name: text,
                uri,
                kind,
                cuts: Vec::new(),
                entries: Vec::new(),
                cut: false,
                cut_by: None,
            };
            if kind == EntryKind::Directory {
                match dir.open_dir(&name) {
                    Ok(below) => self.list_into(&mut entry, &below, &path, depth - 1)?,
                    Err(_) => entry.mark_cut("unreadable"),
                }
            }
            parent.entries.push(entry);
        }
        Ok(())
    }
}
