//! The valid ranges of the values of a manifest.

use std::fmt::Display;
use std::time::Duration;

use super::caps::size;
use super::{Manifest, ManifestError, RestartRule, StateMode};

type RangeCheck = Result<(), ManifestError>;

fn out_of_range(key: &'static str, value: &dyn Display, range: &'static str) -> RangeCheck {
    let value = value.to_string();
    Err(ManifestError::Range { key, value, range })
}

/// Returns `true` if the name is valid for a component or a directory.
fn is_valid_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

impl Manifest {
    /// Checks that every value is within its range.
    ///
    /// # Errors
    /// [`ManifestError::Range`] for the first value that is not.
    pub fn check(&self) -> Result<(), ManifestError> {
        self.check_identity()?;
        self.check_limits()?;
        self.check_grants()?;
        self.check_state()?;
        let RestartRule {
            poison, intensity, ..
        } = self.restart;
        if poison == 0 || poison > intensity.max(1) {
            return out_of_range("restart.poison", &poison, "1 to restart.intensity");
        }
        Ok(())
    }

    fn check_identity(&self) -> RangeCheck {
        let name = &self.component.name;
        if !is_valid_name(name) {
            let range = "1 to 64 letters, digits, `-`, `_` and `.`";
            return out_of_range("component.name", &format!("{name:?}"), range);
        }
        if let (None, Some(signature)) = (&self.component.signer, &self.component.signature) {
            let range = "left out without component.signer";
            return out_of_range("component.signature", signature, range);
        }
        Ok(())
    }

    fn check_limits(&self) -> RangeCheck {
        let limits = &self.limits;
        if !(65_536..=1 << 32).contains(&limits.memory) {
            return out_of_range("limits.memory", &size(&limits.memory), "64KiB to 4GiB");
        }
        if !(1..=1 << 30).contains(&limits.payload) {
            return out_of_range("limits.payload", &size(&limits.payload), "1 byte to 1GiB");
        }
        for (key, value) in [
            ("limits.deadline", limits.deadline),
            ("limits.init", limits.init),
            ("limits.answer", limits.answer),
        ] {
            if value.is_zero() || value > Duration::from_secs(600) {
                return out_of_range(key, &format!("{value:?}"), "1us to 600s");
            }
        }
        for (key, value) in [
            ("limits.mailbox", limits.mailbox),
            ("limits.window", limits.window as usize),
            ("run.batch", self.run.batch),
            ("state.interval", self.state.interval as usize),
        ] {
            if !(1..=1_000_000).contains(&value) {
                return out_of_range(key, &value, "1 to 1000000");
            }
        }
        if let Some(weight) = limits.weight
            && !(1..=10_000).contains(&weight)
        {
            return out_of_range("limits.weight", &weight, "1 to 10000");
        }
        if limits.streams > 1000 {
            return out_of_range("limits.streams", &limits.streams, "0 to 1000");
        }
        Ok(())
    }

    fn check_grants(&self) -> RangeCheck {
        if let Some(kv) = self.grant.kv {
            if !(1..=1 << 30).contains(&kv.size) {
                return out_of_range("grant.kv.size", &size(&kv.size), "1 byte to 1GiB");
            }
            if !(1..=1_000_000).contains(&kv.keys) {
                return out_of_range("grant.kv.keys", &kv.keys, "1 to 1000000");
            }
        }
        for (name, files) in &self.grant.files {
            if !is_valid_name(name) {
                let range = "1 to 64 letters, digits, `-`, `_` and `.`";
                return out_of_range("grant.files", &format!("{name:?}"), range);
            }
            if !(1..=10_000).contains(&files.files) {
                return out_of_range("grant.files.files", &files.files, "1 to 10000");
            }
        }
        Ok(())
    }

    fn check_state(&self) -> RangeCheck {
        if self.state.mode == StateMode::Kv && self.grant.kv.is_none() {
            let range = "`none` or `snapshot` without [grant.kv]";
            return out_of_range("state.mode", &"\"kv\"", range);
        }
        let Some(after) = self.state.passivate else {
            return Ok(());
        };
        let (key, value) = ("state.passivate", format!("{after:?}"));
        if self.state.mode == StateMode::None {
            return out_of_range(key, &value, "left out without state.mode");
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&after) {
            return out_of_range(key, &value, "1ms to 1440m");
        }
        Ok(())
    }
}
