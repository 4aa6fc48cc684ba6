//! Releases of the specification, and since which one a row holds.

use std::fmt;
use std::str::FromStr;

/// A release of TS 29.244.
///
/// ```
/// use strowger_pfcp::{IeType, Release};
///
/// assert_eq!("R17".parse(), Ok(Release::R17));
/// assert_eq!(IeType::F_TEID.since(), Release::R17);
/// assert_eq!(IeType::METADATA.since(), Release::R19);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Release {
    /// Release 17: V17.7.1 and what is older.
    R17,
    /// Release 19: V19.5.0, with what came in release 18.
    #[default]
    R19,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::R17 => "R17",
            Self::R19 => "R19",
        })
    }
}

/// A text that names no release: `R17` and `R19` are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a release: give R17 or R19")]
pub struct UnknownRelease;

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        match text.trim_start_matches(['r', 'R']) {
            "17" => Ok(Self::R17),
            "19" => Ok(Self::R19),
            _ => Err(UnknownRelease),
        }
    }
}

/// Reads the word at the end of a row: none for what is as old as the element, if one is named.
macro_rules! since {
    () => {
        $crate::ie::Release::R17
    };
    (R19) => {
        $crate::ie::Release::R19
    };
    ($ie:ident) => {
        $crate::ie::IeType::$ie.since()
    };
    ($ie:ident R19) => {
        $crate::ie::Release::R19
    };
}

/// Says how to look up since when a value of a field holds, for fields with named values.
macro_rules! values_since {
    (($code:ident $kind:tt)) => {
        Some(|value| {
            #[expect(
                clippy::allow_attributes,
                clippy::allow_attributes_without_reason,
                reason = "the widest kind needs no cast"
            )]
            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
            $code(value as _).since()
        })
    };
    ($kind:tt) => {
        None
    };
}

pub(crate) use {since, values_since};
