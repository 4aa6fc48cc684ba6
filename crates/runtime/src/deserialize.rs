//! Sizes and durations in files: a number, or the text that a command line takes.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::duration::parse_duration;
use crate::size::ByteSize;

/// Deserializes a duration: a number of seconds, or a text that [`parse_duration`] accepts.
///
/// For use as `#[serde(deserialize_with = "strowger::deserialize_duration")]`, on a [`Duration`] or
/// an `Option` of one.
///
/// # Errors
/// Returns an error if the value is not a duration.
pub fn deserialize_duration<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<Duration>,
{
    input.deserialize_any(DurationVisitor).map(T::from)
}

/// Deserializes a size: a number of bytes, or a text that [`ByteSize`] can be parsed from.
///
/// For use as `#[serde(deserialize_with = "strowger::deserialize_size")]`, on an integer.
///
/// # Errors
/// Returns an error if the value is not a size, or if it does not fit into the integer.
pub fn deserialize_size<'de, D, N>(input: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<u64>,
{
    input.deserialize_any(SizeVisitor(PhantomData))
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        deserialize_size(input).map(Self::new)
    }
}

struct DurationVisitor;

impl DurationVisitor {
    /// Parses a plain number as if it were a text, so that the same rules apply.
    fn number<E: Error>(self, number: impl fmt::Display) -> Result<Duration, E> {
        self.visit_str(&number.to_string())
    }
}

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a duration: a number of seconds, or a text of a number and one of us, ms, s, m and h, \
             such as \"500ms\", \"1.5s\" or \"2m\"",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse_duration(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Duration, E> {
        self.number(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Duration, E> {
        self.number(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Duration, E> {
        self.number(number)
    }
}

struct SizeVisitor<N>(PhantomData<N>);

impl<N: TryFrom<u64>> SizeVisitor<N> {
    fn checked<E: Error>(size: ByteSize) -> Result<N, E> {
        let too_large = |_| E::custom(format!("{size} is too large for this setting"));
        N::try_from(size.bytes()).map_err(too_large)
    }
}

impl<N: TryFrom<u64>> Visitor<'_> for SizeVisitor<N> {
    type Value = N;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a size: a whole number of bytes, or a text of one with one of KiB, MiB and GiB, such \
             as \"64KiB\" or \"16MiB\"",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<N, E> {
        text.parse().map_err(E::custom).and_then(Self::checked)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<N, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<N, E> {
        Self::checked(ByteSize::new(number))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn time(value: serde_json::Value) -> Result<Duration, String> {
        deserialize_duration(value).map_err(|error| error.to_string())
    }

    fn size<N: TryFrom<u64>>(value: serde_json::Value) -> Result<N, String> {
        deserialize_size(value).map_err(|error| error.to_string())
    }

    #[test]
    fn deserializes_numbers_and_texts_with_units() {
        assert_eq!(time(json!(3)), Ok(Duration::from_secs(3)));
        assert_eq!(time(json!(1.5)), Ok(Duration::from_millis(1500)));
        assert_eq!(time(json!("250ms")), Ok(Duration::from_millis(250)));
        let perhaps: Option<Duration> = deserialize_duration(json!("2m")).expect("a time");
        assert_eq!(perhaps, Some(Duration::from_secs(120)));
        assert_eq!(size(json!(65_536)), Ok(65_536_u64));
        assert_eq!(size(json!("64KiB")), Ok(65_536_usize));
        assert_eq!(size(json!(u64::MAX)), Ok(u64::MAX));
    }

    #[test]
    fn invalid_value_error_suggests_the_format() {
        for value in [json!(-1), json!(-1.5), json!(1e300), json!("soon")] {
            let said = time(value).expect_err("it is no time");
            assert!(said.contains("\": expected a number and a unit"), "{said}");
        }
        for value in [json!(-1), json!("1.5MiB"), json!("soon")] {
            let said = size::<u64>(value).expect_err("it is no size");
            assert!(
                said.contains("\": expected a whole number of bytes"),
                "{said}"
            );
        }
        let said = size::<u64>(json!(1.5)).expect_err("it is not whole");
        assert!(said.contains("1.5`, expected a size: a whole"), "{said}");
        let said = size::<u64>(json!(true)).expect_err("it is no number");
        assert!(said.contains("expected a size"), "{said}");
        let said = time(json!([])).expect_err("it is no number");
        assert!(said.contains("expected a duration"), "{said}");
        let said = size::<u32>(json!("4GiB")).expect_err("it is too large");
        assert_eq!(said, "4GiB is too large for this setting");
    }
}
