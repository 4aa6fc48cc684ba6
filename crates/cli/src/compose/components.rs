//! The components of a node: deployed from its configuration and by its control socket.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `component.list` | none | rows |
//! | `component.deploy` | `manifest`, a file; `name`, `expose`, optional | its row |
//! | `component.upgrade` | `manifest`, a file; `name`, optional | its row |
//! | `component.rollback` | `name` | its row |
//! | `component.remove` | `name` | `name` |
//!
//! `inspect` of a component's actor has its row under `details`.

mod door;
mod exit;
mod figures;
mod method;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorSystem, Path};
use strowger_gateway::RelaySpec;
use strowger_wasm::{ComponentRegistry, Deployed, Event, Host, Image, Manifest, RegistryError};

pub(super) use self::figures::{Later, vitals};
pub(super) use self::method::register;
use crate::component::{by_manifest, not_loaded};
use crate::config::{ComponentSection, Config, Embedded};
use crate::exit::{Done, Failure};

/// The components of a node. A clone is the same.
#[derive(Clone, Debug)]
pub(crate) struct Components(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    system: ActorSystem,
    host: Host,
    registry: ComponentRegistry,
    /// How each component was configured or deployed: the next version is bound by it as well.
    sections: Mutex<BTreeMap<String, ComponentSection>>,
}

/// The key of the supervisor that they live below.
const KEY: &str = "components";

/// Starts the components that the configuration names.
pub(super) async fn start(system: &ActorSystem, config: &Config) -> Done<Components> {
    let outside = |error: String| Failure::outside(error);
    let host = Host::new(config.components.limits()).map_err(|error| outside(error.to_string()))?;
    let registry = ComponentRegistry::start(system, KEY, &host).await;
    let registry = registry.map_err(|error| outside(error.to_string()))?;
    let opened = exit::open(system, registry.directory()).await;
    opened.map_err(|error| outside(error.to_string()))?;
    let components = Components(Arc::new(Inner {
        registry,
        system: system.clone(),
        host,
        sections: Mutex::default(),
    }));
    for section in &config.component {
        components.deploy(section.clone()).await?;
    }
    Ok(components)
}

/// The topics of components that those outside may read.
pub(super) fn relays(config: &Config) -> Vec<(String, RelaySpec<Event>)> {
    let topics = config.components.topics.iter();
    let relay = |topic: &String| (topic.clone(), RelaySpec::new(topic, door::told));
    topics.map(relay).collect()
}

/// Loads all components of a configuration and starts none; their names.
pub(crate) fn check(config: &Config) -> Done<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    // The folder of compiled code is that of who runs the node, who may be another.
    let mut limits = config.components.limits();
    limits.cache = None;
    let host = Host::new(limits);
    let host = host.map_err(|error| Failure::outside(error.to_string()))?;
    for section in &config.component {
        let (octets, manifest) = section.read()?;
        let image = host.load_blocking(&octets, manifest);
        let image = image.map_err(|error| not_loaded(&section.manifest, &error))?;
        let name = &image.manifest().component.name;
        if names.contains(name) {
            let error = RegistryError::Taken {
                name: Arc::from(name.as_str()),
            };
            return Err(refused(&error));
        }
        names.push(name.clone());
    }
    if let Some(name) = &config.n4.policy.component
        && !names.contains(name)
    {
        return Err(super::policy::unknown(name));
    }
    Ok(names)
}

impl Components {
    /// The host that they share.
    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    /// The components by name.
    pub(crate) fn registry(&self) -> &ComponentRegistry {
        &self.0.registry
    }

    /// Starts a component.
    pub(crate) async fn deploy(&self, section: ComponentSection) -> Done<String> {
        let image = self.load(section.clone()).await?;
        self.start(image, section).await
    }

    /// Starts a component that is no file; `section` is what holds for its next versions.
    pub(crate) async fn start(&self, image: Image, section: ComponentSection) -> Done<String> {
        let inner = &*self.0;
        let name = image.manifest().component.name.clone();
        let deployed = inner.registry.deploy(image).await;
        let actor = deployed.map_err(|error| refused(&error))?;
        if section.expose {
            let address = format!("{KEY}/{name}");
            let exposed = inner.system.expose_as(&address, &actor, door::open());
            if let Err(error) = exposed {
                // Nothing of it stays, as with every other failure; it was there a moment ago.
                let _ = inner.registry.remove(&name).await;
                return Err(Failure::found(error.to_string()));
            }
        }
        inner.sections.lock().insert(name.clone(), section);
        Ok(name)
    }

    /// Puts the version of another manifest in the place of the one that runs. It is named and
    /// granted as the one before.
    async fn upgrade(&self, manifest: PathBuf, name: Option<String>) -> Done<String> {
        let mut section = ComponentSection::new(manifest);
        section.name = name;
        let (_, new) = read(section.clone()).await?;
        let name = new.component.name;
        let before = self.0.sections.lock().get(&name).cloned();
        if let Some(before) = before {
            (section.grant, section.config) = (before.grant, before.config);
            section.expose = before.expose;
        }
        let image = self.load(section.clone()).await?;
        let upgraded = self.0.registry.upgrade(image).await;
        upgraded.map_err(|error| refused(&error))?;
        self.0.sections.lock().insert(name.clone(), section);
        Ok(name)
    }

    async fn rollback(&self, name: &str) -> Done {
        let done = self.0.registry.rollback(name).await;
        done.map_err(|error| refused(&error))
    }

    async fn remove(&self, name: &str) -> Done {
        let done = self.0.registry.remove(name).await;
        self.0.sections.lock().remove(name);
        done.map_err(|error| refused(&error))
    }

    async fn load(&self, section: ComponentSection) -> Done<Image> {
        let file = section.manifest.clone();
        let (octets, manifest) = read(section).await?;
        let image = self.0.host.load(octets, manifest).await;
        image.map_err(|error| not_loaded(&file, &error))
    }

    /// The component whose actor is at a path.
    fn at(&self, path: &Path) -> Option<Deployed> {
        let name = path.as_str().strip_prefix("/components/")?;
        self.one(name.strip_suffix("/guest")?)
    }

    /// What is known of a component.
    pub(crate) fn one(&self, name: &str) -> Option<Deployed> {
        self.0.registry.get(name)
    }

    /// The address at which those outside reach a component.
    fn address(&self, name: &str) -> Option<String> {
        let sections = self.0.sections.lock();
        let exposed = sections.get(name)?.expose;
        exposed.then(|| format!("@({KEY}/{name})"))
    }
}

impl ComponentSection {
    /// Reads the files, and lets what is said here go before the manifest.
    fn read(&self) -> Done<(Vec<u8>, Manifest)> {
        let wrong = |error| Failure::input(format!("{}: {error}", self.manifest.display()));
        let (octets, mut manifest) = match self.embedded {
            None => by_manifest(&self.manifest)?,
            Some(Embedded { octets, manifest }) => {
                (octets.to_vec(), Manifest::parse(manifest).map_err(wrong)?)
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
        Ok((octets, manifest))
    }
}

/// Reads files where waiting for a disk keeps nobody up, and for a while only.
async fn read(section: ComponentSection) -> Done<(Vec<u8>, Manifest)> {
    let file = section.manifest.clone();
    let read = tokio::task::spawn_blocking(move || section.read());
    match tokio::time::timeout(READING, read).await {
        Ok(read) => read.unwrap_or_else(|error| Err(Failure::outside(error.to_string()))),
        Err(_) => {
            let text = format!("{}: not read within {READING:?}", file.display());
            Err(Failure::outside(text).hint("is the file system there?"))
        }
    }
}

/// How long reading a manifest and its component may take.
const READING: Duration = Duration::from_secs(5);

fn refused(error: &RegistryError) -> Failure {
    let text = error.to_string();
    match error {
        RegistryError::Taken { .. } => Failure::found(text)
            .hint("`strowger component upgrade` puts another version in its place"),
        RegistryError::Full(_) => {
            Failure::outside(text).hint("[components] of the configuration says how many may live")
        }
        RegistryError::Ended | RegistryError::Silent(_) => Failure::outside(text),
        _ => Failure::found(text),
    }
}
