//! Named peers and their addresses.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger_pfcp::association::{NamedPeer, NodeName};
use strowger_pfcp::endpoint::Network;

use super::ConfigError;

/// Reads a table from Node IDs to lists of networks.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<NamedPeer>, D::Error> {
    let table = BTreeMap::<String, Vec<String>>::deserialize(input)?;
    let mut peers: Vec<NamedPeer> = Vec::with_capacity(table.len());
    for (text, networks) in table {
        let node = NodeName::from_text(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "\"{text}\" is no Node ID: give an IP address or a domain name"
            ))
        })?;
        if peers.iter().any(|peer| peer.node == node) {
            let same = "names that differ in case alone are one name";
            return Err(D::Error::custom(format!(
                "\"{text}\" is named twice: {same}"
            )));
        }
        if networks.is_empty() {
            return Err(D::Error::custom(format!(
                "\"{text}\" has no addresses: give at least one, or leave the peer out"
            )));
        }
        let addresses = networks.iter();
        let addresses = addresses.map(|network| network.parse().map_err(D::Error::custom));
        let addresses = addresses.collect::<Result<_, _>>()?;
        peers.push(NamedPeer { node, addresses });
    }
    Ok(peers)
}

/// Checks that there is room for each named peer, and that its addresses are allowed.
pub(super) fn check(
    named: &[NamedPeer],
    allowed: &[Network],
    associations: usize,
) -> Result<(), ConfigError> {
    if named.len() > associations {
        return Err(ConfigError::NamedPeers {
            named: named.len(),
            associations,
        });
    }
    for peer in named {
        let is_allowed = |one: &&Network| allowed.iter().any(|network| covers(network, one));
        if let Some(network) = peer.addresses.iter().find(|one| !is_allowed(one)) {
            return Err(ConfigError::NamedPeerNotAllowed {
                node: peer.node.to_string(),
                network: *network,
            });
        }
    }
    Ok(())
}

fn covers(wide: &Network, narrow: &Network) -> bool {
    wide.prefix() <= narrow.prefix() && wide.contains(narrow.address())
}
