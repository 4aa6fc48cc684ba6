//! The memory of meters, as the resident set of this process grows.

use std::time::Duration;

use strowger_pfcp::ie::{CreateUrr, MeasurementMethod as Method, ReportingTriggers as On};
use strowger_pfcp::usage::{Epoch, UsageLimits, UsageMeter};

use crate::usage::bench::{Bench, UP, establishment};

/// Bytes of resident memory.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

const SESSIONS: usize = 100;
const URRS: u32 = 512;
/// Memory that tests beside this one may take.
const NOISE: usize = 16 << 20;

#[test]
fn rules_are_small_until_they_count_and_then_within_the_estimate() {
    let urr = |id| CreateUrr::new(id, Method::VOLUM, On::NONE);
    let request = establishment((1..=URRS).map(urr).collect());
    let mut bench = Bench::of(request, UsageLimits::default());
    let epoch = Epoch::new(bench.zero, Duration::from_secs(1));
    let meter = || UsageMeter::new(bench.zero, epoch, UsageLimits::default(), &bench.rules);
    let Some(before) = resident() else {
        return;
    };
    let mut meters: Vec<UsageMeter> = (0..SESSIONS).map(|_| meter()).collect();
    let unused = resident()
        .expect("it was read before")
        .saturating_sub(before);
    let rules = SESSIONS * URRS as usize;
    assert!(unused < rules * 64 + NOISE, "{} per URR", unused / rules);
    for meter in &mut meters {
        std::mem::swap(&mut bench.usage, meter);
        bench.traffic(UP, 1);
        std::mem::swap(&mut bench.usage, meter);
    }
    let counting = resident()
        .expect("it was read before")
        .saturating_sub(before);
    let estimate = SESSIONS * UsageMeter::memory(&bench.rules);
    assert!(counting < estimate + NOISE, "{} per URR", counting / rules);
    assert!(counting > estimate / 4, "{} per URR", counting / rules);
}
