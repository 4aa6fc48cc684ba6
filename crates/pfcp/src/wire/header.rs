//! The header of a message, TS 29.244 §7.2.2.
//!
//! ```text
//! octet 1     version: 3 | spare: 2 | FO: 1 | MP: 1 | S: 1
//! octet 2     message type
//! octet 3-4   length of everything after this field
//! octet 5-12  SEID, if S is set
//! then        sequence number: 3 bytes | priority: 4, if MP is set | spare
//! ```
//!
//! Decoding and encoding keep the spare bits, so that a message can be relayed or compared bit by
//! bit.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::message::MessageType;

/// A session endpoint identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seid(pub u64);

impl fmt::Display for Seid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl From<u64> for Seid {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

/// A sequence number of 24 bits, which wraps around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u32);

impl Sequence {
    /// The highest sequence number.
    pub const MAX: Self = Self(0x00ff_ffff);

    /// Creates a sequence number from the low 24 bits of `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MAX.0)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the next number, which is 0 after the highest one.
    #[must_use]
    pub const fn next(self) -> Self {
        // The number has 24 bits, so the sum does not overflow.
        Self::new(self.0 + 1)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u32> for Sequence {
    fn from(value: u32) -> Self {
        Self::new(value)
    }
}

/// The header of a message, TS 29.244 §7.2.2, without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The type of the message.
    pub message_type: MessageType,
    /// The SEID of the receiver. Node-related messages have none.
    pub seid: Option<Seid>,
    /// The number that matches a response with its request.
    pub sequence: Sequence,
    /// The message priority, 0 to 15, if its flag is set.
    pub priority: Option<u8>,
    /// `true` if another message follows in the same datagram.
    pub follow_on: bool,
    /// The spare bits, which are zero unless a peer set them: bits 5 and 4 of the first byte in
    /// the high byte, and the last byte of the header (without the priority) in the low byte.
    pub spare: u16,
}

impl Header {
    /// Creates the header of a node-related message.
    #[must_use]
    pub const fn node(message_type: MessageType, sequence: Sequence) -> Self {
        Self {
            message_type,
            seid: None,
            sequence,
            priority: None,
            follow_on: false,
            spare: 0,
        }
    }

    /// Creates the header of a session-related message.
    #[must_use]
    pub const fn session(message_type: MessageType, seid: Seid, sequence: Sequence) -> Self {
        let mut header = Self::node(message_type, sequence);
        header.seid = Some(seid);
        header
    }

    /// Returns the number of bytes of the header on the wire.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        if self.seid.is_some() { 16 } else { 8 }
    }

    /// Decodes a header and the length that it declares, in bytes of the whole message.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Version`] if the version is not 1, and [`ErrorKind::Header`] if the
    /// bytes or the declared length are too short for the header.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), Error> {
        let short = |need| {
            Error::new(
                0,
                ErrorKind::Header {
                    have: bytes.len(),
                    need,
                },
            )
        };
        let (first, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| short(8))?;
        let flags = first[0];
        // Before anything else: another version may lay out the rest differently, and its sender
        // gets a Version Not Supported Response (§7.6.2).
        if flags >> 5 != 1 {
            return Err(Error::new(0, ErrorKind::Version(flags >> 5)));
        }
        // The length does not count the first four bytes (§7.2.2).
        let length = 4 + usize::from(u16::from_be_bytes([first[2], first[3]]));
        // S decides the layout, not the message type: the type may be unknown. `MessageView`
        // compares both.
        let (seid, tail) = if flags & 1 == 0 {
            (None, [first[4], first[5], first[6], first[7]])
        } else {
            let rest = rest.first_chunk::<8>().ok_or_else(|| short(16))?;
            let mut seid = [first[4], first[5], first[6], first[7], 0, 0, 0, 0];
            seid[4..].copy_from_slice(&rest[..4]);
            (
                Some(Seid(u64::from_be_bytes(seid))),
                [rest[4], rest[5], rest[6], rest[7]],
            )
        };
        let priority = (flags & 2 != 0).then_some(tail[3] >> 4);
        // Without MP the four bits of the priority are spare as well.
        let mask = if priority.is_some() { 0x0f } else { 0xff };
        let header = Self {
            message_type: MessageType(first[1]),
            seid,
            sequence: Sequence(u32::from_be_bytes([0, tail[0], tail[1], tail[2]])),
            priority,
            follow_on: flags & 4 != 0,
            spare: u16::from(flags & 0x18) << 8 | u16::from(tail[3] & mask),
        };
        // A declared length shorter than the header would put the body before its start (§7.6.3).
        if length < header.encoded_len() {
            let need = header.encoded_len();
            return Err(Error::new(2, ErrorKind::Header { have: length, need }));
        }
        Ok((header, length))
    }

    /// Appends the header of a message whose body has `body` bytes.
    ///
    /// # Errors
    /// Returns [`ErrorKind::TooLong`] if header and body are too long for the length field, and
    /// [`ErrorKind::Range`] if the priority has more than four bits. Nothing is appended in that
    /// case.
    #[inline]
    pub fn encode(&self, body: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        // Both checks come before the first write, so that an error leaves `out` as it was.
        let length = u16::try_from(body + self.encoded_len() - 4)
            .map_err(|_| Error::new(0, ErrorKind::TooLong { have: body }))?;
        if self.priority.is_some_and(|priority| priority > 15) {
            return Err(Error::new(0, ErrorKind::Range { field: "priority" }));
        }
        let [spare_first, spare_last] = self.spare.to_be_bytes();
        let flags = 0x20
            | (spare_first & 0x18)
            | u8::from(self.follow_on) << 2
            | u8::from(self.priority.is_some()) << 1
            | u8::from(self.seid.is_some());
        let [high, low] = length.to_be_bytes();
        let last = match self.priority {
            Some(priority) => priority << 4 | (spare_last & 0x0f),
            None => spare_last,
        };
        let [_, a, b, c] = self.sequence.0.to_be_bytes();
        // Has the length of the longest header, so that a single copy checks the capacity once.
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&[flags, self.message_type.0, high, low]);
        bytes[4..8].copy_from_slice(&[a, b, c, last]);
        if let Some(seid) = self.seid {
            bytes[4..12].copy_from_slice(&seid.0.to_be_bytes());
            bytes[12..].copy_from_slice(&[a, b, c, last]);
        }
        let end = out.len() + self.encoded_len();
        out.extend_from_slice(&bytes);
        out.truncate(end);
        Ok(())
    }

    /// Sets the length of a message whose header starts at `start` and whose body ends at the end
    /// of `out`.
    #[inline]
    pub(crate) fn patch(&self, start: usize, out: &mut [u8]) -> Result<(), Error> {
        // The length of a body is known only when it is written, so the header is written first
        // with a body of zero bytes.
        let have = out.len() - start;
        let length =
            u16::try_from(have - 4).map_err(|_| Error::new(0, ErrorKind::TooLong { have }))?;
        out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}
