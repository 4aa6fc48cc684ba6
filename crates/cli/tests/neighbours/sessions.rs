//! Sessions of a node on which components compute all the time: none is lost, and sessions and
//! clients of the control socket wait hardly longer than on a quiet node.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::strowger;
use crate::demo_process::Demo;
use crate::files::Files;
use crate::node::{cores, hogs, lock_machine, slowest_answer};

/// Delays measured beside hogs.
#[derive(Debug)]
struct Delays {
    /// The 99th percentile of the SMF's response times.
    p99: Duration,
    /// The slowest of sixty answers at the control socket.
    control: Duration,
    /// The time of an orderly shutdown after SIGTERM.
    end: Duration,
}

/// The time for which sessions are set up while hogs run.
const LOAD_TIME: &str = "4s";

/// Loads a node beside `count` hogs. In every case, no session is lost or refused.
///
/// Delays are those of a load that begins once the hogs run: deploying them takes a compilation and
/// two processes each, which delay others like any program does.
fn measure_delays(files: &Files, count: usize) -> Delays {
    let mut demo = Demo::start(&["--rate", "20", "--sessions", "20"]);
    hogs(&demo.control, files, count, 2_000_000);
    let (load, control) = thread::scope(|scope| {
        let load = scope.spawn(|| load(&demo.n4));
        let mut control = slowest_answer(&demo.control);
        while !load.is_finished() {
            thread::sleep(Duration::from_millis(100));
            control = control.min(slowest_answer(&demo.control));
        }
        (load.join().expect("no panic"), control)
    });
    let began = Instant::now();
    let (code, last) = demo.end_with("TERM");
    let end = began.elapsed();
    for key in ["lost", "rejected"] {
        assert_eq!(last[key], 0, "{key} beside {count}: {last}");
        assert_eq!(load[key], 0, "{key} beside {count}: {load}");
    }
    assert_eq!(code, Some(0), "{last}");
    let p99 = load["p99_us"].as_u64().expect("a number");
    Delays {
        p99: Duration::from_micros(p99),
        control,
        end,
    }
}

/// Sets sessions up at a constant rate, and returns the summary.
///
/// The rate is low for an unoptimized node: at 100 per second on a slow machine, requests queued in
/// the node for longer than the limit, although its threads hardly waited for a processor.
fn load(n4: &str) -> Value {
    let rate = ["--rate", "40", "--sessions", "40", "--for", LOAD_TIME];
    let ran = strowger(
        ["pfcp", "load", "--json", "--to", n4]
            .into_iter()
            .chain(rate),
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.last_object()
}

/// The lower bound of the limit, which is three times the quiet percentile: on a machine that
/// compiles at the same time, an unoptimized binary is quiet only for moments.
const MIN_P99_LIMIT: Duration = Duration::from_millis(20);
/// No answer at the control socket takes longer.
const MAX_CONTROL_DELAY: Duration = Duration::from_millis(100);
/// The time that an SMF and a node get for an orderly shutdown.
const MAX_SHUTDOWN_TIME: Duration = Duration::from_secs(15);

/// Fails if this number of hogs delays sessions in three attempts: a broken guarantee fails every
/// time.
fn assert_unaffected_by_hogs(count: usize) {
    let _alone = lock_machine();
    let files = Files::new();
    let mut missed = Vec::new();
    for _ in 0..3 {
        let quiet = measure_delays(&files, 0);
        let beside = measure_delays(&files, count);
        eprintln!("{count}: {quiet:?} {beside:?}");
        let within = (3 * quiet.p99).max(MIN_P99_LIMIT);
        if beside.p99 <= within
            && beside.control < MAX_CONTROL_DELAY
            && beside.end < MAX_SHUTDOWN_TIME
        {
            return;
        }
        missed.push((quiet, beside));
    }
    panic!("quiet, and beside {count} hogs: {missed:#?}");
}

#[test]
fn one_hog_per_processor_delays_no_session() {
    assert_unaffected_by_hogs(cores());
}

#[test]
fn ten_hogs_per_processor_delay_no_session() {
    assert_unaffected_by_hogs(10 * cores());
}
