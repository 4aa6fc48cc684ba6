//! The components of a node: which there are, and what all of them may use up together.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use strowger_wasm::{Grant, HostLimits};

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
        if there > self.instances {
            let what = format!("is {}, and there are {there} components", self.instances);
            return Some(Problem::at("components.instances", &what));
        }
        None
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
