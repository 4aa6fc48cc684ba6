//! Which interface a peer speaks, as it stands in a configuration.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger_pfcp::Interfaces;
use strowger_pfcp::endpoint::Network;

const NAMES: [(&str, Interfaces); 5] = [
    ("Sxa", Interfaces::SXA),
    ("Sxb", Interfaces::SXB),
    ("Sxc", Interfaces::SXC),
    ("N4", Interfaces::N4),
    ("N4mb", Interfaces::N4MB),
];

/// Reads a table from networks to names; the most precise network comes first.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<(Network, Interfaces)>, D::Error> {
    let table = BTreeMap::<String, String>::deserialize(input)?;
    let rows = table.iter().map(|(network, name)| {
        let network: Network = network.parse().map_err(D::Error::custom)?;
        let named = NAMES.iter().find(|(one, _)| one == name);
        let (_, interface) = named.ok_or_else(|| {
            D::Error::custom(format!(
                "\"{name}\" is no interface: give \"Sxa\", \"Sxb\", \"Sxc\", \"N4\" or \"N4mb\""
            ))
        })?;
        Ok((network, *interface))
    });
    let mut rows: Vec<_> = rows.collect::<Result<_, D::Error>>()?;
    rows.sort_by_key(|(network, _)| std::cmp::Reverse(network.prefix()));
    Ok(rows)
}
