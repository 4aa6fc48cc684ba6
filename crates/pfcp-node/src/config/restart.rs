//! The sign that a peer has restarted, as it stands in a configuration.

use serde::Deserializer;
use strowger_pfcp::association::RestartSign;
use strowger_pfcp::endpoint::Network;

use super::networks;

const NAMES: [(&str, RestartSign); 2] = [
    ("heartbeat", RestartSign::Heartbeat),
    ("association-setup", RestartSign::AssociationSetup),
];

/// Reads a table from networks to names; the most precise network comes first.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<(Network, RestartSign)>, D::Error> {
    networks::table(input, "sign of a restart", &NAMES)
}
