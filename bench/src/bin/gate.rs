//! Work whose instructions callgrind counts: on one thread, in a fixed order, the same every time.
//!
//! `gate WORK COUNT` does the work this number of times and asserts the result; `gate heap` prints
//! the bytes of an idle actor. The difference of two counts leaves out the cost of starting
//! and ending the program.

use std::fmt;

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, ChildSpec, Context, Reply, Request, Strategy,
    Supervisor,
};
use strowger_bench::{CountingAllocator, LiveBytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Counter(u64);

enum Msg {
    Add(u64),
    Get(u64, Reply<u64>),
    Ball(u64, ActorRef<Msg>),
    Fail,
}

struct Get(u64);

impl Request for Get {
    type Reply = u64;
}

impl Accepts<Ask<Get>> for Msg {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask.request.0, ask.reply)
    }
}

#[derive(Debug)]
struct InjectedFailure;

impl fmt::Display for InjectedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("planted")
    }
}

impl std::error::Error for InjectedFailure {}

impl Actor for Counter {
    type Msg = Msg;
    type Args = ();
    type Error = InjectedFailure;

    async fn pre_start((): (), _cx: &mut Context<Self>) -> Result<Self, InjectedFailure> {
        Ok(Self(0))
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), InjectedFailure> {
        match msg {
            Msg::Add(value) => self.0 += value,
            Msg::Get(value, reply) => {
                self.0 += value;
                reply.send(self.0);
            }
            Msg::Ball(left, other) => {
                self.0 += 1;
                if left > 0 {
                    tell(&other, Msg::Ball(left - 1, cx.actor_ref())).await;
                }
            }
            Msg::Fail => return Err(InjectedFailure),
        }
        Ok(())
    }
}

async fn tell(to: &ActorRef<Msg>, msg: Msg) {
    assert!(to.tell(msg).await.is_ok(), "the actor is running");
}

async fn ask(to: &ActorRef<Msg>, value: u64) -> u64 {
    to.ask(Get(value)).await.expect("the actor answers")
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count = args.get(1).map_or(0, |count| {
        count.parse().expect("the count is a whole number")
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("tokio starts");
    runtime.block_on(async {
        let built = ActorSystem::builder("gate").seed(1).build();
        let system = built.expect("panics unwind here");
        match args.first().map(String::as_str) {
            Some("tell") => tells(&system, count).await,
            Some("ask") => asks(&system, count).await,
            Some("hop") => hops(&system, count).await,
            Some("spawn_and_stop") => lives(&system, count).await,
            Some("restart_err") => restarts(&system, count).await,
            Some("heap") => println!("{}", heap(&system).await),
            _ => panic!("which work? tell, ask, hop, spawn_and_stop, restart_err, heap"),
        }
    });
}

/// Bursts of a hundred messages, each followed by one ask that confirms them.
async fn tells(system: &ActorSystem, count: u64) {
    let actor = system.spawn::<Counter>("a", ()).expect("the key is unused");
    for burst in 1..=count / 100 {
        for _ in 0..100 {
            tell(&actor, Msg::Add(1)).await;
        }
        assert_eq!(ask(&actor, 0).await, burst * 100, "each arrived once");
    }
}

async fn asks(system: &ActorSystem, count: u64) {
    let actor = system.spawn::<Counter>("a", ()).expect("the key is unused");
    for number in 1..=count {
        assert_eq!(ask(&actor, 1).await, number, "its own answer");
    }
}

async fn hops(system: &ActorSystem, count: u64) {
    let one = system.spawn::<Counter>("a", ()).expect("the key is unused");
    let other = system.spawn::<Counter>("b", ()).expect("the key is unused");
    tell(&one, Msg::Ball(count - 1, other.clone())).await;
    loop {
        let made = ask(&one, 0).await + ask(&other, 0).await;
        if made == count {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn lives(system: &ActorSystem, count: u64) {
    for number in 0..count {
        let key = format!("{number:08}");
        let actor = system.spawn::<Counter>(key, ()).expect("the key is unused");
        assert_eq!(ask(&actor, 7).await, 7, "a new counter is empty");
        actor.stop();
        actor.stopped().await;
    }
}

async fn restarts(system: &ActorSystem, count: u64) {
    let spec = Supervisor::new(Strategy::OneForOne)
        .intensity(u32::MAX, std::time::Duration::from_nanos(1))
        .child(ChildSpec::new::<Counter>("child", ()));
    let started = system.supervise("top", spec).await;
    let supervisor = started.expect("the child starts");
    let actor = supervisor.child::<Msg>("child").expect("it was started");
    for _ in 0..count {
        tell(&actor, Msg::Fail).await;
        assert_eq!(ask(&actor, 7).await, 7, "the successor begins anew");
    }
}

/// Returns the heap bytes per actor of ten thousand actors that have answered and are idle.
async fn heap(system: &ActorSystem) -> i64 {
    const ACTORS: i64 = 10_000;
    let bytes = LiveBytes::watch();
    let mut actors = Vec::with_capacity(10_000);
    for number in 0..ACTORS {
        let key = format!("{number:08}");
        let actor = system.spawn::<Counter>(key, ()).expect("the key is unused");
        assert_eq!(ask(&actor, 7).await, 7, "a new counter is empty");
        actors.push(actor);
    }
    let held = bytes.now() - (actors.capacity() * size_of::<ActorRef<Msg>>()) as i64;
    held / ACTORS
}
