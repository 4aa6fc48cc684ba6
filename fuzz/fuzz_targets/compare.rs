//! Comparison of two messages.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/compare.rs"]
mod compare;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| compare::check(bytes));
