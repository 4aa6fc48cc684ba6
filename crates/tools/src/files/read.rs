//! Reading files and describing entries.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use cap_std::fs::{MetadataExt as _, OpenOptions};

use super::disk::{Disk, StopCheck, entry_kind};
use super::error::{FileError, FileRule};
use super::message::{EntryInfo, ReadLinesRequest, ReadRequest};
use super::path::{GivenPath, RootedPath, file_uri, is_plain};

/// An open file, and the range to read.
#[derive(Debug)]
pub(super) struct FileRange {
    file: File,
    given: String,
    offset: u64,
    /// The expected number of bytes; the file may change before they are read.
    pub(super) length: u64,
    /// Maximum number of bytes to read.
    limit: u64,
}

impl Disk {
    /// Opens a file for reading.
    pub(super) fn open_read(&self, read: &ReadRequest) -> Result<FileRange, FileError> {
        let given = GivenPath::new(&read.path);
        let rooted = self.rooted(&given)?;
        let (file, metadata) = self.open_file(rooted, OpenOptions::new().read(true))?;
        let left = metadata.len().saturating_sub(read.offset);
        let length = left.min(read.length.unwrap_or(u64::MAX));
        if length > self.limits.file {
            return Err(rooted.over_limit(FileRule::Size, self.limits.file, 0, length));
        }
        Ok(FileRange {
            file,
            given: read.path.clone(),
            offset: read.offset,
            length,
            limit: read.length.unwrap_or(u64::MAX).min(self.limits.file),
        })
    }

    /// Reads lines of a file. Only the requested lines are kept in memory.
    pub(super) fn read_lines(
        &self,
        lines: &ReadLinesRequest,
        stop: StopCheck<'_>,
    ) -> Result<Bytes, FileError> {
        let given = GivenPath::new(&lines.path);
        let rooted = self.rooted(&given)?;
        let first = match (lines.from, lines.tail) {
            (None, Some(_)) if lines.head.is_none() => None,
            (None, None) => Some(1),
            (Some(first @ 1..), None) => Some(first),
            (_, Some(_)) => {
                let message = "`tail` cannot be combined with `head` or `from`";
                return Err(FileError::InvalidArguments { message });
            }
            (Some(_), None) => {
                let message = "`from` is a line number, counted from 1";
                return Err(FileError::InvalidArguments { message });
            }
        };
        let (file, metadata) = self.open_file(rooted, OpenOptions::new().read(true))?;
        match (first, lines.head) {
            // A read of the whole file fails early if the file is too large.
            (Some(1), None)
                if lines.length.is_none()
                    && metadata.len().saturating_sub(lines.offset) > self.limits.file =>
            {
                let (limit, wanted) = (self.limits.file, metadata.len());
                Err(rooted.over_limit(FileRule::Size, limit, 0, wanted))
            }
            (Some(first), head) => {
                let head = head.unwrap_or(u64::MAX);
                let length = metadata.len();
                let count = (first, head, lines.offset, lines.length);
                self.first_lines((&file, length), rooted, count, stop)
            }
            (None, _) => {
                let tail = lines.tail.unwrap_or_default();
                let all = self.last_lines(&file, rooted, metadata.len(), tail, stop)?;
                let at = |offset: u64| usize::try_from(offset).unwrap_or(all.len()).min(all.len());
                let begin = at(lines.offset);
                let end = lines.length.map_or(all.len(), |length| begin + at(length));
                Ok(all.slice(begin..end.min(all.len())))
            }
        }
    }

    /// Reads `count` lines, starting at line `first`. Skips `offset` bytes of them, and returns at
    /// most `length` bytes.
    fn first_lines(
        &self,
        (file, length): (&File, u64),
        rooted: RootedPath<'_>,
        (first, count, offset, limit): (u64, u64, u64, Option<u64>),
        stop: StopCheck<'_>,
    ) -> Result<Bytes, FileError> {
        let mut reader = BufReader::with_capacity(READ_CHUNK, file);
        let mut left = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let mut offset = offset;
        if first == 1 && count == u64::MAX {
            // All bytes are selected: no need to look for lines in those that are skipped.
            reader
                .seek(io::SeekFrom::Start(offset))
                .map_err(rooted.failed())?;
            offset = 0;
        }
        let (mut skipped, mut taken, mut kept) = (1, 0, Vec::new());
        while taken < count && left > 0 {
            Self::check_cancelled(rooted, stop)?;
            let chunk = reader.fill_buf().map_err(rooted.failed())?;
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let piece = end.map_or(chunk.len(), |end| end + 1);
            if skipped < first {
                skipped += u64::from(end.is_some());
            } else {
                let from = usize::try_from(offset).unwrap_or(piece).min(piece);
                offset -= from as u64;
                let to = piece.min(from.saturating_add(left));
                self.append_within_limit((rooted, length), &mut kept, &chunk[from..to])?;
                left -= to - from;
                taken += u64::from(end.is_some());
            }
            reader.consume(piece);
        }
        Ok(kept.into())
    }

    /// Reads the last `count` lines of a file with the given length. The file is read backwards, so
    /// each chunk is reversed, and the result once more at the end.
    fn last_lines(
        &self,
        file: &File,
        rooted: RootedPath<'_>,
        length: u64,
        count: u64,
        stop: StopCheck<'_>,
    ) -> Result<Bytes, FileError> {
        let (mut at, mut seen, mut kept) = (length, 0, Vec::new());
        let mut chunk = vec![0; READ_CHUNK];
        while at > 0 && seen < count {
            Self::check_cancelled(rooted, stop)?;
            let size = usize::try_from(at).unwrap_or(READ_CHUNK).min(READ_CHUNK);
            at -= size as u64;
            let chunk = &mut chunk[..size];
            if let Err(error) = file.read_exact_at(chunk, at) {
                // The file was truncated meanwhile: there is no end to count from.
                return Err(rooted.failed()(error));
            }
            let mut from = 0;
            for (number, byte) in chunk.iter().enumerate().rev() {
                // The line feed that ends the last line does not begin another.
                let is_last = at + number as u64 + 1 == length;
                if *byte == b'\n' && !is_last {
                    seen += 1;
                    if seen == count {
                        from = number + 1;
                        break;
                    }
                }
            }
            chunk.reverse();
            self.append_within_limit((rooted, length), &mut kept, &chunk[..size - from])?;
        }
        kept.reverse();
        Ok(kept.into())
    }

    /// Appends a piece to an answer, up to the size limit. An error names the size of the file.
    fn append_within_limit(
        &self,
        (rooted, length): (RootedPath<'_>, u64),
        kept: &mut Vec<u8>,
        piece: &[u8],
    ) -> Result<(), FileError> {
        let wanted = (kept.len() + piece.len()) as u64;
        if wanted > self.limits.file {
            let wanted = wanted.max(length);
            return Err(rooted.over_limit(FileRule::Size, self.limits.file, 0, wanted));
        }
        kept.extend_from_slice(piece);
        Ok(())
    }

    fn check_cancelled(rooted: RootedPath<'_>, stop: StopCheck<'_>) -> Result<(), FileError> {
        if stop() {
            let path = rooted.given.to_owned();
            return Err(FileError::Cancelled { path });
        }
        Ok(())
    }

    /// Describes an entry.
    pub(super) fn stat(&self, path: &str) -> Result<EntryInfo, FileError> {
        let given = GivenPath::new(path);
        let rooted = self.rooted(&given)?;
        let name = rooted.path.file_name().unwrap_or_else(|| OsStr::new("."));
        let metadata = self.root.metadata(rooted.path).map_err(rooted.failed())?;
        let (name, uri) = display_name(name, || self.absolute(rooted));
        Ok(detailed_entry(name, uri, &metadata))
    }
}

/// Number of bytes to read at a time when only some are kept.
const READ_CHUNK: usize = 64 * 1024;

impl FileRange {
    /// Reads the range. A file that grows meanwhile is read up to the limit.
    pub(super) fn read(self) -> Result<Bytes, FileError> {
        let failed = |error: io::Error| FileError::from_io(&error, &self.given);
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        // One byte of spare capacity lets `read_to_end` see the end of the file without growing the
        // buffer.
        bytes
            .try_reserve_exact(length.saturating_add(1))
            .map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        if self.offset == 0 {
            (&self.file)
                .take(self.limit)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
        } else {
            bytes.resize(length, 0);
            let mut at = 0;
            while at < length {
                match self.file.read_at(&mut bytes[at..], self.offset + at as u64) {
                    Ok(0) => break,
                    Ok(read) => at += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            bytes.truncate(at);
        }
        Ok(Bytes::from(bytes))
    }
}

/// Builds an entry with all details.
pub(super) fn detailed_entry(
    name: String,
    uri: Option<String>,
    metadata: &cap_std::fs::Metadata,
) -> EntryInfo {
    let modified = metadata.modified().ok().map(|time| time.into_std());
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    EntryInfo {
        name,
        uri,
        kind: entry_kind(metadata.file_type()),
        size: Some(metadata.len()),
        modified_ms: modified.and_then(|time| u64::try_from(time.as_millis()).ok()),
        links: Some(metadata.nlink()),
    }
}

/// Returns a name as text, and the URI of its path if the name is not UTF-8 or not plain.
pub(super) fn display_name<P: AsRef<Path>>(
    name: &OsStr,
    path: impl FnOnce() -> P,
) -> (String, Option<String>) {
    match name.to_str() {
        Some(name) if is_plain(name) => (name.to_owned(), None),
        _ => {
            let uri = file_uri(path().as_ref());
            (name.to_string_lossy().into_owned(), Some(uri))
        }
    }
}
