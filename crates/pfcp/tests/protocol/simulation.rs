//! Two endpoints and a bad network in one process, on virtual time, from a seed.
//!
//! Despite lost, duplicated, delayed and reordered datagrams, panics and restarts, every request is
//! answered or fails, none is executed twice, repeated answers are identical, and at the end both
//! sides agree on the sessions.

mod hostile;
mod rng;
mod world;

use std::time::Duration;

use crate::simulation::world::{Faults, World};

const SEEDS: u64 = 400;
const SESSIONS: u64 = 24;
const END: Duration = Duration::from_secs(240);

#[test]
fn two_endpoints_agree_over_a_bad_network() {
    let mut all = Faults::default();
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| World::new(seed).run());
        let (faults, _) = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        all.lost += faults.lost;
        all.doubled += faults.doubled;
        all.delayed += faults.delayed;
        all.panics += faults.panics;
        all.crashes += faults.crashes;
        all.retransmitted += faults.retransmitted;
        all.unanswered += faults.unanswered;
        all.repeated += faults.repeated;
    }
    println!("{SEEDS} seeds: {all:?}");
    for fired in [
        all.lost,
        all.doubled,
        all.delayed,
        all.panics,
        all.crashes,
        all.retransmitted,
        all.unanswered,
        all.repeated,
    ] {
        assert!(fired > 0, "every fault fires: {all:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [1, 2, 3] {
        assert_eq!(World::new(seed).run(), World::new(seed).run());
    }
    assert_ne!(World::new(1).run().1, World::new(2).run().1);
}
