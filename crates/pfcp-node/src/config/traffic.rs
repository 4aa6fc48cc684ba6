//! Where traffic comes from.

use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, span};
use crate::data_path::TrafficModel;

/// Where the traffic comes from that sessions count. There is no user plane: at most a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct DataPathConfig {
    /// Whether there is any.
    pub kind: DataPathKind,
    /// The same seed gives each session the same traffic.
    pub seed: u64,
    /// Octets a second of each session from the user.
    pub uplink: u64,
    /// Octets a second of each session to the user.
    pub downlink: u64,
    /// The mean size of a packet, in octets.
    pub packet: u32,
    /// How often a session looks what came; figures are exact all the same.
    #[serde(deserialize_with = "span::deserialize")]
    pub tick: Duration,
}

/// What stands in for a user plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DataPathKind {
    /// No traffic.
    #[default]
    None,
    /// The traffic of a model.
    Simulated,
}

impl Default for DataPathConfig {
    fn default() -> Self {
        Self {
            kind: DataPathKind::None,
            seed: 1,
            uplink: 12_500,
            downlink: 125_000,
            packet: 1000,
            tick: Duration::from_secs(1),
        }
    }
}

impl DataPathConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let rows = [
            ("uplink", self.uplink, 0, 10_000_000_000),
            ("downlink", self.downlink, 0, 10_000_000_000),
            ("packet", self.packet.into(), 1, 65_535),
        ];
        for (key, value, least, most) in rows {
            if value < least || value > most {
                return Err(ConfigError::DataPath {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        if self.tick < Duration::from_millis(1) || self.tick > Duration::from_secs(60) {
            return Err(ConfigError::Span {
                key: "data_path.tick",
                value: self.tick,
                least: "1ms",
                most: "1m",
            });
        }
        Ok(())
    }

    pub(crate) fn model(&self) -> TrafficModel {
        TrafficModel {
            seed: self.seed,
            uplink: self.uplink,
            downlink: self.downlink,
            packet: self.packet,
            tick: self.tick,
        }
    }
}
