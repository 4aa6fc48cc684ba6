use std::net::SocketAddr;
use std::time::Duration;

use etherparse::{IpFragOffset, IpNumber, Ipv4Header, PacketBuilder};

use super::{CaptureErrorKind, CaptureReader, CaptureWriter, CapturedDatagram};

const PAYLOAD: &[u8] = b"\x20\x01\x00\x0c\x00\x00\x01\x00\x00\x60\x00\x04\xe6\x00\x00\x00";

fn addresses(pair: [&str; 2]) -> [SocketAddr; 2] {
    pair.map(|address| address.parse().unwrap())
}

fn written() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = CaptureWriter::new(&mut bytes).unwrap();
    for (second, pair) in [
        ["127.0.0.1:8805", "127.0.0.2:40000"],
        ["[::1]:8805", "[fe80::2]:8805"],
    ]
    .iter()
    .enumerate()
    {
        let [src, dst] = addresses(*pair);
        let time = Duration::new(second as u64, 123_456_789);
        writer
            .write(time, src, dst, &PAYLOAD[..PAYLOAD.len() - second])
            .unwrap();
    }
    bytes
}

fn read(bytes: &[u8]) -> Vec<CapturedDatagram> {
    CaptureReader::new("memory", bytes)
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Returns a little-endian pcap file with timestamps in microseconds.
fn pcap(link_type: u32, packets: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend_from_slice(&u32::to_le_bytes(word));
    }
    for packet in packets {
        let length = u32::try_from(packet.len()).unwrap();
        for word in [7_u32, 8, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}

/// Returns a little-endian block of a pcapng file.
fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
    let length = u32::try_from(body.len() + 12).unwrap().to_le_bytes();
    [&block_type.to_le_bytes()[..], &length, &body, &length].concat()
}

fn ipv4_packet() -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(8805, 8805);
    builder.write(&mut packet, PAYLOAD).unwrap();
    packet
}

fn ipv6_packet() -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(8805, 8805);
    builder.write(&mut packet, PAYLOAD).unwrap();
    packet
}

/// Returns an IPv4 packet with a fragment of a UDP datagram.
fn fragment(offset: usize, more: bool, part: &[u8]) -> Vec<u8> {
    let length = u16::try_from(part.len()).unwrap();
    let mut header =
        Ipv4Header::new(length, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
    header.dont_fragment = false;
    header.more_fragments = more;
    header.identification = 77;
    header.fragment_offset = IpFragOffset::try_new(u16::try_from(offset / 8).unwrap()).unwrap();
    let mut packet = Vec::new();
    header.write(&mut packet).unwrap();
    packet.extend_from_slice(part);
    packet
}

#[test]
fn written_capture_reads_back() {
    let found = read(&written());
    assert_eq!(found.len(), 2);
    let [src, dst] = addresses(["127.0.0.1:8805", "127.0.0.2:40000"]);
    assert_eq!(
        (found[0].src, found[0].dst, &found[0].payload[..]),
        (src, dst, PAYLOAD)
    );
    assert_eq!(
        (found[0].number, found[0].timestamp.subsec_nanos()),
        (1, 123_456_789)
    );
    let [src, dst] = addresses(["[::1]:8805", "[fe80::2]:8805"]);
    assert_eq!((found[1].src, found[1].dst), (src, dst));
    assert_eq!(
        (found[1].number, found[1].payload.len()),
        (2, PAYLOAD.len() - 1)
    );
}

#[test]
fn all_supported_link_types_are_dissected() {
    let v4 = ipv4_packet();
    let mut tagged = vec![0; 12];
    tagged.extend([0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]);
    let mut sll = vec![0; 14];
    sll.extend([8, 0]);
    let mut sll2 = vec![8, 0];
    sll2.extend([0; 18]);
    let heads: [(u32, Vec<u8>); 8] = [
        (1, [vec![0; 12], vec![8, 0]].concat()),
        (1, tagged),
        (113, sll),
        (276, sll2),
        (101, Vec::new()),
        (228, Vec::new()),
        (0, vec![2, 0, 0, 0]),
        (108, vec![0, 0, 0, 2]),
    ];
    for (link_type, mut packet) in heads {
        packet.extend_from_slice(&v4);
        let found = read(&pcap(link_type, &[&packet]));
        assert_eq!(found.len(), 1, "link type {link_type}");
        assert_eq!(found[0].payload, PAYLOAD, "link type {link_type}");
    }
    assert_eq!(read(&pcap(229, &[&ipv6_packet()])).len(), 1);
}

#[test]
fn obsolete_packet_blocks_are_read() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let section: Vec<u8> = words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
    let interface: Vec<u8> = words(&[101, 0]);
    let packet = ipv4_packet();
    let length = u32::try_from(packet.len()).unwrap();
    // Interface 0, no drops; a second and a microsecond.
    let mut obsolete: Vec<u8> = words(&[0, 0, 1_000_001, length, length]);
    obsolete.extend_from_slice(&packet);
    let file = [
        block(0x0a0d_0d0a, &section),
        block(1, &interface),
        block(2, &obsolete),
    ];
    let found = read(&file.concat());
    assert_eq!(found.len(), 1);
    let time = Duration::new(1, 1000);
    assert_eq!((found[0].timestamp, &found[0].payload[..]), (time, PAYLOAD));
}

#[test]
fn unknown_link_type_is_counted_and_reported() {
    let file = pcap(147, &[&ipv4_packet()]);
    let mut capture = CaptureReader::new("memory", &file[..]);
    assert!(capture.next().is_none());
    assert_eq!(capture.skipped().first_unknown_link, Some(147));
    assert_eq!((capture.frames(), capture.skipped().unknown_link), (1, 1));
}

#[test]
fn fragments_are_reassembled_in_any_order() {
    let whole = ipv4_packet()[20..].to_vec();
    let parts = [
        fragment(16, false, &whole[16..]),
        fragment(0, true, &whole[..8]),
        fragment(0, true, &whole[..8]),
        fragment(8, true, &whole[8..16]),
    ];
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let found = read(&pcap(101, &parts));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].number, &found[0].payload[..]), (4, PAYLOAD));
}

#[test]
fn inconsistent_fragments_are_dropped() {
    let parts = [fragment(0, true, &[1; 16]), fragment(8, true, &[2; 16])];
    let file = pcap(101, &[&parts[0], &parts[1]]);
    let mut capture = CaptureReader::new("memory", &file[..]);
    assert!(capture.next().is_none());
    assert_eq!(capture.skipped().fragments, 1);
}

#[test]
fn icmp_quoted_datagram_is_marked() {
    let quoted = ipv4_packet();
    for cut in [0, 4] {
        let mut packet = Vec::new();
        let kind = etherparse::Icmpv4Type::DestinationUnreachable(
            etherparse::icmpv4::DestUnreachableHeader::Port,
        );
        PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
            .icmpv4(kind)
            .write(&mut packet, &quoted[..quoted.len() - cut])
            .unwrap();
        let found = read(&pcap(101, &[&packet]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].quoted, found[0].truncated), (true, cut > 0));
        assert_eq!(found[0].payload, PAYLOAD[..PAYLOAD.len() - cut]);
        assert_eq!(found[0].src.to_string(), "10.0.0.1:8805");
    }
}

#[test]
fn truncated_capture_is_error_or_ends_at_block() {
    let whole = written();
    for length in 0..whole.len() {
        let results: Vec<_> = CaptureReader::new("cut", &whole[..length]).collect();
        let datagrams = results.iter().filter(|result| result.is_ok()).count();
        assert!(datagrams <= 1 && results.len() <= datagrams + 1);
        if let Some(Err(error)) = results.last() {
            assert!(error.to_string().starts_with("cut: block "), "{error}");
            assert!(error.offset <= length as u64);
        }
    }
}

#[test]
fn a_corrupt_byte_never_panics() {
    let whole = [written(), pcap(1, &[&[0; 60], &ipv4_packet()])];
    for file in whole {
        for at in 0..file.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut corrupt = file.clone();
                corrupt[at] = value;
                assert!(CaptureReader::new("corrupt", &corrupt[..]).count() <= 3);
            }
        }
    }
}

#[test]
fn declared_block_length_is_not_trusted() {
    let mut file = written();
    file[64..68].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let last = CaptureReader::new("huge", &file[..]).last();
    let Some(Err(error)) = last else {
        panic!("a huge block was accepted: {last:?}");
    };
    assert!(
        matches!(error.kind, CaptureErrorKind::BlockLength(0xffff_fff0)),
        "{error}"
    );
    assert_eq!((error.block, error.offset), (2, 60));
}

#[test]
fn non_capture_file_is_reported() {
    for (bytes, reason) in [
        (&b""[..], "the file is empty"),
        (&b"GET / HTTP/1.1"[..], "neither pcap nor pcapng"),
        (&b"\x1f\x8b\x08\x00\x00"[..], "compressed with gzip"),
        (&b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00"[..], "cut short"),
    ] {
        let Some(Err(error)) = CaptureReader::new("memory", bytes).next() else {
            panic!("accepted {bytes:?}");
        };
        assert!(error.to_string().contains(reason), "{error}");
    }
}
