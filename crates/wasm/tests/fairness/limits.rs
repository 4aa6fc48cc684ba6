//! Limits of processor time, and the maximum that a node allows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use strowger_wasm::fault::CallPhase;
use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::{Host, HostLimits, LoadError};

use crate::hogs::{hogs, spinner};
use crate::kit::{Guest, limits, manifest};
use crate::node::{Node, alone, cores, on_workers, run};

const ENDLESS: &str = "(loop $again (br $again))";

#[test]
fn cpu_limit_ends_calls_on_workers_and_guest_threads() {
    run(async {
        let node = Node::start(limits()).await;
        let more = "[limits]\ndeadline = \"50ms\"\n[restart]\nintensity = 9";
        let guest = node
            .deploy(&spinner(1).handle(ENDLESS), "endless", more)
            .await;
        // The first call is on a worker; the next ones are on guest threads.
        for life in 1..=3 {
            let asked = tokio::time::timeout(Duration::from_secs(10), guest.ask("x")).await;
            let answer = asked.unwrap_or_else(|_| panic!("it goes on: {life}"));
            assert!(answer.is_err(), "{answer:?}");
            // The asker has the answer before the fault is counted.
            while node.info(&guest).faults < life {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let info = node.info(&guest);
            let fault = info.fault.clone().expect("it failed");
            assert_eq!(fault.kind.name(), "deadline", "{fault}");
            assert!(info.cpu >= Duration::from_millis(40 * life), "{info:?}");
        }
        node.end().await;
    });
}

#[test]
fn endless_init_ends_on_a_guest_thread() {
    run(async {
        let node = Node::start(limits()).await;
        // The first incarnation starts, and ends over a message; the following ones fail to start.
        let guest = spinner(1)
            .init(&format!("(if (local.get $attempt) (then {ENDLESS}))"))
            .handle(ENDLESS);
        let more = "[limits]\ninit = \"50ms\"\ndeadline = \"50ms\"\n[restart]\nintensity = 2";
        let guest = node.deploy(&guest, "endless", more).await;
        guest.tell("x");
        while node.is_alive(&guest) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let info = node.info(&guest);
        let fault = info.fault.expect("it failed");
        assert_eq!(
            (fault.kind.name(), fault.phase),
            ("deadline", CallPhase::Init),
            "{fault}"
        );
        assert!(info.cpu >= Duration::from_millis(120), "{:?}", info.cpu);
        node.end().await;
    });
}

/// Keeps all processors busy with other threads while a test runs.
fn on_a_busy_machine<T>(test: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 * cores() {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // Catches panics, so that a failure does not leave the threads behind.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
        done.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn busy_machine_does_not_end_short_calls() {
    // Some tens of milliseconds, a hundred at most on a slow machine.
    let guest = spinner(30_000_000);
    let test = || {
        on_workers(async {
            let node = Node::start(limits()).await;
            let more = "[limits]\ndeadline = \"500ms\"";
            let guest = node.deploy(&guest, "thinker", more).await;
            // On a worker, and then at the lowest priority.
            for _ in 0..3 {
                guest.ask("x").await.expect("it has its time");
            }
            assert_eq!(node.info(&guest).faults, 0);
            node.end().await;
        });
    };
    alone(|| on_a_busy_machine(test));
}

#[test]
fn queued_guest_calls_are_not_ended_by_the_wall_clock() {
    run(async {
        let mut limits = limits();
        (limits.threads, limits.wall) = (1, 1);
        let node = Node::start(limits).await;
        let _hogs = hogs(&node, 8, 20_000_000, "60s").await;
        let more = "[limits]\ndeadline = \"500ms\"";
        let guest = node.deploy(&spinner(30_000_000), "thinker", more).await;
        for _ in 0..3 {
            guest.ask("x").await.expect("it has its time");
        }
        assert_eq!(node.info(&guest).faults, 0);
        node.end().await;
    });
}

#[test]
fn manifest_beyond_the_caps_is_not_loaded() {
    let mut limits = HostLimits::default();
    limits.caps = ManifestCaps::default();
    limits.caps.deadline = Duration::from_millis(20);
    let host = Host::new(limits).expect("there is a thread to be had");
    let bytes = Guest::new().encode();
    let load = |deadline: &str| {
        let more = format!("[limits]\ndeadline = {deadline:?}\ninit = \"1s\"");
        host.load_blocking(&bytes, manifest("guest", &more))
    };
    load("20ms").expect("it is allowed");
    let refused = load("21ms").expect_err("it is more");
    assert!(matches!(refused, LoadError::CapExceeded(_)), "{refused:?}");
    let said = refused.to_string();
    for part in [
        "limits.deadline",
        "21ms",
        "20ms",
        "components.caps.deadline",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
