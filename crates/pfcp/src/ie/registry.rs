//! The macro behind the rows of [`IeType`](super::number::IeType).

/// Defines [`IeType`] with a constant, a name and a clause for each row.
macro_rules! ie_types {
    ($($number:literal $constant:ident $name:literal $clause:literal $($since:ident)?;)*) => {
        /// The type of an information element. Unknown and vendor-specific numbers are kept.
        ///
        /// ```
        /// use strowger_pfcp::IeType;
        ///
        /// assert_eq!(IeType::CREATE_PDR.name(), Some("Create PDR"));
        /// assert_eq!(IeType(21).to_string(), "F-TEID");
        /// assert_eq!(IeType(40_000).to_string(), "IE 40000");
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct IeType(pub u16);

        impl IeType {
            $(
                #[doc = concat!($name, ", TS 29.244 ", $clause, ".")]
                pub const $constant: Self = Self($number);
            )*

            /// Returns the release that introduced the type. Unknown types count as old.
            #[must_use]
            pub const fn since(self) -> $crate::ie::Release {
                match self.0 {
                    $($number => $crate::ie::release::since!($($since)?),)*
                    _ => $crate::ie::Release::R17,
                }
            }

            /// All types that TS 29.244 names, ordered by number.
            pub const ALL: &'static [Self] = &[$(Self($number)),*];
        }

        /// The name and clause of each number. Both are empty if the specification has none.
        static ROWS: [(&str, &str); LAST + 1] = {
            let mut rows = [("", ""); LAST + 1];
            $(
                assert!(rows[$number].0.is_empty(), "a number has two rows");
                rows[$number] = ($name, $clause);
            )*
            rows
        };

        const LAST: usize = IeType::ALL[IeType::ALL.len() - 1].0 as usize;
    };
}
pub(crate) use ie_types;
