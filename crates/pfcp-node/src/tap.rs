//! The node's own traffic as a capture file.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::capture::CaptureWriter;

type Writer = CaptureWriter<io::BufWriter<std::fs::File>>;

/// A capture file that outlives the incarnations of the endpoint; closed after its first error.
#[derive(Debug, Default)]
pub(crate) struct Tap(Mutex<Option<Writer>>);

impl Tap {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Writer::create(path).map(|writer| Self(Mutex::new(Some(writer))))
    }

    /// Writes a datagram, if there is a file.
    pub(crate) fn write(&self, src: SocketAddr, dst: SocketAddr, octets: &[u8]) {
        self.attempt(|writer| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            writer.write(since.unwrap_or_default(), src, dst, octets)
        });
    }

    /// Makes what was written readable.
    pub(crate) fn flush(&self) {
        self.attempt(Writer::flush);
    }

    fn attempt(&self, work: impl FnOnce(&mut Writer) -> io::Result<()>) {
        let mut writer = self.0.lock();
        if let Some(Err(error)) = writer.as_mut().map(work) {
            tracing::error!(%error, "the capture file cannot be written and is closed");
            *writer = None;
        }
    }
}
