//! A stream of arbitrary bytes.

#![no_main]

#[path = "../../crates/gateway/tests/gateway/messages/fuzzed/frame.rs"]
mod frame;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frame::check(bytes));
