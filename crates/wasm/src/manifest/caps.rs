//! The caps of a node: upper bounds of what a manifest may ask for.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Deserialize;
use strowger::ByteSize;

use super::{
    ComponentLimits, CpuShare, FilesGrant, Grant, KvGrant, Manifest, RestartRule, RunRule,
    StateRule,
};
use crate::seeded_bug::{Bug, seeded};
use crate::usage::DEFAULT_WEIGHT;

/// The most that the manifest of any component may ask for; `[components.caps]` in a node's
/// configuration.
///
/// Each key bounds the key of the same name in `[limits]`; `intensity`, `period` and `backoff`
/// bound those in `[restart]`, and `batch` that in `[run]`. Rates are per second. Shorter values of
/// `period` and `backoff` demand more of the node, so these caps are minimums.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ManifestCaps {
    /// Maximum size of all linear memories of a component together, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub memory: usize,
    /// Maximum number of elements in each table.
    pub table: usize,
    /// Maximum number of bytes that cross from a component to its host in one call.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub payload: usize,
    /// Maximum number of handles to actors and topics at a time.
    pub handles: usize,
    /// Maximum processor time of one call.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub deadline: Duration,
    /// Maximum processor time of `init`.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub init: Duration,
    /// Maximum capacity of the mailbox.
    pub mailbox: usize,
    /// Maximum rate of sent messages.
    pub send_rate: u32,
    /// Maximum rate of log lines.
    pub log_rate: u32,
    /// Maximum number of asks and timers in progress at a time.
    pub in_flight: usize,
    /// Maximum number of streams at a time: those that it reads, and those that others read from
    /// it.
    pub streams: usize,
    /// Maximum number of items of a stream that wait for the reader.
    pub window: u32,
    /// Maximum time limit of its own asks.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub answer: Duration,
    /// Maximum weight among components on guest threads.
    pub weight: u32,
    /// Maximum share of a processor.
    pub cpu: CpuShare,
    /// Maximum number of faults within `restart.period` before it is quarantined.
    pub intensity: u32,
    /// Minimum of `restart.period`.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub period: Duration,
    /// Minimum of `restart.backoff` and `restart.backoff_max`.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub backoff: Duration,
    /// Maximum number of messages in one call to `batch.handle`.
    pub batch: usize,
    /// Bounds of key-value storage, whatever `grant` says.
    pub kv: KvCaps,
    /// Bounds of file storage, whatever `grant` says.
    pub files: FilesCaps,
    /// The widest grant that a component may have, in the format of `[grant]`. Without it, any
    /// grant is allowed.
    pub grant: Option<Grant>,
}

/// Bounds of the key-value storage of a component; `[components.caps.kv]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct KvCaps {
    /// Maximum size of keys and values in bytes; each entry counts 64 bytes more.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub size: usize,
    /// Maximum number of keys.
    pub keys: usize,
    /// Maximum number of writes per second.
    pub rate: u32,
}

/// Bounds of the file storage of a component in all its writable directories together;
/// `[components.caps.files]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FilesCaps {
    /// Maximum size of all files, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub size: usize,
    /// Maximum number of files.
    pub files: usize,
}

impl Default for ManifestCaps {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            table: 100_000,
            payload: 16 << 20,
            handles: 4096,
            deadline: Duration::from_secs(1),
            init: Duration::from_secs(5),
            mailbox: 65_536,
            send_rate: 100_000,
            log_rate: 1000,
            in_flight: 4096,
            streams: 256,
            window: 4096,
            answer: Duration::from_secs(60),
            weight: DEFAULT_WEIGHT,
            cpu: CpuShare::WHOLE,
            intensity: 1000,
            period: Duration::from_secs(1),
            backoff: Duration::from_millis(1),
            batch: 4096,
            kv: KvCaps::default(),
            files: FilesCaps::default(),
            grant: None,
        }
    }
}

impl Default for KvCaps {
    fn default() -> Self {
        Self {
            size: 64 << 20,
            keys: 100_000,
            rate: 10_000,
        }
    }
}

impl Default for FilesCaps {
    fn default() -> Self {
        Self {
            size: 1 << 30,
            files: 10_000,
        }
    }
}

/// The error returned when a value of a manifest exceeds the caps of the node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{key}` is {asked}, but the node allows at {bound} {cap} (`components.caps.{}`)",
    self.cap_key()
)]
#[non_exhaustive]
pub struct CapExceeded {
    /// The key of the manifest.
    pub key: &'static str,
    /// The value in the manifest.
    pub asked: String,
    /// The side on which the cap bounds the value.
    pub bound: CapBound,
    /// The cap of the node that is exceeded.
    pub cap: String,
}

/// The side on which a cap bounds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapBound {
    /// An upper bound.
    Max,
    /// A lower bound.
    Min,
}

impl Display for CapBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Max => "most",
            Self::Min => "least",
        })
    }
}

impl CapExceeded {
    /// Returns the key of the cap, in `[components.caps]`.
    #[must_use]
    pub fn cap_key(&self) -> &'static str {
        match self.key.split_once('.') {
            // It bounds the same backoff.
            Some(("restart", "backoff_max")) => "backoff",
            // Storage has caps of its own; all other grants are bounded by `caps.grant`.
            Some(("grant", room)) if room.contains('.') => room,
            Some(("grant", _)) | None => self.key,
            Some((_, name)) => name,
        }
    }
}

type CapCheck = Result<(), CapExceeded>;

fn within<T: PartialOrd>(
    key: &'static str,
    asked: &T,
    cap: &T,
    show: impl Fn(&T) -> String,
) -> CapCheck {
    bounded(key, asked, CapBound::Max, cap, show)
}

fn bounded<T: PartialOrd>(
    key: &'static str,
    asked: &T,
    bound: CapBound,
    cap: &T,
    show: impl Fn(&T) -> String,
) -> CapCheck {
    let is_allowed = match bound {
        CapBound::Max => asked <= cap,
        CapBound::Min => asked >= cap,
    };
    if is_allowed || seeded(Bug::CapIgnored) {
        return Ok(());
    }
    Err(CapExceeded {
        key,
        asked: show(asked),
        bound,
        cap: show(cap),
    })
}

fn format_plain<T: Display>(value: &T) -> String {
    value.to_string()
}

fn format_time(value: &Duration) -> String {
    format!("{value:?}")
}

pub(super) fn size(value: &usize) -> String {
    ByteSize::new(*value as u64).to_string()
}

impl ManifestCaps {
    /// Returns caps without bounds, for hosts that trust their components with the whole system.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self {
            memory: usize::MAX,
            table: usize::MAX,
            payload: usize::MAX,
            handles: usize::MAX,
            deadline: Duration::MAX,
            init: Duration::MAX,
            mailbox: usize::MAX,
            send_rate: u32::MAX,
            log_rate: u32::MAX,
            in_flight: usize::MAX,
            streams: usize::MAX,
            window: u32::MAX,
            answer: Duration::MAX,
            weight: u32::MAX,
            cpu: CpuShare::WHOLE,
            intensity: u32::MAX,
            period: Duration::ZERO,
            backoff: Duration::ZERO,
            batch: usize::MAX,
            kv: KvCaps {
                size: usize::MAX,
                keys: usize::MAX,
                rate: u32::MAX,
            },
            files: FilesCaps {
                size: usize::MAX,
                files: usize::MAX,
            },
            grant: None,
        }
    }

    /// Checks that a manifest stays within these caps.
    ///
    /// # Errors
    /// [`CapExceeded`] for the first value that does not.
    pub fn check(&self, manifest: &Manifest) -> Result<(), CapExceeded> {
        self.check_limits(&manifest.limits)?;
        self.check_rules(&manifest.restart, &manifest.state, &manifest.run)?;
        self.check_quotas(&manifest.grant)?;
        self.check_grant(&manifest.grant)
    }

    fn check_limits(&self, limits: &ComponentLimits) -> CapCheck {
        // Exhaustive, so that a new limit does not compile until it is bounded, or has a reason
        // here.
        let ComponentLimits {
            memory,
            table,
            payload,
            handles,
            deadline,
            init,
            // The limit of processor time ends the call in any case.
            fuel: _,
            mailbox,
            send_rate,
            log_rate,
            in_flight,
            streams,
            window,
            answer,
            weight,
            cpu,
        } = limits;
        within("limits.memory", memory, &self.memory, size)?;
        within("limits.table", table, &self.table, format_plain)?;
        within("limits.payload", payload, &self.payload, size)?;
        within("limits.handles", handles, &self.handles, format_plain)?;
        within("limits.deadline", deadline, &self.deadline, format_time)?;
        within("limits.init", init, &self.init, format_time)?;
        within("limits.mailbox", mailbox, &self.mailbox, format_plain)?;
        within("limits.send_rate", send_rate, &self.send_rate, format_plain)?;
        within("limits.log_rate", log_rate, &self.log_rate, format_plain)?;
        within("limits.in_flight", in_flight, &self.in_flight, format_plain)?;
        within("limits.streams", streams, &self.streams, format_plain)?;
        within("limits.window", window, &self.window, format_plain)?;
        within("limits.answer", answer, &self.answer, format_time)?;
        if let Some(weight) = weight {
            within("limits.weight", weight, &self.weight, format_plain)?;
        }
        if let Some(cpu) = cpu {
            within("limits.cpu", cpu, &self.cpu, format_plain)?;
        }
        Ok(())
    }

    /// Checks the rules for restarts, state and calls.
    fn check_rules(&self, restart: &RestartRule, state: &StateRule, run: &RunRule) -> CapCheck {
        let RestartRule {
            kind: _,
            intensity,
            period,
            backoff,
            backoff_max,
            // At most the intensity.
            poison: _,
        } = restart;
        let StateRule {
            mode: _,
            // The default is the most work: a snapshot for each message.
            interval: _,
            // It wakes at most once per message, at the cost of an `init`.
            passivate: _,
        } = state;
        let RunRule { batch } = run;
        let least = CapBound::Min;
        within(
            "restart.intensity",
            intensity,
            &self.intensity,
            format_plain,
        )?;
        bounded("restart.period", period, least, &self.period, format_time)?;
        bounded(
            "restart.backoff",
            backoff,
            least,
            &self.backoff,
            format_time,
        )?;
        let (key, longest) = ("restart.backoff_max", backoff_max);
        bounded(key, longest, least, &self.backoff, format_time)?;
        within("run.batch", batch, &self.batch, format_plain)
    }

    /// Checks the storage.
    fn check_quotas(&self, grant: &Grant) -> CapCheck {
        if let Some(KvGrant {
            size: most,
            keys,
            rate,
        }) = &grant.kv
        {
            within("grant.kv.size", most, &self.kv.size, size)?;
            within("grant.kv.keys", keys, &self.kv.keys, format_plain)?;
            within("grant.kv.rate", rate, &self.kv.rate, format_plain)?;
        }
        let (mut total, mut count) = (0_usize, 0_usize);
        for folder in grant.files.values() {
            let FilesGrant {
                path: _,
                write,
                size,
                files,
            } = folder;
            if *write {
                total = total.saturating_add(*size);
                count = count.saturating_add(*files);
            }
        }
        within("grant.files.size", &total, &self.files.size, size)?;
        within("grant.files.files", &count, &self.files.files, format_plain)
    }

    /// Checks the grants. Directories are compared by their resolved paths.
    fn check_grant(&self, asked: &Grant) -> CapCheck {
        let Some(most) = &self.grant else {
            return Ok(());
        };
        let (mut asked, mut most) = (asked.clone(), most.clone());
        asked.resolve();
        most.resolve();
        match asked.wider_parts(&most).into_iter().next() {
            Some(wider) if !seeded(Bug::CapIgnored) => Err(CapExceeded {
                key: wider.key,
                asked: match wider.name {
                    Some(name) => format!("`{name}`: {}", wider.asked),
                    None => wider.asked,
                },
                bound: CapBound::Max,
                cap: wider.most,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the weight of a component with these limits.
    pub(crate) fn weight_of(&self, limits: &ComponentLimits) -> u32 {
        limits
            .weight
            .unwrap_or_else(|| DEFAULT_WEIGHT.min(self.weight))
    }

    /// Returns the share of a processor of a component with these limits.
    pub(crate) fn cpu_of(&self, limits: &ComponentLimits) -> CpuShare {
        limits.cpu.unwrap_or(self.cpu)
    }
}

#[cfg(test)]
mod tests;
