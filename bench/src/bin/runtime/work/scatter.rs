//! Asks to several actors at once, all of which compute.

use std::time::{Duration, Instant};

use strowger_bench::Sample;

use crate::counter::Toil;
use crate::subject::{Room, Subject};

/// Computation time of each of the eight actors. Two workers need at least four times this.
const TOIL: Duration = Duration::from_micros(50);

/// One task asks eight actors at once and waits for all answers; an operation is all eight.
pub async fn scatter<S: Subject>(subject: S, room: Room, operations: u64) -> Sample {
    let toil = Toil::lasting(TOIL);
    let expected = toil.compute();
    let mut running = Vec::with_capacity(8);
    for _ in 0..8 {
        running.push(subject.spawn(room).await);
    }
    let all: Vec<S::Ref> = running.iter().map(|one| one.actor.clone()).collect();
    for actor in &all {
        assert_eq!(S::compute(actor, toil).await, expected, "it computes");
    }
    let one = |at: usize| S::compute(&all[at], toil);
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
