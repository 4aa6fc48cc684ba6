//! Encoding of values from named fields, driven by descriptors.

#[cfg(feature = "serde")]
use super::bits;
use super::descriptor::{FieldExtent, FieldKind};
#[cfg(feature = "serde")]
use super::descriptor::{FieldPresence, Leaf};
use super::field::{put_address, put_counted16, put_mac_addresses, put_number, put_prefixed};
#[cfg(feature = "serde")]
use super::name;
use super::value::{Value, counted};

#[cfg(feature = "serde")]
impl Leaf {
    /// Appends a value encoded from its fields. `get` returns the value of a field by name.
    ///
    /// If `get` does not return a required field, returns the name of that field.
    pub(crate) fn write(
        &self,
        get: &mut dyn FnMut(&'static str, FieldKind) -> Option<FieldInput>,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let mut head = 0u128;
        let mut given = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            let value = get(field.name, field.kind);
            if let FieldKind::Bits { shift, width, .. } = field.kind {
                head |= match value {
                    Some(FieldInput::Number(flag)) if width == 1 => u128::from(flag & 1) << shift,
                    Some(FieldInput::Number(number)) => bits::put(number, shift, width).into(),
                    None if width == 1 => 0,
                    _ => return Err(field.name),
                };
            } else if let FieldPresence::Flag { name, shift } = field.when {
                let flag = FieldKind::Bits {
                    shift,
                    width: 1,
                    names: None,
                };
                let flag_value = match get(name, flag) {
                    Some(FieldInput::Number(number)) => number & 1,
                    _ => u64::from(value.is_some()),
                };
                head |= u128::from(flag_value) << shift;
            }
            given.push(value);
        }
        out.extend_from_slice(&head.to_le_bytes()[..self.head_len_to_write(head)]);
        for (field, value) in self.fields.iter().zip(given) {
            let there = match field.when {
                _ if matches!(field.kind, FieldKind::Bits { .. }) => false,
                FieldPresence::Always => true,
                FieldPresence::IfBytesRemain => value.is_some(),
                FieldPresence::Flag { shift, .. } => head >> shift & 1 == 1,
                FieldPresence::Head { holds, .. } => holds(head),
            };
            if there {
                value
                    .and_then(|value| value.put(field.kind, head, out))
                    .ok_or(field.name)?;
            }
        }
        Ok(())
    }

    /// Returns the number of bytes of the head to write: at least the mandatory ones and those in
    /// use.
    fn head_len_to_write(&self, head: u128) -> usize {
        let bytes = head.to_le_bytes();
        let used = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        used.max(self.min.min(self.head))
    }
}

/// A value supplied for a field.
pub(crate) enum FieldInput {
    Number(u64),
    Bytes(Vec<u8>),
}

impl FieldInput {
    /// Converts a value for a field of a kind, if the field can hold it.
    pub(crate) fn of(value: Value<'_>, kind: FieldKind) -> Option<Self> {
        Some(match (value, kind) {
            (Value::Number(number), FieldKind::Number { width, .. }) => {
                Self::Number(checked_width(number, width)?)
            }
            (Value::Signed(number), FieldKind::Signed { bytes }) => {
                Self::Number(checked_signed_width(number, bytes)?)
            }
            (Value::Time(seconds), FieldKind::Time) => Self::Number(seconds.into()),
            (Value::Ipv4(address), FieldKind::Ipv4) => Self::Bytes(address.octets().to_vec()),
            (Value::Ipv6(address), FieldKind::Ipv6) => Self::Bytes(address.octets().to_vec()),
            (Value::Mac(address), FieldKind::Mac) => Self::Bytes(address.to_vec()),
            (
                Value::Bytes(bytes),
                FieldKind::Text(_)
                | FieldKind::Bytes(_)
                | FieldKind::Labels(_)
                | FieldKind::Digits(_),
            ) => Self::Bytes(bytes.to_vec()),
            _ => return None,
        })
    }

    /// Appends the value. Returns `None` if the field, or the head before it, cannot hold it.
    pub(crate) fn put(self, kind: FieldKind, head: u128, out: &mut Vec<u8>) -> Option<()> {
        match (self, kind) {
            (Self::Number(number), FieldKind::Number { bytes, width, .. }) => {
                put_number(number & (u64::MAX >> (64 - width)), bytes, out);
            }
            (Self::Number(number), FieldKind::Signed { bytes }) => put_number(number, bytes, out),
            (Self::Number(number), FieldKind::Time) => put_number(number, 4, out),
            (Self::Bytes(bytes), FieldKind::Ipv4) if bytes.len() == 4 => out.extend(bytes),
            (Self::Bytes(bytes), FieldKind::Ipv6) if bytes.len() == 16 => out.extend(bytes),
            (Self::Bytes(bytes), FieldKind::Mac) if bytes.len() == 6 => out.extend(bytes),
            (
                Self::Bytes(bytes),
                FieldKind::Text(span)
                | FieldKind::Bytes(span)
                | FieldKind::Labels(span)
                | FieldKind::Digits(span)
                | FieldKind::List(_, span),
            ) => match span {
                FieldExtent::Rest | FieldExtent::RestButLast => out.extend(bytes),
                FieldExtent::Length8 => put_prefixed(&bytes, 1, out).then_some(())?,
                FieldExtent::Length16 => put_prefixed(&bytes, 2, out).then_some(())?,
                FieldExtent::Fixed(need) if bytes.len() == usize::from(need) => out.extend(bytes),
                FieldExtent::Address => put_address(&bytes, out).then_some(())?,
                FieldExtent::MacAddresses => put_mac_addresses(&bytes, out).then_some(())?,
                FieldExtent::CountedItems => put_counted16(&bytes, out).then_some(())?,
                FieldExtent::Counted if bytes.len() == counted(head) => out.extend(bytes),
                FieldExtent::Fixed(_) | FieldExtent::Counted => return None,
            },
            _ => return None,
        }
        Some(())
    }
}

/// Returns the number if it fits into `width` bits.
pub(crate) fn checked_width(number: u64, width: u32) -> Option<u64> {
    (u64::BITS - number.leading_zeros() <= width).then_some(number)
}

/// Returns the two's complement of the number if it fits into `bytes` bytes.
pub(crate) fn checked_signed_width(number: i64, bytes: usize) -> Option<u64> {
    // The bits above the field repeat the sign.
    let above = u32::try_from(8 * bytes).ok()?.saturating_sub(1).min(63);
    matches!(number >> above, 0 | -1).then_some(number.cast_unsigned())
}

/// Returns the encoded bytes of a text.
#[cfg(feature = "serde")]
pub(crate) fn bytes_of(kind: FieldKind, text: &str) -> Option<Vec<u8>> {
    match kind {
        FieldKind::Text(_) => Some(text.as_bytes().to_vec()),
        FieldKind::Labels(_) => Some(name::to_labels(text)),
        FieldKind::Digits(_) => name::to_digits(text),
        _ => None,
    }
}
