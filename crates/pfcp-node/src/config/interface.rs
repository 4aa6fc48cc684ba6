//! Which interface a peer speaks, as it stands in a configuration.

use serde::Deserializer;
use strowger_pfcp::Interfaces;
use strowger_pfcp::endpoint::Network;

use super::networks;

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
    networks::table(input, "interface", &NAMES)
}
