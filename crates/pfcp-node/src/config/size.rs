//! Numbers of octets as people write them: `"64KiB"`, `"16MiB"`, `"1GiB"`.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let text = String::deserialize(input)?;
    parse(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "\"{text}\" is not a size such as \"64KiB\", \"16MiB\" or \"1GiB\""
        ))
    })
}

fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}
