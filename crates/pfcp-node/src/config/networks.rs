//! Lists of networks, as written in a configuration.

use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// Reads a table from networks to one of `names` and sorts it by prefix length, longest first.
/// `what` describes the names in error messages.
pub(super) fn table<'de, D: Deserializer<'de>, T: Copy>(
    input: D,
    what: &str,
    names: &[(&str, T)],
) -> Result<Vec<(Network, T)>, D::Error> {
    let table = BTreeMap::<String, String>::deserialize(input)?;
    let rows = table.iter().map(|(network, name)| {
        let network: Network = network.parse().map_err(D::Error::custom)?;
        let named = names.iter().find(|(one, _)| one == name);
        let (_, value) = named.ok_or_else(|| {
            let mut known: Vec<_> = names
                .iter()
                .map(|(name, _)| format!("\"{name}\""))
                .collect();
            let last = known.pop().unwrap_or_default();
            let known = known.join(", ");
            D::Error::custom(format!("\"{name}\" is no {what}: give {known} or {last}"))
        })?;
        Ok((network, *value))
    });
    let mut rows: Vec<_> = rows.collect::<Result<_, D::Error>>()?;
    rows.sort_by_key(|(network, _)| Reverse(network.prefix()));
    Ok(rows)
}

/// Parses networks that are known to be valid.
pub(super) fn known<const N: usize>(texts: [&str; N]) -> Vec<Network> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}
