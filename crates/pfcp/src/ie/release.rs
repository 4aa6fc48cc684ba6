//! Releases of the specification, and the releases that introduced rows.

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
    /// Release 17: V17.7.1 and earlier.
    R17,
    /// Release 19: V19.5.0, including the additions of release 18.
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

/// The error returned for a text that is not a known release. `R17` and `R19` are known.
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

/// Returns the release at the end of a row. Without one, the row is as old as the element, if one
/// is given.
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

/// Returns the function that returns the release of a value of a field, for fields with named
/// values.
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
