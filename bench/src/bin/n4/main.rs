//! The N4 node under load, as it runs in production: node and load are two processes that share the
//! cores and communicate over loopback.
//!
//! `n4 node ...` is the node; the measurements start it.

mod node;
mod work;

use std::time::{Duration, Instant};

use strowger_bench::{Estimate, Plan, Row};
use strowger_pfcp_node::Durability;
use work::{Figure, N4Bench};

/// Numbers of live sessions at which the cost of one more is measured.
const LIVE_SESSIONS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

fn main() {
    if std::env::args().nth(1).as_deref() == Some("node") {
        return node::serve();
    }
    let plan = Plan::from_args(&["n4"], Estimate::Median);
    let lab = N4Bench::new();
    let (rounds, length) = match plan.is_quick() {
        true => (1, Duration::from_secs(1)),
        false => (5, Duration::from_secs(4)),
    };
    let rates = |suffix: &'static str, durability| {
        measure(
            &plan,
            rounds,
            &[
                &format!("establish_rate{suffix}"),
                &format!("establish_node_processor{suffix}"),
                &format!("establish_load_processor{suffix}"),
            ],
            || lab.establish(suffix, durability, length),
        );
    };
    rates("", None);
    rates("_stored", Some(Durability::Process));
    rates("_disk", Some(Durability::Disk));
    measure(&plan, rounds, &["p50_at_10k", "p99_at_10k"], || {
        lab.latency(10_000.0, 2 * length)
    });
    let panics = if plan.is_quick() { 200 } else { 2000 };
    let ids = ["restart_panic_p50", "restart_panic_p99"];
    measure(&plan, rounds, &ids, || lab.panics(panics));
    let ids = ["recovery_100k", "recovery_100k_usable"];
    measure(&plan, rounds, &ids, || lab.recovery(100_000));
    for live in LIVE_SESSIONS {
        // A million sessions need memory, and time to establish, so one round is enough.
        let (turnover, bytes) = (format!("turnover/{live}"), format!("resident/{live}"));
        let mut ids = vec![turnover.as_str(), bytes.as_str()];
        if live == 1_000_000 {
            ids.push("bytes_per_session");
        }
        measure(&plan, 1, &ids, || lab.many(live, length));
    }
}

/// Runs the work this number of rounds, and prints the median of each of its figures.
fn measure(plan: &Plan, rounds: usize, ids: &[&str], mut work: impl FnMut() -> Vec<Figure>) {
    if !ids.iter().any(|id| plan.wants(id)) {
        return;
    }
    let began = Instant::now();
    let mut runs: Vec<Vec<Figure>> = Vec::new();
    for round in 1..=rounds {
        let took = began.elapsed().as_secs();
        plan.progress(&format!("{} {round} of {rounds}, {took} s", ids[0]));
        runs.push(work());
    }
    plan.progress("");
    for (at, first) in runs[0].iter().enumerate() {
        let mut values: Vec<f64> = runs.iter().map(|run| run[at].value).collect();
        values.sort_by(f64::total_cmp);
        plan.print(&Row {
            part: plan.part(),
            id: first.id.clone(),
            subject: "strowger",
            value: Ok(values[values.len() / 2]),
            unit: first.unit,
            iterations: runs.iter().map(|run| run[at].done).sum(),
            checked: runs.iter().map(|run| run[at].checked).sum(),
            notes: Vec::new(),
        });
    }
}
