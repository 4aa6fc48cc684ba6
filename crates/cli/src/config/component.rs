//! The components of a node: which there are, and what all of them may use up together.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_wasm::{Caps, Excess, Grant, HostLimits};

use super::Problem;

/// All components together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ComponentsSection {
    /// How many may live at a time.
    pub(crate) instances: usize,
    /// Of these, how many may wait for answers.
    pub(crate) waiting: usize,
    /// The topics of components that those outside may read.
    pub(crate) topics: Vec<String>,
    /// The folder that keeps compiled code for the next start; from the folder of the
    /// configuration. Nothing is kept if it is not set.
    pub(crate) cache: Option<PathBuf>,
    /// The threads of the lowest priority on which components run that compute for long; as many
    /// as there are processors, unless it is set.
    pub(crate) threads: Option<usize>,
    /// How much the priority of these threads is below that of others, from 0 to 19.
    pub(crate) nice: u8,
    /// How many times its limit of processor time a call may take on the clock, plus a second.
    pub(crate) wall: u32,
    /// What follows when a component uses more than its share of a processor.
    pub(crate) excess: Excess,
    /// How long a component may be beyond its share until it is in quarantine, if that follows.
    #[serde(deserialize_with = "super::span::deserialize")]
    pub(crate) patience: Duration,
    /// The most that a manifest may ask for.
    pub(crate) caps: Caps,
}

/// One component.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentSection {
    /// Its manifest; from the folder of the configuration.
    pub(crate) manifest: PathBuf,
    /// Its name, in place of that of its manifest.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Whether those outside can speak to it.
    #[serde(default)]
    pub(crate) expose: bool,
    /// What it is granted, in place of what its manifest says.
    #[serde(default)]
    pub(crate) grant: Option<Grant>,
    /// What it reads as its configuration, in place of what its manifest says.
    #[serde(default)]
    pub(crate) config: Option<toml::Table>,
    /// What stands for the files, where they are part of the program; not a key.
    #[serde(skip)]
    pub(crate) embedded: Option<Embedded>,
}

/// A component that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Embedded {
    pub(crate) octets: &'static [u8],
    pub(crate) manifest: &'static str,
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
        }
    }
}

impl ComponentsSection {
    /// The limits of the host.
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
        limits
    }

    /// Finds the folder of compiled code from the folder of the configuration.
    pub(super) fn found_from(&mut self, folder: &Path) {
        if let Some(cache) = &mut self.cache {
            *cache = folder.join(cache.as_path());
        }
    }

    /// What types cannot refuse; `there` is how many components are configured.
    pub(super) fn problem(&self, there: usize) -> Option<Problem> {
        const MOST: usize = 20_000;
        if !(1..=MOST).contains(&self.instances) {
            let what = format!("is {}; it must be from 1 to {MOST}", self.instances);
            return Some(Problem::at("components.instances", &what));
        }
        if self.waiting > self.instances {
            let what = format!(
                "is {}; it must be at most `components.instances`, {}",
                self.waiting, self.instances
            );
            return Some(Problem::at("components.waiting", &what));
        }
        if self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.as_os_str().is_empty())
        {
            let what = "is empty; it must be a folder, or not be set";
            return Some(Problem::at("components.cache", what));
        }
        if let Some(problem) = self.problem_of_time() {
            return Some(problem);
        }
        if there > self.instances {
            let what = format!("is {}, and there are {there} components", self.instances);
            return Some(Problem::at("components.instances", &what));
        }
        None
    }

    /// The same of what is about time, and of what manifests may ask for.
    fn problem_of_time(&self) -> Option<Problem> {
        const THREADS: usize = 1024;
        let threads = self.threads.unwrap_or(1);
        if !(1..=THREADS).contains(&threads) {
            let what = format!("is {threads}; it must be from 1 to {THREADS}");
            return Some(Problem::at("components.threads", &what));
        }
        if self.nice > 19 {
            let what = format!(
                "is {}; it must be from 0 to 19, the lowest priority",
                self.nice
            );
            return Some(Problem::at("components.nice", &what));
        }
        if self.wall == 0 {
            let what = "is 0; it must be at least 1, or no call ever has its time";
            return Some(Problem::at("components.wall", what));
        }
        if !(super::SHORTEST..=super::LONGEST).contains(&self.patience) {
            let what = format!("is {:?}; it must be from 100ms to 60m", self.patience);
            return Some(Problem::at("components.patience", &what));
        }
        let caps = &self.caps;
        let none = [
            ("components.caps.deadline", caps.deadline.is_zero()),
            ("components.caps.init", caps.init.is_zero()),
            ("components.caps.memory", caps.memory < 65_536),
            ("components.caps.payload", caps.payload == 0),
            ("components.caps.mailbox", caps.mailbox == 0),
            ("components.caps.weight", caps.weight == 0),
        ];
        let (key, _) = none.into_iter().find(|(_, none)| *none)?;
        let what = "is less than the least that a manifest may say: no component could be loaded";
        Some(Problem::at(key, what))
    }
}

impl ComponentSection {
    /// A component with the name and the grants of its manifest, which nobody outside reaches.
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

    /// Finds its manifest from the folder of the configuration.
    pub(super) fn found_from(&mut self, folder: &Path) {
        self.manifest = folder.join(&self.manifest);
    }
}
