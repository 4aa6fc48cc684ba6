//! An answer wakes its asker, in whatever moment of the ask it is sent.
//!
//! Each test takes up to three seconds. `STROWGER_ASKS` sets the number of asks for a long run,
//! without a limit of time; tests whose askers sleep now and then do a tenth of them.

use std::time::Duration;

use crate::asking::{AnswerFrom, Askers, FAR, watch};
use crate::support::{current_thread, exclusive_machine, runtime};

/// Returns the number of asks, and the time after which a test ends.
fn size(asks: u64) -> (u64, Duration) {
    let wanted = std::env::var("STROWGER_ASKS").ok();
    match wanted.and_then(|wanted| wanted.parse().ok()) {
        Some(wanted) => (wanted, FAR),
        None => (asks, Duration::from_secs(3)),
    }
}

/// Asks an actor with a thread of its own from a hook. On a runtime of one thread, each such ask
/// becomes a wait that is looked through for rings while the answer is being sent.
fn ask_from_hook(within: Duration) {
    let (asks, time) = size(100_000);
    let asked = watch(current_thread(), time, move |askers| {
        let own = askers.answerer::<true>(AnswerFrom::Handler);
        askers.ask(&own, true, within, (asks, u64::MAX));
    });
    assert!(asked > 1000, "{asked} asks are too few");
}

#[test]
fn answer_from_another_thread_wakes_an_asker_in_a_hook() {
    let _alone = exclusive_machine();
    ask_from_hook(FAR);
}

#[test]
fn answer_from_another_thread_is_seen_before_the_deadline() {
    let _alone = exclusive_machine();
    ask_from_hook(Duration::from_millis(1500));
}

/// Asks an actor that answers from threads that may block. On several workers, an ask that takes
/// longer than about a millisecond is taken from its list by the monitor meanwhile.
fn ask_blocking(from: AnswerFrom) {
    let (asks, time) = size(200_000);
    let asks = asks / 10;
    let start = move |askers: &mut Askers| {
        let files = askers.answerer::<false>(from);
        askers.ask(&files, true, FAR, (asks, 50));
    };
    let asked = watch(runtime(2), time, start);
    assert!(asked > 500, "{asked} asks are too few");
}

#[test]
fn answer_from_a_blocking_thread_wakes_an_asker_in_a_hook() {
    let _alone = exclusive_machine();
    ask_blocking(AnswerFrom::Blocking);
}

#[test]
fn answer_from_a_pipe_wakes_an_asker_in_a_hook() {
    let _alone = exclusive_machine();
    ask_blocking(AnswerFrom::Pipe);
}
