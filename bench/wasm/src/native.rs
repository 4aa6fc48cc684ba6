//! The same actors without WebAssembly.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, Backoff, ChildSpec, Context, Strategy, Supervisor,
};
use strowger_bench::{Counted, Sample};
use strowger_wasm::message::Event;
use strowger_wasm::{Call, Message};

use crate::work::{self, ANSWER_TIMEOUT, LifecyclePart};
use crate::{cores, counted, payload};

/// The text of the panic that a message causes.
const PANIC_TEXT: &str = "as it was told";

/// Silences the panics that are part of the benchmark: the default hook writes to the terminal,
/// which costs more than the restart that is measured, and a component that traps writes nothing.
pub fn silence_injected_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(PANIC_TEXT) {
            default(panic);
        }
    }));
}

/// The messages of the native actors.
pub enum Msg {
    Message(Message),
    Call(Ask<Call>),
}

impl Accepts<Message> for Msg {
    fn wrap(message: Message) -> Self {
        Self::Message(message)
    }
}

impl Accepts<Ask<Call>> for Msg {
    fn wrap(ask: Ask<Call>) -> Self {
        Self::Call(ask)
    }
}

/// Answers with the payload of the call, and panics on request.
struct Echo(Arc<AtomicU64>);

impl Actor for Echo {
    type Msg = Msg;
    type Args = Arc<AtomicU64>;
    type Error = Infallible;

    async fn pre_start(count: Arc<AtomicU64>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(count))
    }

    async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match msg {
            Msg::Message(Message(bytes)) => {
                assert!(&bytes[..] != b"panic", "{PANIC_TEXT}");
            }
            Msg::Call(ask) => {
                ask.reply.send(Ok(ask.request.0));
            }
        }
        Ok(())
    }
}

/// Asks another actor the requested number of times.
struct Relay(ActorRef<Msg>);

impl Actor for Relay {
    type Msg = Msg;
    type Args = ActorRef<Msg>;
    type Error = Infallible;

    async fn pre_start(to: ActorRef<Msg>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(to))
    }

    async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
        if let Msg::Call(Ask { request, reply }) = msg {
            let text = std::str::from_utf8(&request.0).expect("text");
            let times = text
                .strip_prefix("times ")
                .and_then(|times| times.parse().ok());
            let mut answered = 0_u64;
            for _ in 0..times.expect("a number") {
                let answer = self.0.ask_within(Call(payload()), ANSWER_TIMEOUT).await;
                answered += u64::from(matches!(answer, Ok(Ok(bytes)) if bytes == payload()));
            }
            reply.send(Ok(answered.to_string().into_bytes().into()));
        }
        Ok(())
    }
}

/// Actors that live as long as the measurements.
pub struct Bench {
    system: ActorSystem,
    echo: ActorRef<Msg>,
    handled: Arc<AtomicU64>,
    relay: ActorRef<Msg>,
    fragile: ActorRef<Msg>,
    many: Vec<ActorRef<Msg>>,
    next: AtomicU64,
}

impl Bench {
    /// Starts the actors.
    pub async fn start() -> Self {
        let system = ActorSystem::new("native").expect("inside a runtime");
        let handled = Arc::new(AtomicU64::new(0));
        let spawn = |key: String, count: &Arc<AtomicU64>| {
            let spawned = system.spawn::<Echo>(key, Arc::clone(count));
            spawned.expect("the key is unused")
        };
        let echo = spawn("echo".to_owned(), &handled);
        let relay = system.spawn::<Relay>("relay", echo.clone());
        let count = Arc::new(AtomicU64::new(0));
        let many: Vec<_> = (0..100)
            .map(|n| spawn(format!("many-{n}"), &count))
            .collect();
        for actor in &many {
            let recipient = actor.recipient::<Message>();
            let recipient = recipient.contramap(|event: Arc<Event>| Message(event.payload.clone()));
            system.subscribe("fan", recipient).expect("a good topic");
        }
        let never = Backoff::new(Duration::ZERO, Duration::ZERO);
        let top = Supervisor::new(Strategy::OneForOne)
            .intensity(u32::MAX, Duration::from_millis(1))
            .backoff(never)
            .child(ChildSpec::new::<Echo>("fragile", count));
        system.supervise("top", top).await.expect("it starts");
        let fragile = system
            .find("/top/fragile")
            .and_then(|actor| actor.downcast());
        Self {
            echo,
            handled,
            relay: relay.expect("the key is unused"),
            fragile: fragile.expect("it was started"),
            many,
            next: AtomicU64::new(0),
            system,
        }
    }
}

pub async fn routed(bench: Arc<Bench>, count: u64) -> Sample {
    let handled = || bench.handled.load(Ordering::Relaxed);
    work::tell(&bench.echo, &handled, count).await
}

pub async fn requests(bench: Arc<Bench>, count: u64) -> Sample {
    work::requests(&bench.relay, count).await
}

pub async fn restarts(bench: Arc<Bench>, count: u64) -> Sample {
    work::restarts(&bench.fragile, count).await
}

pub async fn fan_out(bench: Arc<Bench>, count: u64) -> Sample {
    let topic = bench.system.topic::<Event>("fan").expect("a good topic");
    let publish = || topic.publish(event()).delivered;
    work::fan_out(publish, &bench.many, count).await
}

/// Returns the event that is published.
pub fn event() -> Event {
    Event {
        topic: "fan".into(),
        payload: payload(),
    }
}

pub async fn lives(bench: Arc<Bench>, life: LifecyclePart, count: u64) -> Sample {
    let mut time = Duration::ZERO;
    for _ in 0..count {
        let key = bench.next.fetch_add(1, Ordering::Relaxed);
        let started = Arc::new(AtomicU64::new(0));
        let start = Instant::now();
        let actor = bench.system.spawn::<Echo>(format!("life-{key}"), started);
        let actor = actor.expect("the key is unused");
        if life != LifecyclePart::Start {
            work::ask(&actor).await;
        }
        if life == LifecyclePart::Whole {
            actor.stop();
            actor.stopped().await;
        }
        time += start.elapsed();
        wait_until_handled(actor).await;
    }
    Sample {
        time,
        done: count,
        checked: count,
    }
}

async fn wait_until_handled(actor: ActorRef<Msg>) {
    if actor.is_alive() {
        work::ask(&actor).await;
        actor.stop();
        actor.stopped().await;
    }
}

pub async fn sustained(milliseconds: u64) -> Counted {
    let system = ActorSystem::new("native-sustained").expect("inside a runtime");
    let span = Duration::from_millis(milliseconds);
    let tellers = (0..cores()).map(|n| {
        let handled = Arc::new(AtomicU64::new(0));
        let actor = system.spawn::<Echo>(format!("echo-{n}"), Arc::clone(&handled));
        let actor = actor.expect("the key is unused");
        tokio::spawn(async move {
            let handled = || handled.load(Ordering::Relaxed);
            work::sustain(&actor, &handled, span).await
        })
    });
    let tellers: Vec<_> = tellers.collect();
    let (mut rate, mut count) = (0.0, 0);
    for teller in tellers {
        let (each, of) = teller.await.expect("it does not panic");
        (rate, count) = (rate + each, count + of);
    }
    system.shutdown(ANSWER_TIMEOUT).await;
    counted(rate, count)
}

pub async fn memory(count: u64) -> Counted {
    let system = ActorSystem::new("native-memory").expect("inside a runtime");
    let before = work::resident();
    let started = Arc::new(AtomicU64::new(0));
    for n in 0..count {
        let actor = system.spawn::<Echo>(format!("echo-{n}"), Arc::clone(&started));
        work::ask(&actor.expect("the key is unused")).await;
    }
    let taken = (work::resident() - before).max(0.0);
    assert_eq!(started.load(Ordering::Relaxed), count, "all answered");
    system.shutdown(ANSWER_TIMEOUT).await;
    counted(taken / count as f64, count)
}
