//! The pools of addresses and TEIDs.

use std::net::IpAddr;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use strowger_pfcp::endpoint::Network;

use super::networks;
use crate::pool::InstanceKey;

/// The pools of addresses and TEIDs. In a configuration a table, or a list with the pools of
/// network instances:
///
/// ```
/// use strowger_pfcp_node::NodeConfig;
///
/// let config: NodeConfig = toml::from_str(
///     r#"
///     [[pools]]
///     ue = ["10.45.0.0/16"]
///
///     [[pools]]
///     network_instance = "ims"
///     ue = ["10.46.0.0/16"]
///     "#,
/// )?;
/// assert_eq!(config.pools.ue, ["10.45.0.0/16".parse()?]);
/// assert_eq!(config.pools.instances[0].network_instance, "ims");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pools {
    /// The networks from which UE IP addresses are allocated when a peer asks for one, in network
    /// instances without a pool of their own.
    pub ue: Vec<Network>,
    /// The first TEID to allocate.
    pub teid_first: u32,
    /// The last TEID to allocate.
    pub teid_last: u32,
    /// The user plane addresses that are sent with an allocated TEID. Defaults to the first listen
    /// address of the right family.
    pub gtpu: Vec<IpAddr>,
    /// The pools of single network instances.
    pub instances: Vec<InstancePool>,
}

/// The pool of a network instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstancePool {
    /// The name of the network instance.
    pub network_instance: String,
    /// The networks from which UE IP addresses are allocated.
    pub ue: Vec<Network>,
}

/// A table of pools, as written in a configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolTable {
    network_instance: Option<String>,
    #[serde(default, deserialize_with = "some_networks")]
    ue: Option<Vec<Network>>,
    teid_first: Option<u32>,
    teid_last: Option<u32>,
    gtpu: Option<Vec<IpAddr>>,
}

fn some_networks<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<Network>>, D::Error> {
    networks::deserialize(input).map(Some)
}

impl<'de> Deserialize<'de> for Pools {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(PoolsVisitor)
    }
}

struct PoolsVisitor;

impl<'de> Visitor<'de> for PoolsVisitor {
    type Value = Pools;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table of pools, or a list of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pools, A::Error> {
        let table = PoolTable::deserialize(MapAccessDeserializer::new(map))?;
        if table.network_instance.is_some() {
            return Err(A::Error::custom(
                "`network_instance` belongs into a list of pools: write `[[n4.pools]]`",
            ));
        }
        Ok(Pools::default().with(table))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Pools, A::Error> {
        let tables = Vec::<PoolTable>::deserialize(SeqAccessDeserializer::new(list))?;
        // A list is complete: instances that no entry covers get no addresses.
        let mut pools = Pools {
            ue: Vec::new(),
            ..Pools::default()
        };
        let mut is_common_listed = false;
        for table in tables {
            let Some(name) = table.network_instance.clone() else {
                if std::mem::replace(&mut is_common_listed, true) {
                    return Err(A::Error::custom(
                        "two pools have no `network_instance`: only the pool of all other \
                         instances goes without",
                    ));
                }
                pools = pools.with(table);
                continue;
            };
            pools.add_instance(name, table).map_err(A::Error::custom)?;
        }
        Ok(pools)
    }
}

impl Pools {
    fn with(self, table: PoolTable) -> Self {
        Self {
            ue: table.ue.unwrap_or(self.ue),
            teid_first: table.teid_first.unwrap_or(self.teid_first),
            teid_last: table.teid_last.unwrap_or(self.teid_last),
            gtpu: table.gtpu.unwrap_or(self.gtpu),
            instances: self.instances,
        }
    }

    fn add_instance(&mut self, name: String, table: PoolTable) -> Result<(), String> {
        if name.is_empty() {
            return Err("a pool has an empty `network_instance`: leave the key out".to_owned());
        }
        let (first, last) = (table.teid_first, table.teid_last);
        if first.or(last).is_some() || table.gtpu.is_some() {
            return Err(format!(
                "the pool of \"{name}\" has `teid_first`, `teid_last` or `gtpu`: TEIDs belong to \
                 the whole node, so these keys go into the pool without `network_instance`"
            ));
        }
        let key = |name: &str| InstanceKey::of(name.as_bytes());
        let mut before = self.instances.iter();
        if before.any(|one| key(&one.network_instance) == key(&name)) {
            return Err(format!(
                "\"{name}\" has two pools: give one pool several networks in `ue`"
            ));
        }
        let ue = table.ue.ok_or_else(|| {
            format!("the pool of \"{name}\" has no `ue`: give networks, or `[]` for no addresses")
        })?;
        self.instances.push(InstancePool {
            network_instance: name,
            ue,
        });
        Ok(())
    }
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            ue: networks::known(["10.45.0.0/16", "2001:db8:cafe::/48"]),
            teid_first: 1,
            teid_last: u32::MAX,
            gtpu: Vec::new(),
            instances: Vec::new(),
        }
    }
}
