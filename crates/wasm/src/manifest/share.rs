//! A share of a processor, written as `"50%"`.

use std::fmt;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A share of one processor, from 1% to 100%.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuShare(u8);

impl CpuShare {
    /// A whole processor.
    pub const WHOLE: Self = Self(100);

    /// Creates a share from percent; returns `None` unless it is from 1 to 100.
    #[must_use]
    pub const fn from_percent(percent: u8) -> Option<Self> {
        match percent {
            1..=100 => Some(Self(percent)),
            _ => None,
        }
    }

    pub(crate) const fn is_whole(self) -> bool {
        self.0 == 100
    }

    /// Returns the processor time that this share yields in a span of time.
    pub(crate) fn cpu_in(self, span: Duration) -> Duration {
        span * u32::from(self.0) / 100
    }

    /// Returns the span of time in which this share yields that much processor time.
    pub(crate) fn time_for_cpu(self, cpu: Duration) -> Duration {
        cpu * 100 / u32::from(self.0)
    }
}

impl fmt::Display for CpuShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl<'de> Deserialize<'de> for CpuShare {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let percent = text.strip_suffix('%').and_then(|text| text.parse().ok());
        percent.and_then(Self::from_percent).ok_or_else(|| {
            let like = "a CPU share from \"1%\" to \"100%\"";
            D::Error::custom(format!("\"{text}\" is not {like}"))
        })
    }
}
