//! Files that others name: opened without waiting, and read up to a length.

use std::fs::{self, File, FileType};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::exit::{Done, Failure};

/// Reads a plain file, up to `most` bytes.
///
/// Whoever names a file for a node may name a pipe that nobody writes to, or a device without an
/// end: what is no plain file is refused, and nothing waits for it.
pub(crate) fn read_plain(path: &Path, most: usize) -> Done<Vec<u8>> {
    let failed = |error| Failure::file(path, &error);
    // A pipe is opened without its other end; a terminal does not become that of the process.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = opened.map_err(|error| match fs::metadata(path) {
        // A socket cannot be opened at all, and what the system says of it helps nobody.
        Ok(found) if !found.is_file() => other(path, found.file_type()),
        _ => failed(error),
    })?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(other(path, found.file_type()));
    }
    let long = |length: u64| {
        let text = format!("{}: has {length} bytes, more than {most}", path.display());
        Failure::input(text).hint("no component and no manifest is that long")
    };
    if found.len() > most as u64 {
        return Err(long(found.len()));
    }
    let mut octets = Vec::new();
    // It may grow while it is read.
    let mut file = file.take(most as u64 + 1);
    file.read_to_end(&mut octets).map_err(failed)?;
    if octets.len() > most {
        return Err(long(octets.len() as u64));
    }
    Ok(octets)
}

fn other(path: &Path, kind: FileType) -> Failure {
    let kind = if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let text = format!("{}: is {kind}, not a plain file", path.display());
    Failure::input(text).hint("name a plain file")
}
