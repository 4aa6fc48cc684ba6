//! Spans of time as people write them: `"500ms"`, `"3s"`, `"2m"`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    parse(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "\"{text}\" is not a time such as \"500ms\", \"3s\" or \"2m\""
        ))
    })
}

/// Reads a span.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}
