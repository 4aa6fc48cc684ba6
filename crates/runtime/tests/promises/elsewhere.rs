//! Runtimes that ask each other stay awake between two questions, and no longer.

use std::fs;
use std::time::Duration;

use strowger::{ActorRef, ActorSystem};
use tokio::runtime::{Builder, Runtime};

use crate::support::{Job, Work, Worker};

/// A runtime with one worker, whose thread has this name.
fn one_worker(name: &str) -> Runtime {
    let built = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build();
    built.expect("a runtime starts")
}

/// The time that threads of these names have had of a processor.
fn cpu_time(names: [&str; 2]) -> Duration {
    let mut time = Duration::ZERO;
    for thread in fs::read_dir("/proc/self/task").expect("this is Linux") {
        let path = thread.expect("a thread").path();
        // A thread of another test may end meanwhile.
        let (Ok(name), Ok(stat)) = (
            fs::read_to_string(path.join("comm")),
            fs::read_to_string(path.join("schedstat")),
        ) else {
            continue;
        };
        if names.contains(&name.trim()) {
            let ran = stat.split(' ').next().expect("a number");
            time += Duration::from_nanos(ran.parse().expect("a number"));
        }
    }
    time
}

/// Asks an actor, and then leaves it alone for a second: the time that these threads had of a
/// processor in it.
async fn asked_then_left_alone(
    actor: ActorRef<Job>,
    pause: Duration,
    names: [&str; 2],
) -> Duration {
    for _ in 0..500 {
        let done = actor.ask(Work::Compute(Duration::ZERO)).await;
        done.expect("it answers");
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    let before = cpu_time(names);
    tokio::time::sleep(Duration::from_secs(1)).await;
    cpu_time(names) - before
}

#[test]
fn who_was_asked_by_another_runtime_sleeps_when_it_is_left_alone() {
    if !cfg!(target_os = "linux") {
        return;
    }
    const NAMES: [&str; 2] = ["asks", "is-asked"];
    let (here, there) = (one_worker(NAMES[0]), one_worker(NAMES[1]));
    let _there = there.enter();
    let system = ActorSystem::new("there").expect("inside tokio");
    let actor = system.spawn::<Worker>("worker", ()).expect("a new key");
    for pause in [Duration::ZERO, Duration::from_millis(1)] {
        let asked = here.spawn(asked_then_left_alone(actor.clone(), pause, NAMES));
        let busy = here.block_on(asked).expect("no panic");
        assert!(busy < Duration::from_millis(100), "{busy:?} of a second");
    }
}
