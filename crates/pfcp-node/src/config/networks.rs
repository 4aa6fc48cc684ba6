//! Lists of networks, as they stand in a configuration.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger_pfcp::endpoint::Network;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Network>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    texts
        .iter()
        .map(|text| text.parse().map_err(D::Error::custom))
        .collect()
}

/// The networks of texts that are known to be right.
pub(super) fn known<const N: usize>(texts: [&str; N]) -> Vec<Network> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}
