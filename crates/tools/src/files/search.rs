//! Finding files by name, and lines in them by pattern.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexBuilder};
use rustix::fs::OFlags;

use super::disk::{Disk, Stop, kind};
use super::error::FileError;
use super::message::{EntryKind, Found, Match, Search, SkippedPath};
use super::place::{Said, file_uri};

/// A search that is under way.
struct Hunt<'a> {
    disk: &'a Disk,
    said: &'a str,
    names: Option<GlobMatcher>,
    exclude: GlobSet,
    text: Option<Regex>,
    /// Where the search began, below the root.
    base: PathBuf,
    most: usize,
    scan: usize,
    octets: u64,
    stop: Stop<'a>,
    found: Found,
}

impl Disk {
    /// Searches until a limit is reached or `stop` is set.
    pub(super) fn search(&self, search: &Search, stop: Stop<'_>) -> Result<Found, FileError> {
        let said = Said::new(&search.path);
        let place = self.place(&said)?;
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
            base: match place.is_root() {
                true => PathBuf::new(),
                false => place.path.to_owned(),
            },
            most: search.most.unwrap_or(usize::MAX).min(self.limits.matches),
            scan: self.limits.scan,
            octets: self.limits.searched,
            stop,
            found: Found::default(),
        };
        hunt.below(&dir, Path::new(""), self.limits.depth)?;
        Ok(hunt.found)
    }
}

impl Hunt<'_> {
    /// Searches a directory; `path` is how one came there from where the search began.
    fn below(&mut self, dir: &Dir, path: &Path, depth: usize) -> Result<(), FileError> {
        let mut entries = Vec::new();
        let listed = match dir.entries() {
            Ok(listed) => listed,
            Err(error) if path.as_os_str().is_empty() => {
                return Err(FileError::of(&error, self.said));
            }
            Err(_) => {
                self.skip(path, Skip::Unreadable);
                return Ok(());
            }
        };
        for entry in listed {
            self.go_on()?;
            if self.scan == 0 {
                self.cut("scan");
                break;
            }
            self.scan -= 1;
            let Ok(entry) = entry else {
                self.skip(path, Skip::Unreadable);
                break;
            };
            // One that has no type any more was removed meanwhile.
            if let Ok(file_type) = entry.file_type() {
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
                EntryKind::Directory => match dir.open_dir(&name) {
                    Ok(dir) => self.below(&dir, &path, depth - 1)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => self.skip(&path, Skip::Unreadable),
                },
                _ if self.is_other(&path) => {}
                EntryKind::File => self.file(dir, &name, &path)?,
                EntryKind::Link => self.found.skipped.links += 1,
                EntryKind::Special => self.found.skipped.special += 1,
            }
        }
        Ok(())
    }

    /// Whether a file is none of those whose names are searched for.
    fn is_other(&self, path: &Path) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|names| !names.is_match(path))
    }

    fn file(&mut self, dir: &Dir, name: &OsStr, path: &Path) -> Result<(), FileError> {
        self.go_on()?;
        if self.text.is_none() {
            self.found.files += 1;
            self.add(path, None);
            return Ok(());
        }
        let mut options = OpenOptions::new();
        // It was a file when it was listed; what it is now must not make anybody wait.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let opened = dir.open_with(name, &options).and_then(|file| {
            let file = file.into_std();
            let metadata = file.metadata()?;
            Ok((file, metadata))
        });
        match opened {
            Ok((file, metadata)) if metadata.is_file() => self.lines(&file, metadata.len(), path),
            Ok(_) => Ok(()), // Something else has its name now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(_) => {
                self.skip(path, Skip::Unreadable);
                Ok(())
            }
        }
    }

    /// Searches the lines of a file as long as it is text, and as long as a search may read.
    fn lines(&mut self, file: &File, length: u64, path: &Path) -> Result<(), FileError> {
        let budget = self.octets;
        let mut reader = BufReader::with_capacity(CHUNK, file.take(budget));
        let (mut line, mut has_long) = (Vec::new(), false);
        for number in 1.. {
            line.clear();
            match self.line(&mut reader, &mut line) {
                Ok(Ended::End) => {
                    if self.octets == 0 && length > budget {
                        self.cut("searched");
                        return Ok(());
                    }
                    break;
                }
                Ok(Ended::Line) => {}
                Ok(Ended::LongLine) => has_long = true,
                Ok(Ended::Binary) => {
                    self.skip(path, Skip::Binary);
                    return Ok(());
                }
                Err(Some(error)) => return Err(error),
                Err(None) => {
                    self.skip(path, Skip::Unreadable);
                    return Ok(());
                }
            }
            // In a text of another encoding, what is ASCII can be found.
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            let Some(hit) = self.text.as_ref().and_then(|pattern| pattern.find(text)) else {
                continue;
            };
            let hit = (number, around(text, hit.start()));
            self.add(path, Some(hit));
            if self.found.cut.is_some() {
                return Ok(());
            }
        }
        match has_long {
            true => self.skip(path, Skip::LongLines),
            false => self.found.files += 1,
        }
        Ok(())
    }

    /// Reads a line, of which no more is kept than one call may read.
    fn line(
        &mut self,
        reader: &mut impl BufRead,
        line: &mut Vec<u8>,
    ) -> Result<Ended, Option<FileError>> {
        let most = usize::try_from(self.disk.limits.file).unwrap_or(usize::MAX);
        let mut ended = Ended::Line;
        loop {
            self.go_on()?;
            let chunk = match reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(None),
            };
            if chunk.is_empty() {
                return Ok(match line.is_empty() {
                    true => Ended::End,
                    false => ended,
                });
            }
            let end = chunk.iter().position(|octet| *octet == b'\n');
            let piece = end.map_or(chunk.len(), |end| end + 1);
            if chunk[..piece].contains(&0) {
                return Ok(Ended::Binary);
            }
            let kept = piece.min(most.saturating_sub(line.len()));
            line.extend_from_slice(&chunk[..kept]);
            if kept < piece {
                ended = Ended::LongLine;
            }
            reader.consume(piece);
            self.octets -= piece as u64;
            if end.is_some() {
                return Ok(ended);
            }
        }
    }

    /// Notes what was not searched to its end.
    fn skip(&mut self, path: &Path, why: Skip) {
        let skipped = &mut self.found.skipped;
        let (count, why) = match why {
            Skip::Binary => (&mut skipped.binary, "binary"),
            Skip::LongLines => (&mut skipped.long_lines, "long_lines"),
            Skip::Unreadable => (&mut skipped.unreadable, "unreadable"),
        };
        *count += 1;
        if skipped.paths.len() < NAMED {
            let path = shown(&self.base.join(path));
            skipped.paths.push(SkippedPath { path, why });
        }
    }

    fn add(&mut self, path: &Path, line: Option<(u64, String)>) {
        if self.found.matches.len() >= self.most {
            self.cut("matches");
            return;
        }
        let path = self.base.join(path);
        let uri = match path.to_str() {
            Some(_) => None,
            None => Some(file_uri(&self.disk.name.join(&path))),
        };
        let (line, text) = line.unzip();
        self.found.matches.push(Match {
            path: shown(&path),
            uri,
            line,
            text,
        });
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

/// How reading a line ended.
enum Ended {
    /// There are no more lines.
    End,
    Line,
    /// It is longer than what was kept of it.
    LongLine,
    /// It is no text.
    Binary,
}

/// Why something was not searched to its end.
#[derive(Clone, Copy)]
enum Skip {
    Binary,
    LongLines,
    Unreadable,
}

/// Bytes that are read at a time.
const CHUNK: usize = 64 * 1024;

/// Files and directories that were not searched and are named.
const NAMED: usize = 20;

fn glob(pattern: &str) -> Result<Glob, FileError> {
    // As everywhere: `*` stays within one name, `**` does not.
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map_err(|error| FileError::Pattern {
        pattern: pattern.chars().take(SHOWN).collect(),
        why: error.kind().to_string(),
    })
}

/// What is left out of a search.
pub(super) fn excluded(patterns: &[String]) -> Result<GlobSet, FileError> {
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
