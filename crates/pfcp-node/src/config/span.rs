//! Times in a file: `"500ms"`, `"1.5s"`, `"2m"`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger::parse_duration;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    parse_duration(&text).map_err(D::Error::custom)
}
