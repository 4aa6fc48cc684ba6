//! Releases of the specification, as written in a configuration: `"r17"`, `"r19"`.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger_pfcp::Release;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Release, D::Error> {
    let text = String::deserialize(input)?;
    text.parse().map_err(|_| {
        D::Error::custom(format!(
            "\"{text}\" is not a release: give \"r17\" or \"r19\""
        ))
    })
}
