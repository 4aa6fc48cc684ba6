//! Splitting of a pcap or pcapng file into packets.
//!
//! One block is in memory at a time, never more than `MAX_BLOCK` bytes. Memory grows only as data
//! arrives, whatever length a file claims.
//!
//! The crates for this leave something out: `pcap-parser` passes over obsolete packet blocks, and
//! its errors have no offset; `pcap-file` does not know Kuznetzov's variant.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use thiserror::Error;

/// The maximum length of a block: four times the largest snap length that tools set.
const MAX_BLOCK: u32 = 1 << 20;
/// The maximum number of interfaces of a section.
const MAX_INTERFACES: usize = 4096;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// The error returned when a capture file cannot be read further, with its position.
#[derive(Debug, Error)]
#[error("{file}: block {block} at offset {offset}: {kind}")]
pub struct CaptureError {
    /// The file, as named by the caller.
    pub file: String,
    /// The index of the block (pcapng) or packet record (pcap), from 0: the file header of pcap is
    /// block 0.
    pub block: u64,
    /// The offset of the block in the file, in bytes.
    pub offset: u64,
    /// The flaw of the file.
    #[source]
    pub kind: CaptureErrorKind,
}

/// The reason why a capture file cannot be read further.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    /// The operating system failed to read the file.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The first bytes are neither those of pcap nor of pcapng.
    #[error("neither pcap nor pcapng: the file starts with {0:#010x}")]
    UnknownFormat(u32),
    /// The file is compressed.
    #[error("the file is compressed with gzip; decompress it first")]
    Gzip,
    /// The file ends inside a block.
    #[error("the file is cut short: {have} bytes, need {need}")]
    CutShort {
        /// Number of bytes that are available.
        have: usize,
        /// Number of bytes that the block claims.
        need: usize,
    },
    /// The length of a block is invalid.
    #[error("block length {0} is not possible (at most {MAX_BLOCK}, a multiple of 4 in pcapng)")]
    BlockLength(u32),
    /// The lengths at the start and the end of a block differ.
    #[error("block length {first} at its start, {second} at its end")]
    LengthsDiffer {
        /// The length at the start of the block.
        first: u32,
        /// The length at the end of the block.
        second: u32,
    },
    /// The section header has no byte-order mark.
    #[error("the section header has no byte-order mark, but {0:#010x}")]
    ByteOrder(u32),
    /// A block is shorter than its fixed part, or its packet extends beyond its end.
    #[error("block type {block_type:#x} is too short for what it must hold")]
    ShortBlock {
        /// The type of the block.
        block_type: u32,
    },
    /// A packet refers to an interface that no block described.
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

/// A captured packet.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    pub(super) timestamp: Duration,
    pub(super) link_type: u16,
    pub(super) data: &'a [u8],
}

#[derive(Debug)]
pub(super) enum NextBlock<'a> {
    Packet(Packet<'a>),
    /// A block without a packet.
    Other,
    End,
}

/// A reader of the packets of a file of either format.
pub(super) struct PacketFile<R> {
    name: String,
    reader: R,
    /// The index of the current block.
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
    /// Nothing has been read yet.
    Start,
    Pcap {
        order: ByteOrder,
        link_type: u16,
        nanoseconds: bool,
        header: usize,
    },
    PcapNg {
        order: ByteOrder,
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

/// The number of ticks per second.
#[derive(Clone, Copy, Debug)]
struct Resolution(u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        })
    }

    fn i64(self, bytes: &[u8]) -> Option<i64> {
        let field = bytes.get(..8)?.try_into().ok()?;
        Some(match self {
            Self::Little => i64::from_le_bytes(field),
            Self::Big => i64::from_be_bytes(field),
        })
    }
}

type ParseResult<T> = Result<T, CaptureErrorKind>;

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
    pub(super) fn step(&mut self) -> Result<NextBlock<'_>, CaptureError> {
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

    fn read_block(&mut self) -> ParseResult<NextBlock<'_>> {
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
                    return Ok(NextBlock::End);
                }
                self.pcapng_block()
            }
        }
    }

    fn start(&mut self) -> ParseResult<NextBlock<'_>> {
        if self.fill(4)? == 0 {
            return Err(CaptureErrorKind::Empty);
        }
        let magic = ByteOrder::Little.u32(&self.buffer, 0).unwrap_or_default();
        let (order, nanoseconds, header) = match magic {
            SECTION_HEADER => {
                self.format = Format::PcapNg {
                    order: ByteOrder::Little,
                    interfaces: Vec::new(),
                };
                self.need(8)?;
                return self.pcapng_block();
            }
            0xa1b2_c3d4 => (ByteOrder::Little, false, 16),
            0xa1b2_3c4d => (ByteOrder::Little, true, 16),
            // Kuznetzov's variant has eight more bytes in each record header.
            0xa1b2_cd34 => (ByteOrder::Little, false, 24),
            0xd4c3_b2a1 => (ByteOrder::Big, false, 16),
            0x4d3c_b2a1 => (ByteOrder::Big, true, 16),
            0x34cd_b2a1 => (ByteOrder::Big, false, 24),
            _ if magic & 0xffff == 0x8b1f => return Err(CaptureErrorKind::Gzip),
            _ => return Err(CaptureErrorKind::UnknownFormat(magic)),
        };
        self.need(24)?;
        // The upper half of the field contains the length of frame check sequences.
        let link_type = match order {
            ByteOrder::Little => order.u16(&self.buffer, 20),
            ByteOrder::Big => order.u16(&self.buffer, 22),
        };
        let link_type = link_type.unwrap_or_default();
        self.format = Format::Pcap {
            order,
            link_type,
            nanoseconds,
            header,
        };
        Ok(NextBlock::Other)
    }

    fn pcap_record(
        &mut self,
        order: ByteOrder,
        link_type: u16,
        nanoseconds: bool,
        header: usize,
    ) -> ParseResult<NextBlock<'_>> {
        if self.fill(header)? == 0 {
            return Ok(NextBlock::End);
        }
        let field = |at| order.u32(&self.buffer, at).unwrap_or_default();
        let (seconds, fraction, length) = (field(0), field(4), field(8));
        if length > MAX_BLOCK {
            return Err(CaptureErrorKind::BlockLength(length));
        }
        self.need(header + length as usize)?;
        let fraction =
            Duration::from_nanos(u64::from(fraction) * if nanoseconds { 1 } else { 1000 });
        Ok(NextBlock::Packet(Packet {
            timestamp: Duration::from_secs(u64::from(seconds)) + fraction,
            link_type,
            data: &self.buffer[header..],
        }))
    }

    /// Reads the rest of a block whose first eight bytes are in the buffer.
    fn pcapng_block(&mut self) -> ParseResult<NextBlock<'_>> {
        let Format::PcapNg { order, interfaces } = &mut self.format else {
            return Ok(NextBlock::End);
        };
        if ByteOrder::Little.u32(&self.buffer, 0) == Some(SECTION_HEADER) {
            // The third field of the block determines the byte order; a section starts with no
            // interfaces.
            interfaces.clear();
            self.need(12)?;
            let mark = ByteOrder::Little.u32(&self.buffer, 8).unwrap_or_default();
            let found = match mark {
                BYTE_ORDER_MAGIC => ByteOrder::Little,
                _ if mark == BYTE_ORDER_MAGIC.swap_bytes() => ByteOrder::Big,
                _ => return Err(CaptureErrorKind::ByteOrder(mark)),
            };
            if let Format::PcapNg { order, .. } = &mut self.format {
                *order = found;
            }
            self.read_whole_block(found)?;
            return Ok(NextBlock::Other);
        }
        let order = *order;
        let (block_type, end) = self.read_whole_block(order)?;
        let short = || CaptureErrorKind::ShortBlock { block_type };
        let Format::PcapNg { interfaces, .. } = &mut self.format else {
            return Ok(NextBlock::End);
        };
        let body = &self.buffer[8..end];
        match block_type {
            INTERFACE_DESCRIPTION => {
                if interfaces.len() == MAX_INTERFACES {
                    return Err(CaptureErrorKind::TooManyInterfaces);
                }
                interfaces.push(Interface::read(order, body).ok_or_else(short)?);
                Ok(NextBlock::Other)
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
                Ok(NextBlock::Packet(packet))
            }
            SIMPLE_PACKET => {
                let interface = interfaces
                    .first()
                    .ok_or(CaptureErrorKind::UnknownInterface(0))?;
                Ok(NextBlock::Packet(
                    interface.simple_packet(order, body).ok_or_else(short)?,
                ))
            }
            _ => Ok(NextBlock::Other),
        }
    }

    /// Reads the complete block; returns its type and the end of its body.
    fn read_whole_block(&mut self, order: ByteOrder) -> ParseResult<(u32, usize)> {
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

    /// Fills the buffer up to `length` bytes. Returns 0 at the end of the file, and an error if
    /// fewer bytes are available.
    fn fill(&mut self, length: usize) -> ParseResult<usize> {
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

    fn need(&mut self, length: usize) -> ParseResult<()> {
        self.fill(length).map(drop)
    }
}

impl Interface {
    fn read(order: ByteOrder, body: &[u8]) -> Option<Self> {
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

    /// Reads an enhanced or an obsolete packet block, which have the same fields at the same
    /// offsets.
    fn enhanced_packet<'a>(&self, order: ByteOrder, body: &'a [u8]) -> Option<Packet<'a>> {
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

    /// Reads a simple packet block, which has neither a timestamp nor a captured length.
    fn simple_packet<'a>(&self, order: ByteOrder, body: &'a [u8]) -> Option<Packet<'a>> {
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
