//! The sign that a peer has restarted, as written in a configuration.

use serde::Deserializer;
use strowger_pfcp::association::RestartSign;
use strowger_pfcp::endpoint::Network;

use super::networks;

const NAMES: [(&str, RestartSign); 2] = [
    ("heartbeat", RestartSign::Heartbeat),
    ("association-setup", RestartSign::AssociationSetup),
];

/// Reads a table from networks to names and sorts it by prefix length, longest first.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<(Network, RestartSign)>, D::Error> {
    networks::table(input, "sign of a restart", &NAMES)
}
