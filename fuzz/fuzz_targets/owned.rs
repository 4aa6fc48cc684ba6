//! Owned values of arbitrary messages.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/owned.rs"]
mod owned;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| owned::check(bytes));
