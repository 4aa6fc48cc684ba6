//! The configuration of the store.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::ConfigError;

/// The store for sessions, associations and responses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The folder of the store; the store is in memory if it is not set.
    pub path: Option<PathBuf>,
    /// The failures that an acknowledged session survives.
    pub durability: Durability,
    /// The maximum number of writes that are committed together.
    pub group: usize,
    /// The maximum number of queued writes; further requests are answered with Cause 74.
    pub queue: usize,
    /// The number of bytes kept in memory before they become a table on disk.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub buffer: u64,
    /// The number of bytes reserved for deletions when the disk is full.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub reserve: u64,
}

/// The failures that an acknowledged session survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// The end of the process, however it ends: the data is passed to the operating system before
    /// the response is sent.
    #[default]
    Process,
    /// The end of the operating system as well, such as by a power loss: the data is on the disk
    /// before the response is sent.
    Disk,
}

impl<'de> Deserialize<'de> for Durability {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        match text.as_str() {
            "process" => Ok(Self::Process),
            "disk" => Ok(Self::Disk),
            _ => Err(D::Error::custom(format!(
                "\"{text}\" is neither \"process\" nor \"disk\""
            ))),
        }
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            path: None,
            durability: Durability::Process,
            group: 64,
            queue: 4096,
            buffer: 16 << 20,
            reserve: 16 << 20,
        }
    }
}

impl StoreConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (key, value, least, most) in [
            ("group", self.group as u64, 1, 65_536),
            ("queue", self.queue as u64, 1, 1 << 20),
            ("buffer", self.buffer, 64 << 10, 1 << 30),
            ("reserve", self.reserve, 1 << 20, 1 << 34),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ConfigError::Store {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}
