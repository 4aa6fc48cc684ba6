//! The fields of a leaf as data, decoded with its descriptor.

use std::iter;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::bits;
use super::descriptor::{Field, FieldExtent, FieldKind, FieldPresence, Leaf, ListItemKind};
use super::field::Reader;
use super::name;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A flag of one bit.
    Flag(bool),
    /// An unsigned number.
    Number(u64),
    /// A signed number.
    Signed(i64),
    /// Seconds since 1900.
    Time(u32),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A MAC address.
    Mac([u8; 6]),
    /// Bytes, to be interpreted according to the [`FieldKind`].
    Bytes(&'a [u8]),
}

impl Leaf {
    /// Returns an iterator over the fields of a checked value: name, kind, value. A flag that only
    /// announces a field comes before that field.
    #[must_use]
    pub fn read<'a>(&'static self, bytes: &'a [u8]) -> Values<'a> {
        let mut reader = Reader::new(bytes);
        let head = reader.head(0, self.head).unwrap_or(0);
        Values {
            fields: self.fields,
            reader,
            head,
            last_flag: None,
        }
    }
}

/// An iterator over the fields of a value; see [`Leaf::read`].
#[derive(Debug)]
pub struct Values<'a> {
    fields: &'static [Field],
    reader: Reader<'a>,
    head: u128,
    /// The flag that was returned last.
    last_flag: Option<u8>,
}

impl<'a> Values<'a> {
    fn value(&mut self, field: &Field) -> Option<Value<'a>> {
        let there = match field.when {
            FieldPresence::Always => true,
            FieldPresence::IfBytesRemain => !self.reader.is_empty(),
            FieldPresence::Flag { shift, .. } => self.head >> shift & 1 == 1,
            FieldPresence::Head { holds, .. } => holds(self.head),
        };
        if !there {
            return None;
        }
        match field.kind {
            FieldKind::Bits {
                shift, width: 1, ..
            } => Some(Value::Flag(self.head >> shift & 1 == 1)),
            FieldKind::Bits { shift, width, .. } => {
                let number = bits::get(bits::low(self.head), shift, width);
                Some(Value::Number(number))
            }
            kind => kind.read(&mut self.reader, self.head),
        }
    }
}

impl FieldKind {
    /// Decodes a value outside the head. Returns `None` if there are not enough bytes.
    pub(crate) fn read<'a>(self, reader: &mut Reader<'a>, head: u128) -> Option<Value<'a>> {
        Some(match self {
            Self::Bits { .. } => return None,
            Self::Number { bytes, width, .. } => Value::Number(reader.number(bytes, width).ok()?),
            Self::Signed { bytes } => Value::Signed(signed(reader.take(bytes).ok()?)),
            Self::Time => Value::Time(u32::from_be_bytes(reader.array().ok()?)),
            Self::Ipv4 => Value::Ipv4(reader.ipv4().ok()?),
            Self::Ipv6 => Value::Ipv6(reader.ipv6().ok()?),
            Self::Mac => Value::Mac(reader.array().ok()?),
            Self::Text(span)
            | Self::Bytes(span)
            | Self::Labels(span)
            | Self::Digits(span)
            | Self::List(_, span) => Value::Bytes(match span {
                FieldExtent::Rest => reader.rest(),
                FieldExtent::RestButLast => reader.rest_but_last().ok()?,
                FieldExtent::Length8 => reader.prefixed8().ok()?,
                FieldExtent::Length16 => reader.prefixed16().ok()?,
                FieldExtent::Fixed(bytes) => reader.take(usize::from(bytes)).ok()?,
                FieldExtent::Address => reader.address().ok()?,
                FieldExtent::MacAddresses => reader.mac_addresses().ok()?,
                FieldExtent::CountedItems => reader.counted16().ok()?,
                FieldExtent::Counted => reader.take(counted(head)).ok()?,
            }),
        })
    }
}

impl ListItemKind {
    /// Returns the encoding of an item.
    #[must_use]
    pub const fn kind(self) -> FieldKind {
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "one or two bytes")]
            Self::Number(bytes) => FieldKind::Number {
                bytes,
                width: 8 * bytes as u32,
                names: None,
            },
            Self::Mac => FieldKind::Mac,
            Self::Text => FieldKind::Text(FieldExtent::Length16),
            Self::Bytes => FieldKind::Bytes(FieldExtent::Length16),
        }
    }

    /// Returns an iterator over the items of an encoded list.
    pub fn values(self, bytes: &[u8]) -> impl Iterator<Item = Value<'_>> {
        let mut reader = Reader::new(bytes);
        iter::from_fn(move || (!reader.is_empty()).then(|| self.kind().read(&mut reader, 0))?)
    }
}

/// Decodes a number in two's complement, whose first bit is its sign.
fn signed(bytes: &[u8]) -> i64 {
    let sign = match bytes.first() {
        Some(first) if first & 0x80 != 0 => -1,
        _ => 0,
    };
    bytes
        .iter()
        .fold(sign, |number, byte| number << 8 | i64::from(*byte))
}

/// Returns the length in bytes of a list whose count is in the head: [`FieldExtent::Counted`].
pub(crate) fn counted(head: u128) -> usize {
    2 * usize::from(bits::get8(bits::low(head), 0, 4))
}

impl<'a> Iterator for Values<'a> {
    type Item = (&'static str, FieldKind, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (field, rest) = self.fields.split_first()?;
            if let FieldPresence::Flag { name, shift } = field.when
                && self.last_flag != Some(shift)
            {
                self.last_flag = Some(shift);
                let kind = FieldKind::Bits {
                    shift,
                    width: 1,
                    names: None,
                };
                return Some((name, kind, Value::Flag(self.head >> shift & 1 == 1)));
            }
            self.fields = rest;
            if let Some(value) = self.value(field) {
                return Some((field.name, field.kind, value));
            }
        }
    }
}

/// Returns the bytes as text, if encoding the text gives the same bytes.
pub(crate) fn text_of(kind: FieldKind, bytes: &[u8]) -> Option<String> {
    match kind {
        FieldKind::Text(_) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        FieldKind::Labels(_) => name::from_labels(bytes),
        FieldKind::Digits(_) => name::from_digits(bytes),
        _ => None,
    }
}
