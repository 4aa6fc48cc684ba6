//! The manifest of a component: a TOML file, parsed strictly.
//!
//! An unknown key is an error that shows its position. Access is denied unless granted, and every
//! limit has a default that suits a small component.

#[cfg(test)]
mod amounts;
mod caps;
mod change;
mod compare;
mod grant;
mod path;
mod range;
mod share;
mod signed_text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger::{Backoff, Restart};

pub use self::caps::{CapBound, CapExceeded, FilesCaps, KvCaps, ManifestCaps};
pub use self::change::{AccessChange, AccessChangeKind};
pub use self::grant::{FilesGrant, Grant, KvGrant, NamePattern};
#[cfg(all(test, unix))]
pub(crate) use self::path::resolve;
pub use self::share::CpuShare;
use self::signed_text::SignedText;
use crate::digest::Digest;
use crate::signature::{Signature, SignerKey, Statement};

/// The manifest of a component.
///
/// ```
/// let manifest = strowger_wasm::Manifest::parse(
///     r#"
///     [component]
///     name = "counter"
///
///     [limits]
///     memory = "1MiB"
///     deadline = "5ms"
///
///     [grant]
///     send = ["audit"]
///
///     [state]
///     mode = "snapshot"
///     "#,
/// )?;
/// assert_eq!(manifest.component.name, "counter");
/// assert_eq!(manifest.limits.memory, 1 << 20);
/// assert!(manifest.grant.request.is_empty());
/// # Ok::<(), strowger_wasm::manifest::ManifestError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// The identity of the component.
    pub component: ComponentIdentity,
    /// Limits of the component.
    #[serde(default)]
    pub limits: ComponentLimits,
    /// Capabilities granted to the component.
    #[serde(default)]
    pub grant: Grant,
    /// The values that the component reads through `config`, in any form.
    #[serde(default)]
    pub config: toml::Table,
    /// The restart rule after a fault.
    #[serde(default)]
    pub restart: RestartRule,
    /// The rule for state that outlives a fault.
    #[serde(default)]
    pub state: StateRule,
    /// The rule for its calls.
    #[serde(default)]
    pub run: RunRule,
    /// The digest of the text that it was parsed from, for signatures.
    #[serde(skip)]
    signed_text: SignedText,
}

/// The identity of a component; `[component]` in its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ComponentIdentity {
    /// The name: its address for others, and its key in the supervision tree. Letters, digits, `-`,
    /// `_` and `.`.
    pub name: String,
    /// The file of the component, relative to the directory of the manifest.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The hash that the component must have.
    #[serde(default)]
    pub sha256: Option<Digest>,
    /// The public key that must have signed the manifest and the component.
    #[serde(default)]
    pub signer: Option<SignerKey>,
    /// The signature of this signer.
    #[serde(default)]
    pub signature: Option<Signature>,
}

/// The limits of a component; `[limits]` in its manifest. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ComponentLimits {
    /// Maximum size of all linear memories together.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub memory: usize,
    /// Maximum number of elements in each table.
    pub table: usize,
    /// Maximum number of bytes that cross from the component to its host in one call.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub payload: usize,
    /// Maximum number of handles to actors and topics that it holds at a time.
    pub handles: usize,
    /// Maximum processor time of one call.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub deadline: Duration,
    /// Maximum processor time of `init`.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub init: Duration,
    /// Approximate maximum number of instructions of one call; 0 disables counting, which is
    /// faster.
    pub fuel: u64,
    /// Capacity of its mailbox.
    pub mailbox: usize,
    /// Maximum number of messages that it sends per second; bursts of the same number are allowed.
    pub send_rate: u32,
    /// Maximum number of lines that it logs per second; bursts of the same number are allowed.
    pub log_rate: u32,
    /// Maximum number of asks and timers in progress at a time.
    pub in_flight: usize,
    /// Maximum number of streams at a time: those that it reads, and those that others read from
    /// it.
    pub streams: usize,
    /// Maximum number of items of a stream that wait for the reader.
    pub window: u32,
    /// Time limit of its own asks.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub answer: Duration,
    /// Weight among components on guest threads. The default is 100, or the maximum of the node if
    /// that is less.
    pub weight: Option<u32>,
    /// Share of a processor that it may use. The default is the maximum of the node.
    pub cpu: Option<CpuShare>,
}

/// The rule for restarts after a fault; `[restart]` in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RestartRule {
    /// The exits after which the component is restarted.
    pub kind: RestartKind,
    /// Maximum number of faults within `period`; with one more the component is quarantined.
    pub intensity: u32,
    /// The period in which faults count towards `intensity`.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub period: Duration,
    /// Backoff before the second restart in a row; it doubles from there. The first restart is
    /// immediate.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub backoff: Duration,
    /// Maximum delay before a restart.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub backoff_max: Duration,
    /// Number of incarnations that a message may end before it becomes a dead letter; until then
    /// the next incarnation handles it again. With 1 no message is delivered twice.
    pub poison: u32,
}

/// Determines the exits after which a component is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartKind {
    /// After any exit.
    #[default]
    Permanent,
    /// After a fault.
    Transient,
    /// The component is never restarted.
    Temporary,
}

/// The rule for state that outlives a fault; `[state]` in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StateRule {
    /// The method of saving state.
    pub mode: StateMode,
    /// Number of messages between snapshots.
    pub interval: u32,
    /// Idle time after which the component is passivated: without a message and with nothing in
    /// progress, only its state is kept until the next message. By default it is never passivated.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub passivate: Option<Duration>,
}

/// The method of saving state between incarnations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateMode {
    /// State is not saved.
    #[default]
    None,
    /// The snapshots of `stateful.snapshot` are kept for the next incarnation.
    Snapshot,
    /// The snapshots are also written to the host's store, for the next run of the host.
    Kv,
}

/// The rule for calls of a component; `[run]` in its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RunRule {
    /// Maximum number of messages in one call to `batch.handle`; with 1 it is never called.
    pub batch: usize,
}

impl Default for ComponentLimits {
    fn default() -> Self {
        Self {
            memory: 16 << 20,
            table: 10_000,
            payload: 1 << 20,
            handles: 64,
            deadline: Duration::from_millis(10),
            init: Duration::from_millis(500),
            fuel: 0,
            mailbox: 1024,
            send_rate: 10_000,
            log_rate: 100,
            in_flight: 256,
            streams: 16,
            window: 64,
            answer: Duration::from_secs(5),
            weight: None,
            cpu: None,
        }
    }
}

impl Default for RestartRule {
    fn default() -> Self {
        Self {
            kind: RestartKind::Permanent,
            // More than a supervisor's default: the backoff spreads faults, so a component that
            // fails at once each time still has five within the period.
            intensity: 5,
            period: Duration::from_secs(10),
            backoff: Duration::from_millis(10),
            backoff_max: Duration::from_secs(5),
            poison: 1,
        }
    }
}

impl Default for StateRule {
    fn default() -> Self {
        Self {
            mode: StateMode::None,
            interval: 1,
            passivate: None,
        }
    }
}

impl Default for RunRule {
    fn default() -> Self {
        Self { batch: 1 }
    }
}

impl RestartRule {
    /// Converts the rule to the runtime's type.
    pub(crate) const fn restart(&self) -> Restart {
        match self.kind {
            RestartKind::Permanent => Restart::Permanent,
            RestartKind::Transient => Restart::Transient,
            RestartKind::Temporary => Restart::Temporary,
        }
    }

    /// Converts the backoff to the runtime's type.
    pub(crate) const fn backoff_spec(&self) -> Backoff {
        Backoff::new(self.backoff, self.backoff_max)
    }
}

/// The error returned when a manifest is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The text does not parse, or has an unknown key or a value of a wrong type.
    #[error("invalid manifest")]
    Parse(#[from] toml::de::Error),
    /// A value is out of range.
    #[error("`{key}` is {value}; must be {range}")]
    Range {
        /// The key, with its table.
        key: &'static str,
        /// Value as written in the manifest.
        value: String,
        /// Range of allowed values.
        range: &'static str,
    },
}

impl Manifest {
    /// Creates a manifest without grants and with the default limits.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            component: ComponentIdentity {
                name: name.into(),
                file: None,
                sha256: None,
                signer: None,
                signature: None,
            },
            limits: ComponentLimits::default(),
            grant: Grant::default(),
            config: toml::Table::new(),
            restart: RestartRule::default(),
            state: StateRule::default(),
            run: RunRule::default(),
            signed_text: SignedText::default(),
        }
    }

    /// Parses a manifest from TOML, and checks the range of each value.
    ///
    /// A signature in it is one of this text. A program may change the manifest afterwards on its
    /// own authority, without a signature.
    ///
    /// # Errors
    /// [`ManifestError`], which names the position and the reason.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut manifest: Self = toml::from_str(text)?;
        if manifest.component.signature.is_some() {
            manifest.signed_text = SignedText::of(text.parse()?);
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Resolves the paths of a manifest that was read from this directory: relative paths start
    /// there.
    #[must_use]
    pub fn with_base_dir(mut self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        if let Some(file) = &mut self.component.file {
            *file = folder.join(&*file);
        }
        for files in self.grant.files.values_mut() {
            files.path = folder.join(&files.path);
        }
        self
    }

    /// Returns the statement to be signed for the manifest's text and a component, if it has a
    /// text.
    pub(crate) fn statement(&self, code: Digest) -> Option<Statement> {
        self.signed_text.statement(code)
    }

    /// Returns the values of `[config]` by key; keys within tables are joined with dots, and
    /// strings have no quotes.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        flatten("", &self.config, &mut settings);
        settings
    }
}

fn flatten(prefix: &str, table: &toml::Table, into: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = format!("{prefix}{key}");
        match value {
            toml::Value::Table(inner) => flatten(&format!("{key}."), inner, into),
            toml::Value::String(text) => drop(into.insert(key, text.clone())),
            other => drop(into.insert(key, other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match Manifest::parse(text) {
            Ok(_) => panic!("{text} was accepted"),
            Err(ManifestError::Parse(error)) => error.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn defaults_deny_access_and_set_limits() {
        let manifest = Manifest::parse("[component]\nname = \"a\"").expect("it is enough");
        assert_eq!(manifest, Manifest::new("a"));
        assert_eq!(manifest.grant, Grant::default());
    }

    #[test]
    fn unknown_keys_are_shown_with_their_position() {
        let error = problem("[component]\nname = \"a\"\n[limits]\nmemroy = \"1MiB\"");
        assert!(
            error.contains("line 4") && error.contains("memroy"),
            "{error}"
        );
        assert!(problem("[component]\nname = \"a\"\n[grants]").contains("grants"));
        assert!(problem("[limits]").contains("component"));
    }

    #[test]
    fn values_out_of_range_are_named() {
        let with = |rest: &str| problem(&format!("[component]\nname = \"a\"\n{rest}"));
        assert!(with("[limits]\nmemory = \"1KiB\"").contains("limits.memory"));
        assert!(with("[limits]\ndeadline = \"0ms\"").contains("limits.deadline"));
        assert!(with("[limits]\nmailbox = 0").contains("limits.mailbox"));
        assert!(with("[limits]\nweight = 0").contains("limits.weight"));
        assert!(with("[limits]\nweight = 10001").contains("limits.weight"));
        assert!(with("[limits]\ncpu = \"0%\"").contains("\"1%\" to \"100%\""));
        assert!(with("[limits]\ncpu = \"101%\"").contains("\"1%\" to \"100%\""));
        assert!(with("[limits]\ncpu = \"half\"").contains("half"));
        assert!(with("[run]\nbatch = 0").contains("run.batch"));
        let files = "[grant.files.data]\npath = \"data\"\nfiles = 0";
        assert!(with(files).contains("grant.files.files"));
        assert!(with("[grant.files.\"a b\"]\npath = \"data\"").contains("grant.files"));
        assert!(with("[grant.files.data]\nwrite = true").contains("path"));
        let passivate = "[state]\npassivate = \"1s\"";
        assert!(with(passivate).contains("left out without state.mode"));
        let never = "[state]\nmode = \"snapshot\"\npassivate = \"0s\"";
        assert!(with(never).contains("state.passivate"));
        assert!(with("[grant.kv]\nkeys = 0").contains("grant.kv.keys"));
        assert!(with("[grant.kv]\nsize = \"2GiB\"").contains("grant.kv.size"));
        assert!(with("[state]\nmode = \"kv\"").contains("[grant.kv]"));
        assert!(with("[restart]\npoison = 0").contains("restart.poison"));
        assert!(with("[restart]\npoison = 4\nintensity = 3").contains("restart.intensity"));
        assert!(with("[limits]\nmemory = \"16 apples\"").contains("16 apples"));
        assert!(problem("[component]\nname = \"a b\"").contains("component.name"));
    }

    #[test]
    fn relative_paths_start_at_the_manifest() {
        let text = "[component]\nname = \"a\"\nfile = \"a.wasm\"\n\
                    [grant.files]\none = { path = \"one\" }\ntwo = { path = \"/two\" }";
        let manifest = Manifest::parse(text)
            .expect("it parses")
            .with_base_dir("/etc/a");
        let path = |name: &str| manifest.grant.files[name].path.clone();
        assert_eq!(manifest.component.file, Some("/etc/a/a.wasm".into()));
        assert_eq!(path("one"), PathBuf::from("/etc/a/one"));
        assert_eq!(path("two"), PathBuf::from("/two"));
    }

    #[test]
    fn settings_are_flat_text() {
        let text = "[component]\nname = \"a\"\n[config]\nmax = 5\nname = \"x\"\n\
                    [config.slice]\nsst = 1";
        let settings = Manifest::parse(text).expect("it parses").settings();
        let pairs: Vec<_> = settings
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(pairs, [("max", "5"), ("name", "x"), ("slice.sst", "1")]);
    }

    #[test]
    fn limits_are_inclusive() {
        let parsed = |line: &str| {
            let text = format!("[component]\nname = \"a\"\n[limits]\n{line}");
            Manifest::parse(&text).map_err(|error| error.to_string())
        };
        assert!(parsed("deadline = \"600s\"\nstreams = 1000").is_ok());
        for over in ["deadline = \"601s\"", "init = \"11m\"", "streams = 1001"] {
            let key = over.split(' ').next().unwrap_or_default();
            let error = parsed(over).expect_err("it is too much");
            assert!(error.contains(key), "{error}");
        }
        let memory = |line| parsed(line).map(|manifest| manifest.limits.memory);
        assert_eq!(memory("memory = \"4GiB\""), Ok(4 << 30));
        assert_eq!(memory("memory = \"64KiB\""), Ok(64 << 10));
    }
}
