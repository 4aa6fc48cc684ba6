//! A host, and components on a runtime with threads.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use strowger::{Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, Context, Request};
use strowger_wasm::component::ComponentInfo;
use strowger_wasm::kv::KvStore;
use strowger_wasm::message::ComponentMsg;
use strowger_wasm::{Answer, Call, ComponentRegistry, Host, HostLimits, Image, Message};
use tokio::runtime::{Builder, Runtime};

use crate::hogs::threads;
use crate::kit::{Guest, manifest, payload};

/// Number of processors.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The name of each worker's thread.
pub(crate) const WORKER: &str = "fair-worker";

/// The time after which a test counts as hanging.
pub(crate) const GUARD: Duration = Duration::from_secs(120);

/// Runs a test on as many workers as there are processors; one test at a time.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    alone(|| on_workers(test))
}

/// Runs work that no other test may disturb.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    static MACHINE: Mutex<()> = Mutex::new(());
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a test that already has the machine to itself on as many workers as there are processors.
pub(crate) fn on_workers<T>(test: impl Future<Output = T>) -> T {
    on_some_workers(cores(), test)
}

/// The same on this number of workers.
pub(crate) fn on_some_workers<T>(workers: usize, test: impl Future<Output = T>) -> T {
    let runtime: Runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(WORKER)
        .enable_all()
        .build()
        .expect("threads can be had");
    let whole = async {
        let done = tokio::time::timeout(GUARD, test).await;
        done.expect("the test ends")
    };
    let done = match panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(whole))) {
        Ok(done) => done,
        Err(failed) => {
            // Otherwise the shutdown would wait for components that still compute.
            runtime.shutdown_background();
            panic::resume_unwind(failed);
        }
    };
    runtime.shutdown_timeout(GUARD);
    // The system lists a thread for a moment after its end.
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until && !threads(WORKER).is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    let left = threads(WORKER);
    assert!(left.is_empty(), "beside the next test: {left:?}");
    done
}

/// A system with a registry of components.
pub(crate) struct Node {
    pub(crate) system: ActorSystem,
    pub(crate) host: Host,
    pub(crate) registry: ComponentRegistry,
}

impl Node {
    pub(crate) async fn start(limits: HostLimits) -> Self {
        Self::with_store(limits, KvStore::memory()).await
    }

    pub(crate) async fn with_store(limits: HostLimits, kv: KvStore) -> Self {
        let system = ActorSystem::new("fairness").expect("inside a runtime");
        let host = Host::with_store(limits, kv).expect("there is a thread to be had");
        let registry = ComponentRegistry::start(&system, "components", &host).await;
        Self {
            system,
            host,
            registry: registry.expect("the key is free"),
        }
    }

    fn image(&self, guest: &Guest, name: &str, more: &str) -> Image {
        let image = self
            .host
            .load_blocking(&guest.encode(), manifest(name, more));
        image.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Deploys a component; components that send to themselves find themselves by name.
    pub(crate) async fn deploy(&self, guest: &Guest, name: &str, more: &str) -> DeployedComponent {
        let image = self.image(guest, name, more);
        let deployed = self.registry.deploy(image).await;
        let actor = deployed.unwrap_or_else(|error| panic!("{error}"));
        DeployedComponent {
            actor,
            name: name.to_owned(),
        }
    }

    pub(crate) fn info(&self, one: &DeployedComponent) -> ComponentInfo {
        self.registry.get(&one.name).expect("it is there").info
    }

    pub(crate) fn is_alive(&self, one: &DeployedComponent) -> bool {
        self.registry.get(&one.name).expect("it is there").alive
    }

    pub(crate) async fn end(self) {
        self.system.shutdown(Duration::from_secs(10)).await;
    }
}

/// A deployed component.
pub(crate) struct DeployedComponent {
    pub(crate) actor: ActorRef<ComponentMsg>,
    pub(crate) name: String,
}

impl DeployedComponent {
    pub(crate) fn tell(&self, text: &str) {
        let told = self.actor.try_tell(Message(payload(text)));
        told.expect("there is room");
    }

    pub(crate) async fn ask(&self, text: &str) -> Answer {
        let asked = self.actor.ask_within(Call(payload(text)), GUARD).await;
        asked.expect("it is answered")
    }
}

/// A native actor that answers.
pub(crate) struct Native;

/// The request of a [`Native`].
pub(crate) struct Ping;

impl Request for Ping {
    type Reply = ();
}

pub(crate) struct NativeMsg(Ask<Ping>);

impl Accepts<Ask<Ping>> for NativeMsg {
    fn wrap(ask: Ask<Ping>) -> Self {
        Self(ask)
    }
}

impl Actor for Native {
    type Msg = NativeMsg;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        NativeMsg(ask): NativeMsg,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        ask.reply.send(());
        Ok(())
    }
}

/// The delays of a neighbour, in order of measurement.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, began: Instant) {
        self.0.push(began.elapsed());
    }

    /// The median, and the 99th percentile.
    pub(crate) fn half_and_p99(&mut self) -> (Duration, Duration) {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let at = |percent: usize| {
            let place = (self.0.len() * percent / 100).min(last);
            self.0.get(place).copied().unwrap_or(Duration::MAX)
        };
        (at(50), at(99))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
