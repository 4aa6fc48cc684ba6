//! Views of arbitrary messages.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/view.rs"]
mod view;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| view::check(octets));
