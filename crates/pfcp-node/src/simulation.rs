//! Simulation of both roles and a network in one process, on virtual time, from a seed.
//!
//! Node and client are the real implementations: actors, supervisors, transactions, sessions,
//! pools. Simulated are the [`network`] and the [`disk`] below them, and the
//! [`subscriber`]s that use them. During a run, faults of all kinds occur. Afterwards both
//! sides must agree on every session: nothing acknowledged is lost, nothing was done twice, nothing
//! remains of deleted sessions, and nothing was reported about sessions after their end.
//!
//! `cargo xtask simulate --n4 --seeds 10000` runs the simulation; `--seed 7 --trace` prints the
//! events of a run.

mod disk;
mod driver;
mod faults;
mod model;
mod network;
mod rng;
mod stateless_upf;
mod subscriber;

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use strowger::testing::TestSystem;

use driver::Simulation;
pub(crate) use network::SimulatedSocket;

/// T1 and N1 of both sides.
const T1: Duration = Duration::from_secs(1);
const N1: u32 = 4;

/// Defines the counters once, as fields and as rows.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// Numbers of the faults that occurred, and of the recovery mechanisms that were exercised.
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
    /// Faults of datagrams.
    lost
    doubled
    delayed
    reordered
    /// Datagrams to a role that was down.
    nobody
    /// Requests that were retransmitted, and retransmissions that arrived.
    retransmitted
    repeated
    /// Retransmissions that arrived while the first request was still in progress.
    repeated_at_work
    /// Responses without a waiting request, because it was given up, answered, or sent by an
    /// earlier incarnation.
    late
    /// Sequence numbers that wrapped around.
    wrapped
    /// Crashes of a whole role.
    upf_crashed
    smf_crashed
    /// Heartbeats with a later time stamp that were spoofed from the host of the control plane.
    spoofed
    /// Number of session reports sent.
    reported
    /// Failures of single actors.
    session_panicked
    session_killed
    endpoint_panicked
    association_killed
    /// Failures of the disk.
    write_failed
    store_busy
    disk_full
    /// Unacknowledged groups of writes that a crash discarded.
    torn
    /// Acknowledged groups of writes that a power loss discarded.
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

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct RunOutcome {
    wrong: Vec<String>,
    faults: Faults,
    /// The digests of all sent messages, and of the schedule of the actors.
    digest: (u64, u64),
    trace: Vec<String>,
}

/// Runs the simulation with a seed.
fn run(seed: u64, trace: bool) -> RunOutcome {
    let system = TestSystem::new(seed);
    let (mut wrong, faults, digest, trace) = system.run(async {
        let start = tokio::time::Instant::now();
        WALL.set(Some(start));
        Simulation::new(system.system().clone(), seed, trace)
            .run()
            .await
    });
    system.shutdown(Duration::from_secs(5));
    WALL.set(None);
    let schedule = system.trace().digest();
    if !system.into_is_leak_free() {
        wrong.push("something of the system is left when all have ended".to_owned());
    }
    RunOutcome {
        wrong,
        faults,
        digest: (digest, schedule),
        trace,
    }
}

thread_local! {
    static WALL: Cell<Option<tokio::time::Instant>> = const { Cell::new(None) };
}

/// Returns the milliseconds since 1970 if time is virtual.
pub(crate) fn virtual_unix_millis() -> Option<u64> {
    let start = WALL.get()?;
    let since = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Some(1_700_000_000_000 + since)
}

/// Returns the seeds in `STROWGER_N4_SEEDS` (such as `0..10000`), or a default range.
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
fn roles_agree_despite_loss_and_crashes() {
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
fn same_seed_gives_same_run() {
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
fn stateless_upf_sessions_are_restored_or_given_up() {
    let seeds = seeds();
    let (mut restored, mut given_up) = (0, 0);
    for seed in seeds.clone() {
        let outcome = std::panic::catch_unwind(|| stateless_upf::run(seed));
        let (wrong, some, others) =
            outcome.unwrap_or_else(|_| panic!("seed {seed} fails; replay it"));
        assert!(wrong.is_empty(), "seed {seed} fails; replay it: {wrong:#?}");
        (restored, given_up) = (restored + some, given_up + others as u64);
    }
    println!("{restored} sessions restored, {given_up} given up");
    // If the response is lost every time, the session that the node accepted blocks its own
    // restoration.
    assert!(restored > 4 * (seeds.end - seeds.start) && given_up * 50 < restored);
}
