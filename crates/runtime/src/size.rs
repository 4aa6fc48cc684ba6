//! Sizes as people write them in configuration files, manifests and on command lines.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A number of bytes, which people write as a plain number or in KiB, MiB or GiB.
///
/// [`FromStr`] parses a whole number, or one directly followed by its unit. There must be no space
/// between number and unit, nor anything before or after them. [`Display`](fmt::Display) uses the
/// largest unit in which the size is a whole number.
///
/// ```
/// use strowger::ByteSize;
///
/// assert_eq!("64KiB".parse(), Ok(ByteSize::new(65_536)));
/// assert_eq!("65536".parse(), Ok(ByteSize::new(65_536)));
/// assert_eq!(ByteSize::new(3 << 20).to_string(), "3MiB");
/// let wrong = "64 apples".parse::<ByteSize>().expect_err("it has no such unit");
/// assert!(wrong.to_string().starts_with("invalid size \"64 apples\": "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// The error returned when a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid size \"{text}\": expected a whole number of bytes, optionally with KiB, MiB or GiB, \
     such as 65536, \"64KiB\" or \"16MiB\""
)]
pub struct ByteSizeError {
    /// The text, cut short if it is long.
    text: String,
}

/// The units, largest first.
const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// Number of characters of a rejected text that are repeated in the error.
const MAX_QUOTED_CHARS: usize = 40;

impl ByteSize {
    /// Creates a size from a number of bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        parse(text).map(Self).ok_or_else(|| ByteSizeError {
            text: text.chars().take(MAX_QUOTED_CHARS).collect(),
        })
    }
}

fn parse(text: &str) -> Option<u64> {
    let is_unit = |letter: char| !letter.is_ascii_digit();
    let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let number: u64 = number.parse().ok()?;
    if unit.is_empty() {
        return Some(number);
    }
    let (_, shift) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(1 << shift)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |shift: u32| self.0 != 0 && self.0.is_multiple_of(1 << shift);
        match UNITS.iter().find(|(_, shift)| whole(*shift)) {
            Some((name, shift)) => write!(f, "{}{name}", self.0 >> shift),
            None if self.0 == 1 => f.write_str("1 byte"),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_number_with_optional_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("65536", 65_536),
            ("64KiB", 65_536),
            ("16MiB", 16 << 20),
            ("1GiB", 1 << 30),
            ("18446744073709551615", u64::MAX),
            ("17179869183GiB", 17_179_869_183 << 30),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize::new(bytes)), "{text}");
        }
    }

    #[test]
    fn invalid_size_error_suggests_the_format() {
        for text in [
            "",
            "KiB",
            "64 KiB",
            " 64KiB",
            "64KiB ",
            "64kib",
            "64K",
            "64kB",
            "1.5GiB",
            "-1",
            "+1",
            "1e6",
            "0x10",
            "\u{661}KiB",
            "18446744073709551616",
            "17179869184GiB",
        ] {
            let wrong = text.parse::<ByteSize>().expect_err(text).to_string();
            let begins = format!("invalid size \"{text}\": ");
            assert!(wrong.starts_with(&begins), "{wrong}");
        }
        let long = "x".repeat(10_000).parse::<ByteSize>().expect_err("a text");
        assert!(long.to_string().len() < 250);
    }

    #[test]
    fn displays_in_the_largest_whole_unit() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1000, "1000 bytes"),
            (1024, "1KiB"),
            (16_385 << 10, "16385KiB"),
            (256 << 20, "256MiB"),
            (1 << 40, "1024GiB"),
        ] {
            assert_eq!(ByteSize::new(bytes).to_string(), shown);
        }
    }
}
