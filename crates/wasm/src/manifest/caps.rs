//! The most that a manifest may ask for on a node.

use std::fmt::Display;
use std::time::Duration;

use serde::Deserialize;

use super::{Manifest, Share, quantity};
use crate::planted::{Bug, planted};

/// The most that the manifest of any component may ask for; `[components.caps]` of a node's
/// configuration. Each key bounds the one of the same name in `[limits]`, but for `intensity`,
/// which is that of `[restart]`. Sizes are in bytes, rates in a second.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Caps {
    /// All linear memories of a component together.
    #[serde(deserialize_with = "quantity::size")]
    pub memory: usize,
    /// The elements of each table.
    pub table: usize,
    /// The bytes that cross from a component to its host in one call.
    #[serde(deserialize_with = "quantity::size")]
    pub payload: usize,
    /// The processor time of one call.
    #[serde(deserialize_with = "quantity::span")]
    pub deadline: Duration,
    /// The processor time of `init`.
    #[serde(deserialize_with = "quantity::span")]
    pub init: Duration,
    /// The messages that wait for a component.
    pub mailbox: usize,
    /// The messages that it sends.
    pub send_rate: u32,
    /// The lines that it logs.
    pub log_rate: u32,
    /// The asks and timers that are under way at a time.
    pub in_flight: usize,
    /// The weight among components on guest threads.
    pub weight: u32,
    /// The share of a processor.
    pub cpu: Share,
    /// The faults within `restart.period` after which it is in quarantine.
    pub intensity: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            table: 100_000,
            payload: 16 << 20,
            deadline: Duration::from_secs(1),
            init: Duration::from_secs(5),
            mailbox: 65_536,
            send_rate: 100_000,
            log_rate: 1000,
            in_flight: 4096,
            weight: 100,
            cpu: Share::WHOLE,
            intensity: 1000,
        }
    }
}

/// A value of a manifest that is beyond what the node allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{key}` is {asked}, and the node allows at most {cap} (`components.caps.{}`)",
    self.name()
)]
#[non_exhaustive]
pub struct Excessive {
    /// The key of the manifest.
    pub key: &'static str,
    /// Its value.
    pub asked: String,
    /// What the node allows.
    pub cap: String,
}

impl Excessive {
    /// The key of the cap.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }
}

fn within<T: PartialOrd>(
    key: &'static str,
    asked: &T,
    cap: &T,
    show: impl Fn(&T) -> String,
) -> Result<(), Excessive> {
    if asked <= cap || planted(Bug::CapIgnored) {
        return Ok(());
    }
    let (asked, cap) = (show(asked), show(cap));
    Err(Excessive { key, asked, cap })
}

fn plain<T: Display>(value: &T) -> String {
    value.to_string()
}

fn time(value: &Duration) -> String {
    format!("{value:?}")
}

fn size(value: &usize) -> String {
    match value {
        0 => "0".to_owned(),
        value if value % (1 << 20) == 0 => format!("{}MiB", value >> 20),
        value if value % (1 << 10) == 0 => format!("{}KiB", value >> 10),
        value => format!("{value} bytes"),
    }
}

impl Caps {
    /// Caps that no manifest reaches, for hosts whose components are trusted with the machine.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            memory: usize::MAX,
            table: usize::MAX,
            payload: usize::MAX,
            deadline: Duration::MAX,
            init: Duration::MAX,
            mailbox: usize::MAX,
            send_rate: u32::MAX,
            log_rate: u32::MAX,
            in_flight: usize::MAX,
            weight: u32::MAX,
            cpu: Share::WHOLE,
            intensity: u32::MAX,
        }
    }

    /// Checks that a manifest asks for no more than this.
    ///
    /// # Errors
    /// [`Excessive`] for the first value that is beyond.
    pub fn check(&self, manifest: &Manifest) -> Result<(), Excessive> {
        let limits = &manifest.limits;
        within("limits.memory", &limits.memory, &self.memory, size)?;
        within("limits.table", &limits.table, &self.table, plain)?;
        within("limits.payload", &limits.payload, &self.payload, size)?;
        within("limits.deadline", &limits.deadline, &self.deadline, time)?;
        within("limits.init", &limits.init, &self.init, time)?;
        within("limits.mailbox", &limits.mailbox, &self.mailbox, plain)?;
        within(
            "limits.send_rate",
            &limits.send_rate,
            &self.send_rate,
            plain,
        )?;
        within("limits.log_rate", &limits.log_rate, &self.log_rate, plain)?;
        within(
            "limits.in_flight",
            &limits.in_flight,
            &self.in_flight,
            plain,
        )?;
        if let Some(weight) = &limits.weight {
            within("limits.weight", weight, &self.weight, plain)?;
        }
        if let Some(cpu) = &limits.cpu {
            within("limits.cpu", cpu, &self.cpu, plain)?;
        }
        let intensity = &manifest.restart.intensity;
        within("restart.intensity", intensity, &self.intensity, plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_a_manifest_are_within_defaults_of_a_node() {
        assert_eq!(Caps::default().check(&Manifest::new("a")), Ok(()));
    }

    #[test]
    fn each_cap_is_inclusive_and_named_with_both_values() {
        for (key, most, beyond) in [
            ("limits.memory", "\"256MiB\"", "\"257MiB\""),
            ("limits.table", "100000", "100001"),
            ("limits.payload", "\"16MiB\"", "\"16385KiB\""),
            ("limits.deadline", "\"1s\"", "\"1001ms\""),
            ("limits.init", "\"5s\"", "\"5001ms\""),
            ("limits.mailbox", "65536", "65537"),
            ("limits.send_rate", "100000", "100001"),
            ("limits.log_rate", "1000", "1001"),
            ("limits.in_flight", "4096", "4097"),
            ("limits.weight", "100", "101"),
            ("limits.cpu", "\"100%\"", ""),
            ("restart.intensity", "1000", "1001"),
        ] {
            let (table, name) = key.split_once('.').expect("a table and a key");
            let check = |value: &str| {
                let text = format!("[component]\nname = \"a\"\n[{table}]\n{name} = {value}");
                let manifest = Manifest::parse(&text).expect("it is a manifest");
                Caps::default().check(&manifest)
            };
            assert_eq!(check(most), Ok(()), "{key}");
            if beyond.is_empty() {
                continue;
            }
            let error = check(beyond).expect_err(key);
            assert_eq!((error.key, error.name()), (key, name));
            let said = error.to_string();
            assert!(said.contains(&format!("components.caps.{name}")), "{said}");
        }
    }
}
