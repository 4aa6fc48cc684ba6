//! Search for files by name, and for lines in them by pattern.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use rustix::fs::OFlags;

use super::disk::{Disk, StopCheck, entry_kind};
use super::error::{FileError, raise_limit_advice};
use super::lines::{LinePattern, ScanEnd, Scanner};
use super::message::{EntryKind, SearchMatch, SearchRequest, SearchResults, SkippedPath};
use super::path::GivenPath;
use super::read::display_name;

/// A search in progress.
struct SearchJob<'a> {
    disk: &'a Disk,
    given: &'a str,
    names: Option<GlobMatcher>,
    exclude: GlobSet,
    text: Option<Arc<LinePattern>>,
    scanner: Scanner,
    /// The directory where the search began, relative to the root.
    base: PathBuf,
    max_matches: usize,
    entries_left: usize,
    bytes_left: u64,
    stop: StopCheck<'a>,
    found: SearchResults,
    /// Set once an entry has a name that is searched for.
    is_named: bool,
}

impl Disk {
    /// Searches until every file was searched, a limit is reached or `stop` returns `true`.
    pub(super) fn search(
        &self,
        search: &SearchRequest,
        stop: StopCheck<'_>,
    ) -> Result<SearchResults, FileError> {
        // A name such as `[id]` is found before it is a glob.
        if let Some(literal) = search.names.as_deref().and_then(literal) {
            let (found, is_named) = self.search_names(search, Some(&literal), stop)?;
            if is_named {
                return Ok(found);
            }
        }
        let (found, _) = self.search_names(search, search.names.as_deref(), stop)?;
        Ok(found)
    }

    /// Searches for these names. Also returns `true` if there is an entry with such a name.
    fn search_names(
        &self,
        search: &SearchRequest,
        names: Option<&str>,
        stop: StopCheck<'_>,
    ) -> Result<(SearchResults, bool), FileError> {
        let given = GivenPath::new(&search.path);
        let rooted = self.rooted(&given)?;
        let names = names.map(compile_glob).transpose()?;
        let names = names.map(|names| names.compile_matcher());
        let exclude = compile_excludes(&search.exclude)?;
        let text = search.text.as_deref().map(compile_pattern).transpose()?;
        let opened = self.root.open_dir(rooted.path);
        let is_file = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotADirectory && self.root.is_file(rooted.path)
        };
        let mut running = SearchJob {
            disk: self,
            given: &search.path,
            names,
            exclude,
            text,
            scanner: Scanner::default(),
            base: match rooted.is_root() {
                true => PathBuf::new(),
                false => rooted.path.to_owned(),
            },
            max_matches: search
                .max_matches
                .unwrap_or(usize::MAX)
                .min(self.limits.matches),
            entries_left: self.limits.scan,
            bytes_left: self.limits.searched,
            stop,
            found: SearchResults::default(),
            is_named: false,
        };
        match opened {
            Err(error) if is_file(&error) => {
                // The file itself, if the path leads through links to it.
                let path = self.root.canonicalize(rooted.path);
                let path = path.map_err(rooted.failed())?;
                let name = path.file_name().unwrap_or_default();
                let parent = path.parent().unwrap_or_else(|| Path::new(""));
                let dir = match parent.as_os_str().is_empty() {
                    true => self.root.open_dir("."),
                    false => self.root.open_dir(parent),
                };
                let dir = dir.map_err(rooted.failed())?;
                parent.clone_into(&mut running.base);
                if !running.has_unwanted_name(Path::new(name)) {
                    running.search_file(&dir, name, Path::new(name))?;
                }
            }
            opened => {
                let dir = opened.map_err(rooted.failed())?;
                running.search_directory(&dir, Path::new(""), self.limits.depth)?;
            }
        }
        Ok((running.found, running.is_named))
    }
}

impl SearchJob<'_> {
    /// Searches a directory; `path` is its path relative to where the search began.
    fn search_directory(&mut self, dir: &Dir, path: &Path, depth: usize) -> Result<(), FileError> {
        let mut entries = Vec::new();
        let listed = match dir.entries() {
            Ok(listed) => listed,
            Err(error) if path.as_os_str().is_empty() => {
                return Err(FileError::from_io(&error, self.given));
            }
            Err(_) => {
                self.skip(path, SkipReason::Unreadable);
                return Ok(());
            }
        };
        for entry in listed {
            self.check_cancelled()?;
            if self.entries_left == 0 {
                self.end_at_limit(SearchLimit::Scan);
                break;
            }
            self.entries_left -= 1;
            self.disk.scanned.fetch_add(1, Ordering::Relaxed);
            let Ok(entry) = entry else {
                self.skip(path, SkipReason::Unreadable);
                break;
            };
            // An entry whose type is unknown was removed meanwhile.
            if let Ok(file_type) = entry.file_type() {
                entries.push((entry.file_name(), entry_kind(file_type)));
            }
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in entries {
            if self.found.cut.is_some() {
                return Ok(());
            }
            let path = path.join(&name);
            if self.exclude.is_match(&path) {
                continue;
            }
            if self.text.is_none()
                && self.names.is_some()
                && kind != EntryKind::File
                && !self.has_unwanted_name(&path)
            {
                self.add_match(&path, kind, None);
                if kind != EntryKind::Directory || self.found.cut.is_some() {
                    continue;
                }
            }
            match kind {
                EntryKind::Directory if depth == 0 => self.skip(&path, SkipReason::Deep),
                EntryKind::Directory => match dir.open_dir(&name) {
                    Ok(dir) => self.search_directory(&dir, &path, depth - 1)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => self.skip(&path, SkipReason::Unreadable),
                },
                _ if self.has_unwanted_name(&path) => {}
                EntryKind::File => self.search_file(dir, &name, &path)?,
                EntryKind::Link => self.found.skipped.links += 1,
                EntryKind::Special => self.found.skipped.special += 1,
            }
        }
        Ok(())
    }

    /// Returns `true` if the name of an entry does not match the names searched for.
    fn has_unwanted_name(&mut self, path: &Path) -> bool {
        let names = self.names.as_ref();
        let has_unwanted_name = names.is_some_and(|names| !names.is_match(path));
        self.is_named |= !has_unwanted_name;
        has_unwanted_name
    }

    fn search_file(&mut self, dir: &Dir, name: &OsStr, path: &Path) -> Result<(), FileError> {
        self.check_cancelled()?;
        let Some(pattern) = self.text.clone() else {
            self.found.files += 1;
            self.add_match(path, EntryKind::File, None);
            return Ok(());
        };
        let mut options = OpenOptions::new();
        // The entry was a file when it was listed. It may have been replaced since, for example by
        // a FIFO, and opening it must not block.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let opened = dir.open_with(name, &options).and_then(|file| {
            let file = file.into_std();
            let metadata = file.metadata()?;
            Ok((file, metadata))
        });
        match opened {
            Ok((file, metadata)) if metadata.is_file() => {
                self.search_lines(&pattern, &file, metadata.len(), path)
            }
            Ok(_) => Ok(()), // It was replaced by something that is not a file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(_) => {
                self.skip(path, SkipReason::Unreadable);
                Ok(())
            }
        }
    }

    /// Searches the lines of a file up to its first NUL, within the remaining byte budget.
    fn search_lines(
        &mut self,
        pattern: &LinePattern,
        file: &File,
        length: u64,
        path: &Path,
    ) -> Result<(), FileError> {
        let (budget, stop) = (self.bytes_left, self.stop);
        let mut scanner = mem::take(&mut self.scanner);
        let mut take = |number, text| {
            self.add_match(path, EntryKind::File, Some((number, text)));
            self.found.cut.is_none()
        };
        let scanned = scanner.scan(pattern, file.take(budget), &mut take, stop);
        self.scanner = scanner;
        let Ok(scanned) = scanned else {
            self.skip(path, SkipReason::Unreadable);
            return Ok(());
        };
        self.bytes_left -= scanned.read;
        match scanned.ended {
            ScanEnd::EndOfText if self.bytes_left == 0 && length > budget => {
                self.end_at_limit(SearchLimit::Searched)
            }
            ScanEnd::EndOfText if scanned.has_long_lines => self.skip(path, SkipReason::LongLines),
            ScanEnd::EndOfText => self.found.files += 1,
            ScanEnd::Binary => self.skip(path, SkipReason::Binary),
            ScanEnd::CallerDone => {}
            ScanEnd::Cancelled => self.check_cancelled()?,
        }
        Ok(())
    }

    /// Records a file or directory that was not fully searched.
    fn skip(&mut self, path: &Path, why: SkipReason) {
        let skipped = &mut self.found.skipped;
        let (count, why) = match why {
            SkipReason::Binary => (&mut skipped.binary, "binary"),
            SkipReason::Deep => (&mut skipped.deep, "deep"),
            SkipReason::LongLines => (&mut skipped.long_lines, "long_lines"),
            SkipReason::Unreadable => (&mut skipped.unreadable, "unreadable"),
        };
        *count += 1;
        if skipped.paths.len() < MAX_NAMED_SKIPPED {
            let path = self.base.join(path);
            let (path, uri) = display_name(path.as_os_str(), || self.disk.root_path.join(&path));
            skipped.paths.push(SkippedPath { path, uri, why });
        }
    }

    fn add_match(&mut self, path: &Path, kind: EntryKind, line: Option<(u64, String)>) {
        if self.found.matches.len() >= self.max_matches {
            self.end_at_limit(SearchLimit::Matches);
            return;
        }
        let path = self.base.join(path);
        let (path, uri) = display_name(path.as_os_str(), || self.disk.root_path.join(&path));
        let kind = line.is_none().then_some(kind);
        let (line, text) = line.unzip();
        self.found.matches.push(SearchMatch {
            path,
            uri,
            kind,
            line,
            text,
        });
    }

    /// Ends the search, and records the limit with a remedy.
    fn end_at_limit(&mut self, limit: SearchLimit) {
        let limits = &self.disk.limits;
        let (key, value) = match limit {
            SearchLimit::Matches => ("matches", self.max_matches as u64),
            SearchLimit::Scan => ("scan", limits.scan as u64),
            SearchLimit::Searched => ("searched", limits.searched),
        };
        let remedy = match limit {
            SearchLimit::Matches if self.max_matches < limits.matches => {
                "raise `most`, or search less: a smaller directory, a narrower pattern".to_owned()
            }
            _ => format!(
                "search a smaller directory, exclude directories, or {}",
                raise_limit_advice(key)
            ),
        };
        self.found.cut = Some(key.to_owned());
        self.found.limit = Some(value);
        self.found.remedy = Some(remedy);
    }

    fn check_cancelled(&self) -> Result<(), FileError> {
        if (self.stop)() {
            let path = self.given.to_owned();
            return Err(FileError::Cancelled { path });
        }
        Ok(())
    }
}

/// The limit that ends a search.
#[derive(Clone, Copy)]
enum SearchLimit {
    Matches,
    Scan,
    Searched,
}

/// The reason why an entry was not fully searched.
#[derive(Clone, Copy)]
enum SkipReason {
    Binary,
    Deep,
    LongLines,
    Unreadable,
}

/// Maximum number of skipped files and directories to name.
const MAX_NAMED_SKIPPED: usize = 20;

fn compile_glob(pattern: &str) -> Result<Glob, FileError> {
    // As in shells: `*` matches within one name, `**` across directories.
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map_err(|error| FileError::InvalidPattern {
        pattern: pattern.chars().take(MAX_SHOWN_PATTERN).collect(),
        reason: match literal(pattern) {
            Some(_) => format!(
                "{} (a literal `[` or `{{` is `\\[` or `\\{{`)",
                error.kind()
            ),
            None => error.kind().to_string(),
        },
    })
}

/// The glob in which brackets and braces are literal, if the pattern has any and escapes none.
fn literal(pattern: &str) -> Option<String> {
    const BRACKETS: [char; 4] = ['[', ']', '{', '}'];
    if !pattern.contains(BRACKETS) || pattern.contains('\\') {
        return None;
    }
    let mut escaped = String::with_capacity(pattern.len() + 8);
    for letter in pattern.chars() {
        if BRACKETS.contains(&letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    Some(escaped)
}

/// Compiles the patterns to exclude.
pub(super) fn compile_excludes(patterns: &[String]) -> Result<GlobSet, FileError> {
    let wrong = |pattern: &str, why: String| FileError::InvalidPattern {
        pattern: pattern.chars().take(MAX_SHOWN_PATTERN).collect(),
        reason: why,
    };
    if let Some(pattern) = patterns.get(MAX_EXCLUDE_PATTERNS) {
        let why = format!("exceeds the limit of {MAX_EXCLUDE_PATTERNS} patterns");
        return Err(wrong(pattern, why));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_end_matches('/');
        let mut add = |pattern: &str| -> Result<(), FileError> {
            set.add(compile_glob(pattern)?);
            if !pattern.contains('/') {
                set.add(compile_glob(&format!("**/{pattern}"))?);
            }
            Ok(())
        };
        add(pattern)?;
        if let Some(literal) = literal(pattern) {
            add(&literal)?;
        }
    }
    let built = set.build();
    built.map_err(|error| wrong(error.glob().unwrap_or_default(), error.kind().to_string()))
}

/// Maximum number of patterns to exclude.
const MAX_EXCLUDE_PATTERNS: usize = 64;

fn compile_pattern(pattern: &str) -> Result<Arc<LinePattern>, FileError> {
    let wrong = |why: String| FileError::InvalidPattern {
        pattern: pattern.chars().take(MAX_SHOWN_PATTERN).collect(),
        reason: why,
    };
    LinePattern::new(pattern)
        .map(Arc::new)
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => wrong("too large".to_owned()),
            // The message repeats the pattern; its last line gives the reason.
            error => wrong(
                error
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            ),
        })
}

/// Maximum number of characters of a pattern to show.
const MAX_SHOWN_PATTERN: usize = 300;
