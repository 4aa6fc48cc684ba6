//! Reading files, and telling what an entry is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use cap_std::fs::{MetadataExt as _, OpenOptions};

use super::disk::{Disk, Stop, kind};
use super::error::{FileError, Rule};
use super::message::{Entry, Read, ReadLines};
use super::place::{Place, Said, file_uri};

/// A file that is open, and what is wanted of it.
#[derive(Debug)]
pub(super) struct Opened {
    file: File,
    said: String,
    offset: u64,
    /// Octets that will be read, as far as one can say.
    pub(super) length: u64,
    /// Octets that are read at most.
    most: u64,
}

impl Disk {
    /// Opens a file to be read.
    pub(super) fn open_read(&self, read: &Read) -> Result<Opened, FileError> {
        let said = Said::new(&read.path);
        let place = self.place(&said)?;
        let (file, metadata) = self.open_file(place, OpenOptions::new().read(true))?;
        let left = metadata.len().saturating_sub(read.offset);
        let length = left.min(read.length.unwrap_or(u64::MAX));
        if length > self.limits.file {
            return Err(place.beyond(Rule::Size, self.limits.file, 0, length));
        }
        Ok(Opened {
            file,
            said: read.path.clone(),
            offset: read.offset,
            length,
            most: read.length.unwrap_or(u64::MAX).min(self.limits.file),
        })
    }

    /// Reads lines of a file, of which no more is kept than is asked for.
    pub(super) fn read_lines(&self, lines: &ReadLines, stop: Stop<'_>) -> Result<Bytes, FileError> {
        let said = Said::new(&lines.path);
        let place = self.place(&said)?;
        let first = match (lines.from, lines.tail) {
            (None, Some(_)) if lines.head.is_none() => None,
            (None, None) => Some(1),
            (Some(first @ 1..), None) => Some(first),
            (_, Some(_)) => {
                let what = "`tail` goes with neither `head` nor `from`";
                return Err(FileError::Arguments { what });
            }
            (Some(_), None) => {
                let what = "`from` is the number of a line, and the first is 1";
                return Err(FileError::Arguments { what });
            }
        };
        let (file, metadata) = self.open_file(place, OpenOptions::new().read(true))?;
        match (first, lines.head) {
            // What is read whole has its size, which need not be found out.
            (Some(1), None) if metadata.len() > self.limits.file => {
                let (most, wanted) = (self.limits.file, metadata.len());
                Err(place.beyond(Rule::Size, most, 0, wanted))
            }
            (Some(first), head) => {
                let head = head.unwrap_or(u64::MAX);
                self.first_lines(&file, place, first, head, stop)
            }
            (None, _) => {
                let tail = lines.tail.unwrap_or_default();
                self.last_lines(&file, place, metadata.len(), tail, stop)
            }
        }
    }

    /// So many lines from one on.
    fn first_lines(
        &self,
        file: &File,
        place: Place<'_>,
        first: u64,
        count: u64,
        stop: Stop<'_>,
    ) -> Result<Bytes, FileError> {
        let mut reader = BufReader::with_capacity(CHUNK, file);
        let (mut skipped, mut taken, mut kept) = (1, 0, Vec::new());
        while taken < count {
            Self::go_on(place, stop)?;
            let chunk = reader.fill_buf().map_err(place.failed())?;
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|octet| *octet == b'\n');
            let piece = end.map_or(chunk.len(), |end| end + 1);
            if skipped < first {
                skipped += u64::from(end.is_some());
            } else {
                self.keep(place, &mut kept, &chunk[..piece])?;
                taken += u64::from(end.is_some());
            }
            reader.consume(piece);
        }
        Ok(kept.into())
    }

    /// So many lines before the end of a file of this length, which is read backwards.
    fn last_lines(
        &self,
        file: &File,
        place: Place<'_>,
        length: u64,
        count: u64,
        stop: Stop<'_>,
    ) -> Result<Bytes, FileError> {
        let (mut at, mut seen, mut kept) = (length, 0, Vec::new());
        let mut chunk = vec![0; CHUNK];
        while at > 0 && seen < count {
            Self::go_on(place, stop)?;
            let size = usize::try_from(at).unwrap_or(CHUNK).min(CHUNK);
            at -= size as u64;
            let chunk = &mut chunk[..size];
            if let Err(error) = file.read_exact_at(chunk, at) {
                // It was cut off meanwhile: there is no end to count from.
                return Err(place.failed()(error));
            }
            let mut from = 0;
            for (number, octet) in chunk.iter().enumerate().rev() {
                // What ends the last line begins no other.
                let is_last = at + number as u64 + 1 == length;
                if *octet == b'\n' && !is_last {
                    seen += 1;
                    if seen == count {
                        from = number + 1;
                        break;
                    }
                }
            }
            chunk.reverse();
            self.keep(place, &mut kept, &chunk[..size - from])?;
        }
        kept.reverse();
        Ok(kept.into())
    }

    /// Keeps a piece of an answer, as far as an answer may go.
    fn keep(&self, place: Place<'_>, kept: &mut Vec<u8>, piece: &[u8]) -> Result<(), FileError> {
        let wanted = (kept.len() + piece.len()) as u64;
        if wanted > self.limits.file {
            return Err(place.beyond(Rule::Size, self.limits.file, 0, wanted));
        }
        kept.extend_from_slice(piece);
        Ok(())
    }

    fn go_on(place: Place<'_>, stop: Stop<'_>) -> Result<(), FileError> {
        if stop() {
            let path = place.said.to_owned();
            return Err(FileError::Cancelled { path });
        }
        Ok(())
    }

    /// Tells what an entry is.
    pub(super) fn stat(&self, path: &str) -> Result<Entry, FileError> {
        let said = Said::new(path);
        let place = self.place(&said)?;
        let name = place.path.file_name().unwrap_or_else(|| OsStr::new("."));
        let metadata = self.root.metadata(place.path).map_err(place.failed())?;
        let (name, uri) = named(name, || self.absolute(place));
        Ok(detailed(name, uri, &metadata))
    }
}

/// Bytes that are read at a time where only some are kept.
const CHUNK: usize = 64 * 1024;

impl Opened {
    /// Reads. A file that grows meanwhile is read as far as a file may go, and no further.
    pub(super) fn read(self) -> Result<Bytes, FileError> {
        let failed = |error: io::Error| FileError::of(&error, &self.said);
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let mut octets = Vec::new();
        // One more than there is, so that the end is seen without another turn.
        octets
            .try_reserve_exact(length.saturating_add(1))
            .map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        if self.offset == 0 {
            (&self.file)
                .take(self.most)
                .read_to_end(&mut octets)
                .map_err(failed)?;
        } else {
            octets.resize(length, 0);
            let mut at = 0;
            while at < length {
                match self
                    .file
                    .read_at(&mut octets[at..], self.offset + at as u64)
                {
                    Ok(0) => break,
                    Ok(read) => at += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            octets.truncate(at);
        }
        Ok(Bytes::from(octets))
    }
}

/// An entry with all that is known of it.
pub(super) fn detailed(
    name: String,
    uri: Option<String>,
    metadata: &cap_std::fs::Metadata,
) -> Entry {
    let modified = metadata.modified().ok().map(|time| time.into_std());
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Entry {
        name,
        uri,
        kind: kind(metadata.file_type()),
        size: Some(metadata.len()),
        modified_ms: modified.and_then(|time| u64::try_from(time.as_millis()).ok()),
        links: Some(metadata.nlink()),
    }
}

/// A name as text and, where it is not UTF-8, the URI of the path, which is.
pub(super) fn named<P: AsRef<Path>>(
    name: &OsStr,
    path: impl FnOnce() -> P,
) -> (String, Option<String>) {
    match name.to_str() {
        Some(name) => (name.to_owned(), None),
        None => {
            let uri = file_uri(path().as_ref());
            (name.to_string_lossy().into_owned(), Some(uri))
        }
    }
}
