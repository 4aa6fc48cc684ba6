//! The components of a node, and the limits that all of them share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_wasm::HostLimits;
use strowger_wasm::host::OverBudgetAction;
use strowger_wasm::manifest::{Grant, ManifestCaps};
use strowger_wasm::signature::TrustPolicy;

use super::{Config, Problem};

/// The limits of all components together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ComponentsSection {
    /// Maximum number of instances at a time.
    pub(crate) instances: usize,
    /// Maximum number of these that wait for answers.
    pub(crate) waiting: usize,
    /// The topics of components that clients may read.
    pub(crate) topics: Vec<String>,
    /// The directory for compiled code, relative to the directory of the configuration. Nothing is
    /// cached if it is not set.
    pub(crate) cache: Option<PathBuf>,
    /// Number of threads of the lowest priority, on which components run that compute for long; by
    /// default, the number of processors.
    pub(crate) threads: Option<usize>,
    /// The niceness of these threads relative to the others, from 0 to 19.
    pub(crate) nice: u8,
    /// Maximum duration of a call on the clock, as a multiple of its processor time limit, plus a
    /// second.
    pub(crate) wall: u32,
    /// The consequence for a component that exceeds its share of a processor.
    pub(crate) excess: OverBudgetAction,
    /// Time for which a component may exceed its share before it is put into quarantine, if that is
    /// the consequence.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) patience: Duration,
    /// The caps on what a manifest may ask for.
    pub(crate) caps: ManifestCaps,
    /// The trusted signers of components, and whether upgrades may widen what those reach.
    pub(crate) trust: TrustPolicy,
}

/// A component to start.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentSection {
    /// Path of the manifest, relative to the directory of the configuration.
    pub(crate) manifest: PathBuf,
    /// The name, overriding that of the manifest.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Exposes the component to clients.
    #[serde(default)]
    pub(crate) expose: bool,
    /// The grants, overriding those of the manifest.
    #[serde(default)]
    pub(crate) grant: Option<Grant>,
    /// The configuration that the component reads, overriding that of the manifest.
    #[serde(default)]
    pub(crate) config: Option<toml::Table>,
    /// The component if it is part of the program instead of in files; not a key.
    #[serde(skip)]
    pub(crate) embedded: Option<Embedded>,
}

/// A component that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Embedded {
    pub(crate) bytes: &'static [u8],
    pub(crate) manifest: &'static str,
}

/// Resolves the paths of both sections relative to the directory of the configuration.
pub(super) fn resolve_paths(config: &mut Config, folder: &Path) {
    config.components.resolve_paths(folder);
    for component in &mut config.component {
        component.resolve_paths(folder);
    }
}

/// Returns the first problem of both sections that the types cannot rule out.
pub(super) fn problem(config: &Config) -> Option<Problem> {
    config.components.problem(config.component.len())
}

impl Default for ComponentsSection {
    fn default() -> Self {
        let limits = HostLimits::default();
        Self {
            instances: limits.instances,
            waiting: limits.waiting,
            topics: Vec::new(),
            cache: None,
            threads: None,
            nice: limits.nice,
            wall: limits.wall,
            excess: limits.excess,
            patience: limits.patience,
            caps: limits.caps,
            trust: limits.trust,
        }
    }
}

impl ComponentsSection {
    /// Returns the limits of the host.
    pub(crate) fn limits(&self) -> HostLimits {
        let mut limits = HostLimits::default();
        limits.instances = self.instances;
        limits.waiting = self.waiting;
        limits.cache.clone_from(&self.cache);
        limits.threads = self.threads.unwrap_or(limits.threads);
        limits.nice = self.nice;
        limits.wall = self.wall;
        limits.excess = self.excess;
        limits.patience = self.patience;
        limits.caps = self.caps.clone();
        limits.trust = self.trust.clone();
        limits
    }

    /// Resolves the cache directory, and those that may be granted, relative to the directory of
    /// the configuration.
    fn resolve_paths(&mut self, folder: &Path) {
        if let Some(grant) = &mut self.caps.grant {
            resolve_grant_paths(grant, folder);
        }
        if let Some(cache) = &mut self.cache {
            *cache = folder.join(cache.as_path());
        }
    }

    /// Returns the first problem that the types cannot rule out; `count` is the number of
    /// configured components.
    fn problem(&self, count: usize) -> Option<Problem> {
        const MAX_INSTANCES: usize = 20_000;
        if !(1..=MAX_INSTANCES).contains(&self.instances) {
            let what = format!("is {}; must be from 1 to {MAX_INSTANCES}", self.instances);
            return Some(Problem::at("components.instances", &what));
        }
        if self.waiting > self.instances {
            let what = format!(
                "is {}; must be at most `components.instances`, {}",
                self.waiting, self.instances
            );
            return Some(Problem::at("components.waiting", &what));
        }
        if self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.as_os_str().is_empty())
        {
            let what = "is empty; must be a directory, or be left out";
            return Some(Problem::at("components.cache", what));
        }
        if let Some(problem) = self.time_problem() {
            return Some(problem);
        }
        if self.trust.widen && self.caps.grant.is_none() {
            let what = "is true, but [components.caps.grant] is not set: set it, too";
            return Some(Problem::at("components.trust.widen", what));
        }
        if count > self.instances {
            let what = format!("is {}, but there are {count} components", self.instances);
            return Some(Problem::at("components.instances", &what));
        }
        None
    }

    /// Returns the first problem of times, and of the caps on manifests.
    fn time_problem(&self) -> Option<Problem> {
        const MAX_THREADS: usize = 1024;
        let threads = self.threads.unwrap_or(1);
        if !(1..=MAX_THREADS).contains(&threads) {
            let what = format!("is {threads}; must be from 1 to {MAX_THREADS}");
            return Some(Problem::at("components.threads", &what));
        }
        if self.nice > 19 {
            let what = format!(
                "is {}; must be from 0 to 19, the lowest priority",
                self.nice
            );
            return Some(Problem::at("components.nice", &what));
        }
        if self.wall == 0 {
            let what = "is 0; must be at least 1, because calls would never get their time";
            return Some(Problem::at("components.wall", what));
        }
        if !(super::MIN_DURATION..=super::MAX_DURATION).contains(&self.patience) {
            let what = format!("is {:?}; must be from 100ms to 60m", self.patience);
            return Some(Problem::at("components.patience", &what));
        }
        let caps = &self.caps;
        let none = [
            ("components.caps.deadline", caps.deadline.is_zero()),
            ("components.caps.init", caps.init.is_zero()),
            ("components.caps.memory", caps.memory < 65_536),
            ("components.caps.payload", caps.payload == 0),
            ("components.caps.mailbox", caps.mailbox == 0),
            ("components.caps.window", caps.window == 0),
            ("components.caps.answer", caps.answer.is_zero()),
            ("components.caps.batch", caps.batch == 0),
            ("components.caps.weight", caps.weight == 0),
        ];
        let (key, _) = none.into_iter().find(|(_, none)| *none)?;
        let what = "is below the minimum of manifests: no component could be loaded";
        Some(Problem::at(key, what))
    }
}

impl ComponentSection {
    /// Creates a section for a component with the name and the grants of its manifest, which is not
    /// exposed.
    pub(crate) const fn new(manifest: PathBuf) -> Self {
        Self {
            manifest,
            name: None,
            expose: false,
            grant: None,
            config: None,
            embedded: None,
        }
    }

    /// Resolves the manifest and the granted directories relative to that of the configuration.
    fn resolve_paths(&mut self, folder: &Path) {
        self.manifest = folder.join(&self.manifest);
        if let Some(grant) = &mut self.grant {
            resolve_grant_paths(grant, folder);
        }
    }
}

/// Resolves the directories of a grant relative to the directory of the configuration.
fn resolve_grant_paths(grant: &mut Grant, folder: &Path) {
    for files in grant.files.values_mut() {
        files.path = folder.join(&files.path);
    }
}
