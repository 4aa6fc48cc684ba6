//! Writing of datagrams as pcapng, for other tools to read.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use etherparse::PacketBuilder;

use super::link;

/// A writer of a pcapng file of UDP datagrams, with generated IP and UDP headers.
///
/// Datagrams are in the file after a call of [`flush`](Self::flush). The file is complete at each
/// such point, so a killed writer leaves a readable file.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    out: W,
    block: Vec<u8>,
}

impl CaptureWriter<BufWriter<File>> {
    /// Creates the file, or truncates an existing one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or written.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut writer = Self::new(BufWriter::new(File::create(path)?))?;
        writer.flush()?;
        Ok(writer)
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture on `out`.
    ///
    /// # Errors
    /// Returns an error if the header cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        // A section header of version 1.0 and unknown length, then one interface of raw IP with
        // timestamps in nanoseconds.
        let mut head = Vec::with_capacity(64);
        for word in [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        for word in [1, 32, u32::from(link::RAW), 0] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        head.extend_from_slice(&[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        head.extend_from_slice(&32_u32.to_le_bytes());
        out.write_all(&head)?;
        Ok(Self {
            out,
            block: Vec::with_capacity(2048),
        })
    }

    /// Writes a datagram; `timestamp` is the time since the Unix epoch.
    ///
    /// # Errors
    /// Returns an error if writing fails, or if the payload is too long for a UDP datagram.
    pub fn write(
        &mut self,
        timestamp: Duration,
        src: SocketAddr,
        dst: SocketAddr,
        payload: &[u8],
    ) -> io::Result<()> {
        let builder = match same_family(src.ip(), dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                PacketBuilder::ipv4(src.octets(), dst.octets(), 64)
            }
            (src, dst) => PacketBuilder::ipv6(v6_bytes(src), v6_bytes(dst), 64),
        }
        .udp(src.port(), dst.port());
        let length = builder.size(payload.len());
        let padded = length.next_multiple_of(4);
        let too_long = |_| io::Error::other("a datagram longer than UDP can carry");
        let packet_length = u32::try_from(length).map_err(too_long)?;
        let total = u32::try_from(32 + padded).map_err(too_long)?;
        let nanoseconds = u64::try_from(timestamp.as_nanos())
            .unwrap_or(u64::MAX)
            .to_be_bytes();
        let [h3, h2, h1, h0, l3, l2, l1, l0] = nanoseconds;

        self.block.clear();
        let time = [
            u32::from_be_bytes([h3, h2, h1, h0]),
            u32::from_be_bytes([l3, l2, l1, l0]),
        ];
        for word in [6, total, 0, time[0], time[1], packet_length, packet_length] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        builder
            .write(&mut self.block, payload)
            .map_err(io::Error::other)?;
        self.block.resize(28 + padded, 0);
        self.block.extend_from_slice(&total.to_le_bytes());
        self.out.write_all(&self.block)
    }

    /// Passes everything written so far to the operating system.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns both addresses in one family: IPv4 if both can be converted to it, or else IPv6.
fn same_family(src: IpAddr, dst: IpAddr) -> (IpAddr, IpAddr) {
    match (src.to_canonical(), dst.to_canonical()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => (src.into(), dst.into()),
        (src, dst) => (src, dst),
    }
}

fn v6_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
