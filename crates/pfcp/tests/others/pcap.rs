//! Datagrams as a capture: IPv4 and UDP around each, without a link layer.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;

const PORT: u16 = 8805;

/// A datagram and its direction.
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    /// Set if it goes back to the sender of requests.
    pub(crate) answer: bool,
}

/// Writes a capture of datagrams.
pub(crate) fn write(path: &Path, datagrams: &[Datagram]) -> io::Result<()> {
    let mut out = io::BufWriter::new(std::fs::File::create(path)?);
    // Version 2.4, packets of up to 256 KiB, each of which begins with its IP header.
    let head: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0x4_0000, 101];
    for word in head {
        out.write_all(&word.to_le_bytes())?;
    }
    for (second, datagram) in (0_u32..).zip(datagrams) {
        let packet = packet(datagram);
        let length = u32::try_from(packet.len()).map_err(io::Error::other)?;
        for word in [second, 0, length, length] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&packet)?;
    }
    out.flush()
}

fn packet(datagram: &Datagram) -> Vec<u8> {
    let mut ends = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
    if datagram.answer {
        ends.reverse();
    }
    let length = |more: usize| {
        u16::try_from(datagram.bytes.len() + more)
            .expect("a packet has at most 65535 bytes")
            .to_be_bytes()
    };
    [
        &[0x45, 0][..],
        &length(28),
        &[0, 0, 0, 0, 64, 17, 0, 0],
        &ends[0].octets(),
        &ends[1].octets(),
        &PORT.to_be_bytes(),
        &PORT.to_be_bytes(),
        &length(8),
        &[0, 0],
        &datagram.bytes,
    ]
    .concat()
}
