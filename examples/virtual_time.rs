//! Testing on virtual time: a day passes at once, and a seed determines the schedule.
//!
//! A `TestSystem` runs real actors on one thread. Time stands still while anything can run and
//! jumps to the next timer when nothing can; the seed determines which actor runs next. So a test
//! neither sleeps nor flakes, and a failure can be reproduced from its seed.
//!
//! `cargo run -p strowger-examples virtual_time`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::time::Duration;

use strowger::testing::{Hook, InjectedFault, TestSystem};
use strowger::{Actor, Backoff, ChildSpec, Context, Recipient, Strategy, Supervisor, handlers};

const HOUR: Duration = Duration::from_secs(3600);

/// The hour strikes.
struct Strike;

/// A clock tower that tells a listener the hours since it was started.
struct Tower {
    hours: u32,
    listener: Recipient<u32>,
}

#[handlers]
impl Actor for Tower {
    type Args = Recipient<u32>;
    type Error = Infallible;

    async fn pre_start(
        listener: Recipient<u32>,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        cx.send_every(HOUR, || Strike);
        Ok(Self { hours: 0, listener })
    }

    async fn strike(&mut self, _: Strike) {
        self.hours += 1;
        let _ = self.listener.try_tell(self.hours);
    }
}

pub(crate) fn main() {
    clock_strikes_24_times_a_day();
    failed_tower_counts_from_its_own_start();
    seed_determines_the_order();
}

/// Written as a test would be; a test has `#[test]` instead of a call from `main`.
fn clock_strikes_24_times_a_day() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.spawn::<Tower>("tower", probe.recipient());
    system.advance(24 * HOUR);
    assert_eq!(probe.drain(), (1..=24).collect::<Vec<_>>());
    println!(
        "{} h of virtual time: it struck 24 times",
        system.elapsed().as_secs() / 3600
    );
}

/// Faults are injected by path, hook and call number; the actor needs no code for them.
fn failed_tower_counts_from_its_own_start() {
    // Runs a hundred schedules; if one fails, its seed is printed.
    TestSystem::check(0..100, |system| {
        let probe = system.probe();
        let wait = Backoff::new(HOUR / 4, HOUR);
        let tower = ChildSpec::new::<Tower>("tower", probe.recipient());
        let town = Supervisor::new(Strategy::OneForOne)
            .backoff(wait)
            .child(tower);
        system.supervise("town", town);
        system.inject(
            "/town/tower",
            Hook::Handle,
            3,
            InjectedFault::panic("struck by lightning"),
        );
        system.advance(5 * HOUR);
        // The third strike is lost with its incarnation; the next incarnation counts from its own
        // start.
        assert_eq!(probe.drain(), [1, 2, 1, 2]);
    });
    println!("100 schedules: lightning at the third hour, and it starts over");
}

/// Two towers strike at the same instant: both orders are valid, and each seed selects one of them.
fn seed_determines_the_order() {
    let order = |seed| {
        let system = TestSystem::new(seed);
        let probe = system.probe();
        for name in ["east", "west"] {
            let named = probe.recipient().contramap(move |_: u32| name);
            system.spawn::<Tower>(name, named);
        }
        system.advance(HOUR);
        probe.drain()
    };
    let east = (0..20)
        .filter(|seed| order(*seed) == ["east", "west"])
        .count();
    assert!(east > 0 && east < 20, "both orders occur");
    println!(
        "20 seeds: both orders occur; a seed gives the same order again: {}",
        order(7) == order(7)
    );
}
