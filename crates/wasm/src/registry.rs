//! The components of a system by name: deployed, upgraded, rolled back, removed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use strowger::{
    ActorRef, ActorSystem, AskError, ChildError, Key, StartError, Strategy, Supervisor,
    SupervisorRef,
};

use crate::component::{ComponentArgs, ComponentInfo};
use crate::digest::Digest;
use crate::directory::{Directory, Door};
use crate::fault::Fault;
use crate::host::{Full, Host};
use crate::load::Image;
use crate::message::{ComponentMsg, Health, Upgrade};

/// The components of a system by name, below one supervisor. A clone is the same registry.
///
/// What is deployed is in its [`Directory`] too, and out of it when it is removed. A component in
/// quarantine keeps its place, so that somebody sees it, and another version may be deployed in
/// its place.
#[derive(Clone)]
pub struct ComponentRegistry(Arc<Inner>);

struct Inner {
    host: Host,
    system: ActorSystem,
    top: SupervisorRef,
    directory: Directory,
    entries: RwLock<FxHashMap<Arc<str>, Entry>>,
}

struct Entry {
    args: ComponentArgs,
    actor: ActorRef<ComponentMsg>,
    current: Arc<Image>,
    previous: Option<Arc<Image>>,
}

/// A component of a registry at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Deployed {
    /// Its figures.
    pub info: ComponentInfo,
    /// Whether it runs, or is about to be restarted; if not, it is in quarantine.
    pub alive: bool,
    /// The messages that wait for it.
    pub mailbox_size: usize,
    /// The version to which it can be rolled back.
    pub previous: Option<Digest>,
}

/// Why a registry did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A component of this name runs: it is upgraded, not deployed.
    #[error("the component {name:?} runs already")]
    Taken {
        /// The name.
        name: Arc<str>,
    },
    /// There is no component of this name.
    #[error("there is no component {name:?}")]
    Unknown {
        /// The name.
        name: Arc<str>,
    },
    /// There is no version before this one.
    #[error("the component {name:?} has no version to go back to")]
    First {
        /// The name.
        name: Arc<str>,
    },
    /// The host has no room.
    #[error(transparent)]
    Full(#[from] Full),
    /// It did not start, and why, if it says so.
    #[error("it does not start: {}", why(.fault.as_ref()))]
    Start {
        /// The fault of its first life.
        fault: Option<Fault>,
    },
    /// The other version failed; the one that ran goes on.
    #[error("the version before goes on: {0}")]
    RolledBack(Fault),
    /// It did not answer in time, or ended.
    #[error("it does not answer: {0}")]
    Silent(AskError),
    /// The supervisor of components has ended.
    #[error("components are ending")]
    Ended,
}

fn why(fault: Option<&Fault>) -> String {
    fault.map_or_else(|| "it ended at once".to_owned(), Fault::to_string)
}

impl fmt::Debug for ComponentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComponentRegistry({})", self.0.top.path())
    }
}

/// How long an upgrade may take, or the first word of a component.
const UPGRADE: Duration = Duration::from_secs(30);

impl ComponentRegistry {
    /// Makes a registry whose components live below a supervisor with this key.
    ///
    /// # Errors
    /// When the key is taken.
    pub async fn start(
        system: &ActorSystem,
        key: impl Into<Key>,
        host: &Host,
    ) -> Result<Self, StartError> {
        let top = Supervisor::new(Strategy::OneForOne);
        let top = system.supervise(key, top).await?;
        Ok(Self(Arc::new(Inner {
            host: host.clone(),
            system: system.clone(),
            top,
            directory: Directory::new(),
            entries: RwLock::default(),
        })))
    }

    /// The names by which its components reach others; enter native actors here.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.0.directory
    }

    /// Starts a component under the name of its manifest.
    ///
    /// # Errors
    /// [`RegistryError`]; nothing of it stays then.
    pub async fn deploy(&self, image: Image) -> Result<ActorRef<ComponentMsg>, RegistryError> {
        let inner = &*self.0;
        let image = Arc::new(image);
        let name: Arc<str> = Arc::from(image.manifest().component.name.as_str());
        let there = inner
            .entries
            .read()
            .get(&name)
            .map(|entry| entry.actor.is_alive());
        match there {
            Some(true) => return Err(RegistryError::Taken { name }),
            Some(false) => self.remove(&name).await?,
            None => {}
        }
        let args = ComponentArgs::new(
            inner.host.clone(),
            Arc::clone(&image),
            inner.directory.clone(),
        )?;
        let started = inner.top.start_child(args.child()).await;
        let child = started.map_err(|error| match error {
            ChildError::Ended => RegistryError::Ended,
            _ if args.info().lives == 0 => RegistryError::Taken {
                name: Arc::clone(&name),
            },
            _ => RegistryError::Start {
                fault: args.info().fault,
            },
        })?;
        let actor = ComponentArgs::find(&inner.system, &child);
        let actor = actor.ok_or_else(|| RegistryError::Start {
            fault: args.info().fault,
        })?;
        // It may have failed and be about to begin again: only one that is well is there.
        if let Err(fault) = well(&actor).await {
            let fault = fault.or_else(|| args.info().fault);
            // One that gave up for good has no place there any more.
            let _ = inner.top.terminate_child(&name).await;
            return Err(RegistryError::Start { fault });
        }
        let door = Door::streaming(&actor);
        inner.directory.insert(Arc::clone(&name), door);
        let entry = Entry {
            args,
            actor: actor.clone(),
            current: image,
            previous: None,
        };
        inner.entries.write().insert(name, entry);
        Ok(actor)
    }

    /// Puts another version in the place of the one that runs; see [`Upgrade`].
    ///
    /// # Errors
    /// [`RegistryError`]; the version that ran goes on, if it ran.
    pub async fn upgrade(&self, image: Image) -> Result<(), RegistryError> {
        let name: Arc<str> = Arc::from(image.manifest().component.name.as_str());
        self.exchange(&name, Arc::new(image)).await
    }

    /// Puts the version before in the place of the one that runs.
    ///
    /// # Errors
    /// [`RegistryError`]; the version that ran goes on, if it ran.
    pub async fn rollback(&self, name: &str) -> Result<(), RegistryError> {
        let name: Arc<str> = Arc::from(name);
        let previous = match self.0.entries.read().get(&name) {
            None => return Err(RegistryError::Unknown { name }),
            Some(entry) => entry.previous.clone(),
        };
        match previous {
            None => Err(RegistryError::First { name }),
            Some(previous) => self.exchange(&name, previous).await,
        }
    }

    async fn exchange(&self, name: &Arc<str>, image: Arc<Image>) -> Result<(), RegistryError> {
        let actor = self.find(name).ok_or_else(|| RegistryError::Unknown {
            name: Arc::clone(name),
        })?;
        let upgrade = Upgrade(Arc::clone(&image));
        let upgraded = actor.ask_within(upgrade, UPGRADE).await;
        upgraded
            .map_err(RegistryError::Silent)?
            .map_err(RegistryError::RolledBack)?;
        if let Some(entry) = self.0.entries.write().get_mut(name) {
            entry.previous = Some(std::mem::replace(&mut entry.current, image));
        }
        Ok(())
    }

    /// Ends a component in order and takes its name out.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn remove(&self, name: &str) -> Result<(), RegistryError> {
        let inner = &*self.0;
        inner.directory.remove(name);
        let removed = inner.entries.write().remove(name);
        if removed.is_none() {
            let name = Arc::from(name);
            return Err(RegistryError::Unknown { name });
        }
        match inner.top.terminate_child(name).await {
            Err(ChildError::Ended) => Err(RegistryError::Ended),
            // One in quarantine has no place there any more.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The address of a component.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ActorRef<ComponentMsg>> {
        let entries = self.0.entries.read();
        entries.get(name).map(|entry| entry.actor.clone())
    }

    /// What is known of one component.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Deployed> {
        let entries = self.0.entries.read();
        entries.get(name).map(Entry::seen)
    }

    /// All components, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Deployed> {
        let entries = self.0.entries.read();
        let mut list: Vec<Deployed> = entries.values().map(Entry::seen).collect();
        list.sort_by(|a, b| a.info.name.cmp(&b.info.name));
        list
    }
}

/// Whether a component says that it can do its work; or what kept it from saying so, if known.
async fn well(actor: &ActorRef<ComponentMsg>) -> Result<(), Option<Fault>> {
    match actor.ask_within(Health, UPGRADE).await {
        Ok(health) => health.map_err(Some),
        Err(_) => Err(None),
    }
}

impl Entry {
    fn seen(&self) -> Deployed {
        Deployed {
            info: self.args.info(),
            alive: self.actor.is_alive(),
            mailbox_size: self.actor.erase().info().depth,
            previous: self.previous.as_ref().map(|image| image.digest()),
        }
    }
}
