//! The bits of a head, and the macros behind the fields that depend on them.

/// Returns the first eight bytes of a head, which contain all its fields of several bits.
#[expect(clippy::cast_possible_truncation, reason = "the first eight bytes")]
pub(crate) const fn low(head: u128) -> u64 {
    head as u64
}

/// Returns the mask of a field in a head: `width` bits from `shift` on. In a field of more than
/// eight bits, the lowest eight are the byte after the one that contains `shift`.
pub(crate) const fn mask(shift: u8, width: u32) -> u64 {
    put(u64::MAX, shift, width)
}

/// Reads a field of a head.
#[inline]
pub(crate) const fn get(head: u64, shift: u8, width: u32) -> u64 {
    if width <= 8 {
        head >> shift & ((1 << width) - 1)
    } else {
        (head >> shift & ((1 << (width - 8)) - 1)) << 8 | head >> byte_after(shift) & 0xff
    }
}

/// Reads a field of at most eight bits of a head.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "eight bits at most")]
pub(crate) const fn get8(head: u64, shift: u8, width: u32) -> u8 {
    get(head, shift, width) as u8
}

/// Reads a field of at most sixteen bits of a head.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "sixteen bits at most")]
pub(crate) const fn get16(head: u64, shift: u8, width: u32) -> u16 {
    get(head, shift, width) as u16
}

/// Returns the value of a field at its position in a head.
#[inline]
pub(crate) const fn put(value: u64, shift: u8, width: u32) -> u64 {
    if width <= 8 {
        (value & ((1 << width) - 1)) << shift
    } else {
        (value >> 8 & ((1 << (width - 8)) - 1)) << shift | (value & 0xff) << byte_after(shift)
    }
}

const fn byte_after(shift: u8) -> u8 {
    (shift / 8 + 1) * 8
}

macro_rules! bits_type {
    (flag) => {
        bool
    };
    (($code:ident $width:literal)) => {
        $code
    };
    (12) => {
        u16
    };
    (15) => {
        u16
    };
    (16) => {
        u16
    };
    ($width:literal) => {
        u8
    };
}

macro_rules! bits_getter {
    (12) => {
        $crate::ie::bits::get16
    };
    (15) => {
        $crate::ie::bits::get16
    };
    (16) => {
        $crate::ie::bits::get16
    };
    ($width:literal) => {
        $crate::ie::bits::get8
    };
}

macro_rules! bits_width {
    (flag) => {
        1
    };
    (($code:ident $width:literal)) => {
        $width
    };
    ($width:literal) => {
        $width
    };
}

macro_rules! bits_mask {
    ($width:tt $byte:literal / $bit:literal) => {
        $crate::ie::bits::mask(
            $crate::ie::field::shift($byte, $bit),
            $crate::ie::bits::bits_width!($width),
        )
    };
}

macro_rules! bits_read {
    ($head:ident flag $byte:literal / $bit:literal) => {
        $head >> $crate::ie::field::shift($byte, $bit) & 1 == 1
    };
    ($head:ident ($code:ident $width:literal) $byte:literal / $bit:literal) => {
        $code($crate::ie::bits::bits_read!($head $width $byte / $bit))
    };
    ($head:ident $width:tt $byte:literal / $bit:literal) => {
        $crate::ie::bits::bits_getter!($width)(
            $head,
            $crate::ie::field::shift($byte, $bit),
            $width,
        )
    };
}

macro_rules! bits_write {
    ($value:expr, ($code:ident $width:literal) $byte:literal / $bit:literal) => {
        $crate::ie::bits::bits_write!($value.0, $width $byte / $bit)
    };
    ($value:expr, $width:tt $byte:literal / $bit:literal) => {
        $crate::ie::bits::put(
            u64::from($value),
            $crate::ie::field::shift($byte, $bit),
            $crate::ie::bits::bits_width!($width),
        )
    };
}

macro_rules! bits_fit {
    ($value:expr, flag) => {
        true
    };
    ($value:expr, ($code:ident $width:literal)) => {
        $crate::ie::bits::bits_fit!($value.0, $width)
    };
    ($value:expr, $width:literal) => {
        u32::from($value) >> $width == 0
    };
}

macro_rules! bits_kind {
    (($code:ident $width:literal) $byte:literal / $bit:literal) => {
        $crate::ie::FieldKind::Bits {
            shift: $crate::ie::field::shift($byte, $bit),
            width: $width,
            names: Some(|value| {
                u8::try_from(value)
                    .ok()
                    .and_then(|value| $code(value).name())
            }),
        }
    };
    ($width:tt $byte:literal / $bit:literal) => {
        $crate::ie::FieldKind::Bits {
            shift: $crate::ie::field::shift($byte, $bit),
            width: $crate::ie::bits::bits_width!($width),
            names: None,
        }
    };
}

macro_rules! when_mask {
    ([if $flag:ident $byte:literal / $bit:literal]) => {
        $crate::ie::bits::bits_mask!(flag $byte / $bit)
    };
    ([$($when:tt)*]) => { 0 };
}

macro_rules! when_write {
    ($value:expr, [if $flag:ident $byte:literal / $bit:literal]) => {
        (u64::from($value.is_some()) << $crate::ie::field::shift($byte, $bit))
    };
    ($value:expr, [$($when:tt)*]) => {
        0
    };
}

macro_rules! when_data {
    ($all:tt) => { $crate::ie::FieldPresence::Always };
    ($all:tt [more]) => { $crate::ie::FieldPresence::IfBytesRemain };
    ($all:tt [if $flag:ident $byte:literal / $bit:literal]) => {
        $crate::ie::FieldPresence::Flag {
            name: stringify!($flag),
            shift: $crate::ie::field::shift($byte, $bit),
        }
    };
    (
        {
            $($(#[$doc:meta])*
            $bits:ident: $width:tt $byte:literal / $bit:literal $($bit_since:ident)?;)*
        }
        [if ($when:expr)]
    ) => {
        $crate::ie::FieldPresence::Head {
            holds: |head| {
                let head = $crate::ie::bits::low(head);
                $(let $bits = $crate::ie::bits::bits_read!(head $width $byte / $bit);)*
                let _ = ($($bits,)*);
                $when
            },
            text: stringify!($when),
        }
    };
}

pub(crate) use {
    bits_fit, bits_getter, bits_kind, bits_mask, bits_read, bits_type, bits_width, bits_write,
    when_data, when_mask, when_write,
};
