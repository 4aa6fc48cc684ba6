//! Finding files by name, and lines in them by pattern.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexBuilder};
use rustix::fs::OFlags;

use super::disk::{Disk, Stop, kind};
use super::error::FileError;
use super::message::{EntryKind, Found, Match, Search};

/// A search that is under way.
struct Hunt<'a> {
    disk: &'a Disk,
    said: &'a str,
    names: Option<GlobMatcher>,
    exclude: GlobSet,
    text: Option<Regex>,
    most: usize,
    scan: usize,
    octets: u64,
    stop: Stop<'a>,
    found: Found,
}

impl Disk {
    /// Searches until a limit is reached or `stop` is set.
    pub(super) fn search(&self, search: &Search, stop: Stop<'_>) -> Result<Found, FileError> {
        let place = self.place(&search.path)?;
        let names = search.names.as_deref().map(glob).transpose()?;
        let names = names.map(|names| names.compile_matcher());
        let exclude = excluded(&search.exclude)?;
        let text = search.text.as_deref().map(regex).transpose()?;
        let dir = self.root.open_dir(place.path).map_err(place.failed())?;
        let mut hunt = Hunt {
            disk: self,
            said: &search.path,
            names,
            exclude,
            text,
            most: search.most.unwrap_or(usize::MAX).min(self.limits.matches),
            scan: self.limits.scan,
            octets: self.limits.searched,
            stop,
            found: Found::default(),
        };
        let base = if place.is_root() {
            Path::new("")
        } else {
            place.path
        };
        hunt.below(&dir, base, Path::new(""), self.limits.depth)?;
        Ok(hunt.found)
    }
}

impl Hunt<'_> {
    /// Searches a directory. `base` is where the search began, `path` how one came from there.
    fn below(
        &mut self,
        dir: &Dir,
        base: &Path,
        path: &Path,
        depth: usize,
    ) -> Result<(), FileError> {
        let mut entries = Vec::new();
        for entry in dir
            .entries()
            .map_err(|error| FileError::of(&error, self.said))?
        {
            self.go_on()?;
            if self.scan == 0 {
                self.cut("scan");
                break;
            }
            self.scan -= 1;
            if let Ok(entry) = entry
                && let Ok(file_type) = entry.file_type()
            {
                entries.push((entry.file_name(), kind(file_type)));
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
            match kind {
                EntryKind::Directory if depth == 0 => self.cut("depth"),
                EntryKind::Directory => {
                    if let Ok(dir) = dir.open_dir(&name) {
                        self.below(&dir, base, &path, depth - 1)?;
                    }
                }
                EntryKind::File => self.file(dir, Path::new(&name), base, &path)?,
                EntryKind::Link | EntryKind::Special => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, dir: &Dir, name: &Path, base: &Path, path: &Path) -> Result<(), FileError> {
        self.go_on()?;
        if self
            .names
            .as_ref()
            .is_some_and(|names| !names.is_match(path))
        {
            return Ok(());
        }
        self.found.files += 1;
        let shown = shown(&base.join(path));
        if self.text.is_none() {
            self.add(Match {
                path: shown,
                line: None,
                text: None,
            });
            return Ok(());
        }
        let mut options = OpenOptions::new();
        // It was a file when it was listed; what it is now must not make anybody wait.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let Ok(file) = dir.open_with(name, &options) else {
            return Ok(()); // Gone, or not ours to read.
        };
        let file = file.into_std();
        let Ok(metadata) = file.metadata() else {
            return Ok(());
        };
        if !metadata.is_file() || metadata.len() > self.disk.limits.file {
            return Ok(());
        }
        if metadata.len() > self.octets {
            self.cut("searched");
            return Ok(());
        }
        self.octets -= metadata.len();
        self.lines(BufReader::new(file.take(self.disk.limits.file)), &shown)
    }

    /// Searches the lines of a file, as long as it is text.
    fn lines(&mut self, mut reader: impl BufRead, path: &str) -> Result<(), FileError> {
        let mut line = Vec::new();
        for number in 1.. {
            self.go_on()?;
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let Ok(text) = std::str::from_utf8(&line) else {
                break;
            };
            if text.contains('\0') {
                break;
            }
            let text = text.trim_end_matches(['\n', '\r']);
            let Some(hit) = self.text.as_ref().and_then(|pattern| pattern.find(text)) else {
                continue;
            };
            self.add(Match {
                path: path.to_owned(),
                line: Some(number),
                text: Some(around(text, hit.start())),
            });
            if self.found.cut.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, hit: Match) {
        if self.found.matches.len() >= self.most {
            self.cut("matches");
        } else {
            self.found.matches.push(hit);
        }
    }

    fn cut(&mut self, limit: &str) {
        self.found.cut.get_or_insert_with(|| limit.to_owned());
    }

    fn go_on(&self) -> Result<(), FileError> {
        if (self.stop)() {
            let path = self.said.to_owned();
            return Err(FileError::Cancelled { path });
        }
        Ok(())
    }
}

fn glob(pattern: &str) -> Result<Glob, FileError> {
    // As everywhere: `*` stays within one name, `**` does not.
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map_err(|error| FileError::Pattern {
        pattern: pattern.chars().take(SHOWN).collect(),
        why: error.kind().to_string(),
    })
}

/// What is left out of a search.
fn excluded(patterns: &[String]) -> Result<GlobSet, FileError> {
    let wrong = |pattern: &str, why: String| FileError::Pattern {
        pattern: pattern.chars().take(SHOWN).collect(),
        why,
    };
    if let Some(pattern) = patterns.get(EXCLUDED) {
        let why = format!("it is one more than {EXCLUDED}");
        return Err(wrong(pattern, why));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_end_matches('/');
        set.add(glob(pattern)?);
        if !pattern.contains('/') {
            set.add(glob(&format!("**/{pattern}"))?);
        }
    }
    let built = set.build();
    built.map_err(|error| wrong(error.glob().unwrap_or_default(), error.kind().to_string()))
}

/// The most patterns of what is left out.
const EXCLUDED: usize = 64;

fn regex(pattern: &str) -> Result<Regex, FileError> {
    let wrong = |why: String| FileError::Pattern {
        pattern: pattern.chars().take(SHOWN).collect(),
        why,
    };
    let built = RegexBuilder::new(pattern).size_limit(COMPILED).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => wrong("it is too large".to_owned()),
        // The message repeats the pattern; its last line says what is wrong.
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

/// Octets of a compiled pattern.
const COMPILED: usize = 1 << 20;

/// Characters of a line or a pattern that are shown.
const SHOWN: usize = 300;

/// A line, cut where it is long, so that what was found is in it.
fn around(line: &str, at: usize) -> String {
    if line.len() <= SHOWN {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.saturating_sub(SHOWN / 3));
    let to = line.floor_char_boundary(from + SHOWN);
    let before = if from > 0 { "..." } else { "" };
    let behind = if to < line.len() { "..." } else { "" };
    format!("{before}{}{behind}", &line[from..to])
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
