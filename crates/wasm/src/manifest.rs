//! What a component is granted: a file in TOML, strictly read.
//!
//! An unknown key is an error that shows its place. What is not granted is denied, and every limit
//! has a default that suits a small plug-in.

mod caps;
mod grant;
mod quantity;
mod range;
mod share;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger::{Backoff, Restart};

pub use self::caps::{Caps, Excessive};
pub use self::grant::{FilesGrant, Grant, KvGrant, Pattern};
pub use self::share::Share;
use crate::digest::Digest;
use crate::signature::{Signature, Signer};

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
/// # Ok::<(), strowger_wasm::ManifestError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// Which component it is.
    pub component: Identity,
    /// What it may use up.
    #[serde(default)]
    pub limits: Limits,
    /// What it may reach.
    #[serde(default)]
    pub grant: Grant,
    /// What the component reads through `config`; free.
    #[serde(default)]
    pub config: toml::Table,
    /// What follows a fault.
    #[serde(default)]
    pub restart: RestartRule,
    /// What outlives a fault.
    #[serde(default)]
    pub state: StateRule,
    /// How it is run.
    #[serde(default)]
    pub run: RunRule,
}

/// Which component it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Identity {
    /// Its name: what others send to, and its key in the tree. Letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where its octets are, from the folder of the manifest.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// What its octets must hash to.
    #[serde(default)]
    pub sha256: Option<Digest>,
    /// Who must have signed its octets.
    #[serde(default)]
    pub signer: Option<Signer>,
    /// The signer's signature.
    #[serde(default)]
    pub signature: Option<Signature>,
}

/// What a component may use up. Sizes are in octets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// All linear memories together.
    #[serde(deserialize_with = "quantity::size")]
    pub memory: usize,
    /// The elements of each table.
    pub table: usize,
    /// The octets that cross from the component to its host in one call.
    #[serde(deserialize_with = "quantity::size")]
    pub payload: usize,
    /// The actors and topics that it holds at a time.
    pub handles: usize,
    /// The processor time of one call.
    #[serde(deserialize_with = "quantity::span")]
    pub deadline: Duration,
    /// The processor time of `init`.
    #[serde(deserialize_with = "quantity::span")]
    pub init: Duration,
    /// The instructions of one call, about; 0 counts none, which is faster.
    pub fuel: u64,
    /// The messages that wait for it.
    pub mailbox: usize,
    /// The messages that it sends in a second; bursts of as many are allowed.
    pub send_rate: u32,
    /// The lines that it logs in a second; bursts of as many are allowed.
    pub log_rate: u32,
    /// The asks and timers that are under way at a time.
    pub in_flight: usize,
    /// The streams that it reads, and that others read from it, at a time.
    pub streams: usize,
    /// The items of a stream that wait for who reads it.
    pub window: u32,
    /// How long an ask of its own waits.
    #[serde(deserialize_with = "quantity::span")]
    pub answer: Duration,
    /// How much it gets of the guest threads beside others, where a component that says nothing has
    /// 100, or the most that the node allows if that is less.
    pub weight: Option<u32>,
    /// The share of a processor that it may use; unless it is said, what the node allows.
    pub cpu: Option<Share>,
}

/// What follows a fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RestartRule {
    /// Whether it is started again.
    pub kind: RestartKind,
    /// With one fault more than so many within `period` it is put into quarantine.
    pub intensity: u32,
    /// See `intensity`.
    #[serde(deserialize_with = "quantity::span")]
    pub period: Duration,
    /// The pause before the second restart in a row; it doubles from there. The first is at once.
    #[serde(deserialize_with = "quantity::span")]
    pub backoff: Duration,
    /// The longest pause.
    #[serde(deserialize_with = "quantity::span")]
    pub backoff_max: Duration,
    /// A message of which so many lives ended is a dead letter; until then the next life handles it
    /// again. 1 never delivers a message twice.
    pub poison: u32,
}

/// Whether a component that ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartKind {
    /// Always.
    #[default]
    Permanent,
    /// After a fault.
    Transient,
    /// Never.
    Temporary,
}

/// What outlives a fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StateRule {
    /// How state is kept.
    pub mode: StateMode,
    /// A snapshot is taken each time that so many messages were handled.
    pub interval: u32,
    /// After so long without a message, and with nothing under way, only its state is kept until
    /// the next message; never, unless it is said.
    #[serde(deserialize_with = "quantity::perhaps")]
    pub passivate: Option<Duration>,
}

/// How state is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateMode {
    /// Not at all.
    #[default]
    None,
    /// By what `stateful.snapshot` gives.
    Snapshot,
    /// By the same, written to the host's store: for its next run, too.
    Kv,
}

/// How a component is run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RunRule {
    /// The most messages of one call to `batch.handle`; 1 never calls it.
    pub batch: usize,
}

impl Default for Limits {
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
    /// The rule in the runtime's words.
    pub(crate) const fn restart(&self) -> Restart {
        match self.kind {
            RestartKind::Permanent => Restart::Permanent,
            RestartKind::Transient => Restart::Transient,
            RestartKind::Temporary => Restart::Temporary,
        }
    }

    /// The pauses in the runtime's words.
    pub(crate) const fn pauses(&self) -> Backoff {
        Backoff::new(self.backoff, self.backoff_max)
    }
}

/// Why a manifest is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It does not parse, or has a key or a value that it may not have.
    #[error("the manifest does not parse")]
    Parse(#[from] toml::de::Error),
    /// A value is outside of its range.
    #[error("`{key}` is {value}, and may be {range}")]
    Range {
        /// The key, with its table.
        key: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        range: &'static str,
    },
}

impl Manifest {
    /// A manifest that grants nothing, with the default limits.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            component: Identity {
                name: name.into(),
                file: None,
                sha256: None,
                signer: None,
                signature: None,
            },
            limits: Limits::default(),
            grant: Grant::default(),
            config: toml::Table::new(),
            restart: RestartRule::default(),
            state: StateRule::default(),
            run: RunRule::default(),
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ManifestError`], which says where and what is wrong.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let manifest: Self = toml::from_str(text)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The manifest as one that was read in a folder: paths in it begin there.
    #[must_use]
    pub fn within(mut self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        if let Some(file) = &mut self.component.file {
            *file = folder.join(&*file);
        }
        for files in self.grant.files.values_mut() {
            files.path = folder.join(&files.path);
        }
        self
    }

    /// The values of `[config]`, by key: within tables with dots, texts without quotes.
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
    fn what_is_not_said_is_denied_and_has_a_limit() {
        let manifest = Manifest::parse("[component]\nname = \"a\"").expect("it is enough");
        assert_eq!(manifest, Manifest::new("a"));
        assert_eq!(manifest.grant, Grant::default());
    }

    #[test]
    fn unknown_keys_are_shown_with_their_place() {
        let said = problem("[component]\nname = \"a\"\n[limits]\nmemroy = \"1MiB\"");
        assert!(said.contains("line 4") && said.contains("memroy"), "{said}");
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
        assert!(with(passivate).contains("only with a state.mode"));
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
    fn paths_begin_in_the_folder_of_the_manifest() {
        let text = "[component]\nname = \"a\"\nfile = \"a.wasm\"\n\
                    [grant.files]\none = { path = \"one\" }\ntwo = { path = \"/two\" }";
        let manifest = Manifest::parse(text).expect("it parses").within("/etc/a");
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
        let said = |line: &str| {
            let text = format!("[component]\nname = \"a\"\n[limits]\n{line}");
            Manifest::parse(&text).map_err(|error| error.to_string())
        };
        assert!(said("deadline = \"600s\"\nstreams = 1000").is_ok());
        for over in ["deadline = \"601s\"", "init = \"11m\"", "streams = 1001"] {
            let key = over.split(' ').next().unwrap_or_default();
            let error = said(over).expect_err("it is too much");
            assert!(error.contains(key), "{error}");
        }
        let memory = |line| said(line).map(|manifest| manifest.limits.memory);
        assert_eq!(memory("memory = \"4GiB\""), Ok(4 << 30));
        assert_eq!(memory("memory = \"64KiB\""), Ok(64 << 10));
    }
}
