//! A host, and components on a runtime with threads.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use strowger::{Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, Context, Request};
use strowger_wasm::{
    Answer, Call, ComponentInfo, ComponentMsg, ComponentRegistry, Host, HostLimits, Image, Message,
};
use tokio::runtime::{Builder, Runtime};

use crate::kit::{Guest, manifest, octets};

/// How many processors there are.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A test that takes longer than this hangs.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

/// Runs a test on as many workers as there are processors; one test at a time.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    static MACHINE: Mutex<()> = Mutex::new(());
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime: Runtime = Builder::new_multi_thread()
        .worker_threads(cores())
        .enable_all()
        .build()
        .expect("threads can be had");
    let done = runtime.block_on(async { tokio::time::timeout(GUARD, test).await });
    runtime.shutdown_timeout(Duration::from_secs(1));
    done.expect("the test ends")
}

/// A system with a registry of components.
pub(crate) struct Node {
    pub(crate) system: ActorSystem,
    pub(crate) host: Host,
    pub(crate) registry: ComponentRegistry,
}

impl Node {
    pub(crate) async fn start(limits: HostLimits) -> Self {
        let system = ActorSystem::new("fairness").expect("inside a runtime");
        let host = Host::new(limits).expect("there is a thread to be had");
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
            .load_blocking(&guest.octets(), manifest(name, more));
        image.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Deploys a component; those that send to themselves find themselves by name.
    pub(crate) async fn deploy(&self, guest: &Guest, name: &str, more: &str) -> One {
        let image = self.image(guest, name, more);
        let deployed = self.registry.deploy(image).await;
        let actor = deployed.unwrap_or_else(|error| panic!("{error}"));
        One {
            actor,
            name: name.to_owned(),
        }
    }

    pub(crate) fn info(&self, one: &One) -> ComponentInfo {
        self.registry.get(&one.name).expect("it is there").info
    }

    pub(crate) fn is_alive(&self, one: &One) -> bool {
        self.registry.get(&one.name).expect("it is there").alive
    }

    pub(crate) async fn end(self) {
        self.system.shutdown(Duration::from_secs(10)).await;
    }
}

/// A component that was deployed.
pub(crate) struct One {
    pub(crate) actor: ActorRef<ComponentMsg>,
    pub(crate) name: String,
}

impl One {
    pub(crate) fn tell(&self, text: &str) {
        let told = self.actor.try_tell(Message(octets(text)));
        told.expect("there is room");
    }

    pub(crate) async fn ask(&self, text: &str) -> Answer {
        let asked = self.actor.ask_within(Call(octets(text)), GUARD).await;
        asked.expect("it is answered")
    }
}

/// A native actor that answers.
pub(crate) struct Native;

/// A question to it.
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

/// How long neighbours took, one time after the other.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, began: Instant) {
        self.0.push(began.elapsed());
    }

    pub(crate) fn p99(&mut self) -> Duration {
        self.0.sort_unstable();
        let at = (self.0.len() * 99 / 100).min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or(Duration::MAX)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
