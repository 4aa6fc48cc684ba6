//! Deadlines: the time that counts against them, and the time that does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strowger_wasm::CallError;

use crate::kit::{Guest, Testbed};
use crate::limits::SPINS;
use crate::messaging::{REQUEST, resolving};

/// Computes for some tens of milliseconds.
fn thinker() -> Guest {
    let handle = "(call $spin (i32.const 30000000)) (call $ok)";
    Guest::new().handle(handle).more(SPINS)
}

/// The time that an ask takes.
fn took(testbed: &Testbed, limits: &str) -> Duration {
    let guest = testbed.start(&thinker(), "thinker", limits);
    let start = Instant::now();
    let answer = testbed.ask(&guest, "x");
    let took = start.elapsed();
    assert!(answer.is_ok(), "{limits}: {answer:?}");
    took
}

#[test]
#[cfg(target_os = "linux")]
fn busy_machine_does_not_end_calls() {
    if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
        return;
    }
    let alone = took(&Testbed::new(), "");
    let done = AtomicBool::new(false);
    let others = 8 * thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // Catches panics, so that a failure does not leave the threads behind.
        let outcome = std::panic::catch_unwind(|| {
            let limits = format!("[limits]\ndeadline = \"{}ms\"", 5 * alone.as_millis() + 5);
            took(&Testbed::new(), &limits);
        });
        done.store(true, Ordering::Relaxed);
        outcome.expect("its own time was enough");
    });
}

#[test]
fn cpu_time_between_requests_adds_up() {
    let attacker = resolving("echo")
        .import("rpc", "request")
        .more(SPINS)
        .handle(
            "(local $n i32)
             (local.set $n (i32.const 3000))
             (loop $again
               (call $spin (i32.const 100000))
               (call $request (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))
               (local.set $n (i32.sub (local.get $n) (i32.const 1)))
               (br_if $again (local.get $n)))
             (call $ok)",
        );
    let asked = |limits: &str| {
        let testbed = Testbed::new();
        testbed.start(&Guest::new(), "echo", "");
        let more = format!("{REQUEST}\n[limits]\nsend_rate = 1000000\n{limits}");
        let attacker = testbed.start(&attacker, "attacker", &more);
        testbed.ask(&attacker, "x")
    };
    let Err(CallError::Fault(fault)) = asked("deadline = \"20ms\"") else {
        panic!("it should have been cut off");
    };
    assert_eq!(fault.kind.name(), "deadline");
    assert!(asked("deadline = \"60s\"").is_ok());
}
