//! What the binary prints, read back by programs that are not ours where possible.

mod agent;
mod bad_inputs;
mod binary;
mod captures;
mod command_line;
mod component;
mod components;
mod configuration;
mod conformance;
mod decode;
mod demo;
mod dictionary;
mod diff;
mod encode;
mod kill;
mod limits;
mod listing;
mod logs;
mod message;
mod metrics;
mod mutations;
mod node;
#[path = "../../../pfcp/tests/others/pdml.rs"]
mod pdml;
mod peer;
mod policy;
mod replay;
mod running;
mod serve;
mod store;
mod terminal;
mod tools;
mod torture;
mod tshark;
mod upf;
mod watch;
