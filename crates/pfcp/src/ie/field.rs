//! The kinds of fields: their types, decoding, encoding and description.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::error::ErrorKind;

/// A reader of the value of a leaf, from front to back.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// `true` once bits were read that no field keeps.
    pub(crate) spare: bool,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            spare: false,
        }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns `true` if the fields describe the value completely.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.is_empty() && !self.spare
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Result<&'a [u8], ErrorKind> {
        let need = self.at + bytes;
        let taken = self.bytes.get(self.at..need);
        let taken = taken.ok_or(ErrorKind::Length {
            have: self.bytes.len(),
            need,
        })?;
        self.at = need;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ErrorKind> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Reads a head of `N` bytes, in little-endian order.
    #[inline]
    pub(crate) fn bits<const N: usize>(&mut self) -> Result<u64, ErrorKind> {
        const { assert!(N <= 8, "a head has 8 bytes at most") };
        let mut head = [0; 8];
        for (bits, byte) in head.iter_mut().zip(self.array::<N>()?) {
            *bits = byte;
        }
        Ok(u64::from_le_bytes(head))
    }

    /// Takes up to `most` bytes, of which `least` must be present.
    #[inline]
    pub(crate) fn flags(&mut self, least: usize, most: usize) -> Result<&'a [u8], ErrorKind> {
        self.take((self.bytes.len() - self.at).min(most).max(least))
    }

    /// Reads a number of up to eight bytes, of which the lowest `width` bits are used.
    #[inline]
    pub(crate) fn number(&mut self, bytes: usize, width: u32) -> Result<u64, ErrorKind> {
        let mut value = 0;
        for byte in self.take(bytes)? {
            value = value << 8 | u64::from(*byte);
        }
        let counted = value & (u64::MAX >> (64 - width));
        self.spare |= counted != value;
        Ok(counted)
    }

    /// Reads a head of up to `most` bytes in little-endian order, of which `least` must be present.
    #[inline]
    pub(crate) fn head(&mut self, least: usize, most: usize) -> Result<u128, ErrorKind> {
        let have = (self.bytes.len() - self.at).min(most);
        let mut head = [0; 16];
        let bytes = self.take(have.max(least))?;
        head[..bytes.len()].copy_from_slice(bytes);
        Ok(u128::from_le_bytes(head))
    }

    #[inline]
    pub(crate) fn prefixed8(&mut self) -> Result<&'a [u8], ErrorKind> {
        let [length] = self.array()?;
        self.take(usize::from(length))
    }

    #[inline]
    pub(crate) fn prefixed16(&mut self) -> Result<&'a [u8], ErrorKind> {
        let length = u16::from_be_bytes(self.array()?);
        self.take(usize::from(length))
    }

    /// Reads an IP address preceded by its version and length.
    #[inline]
    pub(crate) fn address(&mut self) -> Result<&'a [u8], ErrorKind> {
        let [length] = self.array()?;
        let address = self.take(usize::from(length & 0x3f))?;
        self.spare |= length != address_length(address);
        Ok(address)
    }

    /// Reads MAC addresses preceded by their number.
    #[inline]
    pub(crate) fn mac_addresses(&mut self) -> Result<&'a [u8], ErrorKind> {
        let [count] = self.array()?;
        self.take(6 * usize::from(count))
    }

    /// Reads items preceded by their number. Each item has a length of two bytes.
    pub(crate) fn counted16(&mut self) -> Result<&'a [u8], ErrorKind> {
        let [count] = self.array()?;
        let (start, mut bytes) = (self.at, 0);
        for _ in 0..count {
            bytes += 2 + self.prefixed16()?.len();
        }
        Ok(&self.bytes[start..start + bytes])
    }

    #[inline]
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    #[inline]
    pub(crate) fn rest_but_last(&mut self) -> Result<&'a [u8], ErrorKind> {
        self.take((self.bytes.len() - self.at).saturating_sub(1))
    }

    #[inline]
    pub(crate) fn ipv4(&mut self) -> Result<Ipv4Addr, ErrorKind> {
        self.array::<4>().map(Ipv4Addr::from)
    }

    #[inline]
    pub(crate) fn ipv6(&mut self) -> Result<Ipv6Addr, ErrorKind> {
        self.array::<16>().map(Ipv6Addr::from)
    }
}

/// Appends a number of up to eight bytes.
#[inline]
pub(crate) fn put_number(value: u64, bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

/// Appends bytes preceded by their length. Returns `false` if they are too long for the length
/// field, and cuts them.
#[inline]
pub(crate) fn put_prefixed(value: &[u8], bytes: usize, out: &mut Vec<u8>) -> bool {
    let most = if bytes == 1 { 0xff } else { 0xffff };
    let fitting = &value[..value.len().min(most)];
    put_number(fitting.len() as u64, bytes, out);
    out.extend_from_slice(fitting);
    fitting.len() == value.len()
}

/// Returns the byte before an IP address: its version, 0 for IPv4 and 1 for IPv6, and its length.
#[inline]
fn address_length(address: &[u8]) -> u8 {
    let version = u8::from(address.len() == 16);
    version << 6 | u8::try_from(address.len()).map_or(0x3f, |bytes| bytes & 0x3f)
}

/// Appends an IP address preceded by its version and length. Returns `false` if it is too long, and
/// cuts it to 63 bytes.
#[inline]
pub(crate) fn put_address(address: &[u8], out: &mut Vec<u8>) -> bool {
    let fitting = &address[..address.len().min(0x3f)];
    out.push(address_length(fitting));
    out.extend_from_slice(fitting);
    fitting.len() == address.len()
}

/// Appends MAC addresses preceded by their number. Returns `false` if not all can be encoded:
/// incomplete addresses, and addresses beyond 255, are left out.
#[inline]
pub(crate) fn put_mac_addresses(addresses: &[u8], out: &mut Vec<u8>) -> bool {
    let count = u8::try_from(addresses.len() / 6).unwrap_or(u8::MAX);
    let fitting = &addresses[..6 * usize::from(count)];
    out.push(count);
    out.extend_from_slice(fitting);
    fitting.len() == addresses.len()
}

/// Appends items with a length of two bytes each, preceded by their number. Returns `false` if not
/// all can be encoded: items beyond 255, and incomplete items, are left out.
pub(crate) fn put_counted16(listed: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut reader, mut count, mut end) = (Reader::new(listed), 0, 0);
    while count < u8::MAX && !reader.is_empty() && reader.prefixed16().is_ok() {
        (count, end) = (count + 1, reader.at);
    }
    let fitting = &listed[..end];
    out.push(count);
    out.extend_from_slice(fitting);
    fitting.len() == listed.len()
}

/// The Rust type of a kind. `T` is the storage of bytes.
macro_rules! field_type {
    (low3) => { u8 };
    (low4) => { u8 };
    (low5) => { u8 };
    (low6) => { u8 };
    (low7) => { u8 };
    (u8) => { u8 };
    (u16) => { u16 };
    (u24) => { u32 };
    (u32) => { u32 };
    (u40) => { u64 };
    (u64) => { u64 };
    (i32) => { i32 };
    (i64) => { i64 };
    (time) => { u32 };
    (ipv4) => { std::net::Ipv4Addr };
    (ipv6) => { std::net::Ipv6Addr };
    (mac) => { [u8; 6] };
    (fixed6) => { [u8; 6] };
    (fixed16) => { [u8; 16] };
    ((list u8 $($span:tt)*)) => { $crate::ie::List<u8, T> };
    ((list u16 $($span:tt)*)) => { $crate::ie::List<u16, T> };
    ((list mac $($span:tt)*)) => { $crate::ie::List<[u8; 6], T> };
    ((list text $($span:tt)*)) => { $crate::ie::List<[u8], T> };
    ((list bytes $($span:tt)*)) => { $crate::ie::List<[u8], T> };
    (($code:ident $kind:ident)) => { $code };
    ($text:ident) => { T };
    ($kind:tt [$($when:tt)*]) => { Option<$crate::ie::field::field_type!($kind)> };
}

/// The number of bytes and the width of the kinds that are numbers.
macro_rules! number_size {
    (low3) => {
        (1, 3)
    };
    (low4) => {
        (1, 4)
    };
    (low5) => {
        (1, 5)
    };
    (low6) => {
        (1, 6)
    };
    (low7) => {
        (1, 7)
    };
    (u8) => {
        (1, 8)
    };
    (u16) => {
        (2, 16)
    };
    (u24) => {
        (3, 24)
    };
    (u32) => {
        (4, 32)
    };
    (u40) => {
        (5, 40)
    };
    (u64) => {
        (8, 64)
    };
    (i32) => {
        (4, 32)
    };
    (i64) => {
        (8, 64)
    };
    (time) => {
        (4, 32)
    };
}

/// The bits of a number on the wire. A negative number is in two's complement.
macro_rules! number_bits {
    (i32 $value:expr) => {
        u64::from($value.cast_unsigned())
    };
    (i64 $value:expr) => {
        $value.cast_unsigned()
    };
    ($kind:ident $value:expr) => {
        u64::from($value)
    };
}

/// Decodes a field.
macro_rules! read_field {
    ($r:ident $head:ident $kind:tt [more]) => {
        if $r.is_empty() {
            None
        } else {
            Some($crate::ie::field::read_field!($r $head $kind))
        }
    };
    ($r:ident $head:ident $kind:tt [if $flag:ident $byte:literal / $bit:literal]) => {
        if $head >> $crate::ie::field::shift($byte, $bit) & 1 == 1 {
            Some($crate::ie::field::read_field!($r $head $kind))
        } else {
            None
        }
    };
    ($r:ident $head:ident $kind:tt [if ($when:expr)]) => {
        if $when { Some($crate::ie::field::read_field!($r $head $kind)) } else { None }
    };
    ($r:ident $head:ident ipv4) => { $r.ipv4()? };
    ($r:ident $head:ident ipv6) => { $r.ipv6()? };
    ($r:ident $head:ident mac) => { $r.array::<6>()? };
    ($r:ident $head:ident fixed6) => { $r.array::<6>()? };
    ($r:ident $head:ident fixed16) => { $r.array::<16>()? };
    ($r:ident $head:ident address) => { T::from($r.address()?) };
    ($r:ident $head:ident (list $each:ident rest)) => { $crate::ie::List::read($r.rest())? };
    ($r:ident $head:ident (list $each:ident length8)) => {
        $crate::ie::List::read($r.prefixed8()?)?
    };
    ($r:ident $head:ident (list $each:ident length16)) => {
        $crate::ie::List::read($r.prefixed16()?)?
    };
    ($r:ident $head:ident (list mac counted)) => { $crate::ie::List::read($r.mac_addresses()?)? };
    ($r:ident $head:ident (list bytes counted)) => { $crate::ie::List::read($r.counted16()?)? };
    ($r:ident $head:ident (list u16 counted $count:ident)) => {
        $crate::ie::List::read($r.take(2 * usize::from($count))?)?
    };
    ($r:ident $head:ident text) => { T::from($r.rest()) };
    ($r:ident $head:ident bytes) => { T::from($r.rest()) };
    ($r:ident $head:ident labels) => { T::from($r.rest()) };
    ($r:ident $head:ident text_but_last) => { T::from($r.rest_but_last()?) };
    ($r:ident $head:ident text8) => { T::from($r.prefixed8()?) };
    ($r:ident $head:ident text16) => { T::from($r.prefixed16()?) };
    ($r:ident $head:ident bytes8) => { T::from($r.prefixed8()?) };
    ($r:ident $head:ident bytes16) => { T::from($r.prefixed16()?) };
    ($r:ident $head:ident digits8) => { T::from($r.prefixed8()?) };
    ($r:ident $head:ident ($code:ident $kind:ident)) => {
        $code($crate::ie::field::read_field!($r $head $kind))
    };
    ($r:ident $head:ident $kind:ident) => {{
        const SIZE: (usize, u32) = $crate::ie::field::number_size!($kind);
        #[expect(
            clippy::allow_attributes,
            clippy::allow_attributes_without_reason,
            reason = "the widest kind needs no cast"
        )]
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            clippy::unnecessary_cast
        )]
        {
            $r.number(SIZE.0, SIZE.1)? as $crate::ie::field::field_type!($kind)
        }
    }};
}

/// Encodes a field. Evaluates to `true` if its value fits.
macro_rules! write_field {
    ($value:expr, $out:ident ipv4) => {
        $crate::ie::field::put_bytes(&$value.octets(), $out)
    };
    ($value:expr, $out:ident ipv6) => {
        $crate::ie::field::put_bytes(&$value.octets(), $out)
    };
    ($value:expr, $out:ident mac) => {
        $crate::ie::field::put_bytes($value, $out)
    };
    ($value:expr, $out:ident fixed6) => {
        $crate::ie::field::put_bytes($value, $out)
    };
    ($value:expr, $out:ident fixed16) => {
        $crate::ie::field::put_bytes($value, $out)
    };
    ($value:expr, $out:ident address) => {
        $crate::ie::field::put_address($value.as_ref(), $out)
    };
    ($value:expr, $out:ident (list $each:ident length8)) => {
        $crate::ie::field::put_prefixed($value.as_bytes(), 1, $out)
    };
    ($value:expr, $out:ident (list $each:ident length16)) => {
        $crate::ie::field::put_prefixed($value.as_bytes(), 2, $out)
    };
    ($value:expr, $out:ident (list mac counted)) => {
        $crate::ie::field::put_mac_addresses($value.as_bytes(), $out)
    };
    ($value:expr, $out:ident (list bytes counted)) => {
        $crate::ie::field::put_counted16($value.as_bytes(), $out)
    };
    ($value:expr, $out:ident (list $each:ident $($span:ident)*)) => {
        $crate::ie::field::put_bytes($value.as_bytes(), $out)
    };
    ($value:expr, $out:ident text) => {
        $crate::ie::field::put_bytes($value.as_ref(), $out)
    };
    ($value:expr, $out:ident bytes) => {
        $crate::ie::field::put_bytes($value.as_ref(), $out)
    };
    ($value:expr, $out:ident labels) => {
        $crate::ie::field::put_bytes($value.as_ref(), $out)
    };
    ($value:expr, $out:ident text_but_last) => {
        $crate::ie::field::put_bytes($value.as_ref(), $out)
    };
    ($value:expr, $out:ident text8) => {
        $crate::ie::field::put_prefixed($value.as_ref(), 1, $out)
    };
    ($value:expr, $out:ident bytes8) => {
        $crate::ie::field::put_prefixed($value.as_ref(), 1, $out)
    };
    ($value:expr, $out:ident digits8) => {
        $crate::ie::field::put_prefixed($value.as_ref(), 1, $out)
    };
    ($value:expr, $out:ident text16) => {
        $crate::ie::field::put_prefixed($value.as_ref(), 2, $out)
    };
    ($value:expr, $out:ident bytes16) => {
        $crate::ie::field::put_prefixed($value.as_ref(), 2, $out)
    };
    ($value:expr, $out:ident ($code:ident $kind:ident)) => {
        $crate::ie::field::write_field!(&$value.0, $out $kind)
    };
    ($value:expr, $out:ident i32) => {
        $crate::ie::field::put_bytes(&$value.to_be_bytes(), $out)
    };
    ($value:expr, $out:ident i64) => {
        $crate::ie::field::put_bytes(&$value.to_be_bytes(), $out)
    };
    ($value:expr, $out:ident $kind:ident) => {{
        const SIZE: (usize, u32) = $crate::ie::field::number_size!($kind);
        let value = u64::from(*$value);
        let counted = value & (u64::MAX >> (64 - SIZE.1));
        $crate::ie::field::put_number(counted, SIZE.0, $out);
        counted == value
    }};
}

/// Appends bytes, which always fit.
#[inline]
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(bytes);
    true
}

/// Encodes a field if its condition holds, or returns an error if the field contradicts the
/// condition.
macro_rules! write_when {
    ($gap:ident, $name:expr, $value:expr, $out:ident (list u16 counted $count:ident)) => {
        if $value.as_bytes().len() != 2 * usize::from($count) {
            return Err($crate::error::ErrorKind::Contradiction { field: $name });
        }
        $crate::ie::field::put_bytes($value.as_bytes(), $out);
    };
    ($gap:ident, $name:expr, $value:expr, $out:ident $kind:tt) => {
        if !$crate::ie::field::write_field!(&$value, $out $kind) {
            return Err($crate::error::ErrorKind::Range { field: $name });
        }
    };
    ($gap:ident, $name:expr, $value:expr, $out:ident $kind:tt [if ($when:expr)]) => {
        match (&$value, $when) {
            (Some(value), true) => {
                $crate::ie::field::write_when!($gap, $name, *value, $out $kind);
            }
            (None, false) => {}
            _ => return Err($crate::error::ErrorKind::Contradiction { field: $name }),
        }
    };
    ($gap:ident, $name:expr, $value:expr, $out:ident $kind:tt [more]) => {
        match &$value {
            // The field would be decoded as the missing field before it.
            Some(_) if $gap => {
                return Err($crate::error::ErrorKind::Contradiction { field: $name });
            }
            Some(value) => {
                $crate::ie::field::write_when!($gap, $name, *value, $out $kind);
            }
            None => $gap = true,
        }
    };
    ($gap:ident, $name:expr, $value:expr, $out:ident $kind:tt [$($when:tt)*]) => {
        if let Some(value) = &$value {
            $crate::ie::field::write_when!($gap, $name, *value, $out $kind);
        }
    };
}

/// The default value of a field.
macro_rules! field_default {
    (ipv4) => {
        std::net::Ipv4Addr::UNSPECIFIED
    };
    (ipv6) => {
        std::net::Ipv6Addr::UNSPECIFIED
    };
    ($kind:tt) => {
        Default::default()
    };
    ($kind:tt [$($when:tt)*]) => {
        None
    };
}

/// The description of the kind of a field.
macro_rules! field_kind {
    (time) => { $crate::ie::descriptor::FieldKind::Time };
    (ipv4) => { $crate::ie::descriptor::FieldKind::Ipv4 };
    (ipv6) => { $crate::ie::descriptor::FieldKind::Ipv6 };
    (mac) => { $crate::ie::descriptor::FieldKind::Mac };
    (fixed6) => { $crate::ie::field::field_kind!(Bytes Fixed 6) };
    (fixed16) => { $crate::ie::field::field_kind!(Bytes Fixed 16) };
    (address) => { $crate::ie::field::field_kind!(Bytes Address) };
    ((list $each:ident rest)) => { $crate::ie::field::list_kind!($each, Rest) };
    ((list $each:ident length8)) => { $crate::ie::field::list_kind!($each, Length8) };
    ((list $each:ident length16)) => { $crate::ie::field::list_kind!($each, Length16) };
    ((list mac counted)) => { $crate::ie::field::list_kind!(mac, MacAddresses) };
    ((list bytes counted)) => { $crate::ie::field::list_kind!(bytes, CountedItems) };
    ((list u16 counted $count:ident)) => { $crate::ie::field::list_kind!(u16, Counted) };
    (text) => { $crate::ie::field::field_kind!(Text Rest) };
    (bytes) => { $crate::ie::field::field_kind!(Bytes Rest) };
    (labels) => { $crate::ie::field::field_kind!(Labels Rest) };
    (text_but_last) => { $crate::ie::field::field_kind!(Text RestButLast) };
    (text8) => { $crate::ie::field::field_kind!(Text Length8) };
    (text16) => { $crate::ie::field::field_kind!(Text Length16) };
    (bytes8) => { $crate::ie::field::field_kind!(Bytes Length8) };
    (bytes16) => { $crate::ie::field::field_kind!(Bytes Length16) };
    (digits8) => { $crate::ie::field::field_kind!(Digits Length8) };
    ($kind:ident Fixed $bytes:literal) => {
        $crate::ie::descriptor::FieldKind::$kind(
            $crate::ie::descriptor::FieldExtent::Fixed($bytes),
        )
    };
    ($kind:ident $span:ident) => {
        $crate::ie::descriptor::FieldKind::$kind($crate::ie::descriptor::FieldExtent::$span)
    };
    (($code:ident $kind:ident)) => {
        $crate::ie::field::field_kind!(@ $kind, Some(|value| {
            #[expect(
                clippy::allow_attributes,
                clippy::allow_attributes_without_reason,
                reason = "the widest kind needs no cast"
            )]
            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
            $code(value as $crate::ie::field::field_type!($kind)).name()
        }))
    };
    (i32) => { $crate::ie::descriptor::FieldKind::Signed { bytes: 4 } };
    (i64) => { $crate::ie::descriptor::FieldKind::Signed { bytes: 8 } };
    ($kind:ident) => { $crate::ie::field::field_kind!(@ $kind, None) };
    (@ $kind:ident, $names:expr) => {
        $crate::ie::descriptor::FieldKind::Number {
            bytes: $crate::ie::field::number_size!($kind).0,
            width: $crate::ie::field::number_size!($kind).1,
            names: $names,
        }
    };
}

/// The description of a list.
macro_rules! list_kind {
    (u8, $span:ident) => {
        $crate::ie::field::list_kind!(@ $crate::ie::descriptor::ListItemKind::Number(1), $span)
    };
    (u16, $span:ident) => {
        $crate::ie::field::list_kind!(@ $crate::ie::descriptor::ListItemKind::Number(2), $span)
    };
    (mac, $span:ident) => {
        $crate::ie::field::list_kind!(@ $crate::ie::descriptor::ListItemKind::Mac, $span)
    };
    (text, $span:ident) => {
        $crate::ie::field::list_kind!(@ $crate::ie::descriptor::ListItemKind::Text, $span)
    };
    (bytes, $span:ident) => {
        $crate::ie::field::list_kind!(@ $crate::ie::descriptor::ListItemKind::Bytes, $span)
    };
    (@ $each:expr, $span:ident) => {
        $crate::ie::descriptor::FieldKind::List($each, $crate::ie::descriptor::FieldExtent::$span)
    };
}

/// Returns the number of bits below the bit that the specification calls `byte/bit`.
pub(crate) const fn shift(byte: u8, bit: u8) -> u8 {
    (byte - 5) * 8 + bit - 1
}

pub(crate) use {
    field_default, field_kind, field_type, list_kind, number_bits, number_size, read_field,
    write_field, write_when,
};
