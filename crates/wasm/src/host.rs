//! The state that all components of a process share.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::cache::{CodeCache, CodeDirectory};
use crate::component::ComponentArgs;
use crate::digest::Digest;
use crate::directory::Directory;
use crate::engine::{
    EngineClass, Engines, MAPS_PER_INSTANCE, MAPS_PER_WAITING_INSTANCE, TickerShared, processors,
};
pub use crate::engine::{HostLimits, OverBudgetAction, ReserveError};
#[cfg(unix)]
use crate::files::DirUsages;
use crate::guest_threads::GuestThreads;
use crate::kv::KvStore;
use crate::load::{self, CompiledComponent, Image, Inspection, LoadError};
use crate::log_limit::{LINES_PER_SECOND, LineLimiter};
use crate::manifest::Manifest;
use crate::metric;

/// The engines, limits and compiled code that all components of a process share. A clone is the
/// same host.
#[derive(Clone)]
pub struct Host(Arc<HostInner>);

struct HostInner {
    limits: HostLimits,
    engines: Engines,
    kv: KvStore,
    #[cfg(unix)]
    dir_usages: DirUsages,
    cache: Mutex<CodeCache>,
    code_directory: Option<CodeDirectory>,
    compiled: AtomicU64,
    compilations: Arc<Semaphore>,
    /// Rate limit of log lines about what is refused before a component is loaded.
    audits: LineLimiter,
    start: Instant,
    /// Capacity in use: components, stacks of components that wait, mappings, stacks of heavy
    /// components.
    reserved: Mutex<Capacity>,
    guest_threads: GuestThreads,
    /// Nanoseconds of processor time that components used on workers.
    worker_time: AtomicU64,
    /// Number of calls that exceeded their slice on a worker and have not ended.
    overrunning: AtomicUsize,
    /// Number of such calls at which no worker is left for others.
    max_overrunning: usize,
    /// Notified whenever capacity is released.
    freed: Notify,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}

/// Amounts of each kind of capacity: components, stacks of components that wait, mappings, stacks
/// of heavy components.
type Capacity = [usize; 4];
/// The limits of the same kinds, in `[components]`.
const CAPACITY_NAMES: [&str; 4] = ["instances", "waiting", "maps", "stacks"];

/// The stats of a host at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostInfo {
    /// Number of live components, including those with reserved capacity.
    pub live: usize,
    /// Number of compilations; code found in a cache does not count.
    pub compiled: u64,
    /// Size of the compiled code cached in memory, in bytes.
    pub cached: usize,
}

/// The progress of loading a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadStage {
    /// Waiting until another compilation may start.
    Waiting,
    /// Validating, compiling and linking, or reading compiled code.
    Compiling,
}

/// The error returned when a host cannot be created.
#[derive(Debug, Clone, thiserror::Error)]
#[error("components cannot run on this host: {0}")]
pub struct HostError(String);

/// The error returned when the host has no capacity for another component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("limit of {max} {limit} reached")]
#[non_exhaustive]
pub struct CapacityError {
    /// The limit of [`HostLimits`] that is reached.
    pub limit: &'static str,
    /// The value of the limit.
    pub max: usize,
}

impl Host {
    /// Creates a host whose components keep their data in memory, so that it ends with the process.
    ///
    /// # Errors
    /// As [`Host::with_store`].
    pub fn new(limits: HostLimits) -> Result<Self, HostError> {
        Self::with_store(limits, KvStore::memory())
    }

    /// Creates a host whose components keep their data in this store.
    ///
    /// # Errors
    /// If the system refuses the ticker thread, or the directory for compiled code is not private
    /// to the user of the process.
    pub fn with_store(limits: HostLimits, kv: KvStore) -> Result<Self, HostError> {
        let code_directory = limits.cache.as_deref();
        let code_directory = code_directory.map(|path| CodeDirectory::open(path, limits.cached));
        let code_directory = code_directory.transpose().map_err(HostError)?;
        let engines = Engines::new(&limits).map_err(HostError)?;
        let guest_threads = GuestThreads::new(limits.threads, limits.nice);
        Ok(Self(Arc::new(HostInner {
            compilations: Arc::new(Semaphore::new(limits.compilations.max(1))),
            engines,
            kv,
            #[cfg(unix)]
            dir_usages: DirUsages::default(),
            cache: Mutex::new(CodeCache::default()),
            code_directory,
            compiled: AtomicU64::new(0),
            limits,
            audits: LineLimiter::new(LINES_PER_SECOND),
            start: Instant::now(),
            reserved: Mutex::default(),
            guest_threads,
            worker_time: AtomicU64::new(0),
            overrunning: AtomicUsize::new(0),
            max_overrunning: processors(),
            freed: Notify::new(),
        })))
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &HostLimits {
        &self.0.limits
    }

    /// Returns the number of live components, including those with reserved capacity; passivated
    /// ones do not count.
    #[must_use]
    pub fn live(&self) -> usize {
        self.0.reserved.lock()[0]
    }

    /// Returns the current stats.
    #[must_use]
    pub fn info(&self) -> HostInfo {
        HostInfo {
            live: self.live(),
            compiled: self.0.compiled.load(Ordering::Relaxed),
            cached: self.0.cache.lock().bytes(),
        }
    }

    pub(crate) fn code_directory(&self) -> Option<&CodeDirectory> {
        self.0.code_directory.as_ref()
    }

    pub(crate) fn count_compilation(&self) {
        self.0.compiled.fetch_add(1, Ordering::Relaxed);
        metric::compiled();
    }

    /// Returns the rate limiter of log lines about what is refused before a component is loaded.
    pub(crate) fn audit_lines(&self) -> &LineLimiter {
        &self.0.audits
    }

    pub(crate) fn engines(&self) -> &Engines {
        &self.0.engines
    }

    pub(crate) fn kv(&self) -> &KvStore {
        &self.0.kv
    }

    #[cfg(unix)]
    pub(crate) fn dir_usages(&self) -> &DirUsages {
        &self.0.dir_usages
    }

    pub(crate) fn ticks(&self) -> &TickerShared {
        self.0.engines.ticks()
    }

    /// Reserves the address space of every pooled engine now. Otherwise that happens when the first
    /// component of a class is loaded, and that load fails if there is not enough. The engines for
    /// large components reserve nothing.
    ///
    /// # Errors
    /// A [`ReserveError`] with the number of instances that would fit.
    pub fn reserve(&self) -> Result<(), ReserveError> {
        let classes = [EngineClass::SMALL, EngineClass::COUNTING];
        self.engines().reserve(&classes, self.limits())
    }

    /// Like [`Host::reserve`], including the engine for
    /// [`ScriptEngine`](crate::script::ScriptEngine).
    ///
    /// # Errors
    /// A [`ReserveError`] with the number of instances that would fit.
    pub fn reserve_with_scripts(&self) -> Result<(), ReserveError> {
        let classes = [
            EngineClass::SMALL,
            EngineClass::COUNTING,
            EngineClass::SCRIPT,
        ];
        self.engines().reserve(&classes, self.limits())
    }

    /// Returns the guest threads.
    pub(crate) fn guest_threads(&self) -> &GuestThreads {
        &self.0.guest_threads
    }

    /// Returns `true` while calls that exceeded their slice hold the maximum number of workers.
    /// Then no call begins on a worker.
    #[inline]
    pub(crate) fn workers_are_occupied(&self) -> bool {
        self.0.overrunning.load(Ordering::Relaxed) >= self.0.max_overrunning
    }

    /// Adds processor time of a component on a worker; returns the total of all components.
    pub(crate) fn add_worker_time(&self, cpu: Duration) -> Duration {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        let before = self.0.worker_time.fetch_add(nanos, Ordering::Relaxed);
        Duration::from_nanos(before.wrapping_add(nanos))
    }

    pub(crate) fn begin_overrun(&self) {
        self.0.overrunning.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_overrun(&self) {
        self.0.overrunning.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reserves all amounts or none: if a refused caller held a part for a moment, others could be
    /// refused, and wait, although there is capacity.
    fn reserve_all(&self, wanted: Capacity) -> Result<CapacityPermit, CapacityError> {
        let limits = self.limits();
        let max = [
            limits.instances,
            limits.waiting,
            limits.maps,
            limits.heavy_stacks(),
        ];
        let mut reserved = self.0.reserved.lock();
        for kind in 0..wanted.len() {
            let free = max[kind].saturating_sub(reserved[kind]);
            if wanted[kind] > free {
                let (limit, max) = (CAPACITY_NAMES[kind], max[kind]);
                return Err(CapacityError { limit, max });
            }
        }
        for (used, wanted) in reserved.iter_mut().zip(wanted) {
            *used += wanted;
        }
        drop(reserved);
        let host = self.clone();
        Ok(CapacityPermit {
            host,
            amounts: wanted,
        })
    }

    /// Reserves a stack for a component that never waits, if one is free.
    pub(crate) fn reserve_stack(&self) -> Option<CapacityPermit> {
        self.reserve_all([0, 0, MAPS_PER_WAITING_INSTANCE - MAPS_PER_INSTANCE, 1])
            .ok()
    }

    pub(crate) fn start(&self) -> Instant {
        self.0.start
    }

    /// Validates, compiles and links a component on this thread, which takes milliseconds to
    /// seconds. Compiled code is found in the cache by its hash.
    ///
    /// # Errors
    /// A [`LoadError`] with the first check that failed, such as the imports that are not granted.
    pub fn load_blocking(&self, bytes: &[u8], manifest: Manifest) -> Result<Image, LoadError> {
        let manifest = manifest.resolved();
        let digest = load::check(self, bytes, &manifest)?;
        let class = EngineClass::of(&manifest.limits, self.limits());
        self.compiled(digest, class, bytes)?
            .image(self, digest, manifest)
    }

    fn compiled(
        &self,
        digest: Digest,
        class: EngineClass,
        bytes: &[u8],
    ) -> Result<Arc<CompiledComponent>, LoadError> {
        if let Some(compiled) = self.0.cache.lock().get((digest, class)) {
            return Ok(compiled);
        }
        let compiled = Arc::new(load::compile(self, digest, class, bytes)?);
        let max = self.limits().cached;
        Ok(self.0.cache.lock().insert((digest, class), compiled, max))
    }

    /// Loads a component on a blocking thread. The host limits the number of concurrent
    /// compilations. A compilation that takes too long is abandoned; it counts until its thread has
    /// finished.
    ///
    /// # Errors
    /// A [`LoadError`] with the first check that failed; [`LoadError::Slow`] after
    /// [`HostLimits::compilation`].
    pub async fn load(&self, bytes: Vec<u8>, manifest: Manifest) -> Result<Image, LoadError> {
        self.load_watched(bytes, manifest, |_| {}).await
    }

    /// Like [`Host::load`], and calls a function at each stage, in the order of [`LoadStage`].
    /// Dropping the future cancels the load: a waiting compilation does not start, and one in
    /// progress finishes and is cached.
    ///
    /// # Errors
    /// As [`Host::load`].
    pub async fn load_watched(
        &self,
        bytes: Vec<u8>,
        manifest: Manifest,
        report: impl Fn(LoadStage) + Send + 'static,
    ) -> Result<Image, LoadError> {
        let limit = self.limits().compilation;
        let host = self.clone();
        let compiling = async {
            report(LoadStage::Waiting);
            let permit = Arc::clone(&host.0.compilations).acquire_owned().await;
            report(LoadStage::Compiling);
            let ended = |_| LoadError::Host {
                text: "the compilation panicked".to_owned(),
            };
            let host = host.clone();
            let work = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                host.load_blocking(&bytes, manifest)
            });
            work.await.map_err(ended)?
        };
        match tokio::time::timeout(limit, compiling).await {
            Ok(loaded) => loaded,
            Err(_) => Err(LoadError::Slow { limit }),
        }
    }

    /// Returns the imports and exports of a component, and the imports that a manifest does not
    /// grant.
    ///
    /// # Errors
    /// As [`Host::load_blocking`], except for imports that are not granted.
    pub fn inspect(&self, bytes: &[u8], manifest: &Manifest) -> Result<Inspection, LoadError> {
        let digest = load::check(self, bytes, manifest)?;
        let class = EngineClass::of(&manifest.limits, self.limits());
        let compiled = self.compiled(digest, class, bytes)?;
        Ok(compiled.inspect(bytes, manifest, class))
    }

    /// Reserves capacity for one component.
    pub(crate) fn reserve_instance(&self, waits: bool) -> Result<CapacityPermit, CapacityError> {
        let maps = if waits {
            MAPS_PER_WAITING_INSTANCE
        } else {
            MAPS_PER_INSTANCE
        };
        self.reserve_all([1, usize::from(waits), maps, 0])
    }

    /// Reserves capacity for one script realm, which has a stack of its own.
    pub(crate) fn reserve_realm(&self) -> Result<CapacityPermit, CapacityError> {
        self.reserve_all([1, 0, MAPS_PER_WAITING_INSTANCE, 0])
    }

    /// Waits for capacity for one component and reserves it.
    pub(crate) async fn wait_for_capacity(&self, waits: bool) -> CapacityPermit {
        let mut freed = pin!(self.0.freed.notified());
        loop {
            // Registered before the attempt, so that a release in between is not missed.
            freed.as_mut().enable();
            if let Ok(permit) = self.reserve_instance(waits) {
                return permit;
            }
            freed.as_mut().await;
            freed.set(self.0.freed.notified());
        }
    }

    /// Creates a component that is ready to start, with reserved capacity.
    ///
    /// # Errors
    /// A [`CapacityError`] if [`HostLimits::instances`], [`HostLimits::waiting`] or
    /// [`HostLimits::maps`] is reached.
    pub fn component(
        &self,
        image: Image,
        directory: &Directory,
    ) -> Result<ComponentArgs, CapacityError> {
        ComponentArgs::new(self.clone(), Arc::new(image), directory.clone())
    }
}

/// Reserved capacity for one component; released on drop.
#[derive(Debug)]
pub(crate) struct CapacityPermit {
    host: Host,
    amounts: Capacity,
}

impl Drop for CapacityPermit {
    fn drop(&mut self) {
        let mut reserved = self.host.0.reserved.lock();
        for (used, amount) in reserved.iter_mut().zip(self.amounts) {
            *used -= amount;
        }
        drop(reserved);
        self.host.0.freed.notify_waiters();
    }
}
