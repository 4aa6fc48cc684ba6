//! The components of a system by name: deploy, upgrade, roll back, remove.

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
use crate::directory::{Directory, DirectoryEntry};
use crate::fault::Fault;
use crate::host::{CapacityError, Host};
use crate::load::Image;
use crate::manifest::AccessChange;
use crate::message::{CheckHealth, ComponentMsg, Upgrade};
use crate::metric::AUDIT;
use crate::trust::audit;

/// The components of a system by name, below one supervisor. A clone is the same registry.
///
/// A deployed component is also entered in the [`Directory`] of the registry until it is removed. A
/// quarantined component keeps its entry so that it stays visible; another version may be deployed
/// in its place.
#[derive(Clone)]
pub struct ComponentRegistry(Arc<RegistryInner>);

struct RegistryInner {
    host: Host,
    system: ActorSystem,
    supervisor: SupervisorRef,
    directory: Directory,
    deployments: RwLock<FxHashMap<Arc<str>, Deployment>>,
}

struct Deployment {
    args: ComponentArgs,
    actor: ActorRef<ComponentMsg>,
    previous: Option<Arc<Image>>,
}

/// The state of a deployed component at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeploymentStatus {
    /// The stats of the component.
    pub info: ComponentInfo,
    /// `true` if it runs or is about to be restarted; otherwise it is quarantined.
    pub alive: bool,
    /// Number of messages in its mailbox.
    pub mailbox_size: usize,
    /// The version to which it can be rolled back.
    pub previous: Option<Digest>,
}

/// The decision about a version with wider access, higher limits or another signer than the running
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WiderAccess {
    /// The version is refused, unless
    /// [`TrustPolicy::widen`](crate::signature::TrustPolicy::widen) allows it.
    Refused,
    /// The version is accepted: the caller grants the additional access.
    Granted,
}

/// The error returned when a registry operation fails.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A component of this name is running; it can be upgraded, but not deployed.
    #[error("the component {name:?} is already running")]
    Taken {
        /// Name that is taken.
        name: Arc<str>,
    },
    /// There is no component of this name.
    #[error("no component {name:?}")]
    Unknown {
        /// Name that no component has.
        name: Arc<str>,
    },
    /// There is no previous version.
    #[error("the component {name:?} has no previous version")]
    First {
        /// Name of the component.
        name: Arc<str>,
    },
    /// The other version has wider access than the running one, and that was not granted.
    #[error(
        "the component {name:?} would have wider access than the running version: {}",
        describe_wider(.changes)
    )]
    Wider {
        /// Name of the component.
        name: Arc<str>,
        /// All differences, including those that are not wider.
        changes: Vec<AccessChange>,
    },
    /// The host has no capacity.
    #[error(transparent)]
    Full(#[from] CapacityError),
    /// The component did not start.
    #[error("the component failed to start: {}", start_failure(.fault.as_ref()))]
    Start {
        /// The fault of its first incarnation, if known.
        fault: Option<Fault>,
    },
    /// The other version failed; the running one continues.
    #[error("the new version failed, the previous one continues: {0}")]
    RolledBack(Fault),
    /// The component did not answer in time, or ended.
    #[error("the component does not answer: {0}")]
    Silent(AskError),
    /// The supervisor of the components has ended.
    #[error("components are shutting down")]
    Ended,
}

fn start_failure(fault: Option<&Fault>) -> String {
    fault.map_or_else(|| "it exited immediately".to_owned(), Fault::to_string)
}

fn describe_wider(changes: &[AccessChange]) -> String {
    let wider = changes.iter().filter(|change| change.wider);
    let wider: Vec<String> = wider.map(ToString::to_string).collect();
    wider.join(", ")
}

impl fmt::Debug for ComponentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComponentRegistry({})", self.0.supervisor.path())
    }
}

/// Time limit of an upgrade, and of the first health check of a component.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(30);

impl ComponentRegistry {
    /// Creates a registry whose components live below a supervisor with this key.
    ///
    /// # Errors
    /// A [`StartError`] if the key is taken.
    pub async fn start(
        system: &ActorSystem,
        key: impl Into<Key>,
        host: &Host,
    ) -> Result<Self, StartError> {
        let supervisor = Supervisor::new(Strategy::OneForOne);
        let supervisor = system.supervise(key, supervisor).await?;
        Ok(Self(Arc::new(RegistryInner {
            host: host.clone(),
            system: system.clone(),
            supervisor,
            directory: Directory::new(),
            deployments: RwLock::default(),
        })))
    }

    /// Returns the names by which its components reach others; add native actors here.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.0.directory
    }

    /// Starts a component under the name in its manifest. It replaces a quarantined component of
    /// that name if its access is not wider; otherwise that one has to be removed first.
    ///
    /// # Errors
    /// A [`RegistryError`], such as [`RegistryError::Taken`] for a running component of that name,
    /// or [`RegistryError::Start`] with the fault; then nothing remains of the component.
    pub async fn deploy(&self, image: Image) -> Result<ActorRef<ComponentMsg>, RegistryError> {
        let inner = &*self.0;
        let image = Arc::new(image);
        let name: Arc<str> = Arc::from(image.manifest().component.name.as_str());
        let there = inner
            .deployments
            .read()
            .get(&name)
            .map(|deployment| deployment.actor.is_alive());
        match there {
            Some(true) => return Err(RegistryError::Taken { name }),
            Some(false) => {
                if let Some(before) = self.running_image(&name) {
                    self.check_changes(&before, &image, WiderAccess::Refused)?;
                }
                self.remove(&name).await?;
            }
            None => {}
        }
        let args = ComponentArgs::new(
            inner.host.clone(),
            Arc::clone(&image),
            inner.directory.clone(),
        )?;
        let started = inner.supervisor.start_child(args.child()).await;
        let child = started.map_err(|error| match error {
            ChildError::Ended => RegistryError::Ended,
            _ if args.info().incarnations == 0 => RegistryError::Taken {
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
        // It may have failed and be about to restart: only a healthy component is registered.
        if let Err(fault) = check_health(&actor).await {
            let fault = fault.or_else(|| args.info().fault);
            // The supervisor has no entry any more for a component that gave up.
            let _ = inner.supervisor.terminate_child(&name).await;
            return Err(RegistryError::Start { fault });
        }
        let entry = DirectoryEntry::with_streams(&actor);
        inner.directory.insert(Arc::clone(&name), entry);
        let deployment = Deployment {
            args,
            actor: actor.clone(),
            previous: None,
        };
        inner.deployments.write().insert(name, deployment);
        Ok(actor)
    }

    /// Replaces the running version with another one; see [`Upgrade`]. Returns the differences
    /// between what the two may do.
    ///
    /// # Errors
    /// A [`RegistryError`], such as [`RegistryError::Wider`] if `widening` does not allow wider
    /// access, or [`RegistryError::RolledBack`] with the fault of the new version. The running
    /// version continues, if there is one.
    pub async fn upgrade(
        &self,
        image: Image,
        widening: WiderAccess,
    ) -> Result<Vec<AccessChange>, RegistryError> {
        let name: Arc<str> = Arc::from(image.manifest().component.name.as_str());
        self.replace_version(&name, Some(Arc::new(image)), widening)
            .await
    }

    /// Replaces the running version with the previous one, by the same rules: wider access of the
    /// previous version has to be granted again.
    ///
    /// # Errors
    /// As [`ComponentRegistry::upgrade`]; [`RegistryError::First`] if there is no previous version.
    pub async fn rollback(
        &self,
        name: &str,
        widening: WiderAccess,
    ) -> Result<Vec<AccessChange>, RegistryError> {
        self.replace_version(&Arc::from(name), None, widening).await
    }

    /// Replaces the running version with `image`, or with the previous one if there is none.
    async fn replace_version(
        &self,
        name: &Arc<str>,
        image: Option<Arc<Image>>,
        widening: WiderAccess,
    ) -> Result<Vec<AccessChange>, RegistryError> {
        loop {
            let (actor, running, previous) = {
                let deployments = self.0.deployments.read();
                let deployment = deployments
                    .get(name)
                    .ok_or_else(|| RegistryError::Unknown {
                        name: Arc::clone(name),
                    })?;
                let running = deployment.args.running_image();
                (
                    deployment.actor.clone(),
                    running,
                    deployment.previous.clone(),
                )
            };
            let image = image.clone().or(previous);
            let image = image.ok_or_else(|| RegistryError::First {
                name: Arc::clone(name),
            })?;
            let changes = self.check_changes(&running, &image, widening)?;
            // The component itself checks that it still runs the version that was compared.
            let upgrade = Upgrade {
                image: Arc::clone(&image),
                over: Some(Arc::clone(&running)),
            };
            let upgraded = actor.ask_within(upgrade, UPGRADE_TIMEOUT).await;
            if let Err(fault) = upgraded.map_err(RegistryError::Silent)? {
                match self.running_image(name) {
                    Some(now) if !Arc::ptr_eq(&now, &running) => continue,
                    _ => return Err(RegistryError::RolledBack(fault)),
                }
            }
            if let Some(deployment) = self.0.deployments.write().get_mut(name) {
                deployment.previous = Some(running);
            }
            if changes.iter().any(|change| change.wider) {
                let (component, grant, what) = (&**name, "upgrade", describe_wider(&changes));
                tracing::warn!(target: AUDIT, component, grant, what, "granted wider access");
            }
            return Ok(changes);
        }
    }

    /// Returns the differences between two versions, if the later one may replace the other.
    fn check_changes(
        &self,
        before: &Image,
        image: &Image,
        widening: WiderAccess,
    ) -> Result<Vec<AccessChange>, RegistryError> {
        let limits = self.0.host.limits();
        let (caps, trust) = (&limits.caps, &limits.trust);
        let changes = before.manifest().changes(image.manifest(), caps, trust);
        let wider = changes.iter().any(|change| change.wider);
        // An image that is loaded is already within the caps.
        let capped = trust.widen && caps.grant.is_some();
        if wider && widening == WiderAccess::Refused && !capped {
            let name = Arc::from(image.manifest().component.name.as_str());
            audit(&self.0.host, &name, "upgrade", &describe_wider(&changes));
            return Err(RegistryError::Wider { name, changes });
        }
        Ok(changes)
    }

    /// Returns the running version of a component, or the last one that ran.
    fn running_image(&self, name: &str) -> Option<Arc<Image>> {
        let deployments = self.0.deployments.read();
        deployments
            .get(name)
            .map(|deployment| deployment.args.running_image())
    }

    /// Stops a component and removes its name.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] if there is no component of this name.
    pub async fn remove(&self, name: &str) -> Result<(), RegistryError> {
        let inner = &*self.0;
        inner.directory.remove(name);
        let removed = inner.deployments.write().remove(name);
        if removed.is_none() {
            let name = Arc::from(name);
            return Err(RegistryError::Unknown { name });
        }
        match inner.supervisor.terminate_child(name).await {
            Err(ChildError::Ended) => Err(RegistryError::Ended),
            // The supervisor has no entry any more for a quarantined component.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the address of a component.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ActorRef<ComponentMsg>> {
        let deployments = self.0.deployments.read();
        deployments
            .get(name)
            .map(|deployment| deployment.actor.clone())
    }

    /// Returns the state of one component.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<DeploymentStatus> {
        let deployments = self.0.deployments.read();
        deployments.get(name).map(Deployment::status)
    }

    /// Returns all components, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<DeploymentStatus> {
        let deployments = self.0.deployments.read();
        let mut list: Vec<DeploymentStatus> =
            deployments.values().map(Deployment::status).collect();
        list.sort_by(|a, b| a.info.name.cmp(&b.info.name));
        list
    }
}

/// Checks that a component reports to be healthy; the error is the fault that prevented it, if
/// known.
async fn check_health(actor: &ActorRef<ComponentMsg>) -> Result<(), Option<Fault>> {
    match actor.ask_within(CheckHealth, UPGRADE_TIMEOUT).await {
        Ok(health) => health.map_err(Some),
        Err(_) => Err(None),
    }
}

impl Deployment {
    fn status(&self) -> DeploymentStatus {
        DeploymentStatus {
            info: self.args.info(),
            alive: self.actor.is_alive(),
            mailbox_size: self.actor.erase().info().mailbox_len,
            previous: self.previous.as_ref().map(|image| image.digest()),
        }
    }
}
