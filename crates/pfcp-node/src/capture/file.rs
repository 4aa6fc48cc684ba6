//! Cutting a pcap or pcapng file into packets.
//!
//! One block is in memory at a time, never more than `MAX_BLOCK`, and a length that a file claims
//! is only believed as octets arrive.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use thiserror::Error;

/// The longest block that is read: four times the largest snap length that tools set.
const MAX_BLOCK: u32 = 1 << 20;
/// The most interfaces that one section may describe.
const MAX_INTERFACES: usize = 4096;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// A capture file that cannot be read on, with the place where reading ended.
#[derive(Debug, Error)]
#[error("{file}: block {block} at offset {offset}: {kind}")]
pub struct CaptureError {
    /// The file, as the caller named it.
    pub file: String,
    /// The block (pcapng) or packet record (pcap), from 0: the file header of pcap is block 0.
    pub block: u64,
    /// The octet of the file at which the block starts.
    pub offset: u64,
    /// The reason.
    #[source]
    pub kind: CaptureErrorKind,
}

/// Why a capture file cannot be read on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The file has no octets.
    #[error("the file is empty")]
    Empty,
    /// The first octets are neither those of pcap nor of pcapng.
    #[error("neither pcap nor pcapng: the file starts with {0:#010x}")]
    UnknownFormat(u32),
    /// The file is compressed.
    #[error("the file is compressed with gzip; decompress it first")]
    Gzip,
    /// The file ends inside a block.
    #[error("the file is cut short: {have} octets, need {need}")]
    CutShort {
        /// The octets that are there.
        have: usize,
        /// The octets that the block claims.
        need: usize,
    },
    /// The length of a block cannot be right.
    #[error("block length {0} is not possible (at most {MAX_BLOCK}, a multiple of 4 in pcapng)")]
    BlockLength(u32),
    /// The two lengths of a block differ.
    #[error("block length {first} at its start, {second} at its end")]
    LengthsDiffer {
        /// The length at the start of the block.
        first: u32,
        /// The length at its end.
        second: u32,
    },
    /// The section header has no byte-order mark.
    #[error("the section header has no byte-order mark, but {0:#010x}")]
    ByteOrder(u32),
    /// A block is shorter than its fixed part, or its packet passes its end.
    #[error("block type {block_type:#x} is too short for what it must hold")]
    ShortBlock {
        /// The type of the block.
        block_type: u32,
    },
    /// A packet names an interface that no block described.
    #[error("the packet names interface {0}, which no block describes")]
    UnknownInterface(u32),
    /// A section describes too many interfaces.
    #[error("more than {MAX_INTERFACES} interfaces in one section")]
    TooManyInterfaces,
}

impl CaptureError {
    pub(super) fn at_start(file: String, kind: CaptureErrorKind) -> Self {
        Self {
            file,
            block: 0,
            offset: 0,
            kind,
        }
    }
}

/// One packet as it was captured.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    pub(super) timestamp: Duration,
    pub(super) link_type: u16,
    pub(super) data: &'a [u8],
}

#[derive(Debug)]
pub(super) enum Step<'a> {
    Packet(Packet<'a>),
    /// A block that holds no packet.
    Other,
    End,
}

/// A reader of packets, whatever the kind of the file.
pub(super) struct PacketFile<R> {
    name: String,
    reader: R,
    /// The block that is being looked at.
    block: u64,
    offset: u64,
    next_offset: u64,
    buffer: Vec<u8>,
    format: Format,
}

impl<R> fmt::Debug for PacketFile<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketFile")
            .field("name", &self.name)
            .field("block", &self.block)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Format {
    /// Nothing has been read.
    Start,
    Pcap {
        order: Order,
        link_type: u16,
        nanoseconds: bool,
        header: usize,
    },
    PcapNg {
        order: Order,
        interfaces: Vec<Interface>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u16,
    snap_length: u32,
    resolution: Resolution,
    offset: i64,
}

/// Ticks in a second.
#[derive(Clone, Copy, Debug)]
struct Resolution(u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, octets: &[u8], at: usize) -> Option<u16> {
        let field = octets.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        })
    }

    fn u32(self, octets: &[u8], at: usize) -> Option<u32> {
        let field = octets.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        })
    }

    fn i64(self, octets: &[u8]) -> Option<i64> {
        let field = octets.get(..8)?.try_into().ok()?;
        Some(match self {
            Self::Little => i64::from_le_bytes(field),
            Self::Big => i64::from_be_bytes(field),
        })
    }
}

type Found<T> = Result<T, CaptureErrorKind>;

impl<R: Read> PacketFile<R> {
    pub(super) fn new(name: String, reader: R) -> Self {
        Self {
            name,
            reader,
            block: 0,
            offset: 0,
            next_offset: 0,
            buffer: Vec::new(),
            format: Format::Start,
        }
    }

    /// Reads one block.
    pub(super) fn step(&mut self) -> Result<Step<'_>, CaptureError> {
        self.offset = self.next_offset;
        let (block, offset) = (self.block, self.offset);
        self.block += 1;
        let name = self.name.clone();
        self.read_block().map_err(|kind| CaptureError {
            file: name,
            block,
            offset,
            kind,
        })
    }

    fn read_block(&mut self) -> Found<Step<'_>> {
        self.buffer.clear();
        match self.format {
            Format::Start => self.start(),
            Format::Pcap {
                order,
                link_type,
                nanoseconds,
                header,
            } => self.pcap_record(order, link_type, nanoseconds, header),
            Format::PcapNg { .. } => {
                if self.fill(8)? == 0 {
                    return Ok(Step::End);
                }
                self.pcapng_block()
            }
        }
    }

    fn start(&mut self) -> Found<Step<'_>> {
        if self.fill(4)? == 0 {
            return Err(CaptureErrorKind::Empty);
        }
        let magic = Order::Little.u32(&self.buffer, 0).unwrap_or_default();
        let (order, nanoseconds, header) = match magic {
            SECTION_HEADER => {
                self.format = Format::PcapNg {
                    order: Order::Little,
                    interfaces: Vec::new(),
                };
                self.need(8)?;
                return self.pcapng_block();
            }
            0xa1b2_c3d4 => (Order::Little, false, 16),
            0xa1b2_3c4d => (Order::Little, true, 16),
            // Kuznetzov's variant has eight more octets in each record header.
            0xa1b2_cd34 => (Order::Little, false, 24),
            0xd4c3_b2a1 => (Order::Big, false, 16),
            0x4d3c_b2a1 => (Order::Big, true, 16),
            0x34cd_b2a1 => (Order::Big, false, 24),
            _ if magic & 0xffff == 0x8b1f => return Err(CaptureErrorKind::Gzip),
            _ => return Err(CaptureErrorKind::UnknownFormat(magic)),
        };
        self.need(24)?;
        // The upper half of the field holds the length of frame check sequences.
        let link_type = match order {
            Order::Little => order.u16(&self.buffer, 20),
            Order::Big => order.u16(&self.buffer, 22),
        };
        let link_type = link_type.unwrap_or_default();
        self.format = Format::Pcap {
            order,
            link_type,
            nanoseconds,
            header,
        };
        Ok(Step::Other)
    }

    fn pcap_record(
        &mut self,
        order: Order,
        link_type: u16,
        nanoseconds: bool,
        header: usize,
    ) -> Found<Step<'_>> {
        if self.fill(header)? == 0 {
            return Ok(Step::End);
        }
        let field = |at| order.u32(&self.buffer, at).unwrap_or_default();
        let (seconds, fraction, length) = (field(0), field(4), field(8));
        if length > MAX_BLOCK {
            return Err(CaptureErrorKind::BlockLength(length));
        }
        self.need(header + length as usize)?;
        let fraction =
            Duration::from_nanos(u64::from(fraction) * if nanoseconds { 1 } else { 1000 });
        Ok(Step::Packet(Packet {
            timestamp: Duration::from_secs(u64::from(seconds)) + fraction,
            link_type,
            data: &self.buffer[header..],
        }))
    }

    /// Reads the rest of a block whose first eight octets are in the buffer.
    fn pcapng_block(&mut self) -> Found<Step<'_>> {
        let Format::PcapNg { order, interfaces } = &mut self.format else {
            return Ok(Step::End);
        };
        if Order::Little.u32(&self.buffer, 0) == Some(SECTION_HEADER) {
            // The byte order is told by the block's own third field; a section starts afresh.
            interfaces.clear();
            self.need(12)?;
            let mark = Order::Little.u32(&self.buffer, 8).unwrap_or_default();
            let found = match mark {
                BYTE_ORDER_MAGIC => Order::Little,
                _ if mark == BYTE_ORDER_MAGIC.swap_bytes() => Order::Big,
                _ => return Err(CaptureErrorKind::ByteOrder(mark)),
            };
            if let Format::PcapNg { order, .. } = &mut self.format {
                *order = found;
            }
            self.whole_block(found)?;
            return Ok(Step::Other);
        }
        let order = *order;
        let (block_type, end) = self.whole_block(order)?;
        let short = || CaptureErrorKind::ShortBlock { block_type };
        let Format::PcapNg { interfaces, .. } = &mut self.format else {
            return Ok(Step::End);
        };
        let body = &self.buffer[8..end];
        match block_type {
            INTERFACE_DESCRIPTION => {
                if interfaces.len() == MAX_INTERFACES {
                    return Err(CaptureErrorKind::TooManyInterfaces);
                }
                interfaces.push(Interface::read(order, body).ok_or_else(short)?);
                Ok(Step::Other)
            }
            ENHANCED_PACKET | OBSOLETE_PACKET => {
                let id = if block_type == ENHANCED_PACKET {
                    order.u32(body, 0)
                } else {
                    order.u16(body, 0).map(u32::from)
                };
                let id = id.ok_or_else(short)?;
                let interface = interfaces.get(id as usize);
                let interface = interface.ok_or(CaptureErrorKind::UnknownInterface(id))?;
                let packet = interface.enhanced_packet(order, body).ok_or_else(short)?;
                Ok(Step::Packet(packet))
            }
            SIMPLE_PACKET => {
                let interface = interfaces
                    .first()
                    .ok_or(CaptureErrorKind::UnknownInterface(0))?;
                Ok(Step::Packet(
                    interface.simple_packet(order, body).ok_or_else(short)?,
                ))
            }
            _ => Ok(Step::Other),
        }
    }

    /// Reads the whole block; returns its type and where its body ends.
    fn whole_block(&mut self, order: Order) -> Found<(u32, usize)> {
        let block_type = order.u32(&self.buffer, 0).unwrap_or_default();
        let first = order.u32(&self.buffer, 4).unwrap_or_default();
        if first < 12 || !first.is_multiple_of(4) || first > MAX_BLOCK {
            return Err(CaptureErrorKind::BlockLength(first));
        }
        let end = first as usize - 4;
        self.need(first as usize)?;
        let second = order.u32(&self.buffer, end).unwrap_or_default();
        if first != second {
            return Err(CaptureErrorKind::LengthsDiffer { first, second });
        }
        Ok((block_type, end))
    }

    /// Fills the buffer up to `length` octets; less than that is an error, nothing at all is 0.
    fn fill(&mut self, length: usize) -> Found<usize> {
        let missing = length.saturating_sub(self.buffer.len());
        let read = (&mut self.reader)
            .take(missing as u64)
            .read_to_end(&mut self.buffer)
            .map_err(CaptureErrorKind::Read)?;
        self.next_offset += read as u64;
        if self.buffer.is_empty() || self.buffer.len() >= length {
            return Ok(self.buffer.len());
        }
        Err(CaptureErrorKind::CutShort {
            have: self.buffer.len(),
            need: length,
        })
    }

    fn need(&mut self, length: usize) -> Found<()> {
        self.fill(length).map(drop)
    }
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Option<Self> {
        let link_type = order.u16(body, 0)?;
        let snap_length = order.u32(body, 4)?;
        let mut interface = Self {
            link_type,
            snap_length,
            resolution: Resolution(1_000_000),
            offset: 0,
        };
        let mut options = body.get(8..)?;
        while let (Some(code), Some(length)) = (order.u16(options, 0), order.u16(options, 2)) {
            let Some(value) = options.get(4..4 + usize::from(length)) else {
                break;
            };
            match code {
                0 => break,
                9 => {
                    interface.resolution = value.first().map_or(interface.resolution, |&raw| {
                        Resolution::from_option(raw).unwrap_or(interface.resolution)
                    })
                }
                14 => interface.offset = order.i64(value).unwrap_or_default(),
                _ => {}
            }
            options = options.get(4 + usize::from(length).next_multiple_of(4)..)?;
        }
        Some(interface)
    }

    /// Reads an enhanced or an obsolete packet block: both have the same fields at the same places.
    fn enhanced_packet<'a>(&self, order: Order, body: &'a [u8]) -> Option<Packet<'a>> {
        let high = u128::from(order.u32(body, 4)?);
        let low = u128::from(order.u32(body, 8)?);
        let length = order.u32(body, 12)? as usize;
        let data = body.get(20..)?.get(..length)?;
        let timestamp = self.resolution.time((high << 32) | low, self.offset);
        Some(Packet {
            timestamp,
            link_type: self.link_type,
            data,
        })
    }

    /// Reads a simple packet block, which has neither a time nor a captured length.
    fn simple_packet<'a>(&self, order: Order, body: &'a [u8]) -> Option<Packet<'a>> {
        let original = order.u32(body, 0)?;
        let length = match self.snap_length {
            0 => original,
            limit => original.min(limit),
        };
        let data = body.get(4..)?.get(..length as usize)?;
        Some(Packet {
            timestamp: Duration::ZERO,
            link_type: self.link_type,
            data,
        })
    }
}

impl Resolution {
    fn from_option(raw: u8) -> Option<Self> {
        let exponent = u32::from(raw & 0x7f);
        if raw & 0x80 == 0 {
            10_u128
                .checked_pow(exponent)
                .filter(|&ticks| ticks <= u128::from(u64::MAX))
                .map(Self)
        } else {
            1_u128
                .checked_shl(exponent)
                .filter(|_| exponent < 64)
                .map(Self)
        }
    }

    fn time(self, ticks: u128, offset: i64) -> Duration {
        let seconds = i128::try_from(ticks / self.0).unwrap_or(0) + i128::from(offset);
        let nanoseconds = ticks % self.0 * 1_000_000_000 / self.0;
        Duration::new(
            u64::try_from(seconds.max(0)).unwrap_or(0),
            u32::try_from(nanoseconds).unwrap_or(0),
        )
    }
}
