//! Sizes and times as people write them: `"64KiB"`, `"16MiB"`; `"250us"`, `"1.5s"`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger::parse_duration;

pub(super) fn size<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    let text = String::deserialize(input)?;
    read(
        &text,
        &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    )
    .and_then(|size| usize::try_from(size).ok())
    .ok_or_else(|| {
        let like = "a size such as \"64KiB\", \"16MiB\" or \"1GiB\"";
        D::Error::custom(format!("\"{text}\" is not {like}"))
    })
}

pub(super) fn span<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    parse_duration(&text).map_err(D::Error::custom)
}

/// A time that may be left out.
pub(super) fn perhaps<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    span(input).map(Some)
}

fn read(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}
