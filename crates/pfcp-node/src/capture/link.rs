//! Finding the IP packet in a captured frame.

use etherparse::{EtherType, LaxSlicedPacket};

/// Why a frame has no headers to read.
#[derive(Debug)]
pub(super) enum Unsliced {
    /// The headers end early or contradict themselves.
    Malformed,
    /// The link type is not understood.
    UnknownLink,
}

/// Slices a frame of one of the link types of <https://www.tcpdump.org/linktypes.html>.
pub(super) fn slice(link_type: u16, data: &[u8]) -> Result<LaxSlicedPacket<'_>, Unsliced> {
    match link_type {
        ETHERNET => LaxSlicedPacket::from_ethernet(data).map_err(|_| Unsliced::Malformed),
        LINUX_SLL => by_ether_type(data, 14, 16),
        LINUX_SLL2 => by_ether_type(data, 0, 20),
        // Four octets of address family, in the byte order of the capturing host; the version of
        // the IP header says the same.
        NULL | LOOP => data.get(4..).map_or(Err(Unsliced::Malformed), ip),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => ip(data),
        _ => Err(Unsliced::UnknownLink),
    }
}

/// Slices an IP packet.
pub(super) fn ip(data: &[u8]) -> Result<LaxSlicedPacket<'_>, Unsliced> {
    LaxSlicedPacket::from_ip(data).map_err(|_| Unsliced::Malformed)
}

fn by_ether_type(
    data: &[u8],
    protocol_at: usize,
    payload_at: usize,
) -> Result<LaxSlicedPacket<'_>, Unsliced> {
    let protocol = data.get(protocol_at..protocol_at + 2);
    match (protocol, data.get(payload_at..)) {
        (Some(&[high, low]), Some(payload)) => {
            let protocol = EtherType(u16::from_be_bytes([high, low]));
            Ok(LaxSlicedPacket::from_ether_type(protocol, payload))
        }
        _ => Err(Unsliced::Malformed),
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
