//! Finding the IP packet in a captured frame.

use etherparse::{EtherType, LaxSlicedPacket};

/// The reason why the headers of a frame cannot be read.
#[derive(Debug)]
pub(super) enum SliceError {
    /// The headers are inconsistent or truncated.
    Malformed,
    /// The link type is not supported.
    UnknownLink,
}

/// Splits a frame of one of the link types of <https://www.tcpdump.org/linktypes.html> into its
/// headers.
pub(super) fn slice(link_type: u16, data: &[u8]) -> Result<LaxSlicedPacket<'_>, SliceError> {
    match link_type {
        ETHERNET => LaxSlicedPacket::from_ethernet(data).map_err(|_| SliceError::Malformed),
        LINUX_SLL => by_ether_type(data, 14, 16),
        LINUX_SLL2 => by_ether_type(data, 0, 20),
        // Four bytes of address family, in the byte order of the capturing host; the version of the
        // IP header has the same information.
        NULL | LOOP => data.get(4..).map_or(Err(SliceError::Malformed), ip),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => ip(data),
        _ => Err(SliceError::UnknownLink),
    }
}

/// Splits an IP packet into its headers.
pub(super) fn ip(data: &[u8]) -> Result<LaxSlicedPacket<'_>, SliceError> {
    LaxSlicedPacket::from_ip(data).map_err(|_| SliceError::Malformed)
}

fn by_ether_type(
    data: &[u8],
    protocol_at: usize,
    payload_at: usize,
) -> Result<LaxSlicedPacket<'_>, SliceError> {
    let protocol = data.get(protocol_at..protocol_at + 2);
    match (protocol, data.get(payload_at..)) {
        (Some(&[high, low]), Some(payload)) => {
            let protocol = EtherType(u16::from_be_bytes([high, low]));
            Ok(LaxSlicedPacket::from_ether_type(protocol, payload))
        }
        _ => Err(SliceError::Malformed),
    }
}

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
/// Raw IP, version 4 or 6.
pub(super) const RAW: u16 = 101;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;
