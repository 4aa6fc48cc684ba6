//! Spans of time in a file: `"500ms"`, `"10s"`, `"2m"`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::command::span;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    span::parse(&text).map_err(|error| D::Error::custom(format!("\"{text}\": {error}")))
}
