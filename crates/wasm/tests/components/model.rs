//! Components compared with a model of their supervision, and under load.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use strowger::{ActorSystem, Event, Strategy as Supervise, Supervisor};
use strowger_wasm::message::Upgrade;
use strowger_wasm::{Call, ComponentArgs, Directory, Host, Message};

use crate::kit::{Guest, Started, Testbed, counter, host, manifest};

/// A step of the test.
#[derive(Debug, Clone)]
enum Step {
    /// Messages that are sent together; the component traps on those that are `true`.
    Told(Vec<bool>),
    /// An ask; the component traps on it if it is `true`.
    Asked(bool),
    /// An upgrade to another version, which is faulty if it is `true`.
    Upgraded(bool),
    /// Idle for so long that the component is passivated.
    Idle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => proptest::collection::vec(proptest::bool::weighted(0.3), 1..6).prop_map(Step::Told),
        2 => proptest::bool::weighted(0.3).prop_map(Step::Asked),
        1 => proptest::bool::ANY.prop_map(Step::Upgraded),
        1 => Just(Step::Idle),
    ]
}

/// The observable state of a component.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    alive: bool,
    passivated: bool,
    handled: u64,
    faults: u64,
    incarnations: u32,
    dead: u64,
}

/// The model: messages, incarnations and faults as numbers.
struct Model {
    seen: Seen,
    poison: u64,
    intensity: u64,
}

impl Model {
    fn wake(&mut self) {
        self.seen.incarnations += u32::from(self.seen.passivated);
        self.seen.passivated = false;
    }

    /// Ends an incarnation; returns `true` if another one follows.
    fn fault(&mut self) -> bool {
        self.seen.faults += 1;
        self.seen.alive = self.seen.faults <= self.intensity;
        self.seen.incarnations += u32::from(self.seen.alive);
        self.seen.alive
    }

    fn told(&mut self, messages: &[bool]) {
        self.wake();
        for fatal in messages {
            if !self.seen.alive {
                self.seen.dead += 1;
            } else if *fatal {
                let _ = (0..self.poison).all(|_| self.fault());
                self.seen.dead += 1;
            } else {
                self.seen.handled += 1;
            }
        }
    }

    fn asked(&mut self, fatal: bool) {
        self.wake();
        if fatal {
            self.fault();
            self.seen.dead += 1;
        } else {
            self.seen.handled += 1;
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Told(messages) => self.told(messages),
            Step::Asked(fatal) => self.asked(*fatal),
            Step::Upgraded(ill) => {
                self.wake();
                self.seen.incarnations += u32::from(!ill);
            }
            Step::Idle => self.seen.passivated = true,
        }
    }
}

fn payload(fatal: bool) -> strowger_wasm::Payload {
    [if fatal { 255 } else { 1 }].as_slice().into()
}

fn perform(testbed: &Testbed, counter: &Started, step: &Step, rule: &str) {
    let pause = match step {
        Step::Told(messages) => {
            for fatal in messages {
                let message = Message(payload(*fatal));
                counter.actor.try_tell(message).expect("there is room");
            }
            2
        }
        Step::Asked(fatal) => {
            let asked = testbed.system.run(counter.actor.ask(Call(payload(*fatal))));
            assert_eq!(asked.expect("it is answered").is_err(), *fatal);
            2
        }
        Step::Upgraded(ill) => {
            let next = match ill {
                false => super::kit::counter(),
                true => super::kit::counter().health("unreachable"),
            };
            let upgrade = Upgrade::to(testbed.image(&next, "counter", rule));
            let upgraded = testbed.system.run(counter.actor.ask(upgrade));
            assert_eq!(upgraded.expect("it is answered").is_err(), *ill);
            2
        }
        Step::Idle => 61,
    };
    testbed.system.advance(Duration::from_secs(pause));
}

fn seen(counter: &Started, dead: u64) -> Seen {
    let info = counter.args.info();
    Seen {
        alive: counter.actor.is_alive(),
        passivated: info.passivated,
        handled: info.calls,
        faults: info.faults,
        incarnations: info.incarnations,
        dead,
    }
}

fn check(host: &Host, steps: &[Step], poison: u64, intensity: u64) {
    let testbed = Testbed {
        host: host.clone(),
        ..Testbed::new()
    };
    let rule = format!(
        "[state]\nmode = \"snapshot\"\npassivate = \"30s\"\n\
         [restart]\npoison = {poison}\nintensity = {intensity}\nperiod = \"1000m\"\n\
         backoff = \"1ms\"\nbackoff_max = \"1ms\""
    );
    let counter = testbed.start(&counter(), "counter", &rule);
    let mut events = testbed.system.events();
    let (mut dead, mut model) = (
        0,
        Model {
            seen: seen(&counter, 0),
            poison,
            intensity,
        },
    );
    for step in steps {
        model.step(step);
        perform(&testbed, &counter, step, &rule);
        while let Some(event) = events.try_next() {
            if let Event::DeadLetter { count, .. } = event {
                dead += count;
            }
        }
        assert_eq!(
            seen(&counter, dead),
            model.seen,
            "after {step:?} of {steps:?}"
        );
        if !model.seen.alive {
            return;
        }
    }
    let asked = testbed.system.run(counter.actor.ask(Call(payload(false))));
    let count = asked.expect("it is asked").expect("it counts")[0];
    assert_eq!(
        u64::from(count),
        (model.seen.handled + 1) % 256,
        "its state is its history"
    );
}

#[test]
fn random_faults_match_the_model() {
    let host = host();
    let mut runner = TestRunner::new(Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = proptest::collection::vec(step(), 1..12);
    let ran = runner.run(
        &(steps, 1..4_u64, 3..9_u64),
        |(steps, poison, intensity)| {
            check(&host, &steps, poison, intensity);
            Ok(())
        },
    );
    ran.unwrap_or_else(|error| panic!("{error}"));
}

/// A guest that traps unless it receives the numbers from 0 on, in four bytes each; the next number
/// is its state, and its answer to an empty message.
fn numbered() -> Guest {
    Guest::new()
        .global("(global $next (mut i32) (i32.const 0))")
        .init(
            "(if (local.get $some) (then (global.set $next (i32.load (local.get $ptr)))))
             (call $ok)",
        )
        .handle(
            "(if (local.get $len) (then
               (if (i32.ne (i32.load (local.get $ptr)) (global.get $next)) (then unreachable))
               (global.set $next (i32.add (global.get $next) (i32.const 1)))))
             (i32.store (i32.const 512) (global.get $next))
             (call $answer (i32.const 512) (i32.const 4))",
        )
        .snapshot(
            "(i32.store (i32.const 520) (global.get $next))
             (i32.store (i32.const 16) (i32.const 520))
             (i32.store (i32.const 20) (i32.const 4))
             (i32.const 16)",
        )
}

const NUMBERS: u32 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrades_under_load_keep_every_message_once_in_order() {
    let host = host();
    let load = |guest: &Guest| {
        let loaded = host.load_blocking(&guest.encode(), manifest("numbered", ""));
        loaded.unwrap_or_else(|error| panic!("{error}"))
    };
    let image = load(&numbered());
    let args = host.component(image, &Directory::new());
    let args: ComponentArgs = args.expect("there is room");
    let system = ActorSystem::new("load").expect("it is a name");
    let top = Supervisor::new(Supervise::OneForOne);
    let top = system.supervise("top", top).await.expect("the key is free");
    let child = top.start_child(args.child()).await.expect("it starts");
    let actor = ComponentArgs::find(&system, &child).expect("it was started");
    let sender = actor.clone();
    let sending = tokio::spawn(async move {
        for number in 0..NUMBERS {
            let message = Message(number.to_le_bytes().as_slice().into());
            sender.tell(message).await.expect("it lives");
        }
    });
    let mut upgrades = 0;
    while !sending.is_finished() || upgrades < 10 {
        let ill = upgrades % 3 == 2;
        let next = match ill {
            true => numbered().health("unreachable"),
            false => numbered(),
        };
        let upgrade = Upgrade::to(load(&next));
        let within = Duration::from_secs(60);
        let upgraded = actor.ask_within(upgrade, within).await;
        assert_eq!(upgraded.expect("it is answered").is_err(), ill);
        upgrades += 1;
    }
    sending.await.expect("all was sent");
    let call = Call([].as_slice().into());
    let asked = actor.ask_within(call, Duration::from_secs(60)).await;
    let next = asked.expect("it is asked").expect("it answers");
    assert_eq!(*next, NUMBERS.to_le_bytes());
    // An answer leaves before the call that produced it has been counted.
    system.shutdown(Duration::from_secs(5)).await;
    let info = args.info();
    assert_eq!(info.faults, 0);
    assert_eq!(info.calls, u64::from(NUMBERS) + 1);
}
