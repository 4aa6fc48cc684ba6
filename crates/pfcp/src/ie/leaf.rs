//! The macros behind the rows of elements with fields.

/// Implements [`Ie`](super::Ie) for a leaf that has `read(&mut Reader)` and `put(&mut Vec)`.
macro_rules! leaf_ie {
    ($name:ident, $owned:ty, $view:ty, $leaf:expr, $ie:expr) => {
        $crate::ie::leaf::leaf_ie!(
            $name,
            $owned,
            $view,
            $leaf,
            $ie,
            |part| $name::read(&mut $crate::ie::field::Reader::new(part.raw())),
            {
                #[inline]
                fn fill(
                    &mut self,
                    tree: &$crate::wire::Tree<'_>,
                    node: $crate::wire::IndexNode,
                ) -> Result<(), $crate::error::Error> {
                    let mut reader = $crate::ie::field::Reader::new(tree.value(node));
                    *self = $name::read(&mut reader)
                        .map_err(|kind| $crate::error::Error::new(node.start(), kind))?;
                    Ok(())
                }
            }
        );
    };
    (
        $name:ident, $owned:ty, $view:ty, $leaf:expr, $ie:expr, |$part:ident| $read:expr,
        { $($fill_and_put:tt)* }
    ) => {
        impl $crate::ie::Ie for $owned {
            const TYPE: $crate::ie::IeType = $ie;
            const DESCRIPTOR: $crate::ie::Descriptor = {
                static LEAF: $crate::ie::Leaf = $leaf;
                $crate::ie::Descriptor::Leaf(&LEAF)
            };
            type View<'a> = $view;

            #[inline]
            fn view($part: $crate::wire::Part<'_>) -> Option<Self::View<'_>> {
                $read.ok()
            }

            #[inline]
            fn from_part($part: $crate::wire::Part<'_>) -> Result<Self, $crate::error::Error> {
                $read.map_err(|kind| $crate::error::Error::new($part.offset(), kind))
            }

            #[inline]
            fn write(&self, out: &mut $crate::wire::Writer<'_>) {
                if let Err(kind) = self.put(out.out) {
                    out.refuse(kind);
                }
            }
        }

        impl $crate::ie::element::Owned for $owned {
            #[inline]
            fn blank() -> Self {
                Self::default()
            }

            $($fill_and_put)*
        }
    };
}

/// Implements `Display` for a leaf.
macro_rules! leaf_display {
    ($owned:ty) => {
        impl std::fmt::Display for $owned {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::text::value(f, <Self as $crate::ie::Ie>::DESCRIPTOR, self)
            }
        }

        impl $crate::text::FormatEncoded for $owned {
            fn encoded(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::ErrorKind> {
                self.put(out)
            }
        }
    };
}

/// The two functions in the descriptor of a leaf that depend on its type. Closures would each be
/// compiled twice.
macro_rules! leaf_checks {
    (check $owned:ty) => {{
        fn check(value: &[u8]) -> Result<bool, $crate::error::ErrorKind> {
            let mut reader = $crate::ie::field::Reader::new(value);
            <$owned>::read(&mut reader).map(|_| reader.is_plain())
        }
        check
    }};
    (reencode $owned:ty) => {{
        fn reencode(value: &[u8], out: &mut Vec<u8>) {
            if let Ok(value) = <$owned>::read(&mut $crate::ie::field::Reader::new(value)) {
                // A value that was decoded can be encoded.
                let _ = value.put(out);
            }
        }
        reencode
    }};
}

/// Defines rows of a single number: `Type: kind = NUMBER field;`.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $kind:ident = $ie:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $crate::ie::field::field_type!($kind));

        impl Eq for $name {}

        impl From<$crate::ie::field::field_type!($kind)> for $name {
            fn from(value: $crate::ie::field::field_type!($kind)) -> Self {
                Self(value)
            }
        }

        $crate::ie::leaf::number_leaf!($name, $kind, ($kind), $ie, $field, {
            $crate::ie::descriptor::FastCheck::number($crate::ie::field::number_size!($kind))
        });
        $crate::ie::leaf::leaf_display!($name);
    )* };
}

/// Defines rows of a single number with names: `Type: kind = NUMBER field { value CONSTANT "name";
/// };`.
///
/// `R19` at the end of the row of a value, flag, bit or field is the release that introduced it.
/// Without it, the row is as old as the element.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident: $kind:ident = $ie:ident $field:ident {
        $($value:literal $constant:ident $text:literal $($since:ident)?;)*
    })*) => { $(
        $crate::ie::open::open_enum! {
            $(#[$doc])*
            $name(u8)
            $($value $constant $text $($since)?;)*
        }
        $crate::ie::leaf::number_leaf!($name, $kind, (($name $kind)), $ie, $field, {
            if $crate::validate::is_closed($crate::ie::IeType::$ie) {
                $crate::ie::descriptor::FastCheck::named(&[$($value),*])
            } else {
                $crate::ie::descriptor::FastCheck::number($crate::ie::field::number_size!($kind))
                    .within($crate::validate::valid_first_bytes($crate::ie::IeType::$ie))
            }
        });
    )* };
}

/// Implements a leaf for a number in a tuple struct.
macro_rules! number_leaf {
    ($name:ident, $kind:ident, ($described:tt), $ie:ident, $field:ident, $fast_check:expr) => {
        impl $name {
            #[inline]
            fn read(
                reader: &mut $crate::ie::field::Reader<'_>,
            ) -> Result<Self, $crate::error::ErrorKind> {
                Ok(Self($crate::ie::field::read_field!(reader reader $kind)))
            }

            #[inline]
            fn put(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::ErrorKind> {
                if $crate::ie::field::write_field!(&self.0, out $kind) {
                    Ok(())
                } else {
                    Err($crate::error::ErrorKind::Range { field: stringify!($field) })
                }
            }
        }

        $crate::ie::leaf::leaf_ie!(
            $name,
            $name,
            $name,
            {
                const SIZE: (usize, u32) = $crate::ie::field::number_size!($kind);
                $crate::ie::Leaf {
                    ie: $crate::ie::IeType::$ie,
                    min: SIZE.0,
                    head: 0,
                    fields: &[$crate::ie::Field {
                        name: stringify!($field),
                        kind: $crate::ie::field::field_kind!($described),
                        when: $crate::ie::FieldPresence::Always,
                        since: $crate::ie::IeType::$ie.since(),
                        values: $crate::ie::release::values_since!($described),
                    }],
                    check: $crate::ie::leaf::leaf_checks!(check $name),
                    reencode: $crate::ie::leaf::leaf_checks!(reencode $name),
                    fast_check: $fast_check,
                }
            },
            $crate::ie::IeType::$ie,
            |part| part
                .array::<{ $crate::ie::field::number_size!($kind).0 }>()
                .and_then(|bytes| $name::read(&mut $crate::ie::field::Reader::new(&bytes))),
            {
                #[inline]
                fn fill(
                    &mut self,
                    tree: &$crate::wire::Tree<'_>,
                    node: $crate::wire::IndexNode,
                ) -> Result<(), $crate::error::Error> {
                    const BYTES: usize = $crate::ie::field::number_size!($kind).0;
                    *self = tree
                        .array::<BYTES>(node)
                        .and_then(|bytes| {
                            $name::read(&mut $crate::ie::field::Reader::new(&bytes))
                        })
                        .map_err(|kind| $crate::error::Error::new(node.start(), kind))?;
                    Ok(())
                }

                #[inline]
                fn put_element(&self, out: &mut $crate::wire::Writer<'_>) {
                    const SIZE: (usize, u32) = $crate::ie::field::number_size!($kind);
                    let ie = $crate::ie::IeType::$ie;
                    let number = $crate::ie::field::number_bits!($kind self.0);
                    if !out.number::<{ 4 + SIZE.0 }>(ie, number, SIZE.1) {
                        let field = stringify!($field);
                        out.refuse($crate::error::ErrorKind::Range { field });
                    }
                }
            }
        );
    };
}

/// Defines rows of bytes up to the end of the element: `Type: kind = NUMBER field;`.
macro_rules! strings {
    ($($(#[$doc:meta])* $name:ident: $kind:ident = $ie:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Ord, Hash)]
        pub struct $name<T = Box<[u8]>>(pub T);

        impl<T: Eq> Eq for $name<T> {}

        impl<T> $name<T> {
            #[inline]
            fn read<'a>(
                reader: &mut $crate::ie::field::Reader<'a>,
            ) -> Result<Self, $crate::error::ErrorKind>
            where
                T: From<&'a [u8]>,
            {
                Ok(Self(T::from(reader.rest())))
            }
        }

        impl<T: AsRef<[u8]>> $name<T> {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::ErrorKind> {
                out.extend_from_slice(self.0.as_ref());
                Ok(())
            }

            /// Returns the bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8] {
                self.0.as_ref()
            }

            /// Returns the bytes as text if they are valid UTF-8.
            #[must_use]
            pub fn as_text(&self) -> Option<&str> {
                std::str::from_utf8(self.0.as_ref()).ok()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self($crate::ie::leaf::bytes_of!($kind text))
            }
        }

        impl From<Vec<u8>> for $name {
            fn from(bytes: Vec<u8>) -> Self {
                Self(bytes.into())
            }
        }

        $crate::ie::leaf::leaf_ie!(
            $name,
            $name,
            $name<&'a [u8]>,
            $crate::ie::Leaf {
                ie: $crate::ie::IeType::$ie,
                min: 0,
                head: 0,
                fields: &[$crate::ie::Field {
                    name: stringify!($field),
                    kind: $crate::ie::field::field_kind!($kind),
                    when: $crate::ie::FieldPresence::Always,
                    since: $crate::ie::IeType::$ie.since(),
                    values: None,
                }],
                check: $crate::ie::check::are_bytes,
                reencode: $crate::ie::check::reencode_bytes,
                fast_check: $crate::ie::descriptor::FastCheck::NONE,
            },
            $crate::ie::IeType::$ie
        );
        $crate::ie::leaf::leaf_display!($name);
    )* };
}

/// The encoded bytes of a text. A domain name is encoded as labels.
macro_rules! bytes_of {
    (labels $text:ident) => {
        $crate::ie::name::to_labels($text).into()
    };
    ($kind:ident $text:ident) => {
        $text.as_bytes().into()
    };
}

/// Defines rows of flags: `Type: uN, least..most = NUMBER { NAME byte/bit; }`.
///
/// Bytes after the first `least` may be missing, and are written if one of their flags is set.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident: $repr:ident, $least:literal..$most:literal = $ie:ident {
        $($flag:ident $byte:literal / $bit:literal $($since:ident)?;)*
    })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) $repr);

        impl Eq for $name {}

        impl $name {
            $(
                #[doc = concat!(
                    "Flag ", stringify!($flag), ", octet ", $byte, " bit ", $bit, ".")]
                pub const $flag: Self = Self(1 << $crate::ie::field::shift($byte, $bit));
            )*

            /// The value in which no flag is set.
            pub const NONE: Self = Self(0);

            const KNOWN: $repr = 0 $(| Self::$flag.0)*;

            /// Returns `true` if all flags of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns the flags of both values.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Returns the flags without those of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Returns `true` if no flag is set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            #[inline]
            fn read(
                reader: &mut $crate::ie::field::Reader<'_>,
            ) -> Result<Self, $crate::error::ErrorKind> {
                let mut head: $repr = 0;
                for (place, byte) in reader.flags($least, $most)?.iter().enumerate() {
                    head |= <$repr>::from(*byte) << (8 * place);
                }
                let known = head & Self::KNOWN;
                reader.spare |= known != head;
                Ok(Self(known))
            }

            #[inline]
            fn put(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::ErrorKind> {
                let used = (<$repr>::BITS - self.0.leading_zeros()).div_ceil(8) as usize;
                let end = out.len() + used.max($least);
                // The compiler knows this number of bytes; the excess is cut off.
                out.extend_from_slice(&self.0.to_le_bytes());
                out.truncate(end);
                Ok(())
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.with(other)
            }
        }

        $crate::ie::leaf::leaf_ie!(
            $name,
            $name,
            $name,
            $crate::ie::Leaf {
                ie: $crate::ie::IeType::$ie,
                min: $least,
                head: $most,
                fields: &[$($crate::ie::Field {
                    name: stringify!($flag),
                    kind: $crate::ie::FieldKind::Bits {
                        shift: $crate::ie::field::shift($byte, $bit),
                        width: 1,
                        names: None,
                    },
                    when: $crate::ie::FieldPresence::Always,
                    since: $crate::ie::release::since!($ie $($since)?),
                    values: None,
                }),*],
                check: |value| {
                    let known = &$name::KNOWN.to_le_bytes()[..$most];
                    $crate::ie::check::are_flags(value, $least, known)
                },
                reencode: $crate::ie::leaf::leaf_checks!(reencode $name),
                fast_check: $crate::ie::descriptor::FastCheck::flags(
                    $least, $name::KNOWN.to_le_bytes()[0])
                    .within($crate::validate::valid_first_bytes($crate::ie::IeType::$ie)),
            },
            $crate::ie::IeType::$ie
        );
        $crate::ie::leaf::leaf_display!($name);
    )* };
}

/// Defines a row of a head with bits, and of fields that depend on them.
///
/// `Type = NUMBER, head OCTETS { bit: kind byte/bit; } { field: kind [condition]; }`. A condition
/// is `[if NAME byte/bit]` (a flag that only announces the field), `[if (expression)]` (over the
/// bits in the first braces) or `[more]` (bytes are left). With `T` after the name, the type is
/// generic over the storage of its bytes.
macro_rules! record {
    (
        $(#[$doc:meta])* $name:ident T = $ie:ident, head $head:literal $bits:tt $fields:tt
    ) => {
        $crate::ie::leaf::record_row! {
            $(#[$doc])* $name [<T = Box<[u8]>>] [<T>] [<&'a [u8]>]
            [where T: From<&'a [u8]>] [where T: AsRef<[u8]>]
            = $ie, head $head $bits $bits $fields
        }
        $crate::ie::leaf::record_traits! { $name $bits $fields }
    };
    (
        $(#[$doc:meta])* $name:ident = $ie:ident, head $head:literal $bits:tt $fields:tt
    ) => {
        $crate::ie::leaf::record_row! {
            $(#[$doc])* #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            $name [] [] [] [] [] = $ie, head $head $bits $bits $fields
        }
    };
}

/// Implements the traits of a generic row. `derive` cannot be used there, because it does not
/// expand macros in types.
macro_rules! record_traits {
    (
        $name:ident
        {
            $($(#[$bit_doc:meta])*
            $bits:ident: $width:tt $byte:literal / $bit:literal $($bit_since:ident)?;)*
        }
        { $($(#[$field_doc:meta])* $field:ident: $kind:tt $([$($when:tt)*])? $($since:ident)?;)* }
    ) => {
        impl<T: Clone> Clone for $name<T> {
            fn clone(&self) -> Self {
                Self { $($bits: self.$bits.clone(),)* $($field: self.$field.clone(),)* }
            }
        }

        impl<T: std::fmt::Debug> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($bits), &self.$bits))*
                    $(.field(stringify!($field), &self.$field))*
                    .finish()
            }
        }

        impl<T: PartialEq> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                true $(&& self.$bits == other.$bits)* $(&& self.$field == other.$field)*
            }
        }

        impl<T: Eq> Eq for $name<T> {}
    };
}

macro_rules! record_row {
    (
        $(#[$doc:meta])* $name:ident
        [$($declared:tt)*] [$($any:tt)*] [$($view:tt)*] [$($from:tt)*] [$($into:tt)*]
        = $ie:ident, head $head:literal
        {
            $($(#[$bit_doc:meta])*
            $bits:ident: $width:tt $byte:literal / $bit:literal $($bit_since:ident)?;)*
        }
        $all:tt
        { $($(#[$field_doc:meta])* $field:ident: $kind:tt $([$($when:tt)*])? $($since:ident)?;)* }
    ) => {
        $(#[$doc])*
        pub struct $name $($declared)* {
            $($(#[$bit_doc])* pub $bits: $crate::ie::bits::bits_type!($width),)*
            $($(#[$field_doc])* pub $field: $crate::ie::field::field_type!($kind $([$($when)*])?),)*
        }

        impl $($any)* $name $($any)* {
            const KNOWN: u64 = 0
                $(| $crate::ie::bits::bits_mask!($width $byte / $bit))*
                $($(| $crate::ie::bits::when_mask!([$($when)*]))?)*;

            #[inline]
            fn read<'a>(
                reader: &mut $crate::ie::field::Reader<'a>,
            ) -> Result<Self, $crate::error::ErrorKind> $($from)* {
                let head = reader.bits::<$head>()?;
                reader.spare |= head & !Self::KNOWN != 0;
                $(let $bits = $crate::ie::bits::bits_read!(head $width $byte / $bit);)*
                $(let $field = $crate::ie::field::read_field!(reader head $kind $([$($when)*])?);)*
                Ok(Self { $($bits,)* $($field,)* })
            }

            #[inline]
            fn put(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::ErrorKind> $($into)* {
                $(if !$crate::ie::bits::bits_fit!(self.$bits, $width) {
                    return Err($crate::error::ErrorKind::Range { field: stringify!($bits) });
                })*
                let head = 0u64
                    $(| $crate::ie::bits::bits_write!(self.$bits, $width $byte / $bit))*
                    $($(| $crate::ie::bits::when_write!(self.$field, [$($when)*]))?)*;
                out.extend_from_slice(&head.to_le_bytes()[..$head]);
                $(let $bits = self.$bits;)*
                let _ = ($($bits,)*);
                let mut gap = false;
                $($crate::ie::field::write_when!(
                    gap, stringify!($field), self.$field, out $kind $([$($when)*])?);)*
                let _ = &mut gap;
                Ok(())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($bits: Default::default(),)*
                    $($field: $crate::ie::field::field_default!($kind $([$($when)*])?),)*
                }
            }
        }

        $crate::ie::leaf::leaf_ie!(
            $name,
            $name,
            $name $($view)*,
            $crate::ie::Leaf {
                ie: $crate::ie::IeType::$ie,
                min: $head,
                head: $head,
                fields: &[
                    $($crate::ie::Field {
                        name: stringify!($bits),
                        kind: $crate::ie::bits::bits_kind!($width $byte / $bit),
                        when: $crate::ie::FieldPresence::Always,
                        since: $crate::ie::release::since!($ie $($bit_since)?),
                        values: $crate::ie::release::values_since!($width),
                    },)*
                    $($crate::ie::Field {
                        name: stringify!($field),
                        kind: $crate::ie::field::field_kind!($kind),
                        when: $crate::ie::bits::when_data!(
                            $all $([$($when)*])?),
                        since: $crate::ie::release::since!($ie $($since)?),
                        values: $crate::ie::release::values_since!($kind),
                    },)*
                ],
                check: $crate::ie::leaf::leaf_checks!(check $name),
                reencode: $crate::ie::leaf::leaf_checks!(reencode $name),
                fast_check: $crate::ie::descriptor::FastCheck::NONE,
            },
            $crate::ie::IeType::$ie
        );
        $crate::ie::leaf::leaf_display!($name);
    };
}

pub(crate) use {
    bytes_of, codes, flags, leaf_checks, leaf_display, leaf_ie, number_leaf, numbers, record,
    record_row, record_traits, strings,
};
