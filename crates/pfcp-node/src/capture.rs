//! Reading and writing of captures: pcap and pcapng files as a stream of UDP datagrams.
//!
//! Reading has three stages: `file` splits a file into packets (with bounded memory, and errors
//! that name block and offset), `link` finds the IP packet in a frame, and `packet` finds the UDP
//! datagram in it, reassembling fragments and decoding ICMP errors. Packets other than UDP are
//! skipped and counted.

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

use file::{NextBlock, PacketFile};
use packet::Dissector;

/// The UDP port of PFCP.
pub const PFCP_PORT: u16 = 8805;

/// A UDP datagram in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedDatagram {
    /// The number of the frame that completed the datagram, counted from 1 as tshark does.
    pub number: u64,
    /// The time of that frame, since the Unix epoch.
    pub timestamp: Duration,
    /// Address and port of the sender.
    pub src: SocketAddr,
    /// Address and port of the receiver.
    pub dst: SocketAddr,
    /// The payload of the datagram.
    pub payload: Bytes,
    /// Set if the datagram was quoted in an ICMP error, so that it was sent earlier and appears
    /// again.
    pub quoted: bool,
    /// Set if bytes are missing at the end, because of a short quotation or a capture with a snap
    /// length.
    pub truncated: bool,
}

impl CapturedDatagram {
    /// Returns `true` if one of the two ports is the PFCP port.
    #[must_use]
    pub fn is_pfcp(&self) -> bool {
        self.src.port() == PFCP_PORT || self.dst.port() == PFCP_PORT
    }
}

/// Counters of the packets that a reader skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedPackets {
    /// Number of packets with an unsupported link type.
    pub unknown_link: u64,
    /// The first unsupported link type.
    pub first_unknown_link: Option<u16>,
    /// Number of packets that contain neither UDP nor an ICMP error about UDP.
    pub not_udp: u64,
    /// Number of packets whose headers are inconsistent or truncated.
    pub malformed: u64,
    /// Number of incomplete packets that were discarded because their fragments contradicted each
    /// other, or because too many packets were incomplete.
    pub fragments: u64,
}

/// An iterator over the UDP datagrams of a pcap or pcapng file, in the order of the file.
///
/// The iterator ends after the first error, since the start of the next block is unknown after a
/// broken one.
///
/// ```
/// use strowger_pfcp_node::{CaptureReader, CaptureWriter};
///
/// let mut bytes = Vec::new();
/// let mut writer = CaptureWriter::new(&mut bytes)?;
/// let (from, to) = ("127.0.0.1:8805".parse()?, "127.0.0.2:8805".parse()?);
/// writer.write(std::time::Duration::from_secs(1), from, to, b"hello")?;
/// drop(writer);
///
/// let datagrams: Vec<_> = CaptureReader::new("memory", &bytes[..]).collect::<Result<_, _>>()?;
/// assert_eq!((datagrams[0].src, &datagrams[0].payload[..]), (from, &b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CaptureReader<R> {
    file: PacketFile<R>,
    dissector: Dissector,
    frames: u64,
    ended: bool,
}

impl CaptureReader<BufReader<File>> {
    /// Opens a capture file; its format is detected from its first bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self::new(name, BufReader::with_capacity(64 * 1024, file))),
            Err(error) => Err(CaptureError::at_start(name, CaptureErrorKind::Open(error))),
        }
    }
}

impl<R: Read> CaptureReader<R> {
    /// Creates a reader of a capture; `name` stands for the file in errors.
    pub fn new(name: impl Into<String>, reader: R) -> Self {
        let file = PacketFile::new(name.into(), reader);
        Self {
            file,
            dissector: Dissector::default(),
            frames: 0,
            ended: false,
        }
    }

    /// Returns the number of frames read so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the counters of skipped packets so far.
    pub fn skipped(&self) -> SkippedPackets {
        self.dissector.skipped
    }
}

impl<R: Read> Iterator for CaptureReader<R> {
    type Item = Result<CapturedDatagram, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.file.step() {
                Ok(NextBlock::Packet(packet)) => {
                    self.frames += 1;
                    if let Some(datagram) = self.dissector.dissect(self.frames, &packet) {
                        return Some(Ok(datagram));
                    }
                }
                Ok(NextBlock::Other) => {}
                Ok(NextBlock::End) => self.ended = true,
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
