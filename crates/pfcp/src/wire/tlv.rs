//! Elements one after another, without tables: for callers that look at few types and need no
//! index.
//!
//! An iterator borrows the bytes and counts offsets. Each length is checked against the rest of the
//! enclosing value, so an element never reaches out of its group.

use std::iter::FusedIterator;

use crate::error::{Error, ErrorKind};
use crate::ie::IeType;

/// An encoded element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// The type of the element.
    pub ie: IeType,
    /// The enterprise number of a vendor-specific element.
    pub enterprise: Option<u16>,
    /// The bytes of the value, without the enterprise number.
    pub value: &'a [u8],
    /// The offset of the element, relative to the start given to [`Tlvs`].
    pub offset: usize,
}

impl Tlv<'_> {
    /// Returns the offset of the value.
    #[must_use]
    pub const fn value_offset(&self) -> usize {
        self.offset + if self.enterprise.is_some() { 6 } else { 4 }
    }
}

/// An iterator over consecutive elements, without descending into groups. It ends after its first
/// error.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Tlvs<'a> {
    /// Iterates over `bytes`, with offsets from their start.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Iterates over `bytes`, with offsets that start at `offset`.
    #[must_use]
    pub const fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }

    /// Returns the remaining bytes.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[cold]
    fn broken(&mut self, kind: ErrorKind) -> Error {
        // The start of the next element is unknown, so the iterator ends here.
        self.rest = &[];
        Error::new(self.offset, kind)
    }

    #[inline]
    fn element(&mut self) -> Result<Tlv<'a>, Error> {
        // Type and length are two bytes each, and the length excludes both (TS 29.244 §8.1.1).
        let Some((head, rest)) = self.rest.split_first_chunk::<4>() else {
            let have = self.rest.len();
            return Err(self.broken(ErrorKind::ElementHeader { have }));
        };
        let ie = IeType(u16::from_be_bytes([head[0], head[1]]));
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let Some((value, rest)) = rest.split_at_checked(length) else {
            let have = rest.len();
            let kind = ErrorKind::Overrun {
                have,
                declared: length,
            };
            return Err(self.broken(kind).within(ie, None));
        };
        // Types from 32768 on belong to vendors, and the length includes their Enterprise ID
        // (§8.1.1).
        let (enterprise, value) = if ie.is_vendor() {
            let Some((number, value)) = value.split_first_chunk::<2>() else {
                return Err(self
                    .broken(ErrorKind::Enterprise { have: length })
                    .within(ie, None));
            };
            (Some(u16::from_be_bytes(*number)), value)
        } else {
            (None, value)
        };
        let tlv = Tlv {
            ie,
            enterprise,
            value,
            offset: self.offset,
        };
        self.rest = rest;
        self.offset += 4 + length;
        Ok(tlv)
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(self.element())
    }
}

impl FusedIterator for Tlvs<'_> {}
