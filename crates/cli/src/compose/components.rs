//! The components of a node, deployed from its configuration and through its control socket.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `component.list` | none | rows |
//! | `component.deploy` | `manifest`, a file; `name`, `expose`, optional | its row |
//! | `component.upgrade` | `manifest`, a file; `name`, `grant`, optional | row and `changes` |
//! | `component.rollback` | `name`; `grant`, optional | row and `changes` |
//! | `component.remove` | `name` | `name` |
//! | `component.begin` | `method`, its `params`; `within_ms`, optional | `id` |
//! | `component.watch` | `id`; `wait_ms`, optional | `over` and `row`, or the progress |
//! | `component.cancel` | `id` | `cancelled`: `true` if nothing of it will run |
//!
//! `component.begin` takes any method above it except `list`. Progress consists of `stage`
//! (`reading`, `waiting`, `compiling`, `starting`), `bytes` and `elapsed_ms`. A method that its
//! caller awaits ends with the caller unless it has begun to start; a method begun by
//! `component.begin` continues without a caller.
//!
//! `changes` are the differences between what the two versions may do: rows of `key`, `change`,
//! `wider`, `before`, `after`. A version that may do more is refused unless `grant` is true, and
//! the fault has the `changes` among its details.
//!
//! `inspect` of a component's actor has its row under `details`.

mod deployment;
mod export;
mod memory;
mod methods;
mod policy;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorPath, ActorSystem, ChildSpec};
use strowger_gateway::relay::RelaySpec;
use strowger_pfcp_node::Policy;
use strowger_wasm::host::LoadStage;
use strowger_wasm::manifest::AccessChange;
use strowger_wasm::registry::{DeploymentStatus, RegistryError, WiderAccess};
use strowger_wasm::{ComponentRegistry, Host, Image, LoadError, Manifest};

use self::deployment::{Deployment, Deployments};
pub(super) use self::methods::register;
pub(super) use self::stats::{LateComponents, add_health};
use crate::component::{load_failure, read_with_manifest};
use crate::config::Config;
use crate::config::component::{ComponentSection, Embedded};
use crate::exit::{CliResult, Failure};

/// The components of a node, and the deployment on whose behalf this handle acts, if any. Clones
/// share both.
#[derive(Clone, Debug)]
pub(crate) struct Components(Arc<ComponentsInner>, Option<Arc<Deployment>>);

#[derive(Debug)]
struct ComponentsInner {
    system: ActorSystem,
    host: Host,
    registry: ComponentRegistry,
    /// The section that each component was configured or deployed with, which also applies to its
    /// next versions.
    sections: Mutex<BTreeMap<String, ComponentSection>>,
    deployments: Deployments,
}

/// The key of the supervisor of all components.
const KEY: &str = "components";

/// Starts the configured components.
pub(super) async fn start(system: &ActorSystem, config: &Config) -> CliResult<Components> {
    let outside = |error: String| Failure::outside(error);
    let host = Host::new(config.components.limits()).map_err(|error| outside(error.to_string()))?;
    memory::reserve(&host, config)?;
    let registry = ComponentRegistry::start(system, KEY, &host).await;
    let registry = registry.map_err(|error| outside(error.to_string()))?;
    let opened = registry.directory().add_exposed_actors(system).await;
    opened.map_err(|error| outside(error.to_string()))?;
    let inner = ComponentsInner {
        registry,
        system: system.clone(),
        host,
        sections: Mutex::default(),
        deployments: Deployments::default(),
    };
    let components = Components(Arc::new(inner), None);
    for section in &config.component {
        components.deploy(section.clone()).await?;
    }
    Ok(components)
}

/// Returns the configured policy of the N4 node, if it is a component.
pub(super) fn policy(
    config: &Config,
    components: &Components,
) -> CliResult<Option<Arc<dyn Policy>>> {
    let policy = policy::ComponentPolicy::of(config, components)?;
    Ok(policy.map(|policy| Arc::new(policy) as _))
}

/// Returns the relays of the topics of components that clients may read.
pub(super) fn relays(config: &Config) -> Vec<ChildSpec> {
    let topics = config.components.topics.iter().enumerate();
    let relay = |(at, topic): (usize, &String)| {
        // A topic may contain slashes, a key may not.
        let key = format!("{at}.{}", topic.replace('/', "."));
        RelaySpec::new(topic, export::event_to_json).child(&key)
    };
    topics.map(relay).collect()
}

/// Loads all components of a configuration without starting any, and returns their names.
pub(crate) fn check(config: &Config) -> CliResult<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    // The cache of compiled code belongs to the user that runs the node, who may be another one.
    let mut limits = config.components.limits();
    limits.cache = None;
    let host = Host::new(limits);
    let host = host.map_err(|error| Failure::outside(error.to_string()))?;
    memory::reserve(&host, config)?;
    for section in &config.component {
        let (bytes, manifest) = section.read_files()?;
        let image = host.load_blocking(&bytes, manifest);
        let image = image.map_err(|error| load_failure(&section.manifest, &error))?;
        let name = &image.manifest().component.name;
        if names.contains(name) {
            let error = RegistryError::Taken {
                name: Arc::from(name.as_str()),
            };
            return Err(registry_failure(&error));
        }
        names.push(name.clone());
    }
    if let Some(name) = &config.n4.policy.component
        && !names.contains(name)
    {
        return Err(policy::unknown_component(name));
    }
    Ok(names)
}

impl Components {
    /// Returns the host of all components, which also runs the code of agents.
    #[cfg(feature = "agents")]
    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    /// Returns the registry of components by name.
    pub(crate) fn registry(&self) -> &ComponentRegistry {
        &self.0.registry
    }

    /// Starts a component.
    pub(crate) async fn deploy(&self, section: ComponentSection) -> CliResult<String> {
        let image = self.load(section.clone()).await?;
        self.start(image, section).await
    }

    /// Starts a component that is not in a file. `section` applies to its next versions.
    pub(crate) async fn start(&self, image: Image, section: ComponentSection) -> CliResult<String> {
        let inner = &*self.0;
        let name = image.manifest().component.name.clone();
        let deployed = inner.registry.deploy(image).await;
        let actor = deployed.map_err(|error| registry_failure(&error))?;
        if section.expose {
            let address = format!("{KEY}/{name}");
            let exposed = inner
                .system
                .export_as(&address, &actor, export::component_export());
            if let Err(error) = exposed {
                // Leave nothing behind, as after every other failure. The component has just been
                // deployed, so the result does not matter.
                let _ = inner.registry.remove(&name).await;
                return Err(Failure::check(error.to_string()));
            }
        }
        inner.sections.lock().insert(name.clone(), section);
        Ok(name)
    }

    /// Replaces the running version with that of another manifest, which keeps its name and its
    /// grants. Returns the name, and the differences between what the two versions may do.
    async fn upgrade(
        &self,
        manifest: PathBuf,
        name: Option<String>,
        widening: WiderAccess,
    ) -> Result<(String, Vec<AccessChange>), ReplaceError> {
        let file = manifest.display().to_string();
        let mut section = ComponentSection::new(manifest);
        section.name = name;
        let (_, new) = read_files(section.clone()).await?;
        let name = new.component.name;
        let before = self.0.sections.lock().get(&name).cloned();
        if let Some(before) = before {
            (section.grant, section.config) = (before.grant, before.config);
            section.expose = before.expose;
        }
        let image = self.load(section.clone()).await?;
        let upgraded = self.0.registry.upgrade(image, widening).await;
        let again = || match &section.name {
            Some(name) => format!("strowger component upgrade {file} --name {name} --grant"),
            None => format!("strowger component upgrade {file} --grant"),
        };
        let changes = upgraded.map_err(|error| ReplaceError::of(error, again))?;
        self.0.sections.lock().insert(name.clone(), section);
        Ok((name, changes))
    }

    async fn rollback(
        &self,
        name: &str,
        widening: WiderAccess,
    ) -> Result<Vec<AccessChange>, ReplaceError> {
        let done = self.0.registry.rollback(name, widening).await;
        let again = || format!("strowger component rollback {name} --grant");
        done.map_err(|error| ReplaceError::of(error, again))
    }

    async fn remove(&self, name: &str) -> CliResult {
        let done = self.0.registry.remove(name).await;
        self.0.sections.lock().remove(name);
        done.map_err(|error| registry_failure(&error))
    }

    async fn load(&self, section: ComponentSection) -> CliResult<Image> {
        let file = section.manifest.clone();
        let loaded =
            |loaded: Result<Image, LoadError>| loaded.map_err(|error| load_failure(&file, &error));
        let Some(deployment) = &self.1 else {
            let (bytes, manifest) = read_files(section).await?;
            return loaded(self.0.host.load(bytes, manifest).await);
        };
        let watched = Arc::clone(deployment);
        let loading = async {
            let (bytes, manifest) = read_files(section).await?;
            deployment.set_size(bytes.len());
            let tell = move |stage: LoadStage| watched.set_stage(stage.into());
            loaded(self.0.host.load_watched(bytes, manifest, tell).await)
        };
        deployment.run_until_start(loading).await
    }

    /// Marks the start of an operation that loads nothing and so cannot be cancelled.
    fn set_starting(&self) -> CliResult {
        self.1
            .as_ref()
            .map_or(Ok(()), |deployment| deployment.start())
    }

    /// Returns the component whose actor has this path.
    fn by_path(&self, path: &ActorPath) -> Option<DeploymentStatus> {
        let name = path.as_str().strip_prefix("/components/")?;
        self.one(name.strip_suffix("/guest")?)
    }

    /// Returns the state of a component.
    pub(crate) fn one(&self, name: &str) -> Option<DeploymentStatus> {
        self.0.registry.get(name)
    }

    /// Returns the address at which clients reach a component, if it is exposed.
    fn address(&self, name: &str) -> Option<String> {
        let sections = self.0.sections.lock();
        let exposed = sections.get(name)?.expose;
        exposed.then(|| format!("@({KEY}/{name})"))
    }
}

impl ComponentSection {
    /// Reads the files, and overrides the manifest with this section.
    fn read_files(&self) -> CliResult<(Vec<u8>, Manifest)> {
        let wrong = |error| Failure::input(format!("{}: {error}", self.manifest.display()));
        let (bytes, mut manifest) = match self.embedded {
            None => read_with_manifest(&self.manifest)?,
            Some(Embedded { bytes, manifest }) => {
                (bytes.to_vec(), Manifest::parse(manifest).map_err(wrong)?)
            }
        };
        if let Some(name) = &self.name {
            manifest.component.name.clone_from(name);
        }
        if let Some(grant) = &self.grant {
            manifest.grant.clone_from(grant);
        }
        if let Some(config) = &self.config {
            manifest.config.clone_from(config);
        }
        manifest.check().map_err(wrong)?;
        Ok((bytes, manifest))
    }
}

/// The error returned when one version could not replace another.
pub(crate) struct ReplaceError {
    failure: Failure,
    /// The differences between the versions, if they are the reason.
    changes: Vec<AccessChange>,
}

impl ReplaceError {
    /// Converts an error of the registry; `again` returns the command that replaces the version
    /// nevertheless.
    fn of(error: RegistryError, again: impl FnOnce() -> String) -> Self {
        let RegistryError::Wider { changes, .. } = error else {
            return registry_failure(&error).into();
        };
        let wider = changes.iter().filter(|change| change.wider);
        let lines: Vec<String> = wider.map(|change| format!("  {change}")).collect();
        let what = "the new version needs more capabilities or higher limits than the running \
                    one:";
        let failure = Failure::check(format!("{what}\n{}", lines.join("\n")));
        let failure = failure.hint(format!("review them, then accept them: `{}`", again()));
        Self { failure, changes }
    }
}

impl From<Failure> for ReplaceError {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            changes: Vec::new(),
        }
    }
}

/// Reads files on a blocking thread, with a timeout.
async fn read_files(section: ComponentSection) -> CliResult<(Vec<u8>, Manifest)> {
    let file = section.manifest.clone();
    let read = tokio::task::spawn_blocking(move || section.read_files());
    match tokio::time::timeout(READ_TIMEOUT, read).await {
        Ok(read) => read.unwrap_or_else(|error| Err(Failure::outside(error.to_string()))),
        Err(_) => {
            let text = format!("{}: not read within {READ_TIMEOUT:?}", file.display());
            Err(Failure::outside(text).hint("check the file system"))
        }
    }
}

/// Time limit for reading a manifest and its component.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

fn registry_failure(error: &RegistryError) -> Failure {
    let text = error.to_string();
    match error {
        RegistryError::Taken { .. } => Failure::check(text)
            .hint("replace the running version with `strowger component upgrade`"),
        RegistryError::Wider { .. } => Failure::check(text)
            .hint("remove the component in quarantine first: `strowger component remove`"),
        RegistryError::Full(_) => {
            Failure::outside(text).hint("raise the limit in [components] of the configuration")
        }
        RegistryError::Ended | RegistryError::Silent(_) => Failure::outside(text),
        _ => Failure::check(text),
    }
}
