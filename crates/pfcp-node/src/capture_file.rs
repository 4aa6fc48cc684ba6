//! Capturing of the node's own traffic.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::capture::CaptureWriter;

type FileWriter = CaptureWriter<io::BufWriter<std::fs::File>>;

/// A capture file that outlives the incarnations of the endpoint. It is closed after the first
/// error.
#[derive(Debug, Default)]
pub(crate) struct CaptureFile(Mutex<Option<FileWriter>>);

impl CaptureFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        FileWriter::create(path).map(|writer| Self(Mutex::new(Some(writer))))
    }

    /// Writes a datagram if there is a capture file.
    pub(crate) fn write(&self, src: SocketAddr, dst: SocketAddr, bytes: &[u8]) {
        self.attempt(|writer| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            writer.write(since.unwrap_or_default(), src, dst, bytes)
        });
    }

    /// Flushes the file, so that all captured datagrams can be read.
    pub(crate) fn flush(&self) {
        self.attempt(FileWriter::flush);
    }

    fn attempt(&self, work: impl FnOnce(&mut FileWriter) -> io::Result<()>) {
        let mut writer = self.0.lock();
        if let Some(Err(error)) = writer.as_mut().map(work) {
            tracing::error!(%error, "the capture file cannot be written and is closed");
            *writer = None;
        }
    }
}
