//! Finding the UDP datagram in an IP packet, or in the IP packet that an ICMP error quotes.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use etherparse::{Ipv6ExtensionSlice, LaxNetSlice};

use super::file::Packet;
use super::fragment::{FragmentKey, FragmentPosition, Fragments, Reassembly};
use super::link::{self, SliceError};
use super::{CapturedDatagram, SkippedPackets};

const ICMP: u8 = 1;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const UDP_HEADER: usize = 8;
const ICMP_HEADER: usize = 8;

/// A dissector that turns packets into datagrams, and holds the fragments of incomplete packets.
#[derive(Debug, Default)]
pub(super) struct Dissector {
    fragments: Fragments,
    pub(super) skipped: SkippedPackets,
}

/// The relevant fields of an IP header, and its payload.
struct IpPacket<'a> {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    payload: &'a [u8],
    fragment: Option<(u32, FragmentPosition)>,
}

/// The ports and the payload of a datagram.
struct Udp<'a> {
    src: u16,
    dst: u16,
    payload: &'a [u8],
    cut: bool,
}

impl Dissector {
    /// Returns the datagram that frame `number` contains or completes.
    pub(super) fn dissect(&mut self, number: u64, packet: &Packet<'_>) -> Option<CapturedDatagram> {
        let sliced = match link::slice(packet.link_type, packet.data) {
            Ok(sliced) => sliced,
            Err(SliceError::Malformed) => return self.malformed(),
            Err(SliceError::UnknownLink) => {
                self.skipped.unknown_link += 1;
                self.skipped
                    .first_unknown_link
                    .get_or_insert(packet.link_type);
                return None;
            }
        };
        let Some(ip) = sliced.net.as_ref().and_then(IpPacket::read) else {
            self.skipped.not_udp += 1;
            return None;
        };
        let whole;
        let (protocol, payload) = match ip.fragment {
            None => (ip.protocol, ip.payload),
            Some((identification, position)) => {
                let (src, dst, protocol) = (ip.src, ip.dst, ip.protocol);
                let key = FragmentKey {
                    src,
                    dst,
                    identification,
                    protocol,
                };
                whole = self.fragment(key, position, ip.payload)?;
                after_extensions(protocol, &whole)
            }
        };
        let (quoted, found) = match protocol {
            UDP => (false, Udp::read(payload).map(|udp| (ip.src, ip.dst, udp))),
            ICMP | ICMPV6 => match quoted_packet(protocol, payload) {
                Some(bytes) => (true, quoted_udp(bytes)),
                None => return self.not_udp(),
            },
            _ => return self.not_udp(),
        };
        let Some((src, dst, udp)) = found else {
            return if quoted {
                self.not_udp()
            } else {
                self.malformed()
            };
        };
        Some(CapturedDatagram {
            number,
            timestamp: packet.timestamp,
            src: SocketAddr::new(src, udp.src),
            dst: SocketAddr::new(dst, udp.dst),
            payload: Bytes::copy_from_slice(udp.payload),
            quoted,
            truncated: udp.cut,
        })
    }

    fn fragment(
        &mut self,
        key: FragmentKey,
        position: FragmentPosition,
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        let added = self.fragments.add(key, position, payload);
        self.skipped.fragments += std::mem::take(&mut self.fragments.evicted);
        match added {
            Reassembly::Complete(bytes) => Some(bytes),
            Reassembly::Waiting => None,
            Reassembly::Refused => {
                self.skipped.fragments += 1;
                None
            }
        }
    }

    fn malformed(&mut self) -> Option<CapturedDatagram> {
        self.skipped.malformed += 1;
        None
    }

    fn not_udp(&mut self) -> Option<CapturedDatagram> {
        self.skipped.not_udp += 1;
        None
    }
}

impl<'a> IpPacket<'a> {
    fn read(net: &LaxNetSlice<'a>) -> Option<Self> {
        match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let position = FragmentPosition {
                    offset: usize::from(header.fragments_offset().byte_offset()),
                    more: header.more_fragments(),
                };
                let id = u32::from(header.identification());
                let payload = ip.payload();
                Some(Self {
                    src: header.source_addr().into(),
                    dst: header.destination_addr().into(),
                    protocol: payload.ip_number.0,
                    payload: payload.payload,
                    fragment: header.is_fragmenting_payload().then_some((id, position)),
                })
            }
            LaxNetSlice::Ipv6(ip) => {
                let payload = ip.payload();
                let fragment = ip.extensions().clone().into_iter().find_map(|extension| {
                    let Ipv6ExtensionSlice::Fragment(fragment) = extension else {
                        return None;
                    };
                    let header = fragment.to_header();
                    let position = FragmentPosition {
                        offset: usize::from(header.fragment_offset.byte_offset()),
                        more: header.more_fragments,
                    };
                    fragment
                        .is_fragmenting_payload()
                        .then_some((header.identification, position))
                });
                Some(Self {
                    src: ip.header().source_addr().into(),
                    dst: ip.header().destination_addr().into(),
                    protocol: payload.ip_number.0,
                    payload: payload.payload,
                    fragment,
                })
            }
            LaxNetSlice::Arp(_) => None,
        }
    }
}

impl<'a> Udp<'a> {
    /// Reads a UDP header. The payload ends where the header says, or earlier if bytes are missing.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<UDP_HEADER>()?;
        let [s1, s0, d1, d0, l1, l0, _, _] = *header;
        let claimed = match usize::from(u16::from_be_bytes([l1, l0])) {
            // Zero stands for a payload that is too long for the field.
            0 => rest.len(),
            length => length.checked_sub(UDP_HEADER)?,
        };
        Some(Self {
            src: u16::from_be_bytes([s1, s0]),
            dst: u16::from_be_bytes([d1, d0]),
            payload: &rest[..claimed.min(rest.len())],
            cut: claimed > rest.len(),
        })
    }
}

/// Returns the bytes of the packet that an ICMP error quotes.
fn quoted_packet(protocol: u8, payload: &[u8]) -> Option<&[u8]> {
    let is_error = match (protocol, *payload.first()?) {
        (ICMP, kind) => matches!(kind, 3 | 4 | 5 | 11 | 12),
        (_, kind) => matches!(kind, 1..=4),
    };
    payload.get(ICMP_HEADER..).filter(|_| is_error)
}

fn quoted_udp(bytes: &[u8]) -> Option<(IpAddr, IpAddr, Udp<'_>)> {
    let sliced = link::ip(bytes).ok()?;
    let ip = sliced.net.as_ref().and_then(IpPacket::read)?;
    // Only the first fragment contains the ports.
    let first = ip.fragment.is_none_or(|(_, position)| position.offset == 0);
    let udp = Udp::read(ip.payload).filter(|_| ip.protocol == UDP && first)?;
    Some((ip.src, ip.dst, udp))
}

/// Skips the extension headers in the fragmented part of an IPv6 packet.
fn after_extensions(mut protocol: u8, mut bytes: &[u8]) -> (u8, &[u8]) {
    while let (0 | 43 | 60, &[next, length, ..]) = (protocol, bytes) {
        let Some(rest) = bytes.get((usize::from(length) + 1) * 8..) else {
            break;
        };
        (protocol, bytes) = (next, rest);
    }
    (protocol, bytes)
}
