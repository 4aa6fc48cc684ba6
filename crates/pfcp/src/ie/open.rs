//! Open enumerations, which keep unknown numbers.

/// Defines a number with a constant and a name for each known value.
macro_rules! open_enum {
    (
        $(#[$doc:meta])* $name:ident($repr:ty)
        $($value:literal $constant:ident $text:literal $($since:ident)?;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl Eq for $name {}

        impl $name {
            $(
                #[doc = concat!($text, ".")]
                pub const $constant: Self = Self($value);
            )*

            /// Returns the name that the specification gives the value.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }

            /// Returns the release that introduced the value. Unknown values count as being as old
            /// as the element.
            #[must_use]
            pub const fn since(self) -> $crate::ie::Release {
                match self.0 {
                    $($value => $crate::ie::release::since!($($since)?),)*
                    _ => $crate::ie::Release::R17,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name} ({})", self.0),
                    None => self.0.fmt(f),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl From<$repr> for $name {
            fn from(value: $repr) -> Self {
                Self(value)
            }
        }
    };
}
pub(crate) use open_enum;
