//! The output of the binary, read back by independent programs where possible.

#[cfg(feature = "agents")]
mod agent;
#[cfg(feature = "agents")]
mod answers;
mod bad_inputs;
mod binary;
#[cfg(feature = "agents")]
mod budget;
mod captures;
mod command_line;
#[cfg(feature = "components")]
mod component;
// Also tests agents beside components.
#[cfg(feature = "agents")]
mod components;
#[cfg(feature = "agents")]
mod configuration;
mod conformance;
#[cfg(feature = "components")]
mod deadlines;
mod decode;
mod demo;
#[cfg_attr(
    not(feature = "agents"),
    allow(dead_code, reason = "tests of optional features use the rest")
)]
mod demo_process;
mod dictionary;
mod diff;
mod durable;
mod encode;
#[cfg(feature = "agents")]
mod exit_codes;
#[cfg(feature = "agents")]
mod files;
#[cfg(feature = "agents")]
mod find;
#[cfg(feature = "agents")]
mod folders;
mod forced_shutdown;
#[path = "../../../pfcp/tests/others/guarded.rs"]
mod guarded;
mod idle;
mod kill;
mod limits;
mod listing;
mod logs;
#[cfg(feature = "agents")]
mod mcp_limits;
#[cfg(feature = "agents")]
mod message;
#[cfg(feature = "components")]
mod metrics;
mod mutations;
mod node;
#[cfg(feature = "agents")]
mod pages;
#[path = "../../../pfcp/tests/others/pdml.rs"]
mod pdml;
mod peer;
#[cfg(feature = "agents")]
mod plain_files;
#[cfg(feature = "components")]
mod policy;
mod release;
mod replay;
mod robustness;
#[cfg(feature = "agents")]
mod roles;
#[cfg_attr(
    not(feature = "agents"),
    allow(dead_code, reason = "tests of optional features use the rest")
)]
mod running;
#[cfg(feature = "agents")]
mod schemas;
mod serve;
#[cfg(feature = "agents")]
mod stdio;
mod store;
mod store_fixture;
mod strict_upf;
mod terminal;
#[cfg(feature = "agents")]
mod tools;
#[cfg(feature = "components")]
mod trust;
mod tshark;
mod upf;
mod watch;
#[cfg(not(feature = "agents"))]
mod without_features;
