//! Asks to several actors at once, all of which compute.

use std::time::{Duration, Instant};

use strowger_bench::Sample;

use crate::counter::Computation;
use crate::subject::{Capacity, Subject};

/// Computation time of each of the eight actors. Two workers need at least four times this.
const COMPUTATION_TIME: Duration = Duration::from_micros(50);

/// One task asks eight actors at once and waits for all answers; an operation is all eight.
pub async fn scatter<S: Subject>(subject: S, capacity: Capacity, operations: u64) -> Sample {
    let computation = Computation::lasting(COMPUTATION_TIME);
    let expected = computation.compute();
    let mut running = Vec::with_capacity(8);
    for _ in 0..8 {
        running.push(subject.spawn(capacity).await);
    }
    let all: Vec<S::Ref> = running.iter().map(|one| one.actor.clone()).collect();
    for actor in &all {
        assert_eq!(
            S::compute(actor, computation).await,
            expected,
            "it computes"
        );
    }
    let one = |at: usize| S::compute(&all[at], computation);
    let start = Instant::now();
    for _ in 0..operations {
        let answers = tokio::join!(
            one(0),
            one(1),
            one(2),
            one(3),
            one(4),
            one(5),
            one(6),
            one(7),
        );
        let answers: [u64; 8] = answers.into();
        assert_eq!(answers, [expected; 8], "each computed all of it");
    }
    let time = start.elapsed();
    drop(all);
    for one in running {
        subject.stop(one).await;
    }
    Sample {
        time,
        done: operations,
        checked: 8 * operations,
    }
}
