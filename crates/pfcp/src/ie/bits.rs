//! The macros behind the bits of a head, and the fields that come by them.

macro_rules! bits_type {
    (flag) => {
        bool
    };
    (($code:ident $width:literal)) => {
        $code
    };
    ($width:literal) => {
        u8
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
    ($width:tt $octet:literal / $bit:literal) => {
        (((1u64 << $crate::ie::bits::bits_width!($width)) - 1)
            << $crate::ie::field::shift($octet, $bit))
    };
}

macro_rules! bits_read {
    ($head:ident flag $octet:literal / $bit:literal) => {
        $head >> $crate::ie::field::shift($octet, $bit) & 1 == 1
    };
    ($head:ident ($code:ident $width:literal) $octet:literal / $bit:literal) => {
        $code($crate::ie::bits::bits_read!($head $width $octet / $bit))
    };
    ($head:ident $width:literal $octet:literal / $bit:literal) => {
        ($head >> $crate::ie::field::shift($octet, $bit) & ((1 << $width) - 1)) as u8
    };
}

macro_rules! bits_write {
    ($value:expr, ($code:ident $width:literal) $octet:literal / $bit:literal) => {
        $crate::ie::bits::bits_write!($value.0, $width $octet / $bit)
    };
    ($value:expr, $width:tt $octet:literal / $bit:literal) => {
        (u64::from($value) << $crate::ie::field::shift($octet, $bit)
            & $crate::ie::bits::bits_mask!($width $octet / $bit))
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
    (($code:ident $width:literal) $octet:literal / $bit:literal) => {
        $crate::ie::Kind::Bits {
            shift: $crate::ie::field::shift($octet, $bit),
            width: $width,
            names: Some(|value| {
                u8::try_from(value)
                    .ok()
                    .and_then(|value| $code(value).name())
            }),
        }
    };
    ($width:tt $octet:literal / $bit:literal) => {
        $crate::ie::Kind::Bits {
            shift: $crate::ie::field::shift($octet, $bit),
            width: $crate::ie::bits::bits_width!($width),
            names: None,
        }
    };
}

macro_rules! when_mask {
    ([if $flag:ident $octet:literal / $bit:literal]) => {
        $crate::ie::bits::bits_mask!(flag $octet / $bit)
    };
    ([$($when:tt)*]) => { 0 };
}

macro_rules! when_write {
    ($value:expr, [if $flag:ident $octet:literal / $bit:literal]) => {
        (u64::from($value.is_some()) << $crate::ie::field::shift($octet, $bit))
    };
    ($value:expr, [$($when:tt)*]) => {
        0
    };
}

macro_rules! when_data {
    ($all:tt) => { $crate::ie::When::Always };
    ($all:tt [more]) => { $crate::ie::When::More };
    ($all:tt [if $flag:ident $octet:literal / $bit:literal]) => {
        $crate::ie::When::Flag {
            name: stringify!($flag),
            shift: $crate::ie::field::shift($octet, $bit),
        }
    };
    (
        {
            $($(#[$doc:meta])*
            $bits:ident: $width:tt $octet:literal / $bit:literal $($bit_since:ident)?;)*
        }
        [if ($when:expr)]
    ) => {
        $crate::ie::When::Head {
            holds: |head| {
                $(let $bits = $crate::ie::bits::bits_read!(head $width $octet / $bit);)*
                let _ = ($($bits,)*);
                $when
            },
            text: stringify!($when),
        }
    };
}

pub(crate) use {
    bits_fit, bits_kind, bits_mask, bits_read, bits_type, bits_width, bits_write, when_data,
    when_mask, when_write,
};
