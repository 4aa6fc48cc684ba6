//! `cargo xtask asan`: AddressSanitizer over the tests of the runtime.
//!
//! Miri finds more, but is too slow for real threads and for a storm of any length.

use crate::Outcome;
use crate::miri;
use crate::project::Project;
use crate::step::{self, Step};

/// Named explicitly, so that the flags do not reach build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The test binaries besides the unit tests.
const TESTS: [&str; 3] = ["behaviour", "parallel", "storm"];

/// Seeds of the storm.
const SEEDS: &str = "0..100";

/// Builds and runs the tests, in a target folder of their own.
pub(crate) fn run(project: &Project) -> Outcome {
    if !miri::has_nightly() {
        return Err("asan needs a nightly: rustup toolchain install nightly".to_owned());
    }
    step::run_all(vec![step(project)], true)
}

pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::command("asan", || {
        let mut cargo = miri::nightly(project, "asan");
        cargo
            .env("RUSTFLAGS", "-Zsanitizer=address")
            // Miri and valgrind look for leaks: LeakSanitizer would need to trace the process.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("STROWGER_STORM_SEEDS", SEEDS);
        cargo.args(["test", "--locked", "-p", "strowger", "--all-features"]);
        cargo.args(["--target", PLATFORM, "--lib"]);
        cargo.args(TESTS.iter().flat_map(|test| ["--test", test]));
        cargo
    })
}
