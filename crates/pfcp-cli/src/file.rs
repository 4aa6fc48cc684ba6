//! Files named by others: opened without blocking, and read up to a maximum size.

use std::fs::{self, File, FileType};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::exit::{CliResult, Failure};

/// Reads a regular file, up to `most` bytes.
///
/// The name may come from a client of a node and denote a pipe without a writer, or a device
/// without an end: anything but a regular file is refused without waiting for it.
pub fn read_plain(path: &Path, most: usize) -> CliResult<Vec<u8>> {
    let failed = |error| Failure::file(path, &error);
    // `NONBLOCK` opens a pipe without waiting for its other end; `NOCTTY` keeps a terminal from
    // becoming that of the process.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = opened.map_err(|error| match fs::metadata(path) {
        // A socket cannot be opened at all, and the error of the system does not explain why.
        Ok(found) if !found.is_file() => special_file_failure(path, found.file_type()),
        _ => failed(error),
    })?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(special_file_failure(path, found.file_type()));
    }
    let long = |length: u64| {
        let text = format!("{}: {length} bytes, limit is {most}", path.display());
        Failure::input(text).hint("check the path")
    };
    if found.len() > most as u64 {
        return Err(long(found.len()));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    let mut file = file.take(most as u64 + 1);
    file.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > most {
        return Err(long(bytes.len() as u64));
    }
    Ok(bytes)
}

fn special_file_failure(path: &Path, kind: FileType) -> Failure {
    let kind = if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let text = format!("{}: is {kind}, not a regular file", path.display());
    Failure::input(text).hint("pass a regular file")
}
