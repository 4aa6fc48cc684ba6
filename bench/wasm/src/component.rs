//! Components as actors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strowger::{ActorRef, ActorSystem, Strategy, Supervisor};
use strowger_bench::{Counted, Sample};
use strowger_wasm::component::LifecycleStage;
use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::message::{ComponentMsg, Event, Upgrade};
use strowger_wasm::{
    ComponentActor, ComponentArgs, Directory, Host, HostLimits, Image, Manifest, Message,
};

use crate::native::event;
use crate::work::{self, ANSWER_TIMEOUT, LifecyclePart};
use crate::{COUNTER, ECHO, Fixture, RELAY, cores, counted};

/// Components that live as long as the measurements.
pub struct Bench {
    system: ActorSystem,
    host: Host,
    echo: RunningComponent,
    relay: RunningComponent,
    fragile: RunningComponent,
    many: Vec<RunningComponent>,
    life: ComponentArgs,
    /// Number of incarnations of `life` that have started.
    started: Arc<AtomicU64>,
    next: AtomicU64,
}

/// A running component.
struct RunningComponent {
    actor: ActorRef<ComponentMsg>,
    args: ComponentArgs,
}

/// Limits that let a component be late on a busy machine, and restart as often as it likes.
const GENEROUS_LIMITS: &str = "
[limits]
deadline = \"10s\"
send_rate = 1000000000
[restart]
intensity = 4000000000
period = \"1ms\"
backoff = \"0ms\"
backoff_max = \"0ms\"
";

pub fn host(instances: usize) -> Host {
    let mut limits = HostLimits::default();
    limits.instances = instances;
    limits.caps = ManifestCaps::unlimited();
    Host::new(limits).expect("there is a thread to be had")
}

fn image(host: &Host, fixture: &Fixture, name: &str, more: &str) -> Image {
    let text = format!("[component]\nname = \"{name}\"\n{GENEROUS_LIMITS}{more}");
    let manifest = Manifest::parse(&text).expect("a good manifest");
    let loaded = host.load_blocking(fixture.bytes, manifest);
    loaded.expect("a good fixture")
}

async fn start(
    system: &ActorSystem,
    directory: &Directory,
    host: &Host,
    image: Image,
) -> RunningComponent {
    let args = host.component(image, directory).expect("there is room");
    let name = args.name().to_owned();
    let top = Supervisor::new(Strategy::OneForOne).child(args.child());
    system
        .supervise(format!("top-{name}"), top)
        .await
        .expect("it starts");
    let child = system.find(format!("/top-{name}/{name}").as_str());
    let child = child.expect("it was started");
    let actor = ComponentArgs::find(system, &child).expect("it was started");
    directory.insert(name, &actor);
    RunningComponent { actor, args }
}

impl Bench {
    /// Starts the components.
    pub async fn start() -> Self {
        let system = ActorSystem::new("components").expect("inside a runtime");
        let (host, directory) = (host(300), Directory::new());
        let echo = image(&host, &ECHO, "echo", "");
        let echo = start(&system, &directory, &host, echo).await;
        let granted = "[grant]\nrequest = [\"echo\"]\n[config]\nto = \"echo\"\n";
        let relay = image(&host, &RELAY, "relay", granted);
        let relay = start(&system, &directory, &host, relay).await;
        let fragile = image(&host, &COUNTER, "fragile", "[state]\nmode = \"snapshot\"\n");
        let fragile = start(&system, &directory, &host, fragile).await;
        let mut many = Vec::new();
        for n in 0..100 {
            let image = image(&host, &ECHO, &format!("many-{n}"), "");
            let one = start(&system, &directory, &host, image).await;
            let recipient = one.actor.recipient::<Message>();
            let recipient = recipient.contramap(|event: Arc<Event>| Message(event.payload.clone()));
            system.subscribe("fan", recipient).expect("a good topic");
            many.push(one);
        }
        let started = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&started);
        let life = host.component(image(&host, &ECHO, "life", ""), &directory);
        let life = life.expect("there is room").on_stage(move |stage| {
            if stage == LifecycleStage::PostStart {
                count.fetch_add(1, Ordering::Release);
            }
        });
        Self {
            system,
            host,
            echo,
            relay,
            fragile,
            many,
            life,
            started,
            next: AtomicU64::new(0),
        }
    }
}

pub async fn routed(bench: Arc<Bench>, count: u64) -> Sample {
    let handled = || bench.echo.args.info().calls;
    work::tell(&bench.echo.actor, &handled, count).await
}

pub async fn requests(bench: Arc<Bench>, count: u64) -> Sample {
    work::requests(&bench.relay.actor, count).await
}

pub async fn restarts(bench: Arc<Bench>, count: u64) -> Sample {
    let before = bench.fragile.args.info().faults;
    let sample = work::restarts(&bench.fragile.actor, count).await;
    assert_eq!(
        bench.fragile.args.info().faults - before,
        count,
        "each was a trap"
    );
    sample
}

pub async fn fan_out(bench: Arc<Bench>, count: u64) -> Sample {
    let topic = bench.system.topic::<Event>("fan").expect("a good topic");
    let actors: Vec<_> = bench.many.iter().map(|one| one.actor.clone()).collect();
    let publish = || topic.publish(event()).delivered;
    work::fan_out(publish, &actors, count).await
}

/// A new version replaces the running one; the figure is the time in which messages wait.
pub async fn upgrades(bench: Arc<Bench>, count: u64) -> Sample {
    let mut time = Duration::ZERO;
    for _ in 0..count {
        let next = image(
            &bench.host,
            &COUNTER,
            "fragile",
            "[state]\nmode = \"snapshot\"\n",
        );
        let before = bench.fragile.args.info().incarnations;
        let start = Instant::now();
        let upgraded = bench
            .fragile
            .actor
            .ask_within(Upgrade::to(next), ANSWER_TIMEOUT)
            .await;
        time += start.elapsed();
        assert!(matches!(upgraded, Ok(Ok(()))), "the next version is well");
        assert_eq!(
            bench.fragile.args.info().incarnations,
            before + 1,
            "it runs"
        );
    }
    Sample {
        time,
        done: count,
        checked: count,
    }
}

pub async fn lives(bench: Arc<Bench>, life: LifecyclePart, count: u64) -> Sample {
    let mut time = Duration::ZERO;
    for _ in 0..count {
        let key = bench.next.fetch_add(1, Ordering::Relaxed);
        let before = bench.started.load(Ordering::Acquire);
        let start = Instant::now();
        let spawned = bench
            .system
            .spawn::<ComponentActor>(format!("life-{key}"), bench.life.clone());
        let actor = spawned.expect("the key is unused");
        match life {
            LifecyclePart::Start => {
                while bench.started.load(Ordering::Acquire) == before {
                    tokio::task::yield_now().await;
                }
            }
            LifecyclePart::Answer | LifecyclePart::Whole => work::ask(&actor).await,
        }
        if life == LifecyclePart::Whole {
            actor.stop();
            actor.stopped().await;
        }
        time += start.elapsed();
        actor.stop();
        actor.stopped().await;
        assert_eq!(
            bench.started.load(Ordering::Acquire),
            before + 1,
            "one life"
        );
    }
    Sample {
        time,
        done: count,
        checked: count,
    }
}

/// One component per processor is told messages for a while.
pub async fn sustained(batch: usize, milliseconds: u64) -> Counted {
    let system = ActorSystem::new("sustained").expect("inside a runtime");
    let (host, directory) = (host(16), Directory::new());
    let span = Duration::from_millis(milliseconds);
    let mut tellers = Vec::new();
    for n in 0..cores() {
        let more = format!("[run]\nbatch = {batch}\n");
        let image = image(&host, &ECHO, &format!("echo-{n}"), &more);
        let RunningComponent { actor, args } = start(&system, &directory, &host, image).await;
        tellers.push(tokio::spawn(async move {
            let handled = || args.info().calls;
            work::sustain(&actor, &handled, span).await
        }));
    }
    let (mut rate, mut count) = (0.0, 0);
    for teller in tellers {
        let (each, of) = teller.await.expect("it does not panic");
        (rate, count) = (rate + each, count + of);
    }
    system.shutdown(ANSWER_TIMEOUT).await;
    counted(rate, count)
}

pub async fn memory(count: u64) -> Counted {
    let system = ActorSystem::new("memory").expect("inside a runtime");
    let limits = usize::try_from(count).unwrap_or(usize::MAX) + 8;
    let (host, directory) = (host(limits), Directory::new());
    let mut all = Vec::new();
    let mut before = 0.0;
    for n in 0..=count {
        let image = image(&host, &ECHO, &format!("echo-{n}"), "");
        let one = start(&system, &directory, &host, image).await;
        work::ask(&one.actor).await;
        all.push(one);
        if n == 0 {
            // Memory that the first component allocates is shared by all.
            before = work::resident();
        }
    }
    let taken = (work::resident() - before).max(0.0);
    let calls: u64 = all.iter().map(|one| one.args.info().calls).sum();
    assert!(calls >= count, "all answered");
    system.shutdown(ANSWER_TIMEOUT).await;
    counted(taken / count as f64, count)
}
