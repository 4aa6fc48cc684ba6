//! Two roles and a network in one process, on virtual time, from a seed.
//!
//! The node and the client are the real ones: actors, supervisors, transactions, sessions, pools.
//! Simulated are what they stand on, the [network](wire) and the [disk](platter), and those who use
//! them, the [subscribers](user). A storm passes over all of it; when it is quiet again, both
//! sides agree on every session, nothing acknowledged is lost, nothing was done twice, and nothing
//! is left of what was deleted; nor was anything reported of what had ended.
//!
//! `cargo xtask simulate --n4 --seeds 10000` runs it; `--seed 7 --trace` tells what happens.

mod belief;
mod dice;
mod forgetful;
mod mischief;
mod platter;
mod user;
mod wire;
mod world;

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use strowger::testing::TestSystem;

pub(crate) use wire::Plug;
use world::World;

/// T1 and N1 of both sides.
const T1: Duration = Duration::from_secs(1);
const N1: u32 = 4;

/// Declares the counters once.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// How often each fault struck, and how often what answers it was needed.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        struct Faults {
            $($(#[$doc])* $name: u64,)*
        }

        impl Faults {
            fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

faults! {
    /// Datagrams.
    lost
    doubled
    delayed
    reordered
    /// Datagrams to a role that was down.
    nobody
    /// Requests that were sent again, and that came again.
    retransmitted
    repeated
    /// Requests that came again while the first was still worked on.
    repeated_at_work
    /// Answers to requests that wait for none: given up, answered, or of an earlier life.
    late
    /// Sequence numbers that went from the last to the first.
    wrapped
    /// Crashes of a whole role.
    upf_crashed
    smf_crashed
    /// Heartbeats in the name of the control plane's host that tell a later stamp.
    spoofed
    /// Session reports.
    reported
    /// Failures of one actor.
    session_panicked
    session_killed
    endpoint_panicked
    association_killed
    /// The disk.
    write_failed
    store_busy
    disk_full
    /// Groups that a crash took before anybody was told of them.
    torn
    /// Groups that were acknowledged and that the loss of power took.
    lost_groups
    /// Requests without an outcome for the control plane.
    unanswered
    /// Requests that the node refused.
    refused
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.rows() {
            writeln!(f, "  {name:<20} {count:>9}")?;
        }
        Ok(())
    }
}

/// What became of a seed.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    wrong: Vec<String>,
    faults: Faults,
    /// Of all that was sent, and of which actor ran when.
    digest: (u64, u64),
    trace: Vec<String>,
}

/// Runs a seed.
fn run(seed: u64, trace: bool) -> Outcome {
    let system = TestSystem::new(seed);
    let (mut wrong, faults, digest, trace) = system.run(async {
        let start = tokio::time::Instant::now();
        WALL.set(Some(start));
        World::new(system.system().clone(), seed, trace)
            .live()
            .await
    });
    system.shutdown(Duration::from_secs(5));
    WALL.set(None);
    let schedule = system.trace().digest();
    if !system.leaves_nothing() {
        wrong.push("something of the system is left when all have ended".to_owned());
    }
    Outcome {
        wrong,
        faults,
        digest: (digest, schedule),
        trace,
    }
}

thread_local! {
    static WALL: Cell<Option<tokio::time::Instant>> = const { Cell::new(None) };
}

/// Milliseconds since 1970 where time is virtual.
pub(crate) fn wall() -> Option<u64> {
    let start = WALL.get()?;
    let since = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Some(1_700_000_000_000 + since)
}

/// The seeds of `STROWGER_N4_SEEDS` (`0..10000`), or some.
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("STROWGER_N4_SEEDS") else {
        return 0..40;
    };
    let ends = text
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    ends.unwrap_or_else(|| panic!("STROWGER_N4_SEEDS is `{text}`, not a range such as 0..100"))
}

#[test]
fn both_roles_agree_whatever_is_lost_and_whoever_crashes() {
    let seeds = seeds();
    let mut all = Faults::default();
    for seed in seeds.clone() {
        let outcome = std::panic::catch_unwind(|| run(seed, false));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed} fails; replay it"));
        assert!(
            outcome.wrong.is_empty(),
            "seed {seed} fails; replay it: {:#?}",
            outcome.wrong
        );
        all.add(&outcome.faults);
    }
    println!("{} seeds\n{all}", seeds.end - seeds.start);
    let idle: Vec<_> = all.rows().into_iter().filter(|row| row.1 == 0).collect();
    assert!(
        idle.is_empty() || seeds.end - seeds.start < 1000,
        "{idle:?}"
    );
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    let seed = std::env::var("STROWGER_N4_SEED").ok();
    let seed = seed.map_or(7, |seed| {
        seed.parse().expect("STROWGER_N4_SEED is a number")
    });
    let (first, second) = (run(seed, true), run(seed, true));
    if let Ok(path) = std::env::var("STROWGER_N4_TRACE") {
        let text = first.trace.join("\n") + "\n" + &first.faults.to_string();
        std::fs::write(&path, text).expect("the trace can be written");
    }
    assert_eq!(first, second);
    assert!(first.wrong.is_empty(), "seed {seed} fails; replay it");
    assert_ne!(first.digest, run(seed + 1, false).digest);
}

#[test]
fn both_have_what_was_kept_after_the_user_plane_forgot_it() {
    let seeds = seeds();
    let (mut restored, mut given_up) = (0, 0);
    for seed in seeds.clone() {
        let outcome = std::panic::catch_unwind(|| forgetful::run(seed));
        let (wrong, some, others) =
            outcome.unwrap_or_else(|_| panic!("seed {seed} fails; replay it"));
        assert!(wrong.is_empty(), "seed {seed} fails; replay it: {wrong:#?}");
        (restored, given_up) = (restored + some, given_up + others as u64);
    }
    println!("{restored} sessions restored, {given_up} given up");
    // An answer that is lost each time leaves a session that is in the way of itself.
    assert!(restored > 4 * (seeds.end - seeds.start) && given_up * 50 < restored);
}
