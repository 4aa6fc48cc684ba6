//! Where sessions are kept, and how well.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{ConfigError, size};

/// Where the node keeps sessions, associations and answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The folder of the store; in memory if it is not set.
    pub path: Option<PathBuf>,
    /// What a session survives once it is acknowledged.
    pub durability: Durability,
    /// The most writes that are committed together.
    pub group: usize,
    /// The most writes that wait; beyond that the answer is Cause 74.
    pub queue: usize,
    /// How many octets are kept in memory before they become a table on disk.
    #[serde(deserialize_with = "size::deserialize")]
    pub buffer: u64,
    /// How many octets are held free for deletions when the disk is full.
    #[serde(deserialize_with = "size::deserialize")]
    pub reserve: u64,
}

/// What a session survives once it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// The end of the process, however it ends: it is given to the system before the answer.
    #[default]
    Process,
    /// The end of the system as well, such as by a loss of power: it is on the disk before the
    /// answer.
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
