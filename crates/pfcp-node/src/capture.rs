//! Reading and writing captures: pcap and pcapng files as a stream of UDP datagrams.
//!
//! A file passes three rooms: `file` cuts it into packets (bounded memory, errors with block and
//! offset), `link` finds the IP packet inside a frame, `packet` finds the UDP datagram inside that,
//! putting fragments together and looking into ICMP errors. What is not UDP is skipped and counted.

mod file;
mod fragment;
mod link;
mod packet;
mod write;

use std::fs::File;
use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

pub use file::{CaptureError, CaptureErrorKind};
pub use write::CaptureWriter;

use file::{PacketFile, Step};
use packet::Dissector;

/// The UDP port of PFCP.
pub const PFCP_PORT: u16 = 8805;

/// A UDP datagram found in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram {
    /// The number of the frame that completed the datagram, as tshark counts: from 1.
    pub number: u64,
    /// The time of that frame, since the Unix epoch.
    pub timestamp: Duration,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// The octets that UDP carried.
    pub payload: Bytes,
    /// Whether the datagram was quoted by an ICMP error: it was sent earlier and is told again.
    pub quoted: bool,
    /// Whether octets are missing at the end: a short quotation, or a capture with a snap length.
    pub truncated: bool,
}

impl Datagram {
    /// Whether one of the two ports is that of PFCP.
    #[must_use]
    pub fn is_pfcp(&self) -> bool {
        self.src.port() == PFCP_PORT || self.dst.port() == PFCP_PORT
    }
}

/// What a reader passed over, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Packets of a link type that is not understood.
    pub unknown_link: u64,
    /// The first such link type.
    pub first_unknown_link: Option<u16>,
    /// Packets that carry neither UDP nor an ICMP error about UDP.
    pub not_udp: u64,
    /// Packets whose headers contradict themselves or end early.
    pub malformed: u64,
    /// Fragments given up: they overlapped, or too many were waiting for their rest.
    pub fragments: u64,
}

/// The UDP datagrams of a pcap or pcapng file, in the order of the file.
///
/// The iterator ends after the first error: what follows a broken block has no known start.
///
/// ```
/// use strowger_pfcp_node::{Capture, CaptureWriter};
///
/// let mut octets = Vec::new();
/// let mut writer = CaptureWriter::new(&mut octets)?;
/// let (from, to) = ("127.0.0.1:8805".parse()?, "127.0.0.2:8805".parse()?);
/// writer.write(std::time::Duration::from_secs(1), from, to, b"hello")?;
/// drop(writer);
///
/// let datagrams: Vec<_> = Capture::new("memory", &octets[..]).collect::<Result<_, _>>()?;
/// assert_eq!((datagrams[0].src, &datagrams[0].payload[..]), (from, &b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Capture<R> {
    file: PacketFile<R>,
    dissector: Dissector,
    frames: u64,
    ended: bool,
}

impl Capture<BufReader<File>> {
    /// Opens a capture file; its kind is found from its first octets.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self::new(name, BufReader::with_capacity(64 * 1024, file))),
            Err(error) => Err(CaptureError::at_start(name, CaptureErrorKind::Open(error))),
        }
    }
}

impl<R: Read> Capture<R> {
    /// Reads a capture from `reader`; `name` stands for the file in errors.
    pub fn new(name: impl Into<String>, reader: R) -> Self {
        let file = PacketFile::new(name.into(), reader);
        Self {
            file,
            dissector: Dissector::default(),
            frames: 0,
            ended: false,
        }
    }

    /// The number of frames read so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// What was passed over so far.
    pub fn skipped(&self) -> Skipped {
        self.dissector.skipped
    }
}

impl<R: Read> Iterator for Capture<R> {
    type Item = Result<Datagram, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.file.step() {
                Ok(Step::Packet(packet)) => {
                    self.frames += 1;
                    if let Some(datagram) = self.dissector.dissect(self.frames, &packet) {
                        return Some(Ok(datagram));
                    }
                }
                Ok(Step::Other) => {}
                Ok(Step::End) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
