//! The interface that a peer uses, as written in a configuration.

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

/// Reads a table from networks to names and sorts it by prefix length, longest first.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<(Network, Interfaces)>, D::Error> {
    networks::table(input, "interface", &NAMES)
}
