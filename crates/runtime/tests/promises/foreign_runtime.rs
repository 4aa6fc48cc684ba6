//! Runtimes that ask each other stay awake between two asks, but no longer.

use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use strowger::{ActorRef, ActorSystem};
use tokio::runtime::{Builder, Runtime};

use crate::support::{Job, MAX_WAIT, Work, Worker, exclusive_machine, on_worker};

/// A runtime with one worker, whose thread has this name.
fn one_worker(name: &str) -> Runtime {
    let built = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build();
    built.expect("a runtime starts")
}

/// The processor time used by the threads with these names.
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

/// Asks an actor, and then leaves it alone for a second; returns the processor time that these
/// threads used in that second.
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
fn runtime_sleeps_after_asks_from_another_runtime() {
    let _alone = exclusive_machine();
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

/// An environment variable that is set when a test runs in a process of its own.
const ALONE: &str = "STROWGER_TEST_ALONE";

/// Number of times that the monitor has gone to sleep so far.
fn sleeps_of_the_monitor() -> u64 {
    let mut sleeps = 0;
    for thread in fs::read_dir("/proc/self/task").expect("this is Linux") {
        let path = thread.expect("a thread").path();
        let name = fs::read_to_string(path.join("comm")).expect("no other test is here");
        // The kernel keeps fifteen bytes of a thread name.
        if name.trim() != "strowger-monito" {
            continue;
        }
        let status = fs::read_to_string(path.join("status")).expect("it lives");
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let count = count.and_then(|count| count.trim().parse::<u64>().ok());
        sleeps += count.expect("the kernel counts them");
    }
    sleeps
}

/// Counts wake-ups, so that the load of the machine does not matter.
#[test]
fn monitor_sleeps_while_idle() {
    let _alone = exclusive_machine();
    if !cfg!(target_os = "linux") {
        return;
    }
    if env::var_os(ALONE).is_none() {
        // There is one monitor per process, and other tests keep it awake.
        let program = env::current_exe().expect("a test is a program");
        let alone = Command::new(program)
            .args(["--exact", "foreign_runtime::monitor_sleeps_while_idle"])
            .env(ALONE, "")
            .output();
        let alone = alone.expect("it starts");
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(
            alone.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let runtime = one_worker("idle");
    on_worker(&runtime, async {
        let system = ActorSystem::new("idle").expect("within tokio");
        let actor = system.spawn::<Worker>("worker", ()).expect("a new key");
        let done = actor.ask(Work::Compute(Duration::ZERO)).await;
        done.expect("it answers");
        let (mut woken, mut before) = (Vec::new(), sleeps_of_the_monitor());
        // In the first interval the monitor may not have noticed yet that nothing is running.
        while woken.len() < 4 && woken.last().is_none_or(|&times| times > 20) {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = sleeps_of_the_monitor();
            assert!(now > 0, "there is a monitor");
            woken.push(now - before);
            before = now;
        }
        let last = woken.last().copied();
        assert!(
            last <= Some(20),
            "woken {woken:?} times in half a second each"
        );
        system.shutdown(MAX_WAIT).await;
    });
}
