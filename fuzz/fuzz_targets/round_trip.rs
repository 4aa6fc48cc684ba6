//! Decoding and encoding of arbitrary messages.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/round_trip.rs"]
mod round_trip;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| round_trip::check(bytes));
