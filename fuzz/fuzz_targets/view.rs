//! Views of arbitrary messages.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/view.rs"]
mod view;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| view::check(bytes));
