//! Framing of arbitrary datagrams.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/datagram.rs"]
mod datagram;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| datagram::check(bytes));
