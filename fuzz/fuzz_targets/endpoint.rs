//! A node that receives arbitrary datagrams.

#![no_main]

#[path = "../../crates/pfcp/tests/codec/fuzzed/endpoint.rs"]
mod endpoint;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endpoint::check(bytes));
