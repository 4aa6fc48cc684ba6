//! Reading files, and telling what an entry is.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use cap_std::fs::{MetadataExt as _, OpenOptions};

use super::disk::{Disk, kind};
use super::error::{FileError, Rule};
use super::message::{Entry, Read};

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
        let place = self.place(&read.path)?;
        let (file, metadata) = self.open_file(place, OpenOptions::new().read(true))?;
        let left = metadata.len().saturating_sub(read.offset);
        let length = left.min(read.length.unwrap_or(u64::MAX));
        if length > self.limits.file {
            return Err(place.refused(Rule::Size));
        }
        Ok(Opened {
            file,
            said: read.path.clone(),
            offset: read.offset,
            length,
            most: read.length.unwrap_or(u64::MAX).min(self.limits.file),
        })
    }

    /// Tells what an entry is.
    pub(super) fn stat(&self, said: &str) -> Result<Entry, FileError> {
        let place = self.place(said)?;
        let name = match place.path.file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => ".".to_owned(),
        };
        let metadata = self.root.metadata(place.path).map_err(place.failed())?;
        Ok(detailed(name, &metadata))
    }
}

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
pub(super) fn detailed(name: String, metadata: &cap_std::fs::Metadata) -> Entry {
    let modified = metadata.modified().ok().map(|time| time.into_std());
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Entry {
        name,
        kind: kind(metadata.file_type()),
        size: Some(metadata.len()),
        modified_ms: modified.and_then(|time| u64::try_from(time.as_millis()).ok()),
        links: Some(metadata.nlink()),
    }
}
