//! What all components of a process share.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::cache::{Cache, Folder};
use crate::component::ComponentArgs;
use crate::directory::Directory;
use crate::engine::{
    Class, Engines, HEAVY_STACKS, HostLimits, MAPS, Ticks, WAITING_MAPS, processors,
};
use crate::guests::Guests;
use crate::kv::KvStore;
use crate::load::{self, Compiled, Image, Inspection, LoadError};
use crate::manifest::Manifest;
use crate::metric;

/// The engines, limits and compiled code that all components of a process share. A clone is the
/// same host.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    limits: HostLimits,
    engines: Engines,
    kv: KvStore,
    cache: Mutex<Cache>,
    folder: Option<Folder>,
    compiled: AtomicU64,
    compilations: Arc<Semaphore>,
    start: Instant,
    /// What is taken: components, stacks of those that wait, mappings, stacks of heavy ones.
    room: [AtomicUsize; ROOMS],
    guests: Guests,
    /// Calls that passed their slice on a worker and have not ended.
    crowd: AtomicUsize,
    /// So many of them are too many: there is no worker left for others.
    crowded: usize,
    /// Told each time that somebody gives room back.
    freed: Notify,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}

/// The kinds of room that a host has.
const ROOMS: usize = 4;

/// The figures of a host at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostInfo {
    /// The components that live, or have room to.
    pub live: usize,
    /// The components that it compiled; what was kept is not compiled again.
    pub compiled: u64,
    /// The octets of compiled code that it keeps in memory.
    pub cached: usize,
}

/// Why there is no host.
#[derive(Debug, Clone, thiserror::Error)]
#[error("components cannot run here: {0}")]
pub struct HostError(String);

/// Why one component more is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has room for {max} {limit}, and no more")]
#[non_exhaustive]
pub struct Full {
    /// The limit of [`HostLimits`] that is reached.
    pub limit: &'static str,
    /// Its value.
    pub max: usize,
}

impl Host {
    /// Makes a host. What its components keep is gone with the process.
    ///
    /// # Errors
    /// As [`Host::with_store`].
    pub fn new(limits: HostLimits) -> Result<Self, HostError> {
        Self::with_store(limits, KvStore::memory())
    }

    /// Makes a host whose components keep what outlives them in this store.
    ///
    /// # Errors
    /// When the system has no thread for its deadlines, or the folder for compiled code is not this
    /// process's own.
    pub fn with_store(limits: HostLimits, kv: KvStore) -> Result<Self, HostError> {
        let folder = limits.cache.as_deref();
        let folder = folder.map(|path| Folder::open(path, limits.cached));
        let folder = folder.transpose().map_err(HostError)?;
        let engines = Engines::new(&limits).map_err(HostError)?;
        let guests = Guests::new(limits.threads, limits.nice);
        Ok(Self(Arc::new(Inner {
            compilations: Arc::new(Semaphore::new(limits.compilations.max(1))),
            engines,
            kv,
            cache: Mutex::new(Cache::default()),
            folder,
            compiled: AtomicU64::new(0),
            limits,
            start: Instant::now(),
            room: [const { AtomicUsize::new(0) }; ROOMS],
            guests,
            crowd: AtomicUsize::new(0),
            crowded: processors(),
            freed: Notify::new(),
        })))
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &HostLimits {
        &self.0.limits
    }

    /// How many components live, or have room to; those that are passivated do not count.
    #[must_use]
    pub fn live(&self) -> usize {
        self.0.room[0].load(Ordering::Relaxed)
    }

    /// The figures.
    #[must_use]
    pub fn info(&self) -> HostInfo {
        HostInfo {
            live: self.live(),
            compiled: self.0.compiled.load(Ordering::Relaxed),
            cached: self.0.cache.lock().octets(),
        }
    }

    pub(crate) fn folder(&self) -> Option<&Folder> {
        self.0.folder.as_ref()
    }

    pub(crate) fn count_compilation(&self) {
        self.0.compiled.fetch_add(1, Ordering::Relaxed);
        metric::compiled();
    }

    pub(crate) fn engines(&self) -> &Engines {
        &self.0.engines
    }

    pub(crate) fn kv(&self) -> &KvStore {
        &self.0.kv
    }

    pub(crate) fn ticks(&self) -> &Ticks {
        self.0.engines.ticks()
    }

    /// The threads for components that compute for long.
    pub(crate) fn guests(&self) -> &Guests {
        &self.0.guests
    }

    /// Returns `true` while calls that passed their slice hold as many workers as may be held: then
    /// no call begins on a worker.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.0.crowd.load(Ordering::Relaxed) >= self.0.crowded
    }

    pub(crate) fn join_crowd(&self) {
        self.0.crowd.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave_crowd(&self) {
        self.0.crowd.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes a stack for a component that never waits, if there is one.
    pub(crate) fn admit_stack(&self) -> Option<Permit> {
        let mut permit = Permit {
            host: self.clone(),
            taken: [0; ROOMS],
            whole: false,
        };
        let maps = WAITING_MAPS - MAPS;
        permit.take(2, maps, "maps", self.limits().maps).ok()?;
        permit.take(3, 1, "stacks", HEAVY_STACKS).ok()?;
        permit.whole = true;
        Some(permit)
    }

    pub(crate) fn start(&self) -> Instant {
        self.0.start
    }

    /// Validates, compiles and links a component; on this thread, for milliseconds to seconds.
    /// What was compiled before is found by its hash.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_blocking(&self, octets: &[u8], manifest: Manifest) -> Result<Image, LoadError> {
        let digest = load::check(self, octets, &manifest)?;
        let class = Class::of(&manifest.limits, self.limits());
        self.compiled(digest, class, octets)?
            .image(digest, manifest)
    }

    fn compiled(
        &self,
        digest: crate::Digest,
        class: Class,
        octets: &[u8],
    ) -> Result<Arc<Compiled>, LoadError> {
        if let Some(compiled) = self.0.cache.lock().get((digest, class)) {
            return Ok(compiled);
        }
        let compiled = Arc::new(load::compile(self, digest, class, octets)?);
        let max = self.limits().cached;
        Ok(self.0.cache.lock().keep((digest, class), compiled, max))
    }

    /// Loads a component on a thread of its own. As many compile at a time as the host allows, and
    /// one that takes too long is given up; its thread counts until it is done.
    ///
    /// # Errors
    /// [`LoadError`].
    pub async fn load(&self, octets: Vec<u8>, manifest: Manifest) -> Result<Image, LoadError> {
        let limit = self.limits().compilation;
        let host = self.clone();
        let compiling = async {
            let permit = Arc::clone(&host.0.compilations).acquire_owned().await;
            let ended = |_| LoadError::Host {
                text: "the compilation ended in a panic".to_owned(),
            };
            let host = host.clone();
            let work = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                host.load_blocking(&octets, manifest)
            });
            work.await.map_err(ended)?
        };
        match tokio::time::timeout(limit, compiling).await {
            Ok(loaded) => loaded,
            Err(_) => Err(LoadError::Slow { limit }),
        }
    }

    /// Says what a component imports and exports, and which of it a manifest does not grant.
    ///
    /// # Errors
    /// [`LoadError`], but for what is not granted.
    pub fn inspect(&self, octets: &[u8], manifest: &Manifest) -> Result<Inspection, LoadError> {
        let digest = load::check(self, octets, manifest)?;
        let class = Class::of(&manifest.limits, self.limits());
        let compiled = self.compiled(digest, class, octets)?;
        Ok(compiled.inspect(octets, manifest, class))
    }

    /// Takes room for one component.
    pub(crate) fn admit(&self, waits: bool) -> Result<Permit, Full> {
        let limits = self.limits();
        let maps = if waits { WAITING_MAPS } else { MAPS };
        let mut permit = Permit {
            host: self.clone(),
            taken: [0; ROOMS],
            whole: false,
        };
        permit.take(0, 1, "instances", limits.instances)?;
        permit.take(1, usize::from(waits), "waiting", limits.waiting)?;
        permit.take(2, maps, "maps", limits.maps)?;
        permit.whole = true;
        Ok(permit)
    }

    /// Takes room for one realm of scripts, each of which has a stack of its own.
    pub(crate) fn admit_realm(&self) -> Result<Permit, Full> {
        let limits = self.limits();
        let mut permit = Permit {
            host: self.clone(),
            taken: [0; ROOMS],
            whole: false,
        };
        permit.take(0, 1, "instances", limits.instances)?;
        permit.take(2, WAITING_MAPS, "maps", limits.maps)?;
        permit.whole = true;
        Ok(permit)
    }

    /// Takes room for one component as soon as there is some.
    pub(crate) async fn admitted(&self, waits: bool) -> Permit {
        let mut freed = pin!(self.0.freed.notified());
        loop {
            freed.as_mut().enable();
            if let Ok(permit) = self.admit(waits) {
                return permit;
            }
            freed.as_mut().await;
            freed.set(self.0.freed.notified());
        }
    }

    /// Makes a component that can be started, with room taken for it.
    ///
    /// # Errors
    /// [`Full`], which names the limit.
    pub fn component(&self, image: Image, directory: &Directory) -> Result<ComponentArgs, Full> {
        ComponentArgs::new(self.clone(), Arc::new(image), directory.clone())
    }
}

/// Room for one component; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    host: Host,
    taken: [usize; ROOMS],
    /// Whether it was admitted; who is refused frees nothing for others.
    whole: bool,
}

impl Permit {
    fn take(
        &mut self,
        which: usize,
        count: usize,
        limit: &'static str,
        max: usize,
    ) -> Result<(), Full> {
        let room = &self.host.0.room[which];
        let more = |taken: usize| taken.checked_add(count).filter(|sum| *sum <= max);
        room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Full { limit, max })?;
        self.taken[which] = count;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        for (room, taken) in self.host.0.room.iter().zip(self.taken) {
            room.fetch_sub(taken, Ordering::Relaxed);
        }
        if self.whole {
            self.host.0.freed.notify_waiters();
        }
    }
}
