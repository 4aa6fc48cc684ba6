//! The codec through its public interface: by itself, and compared with other programs and their
//! messages.

mod building;
mod bytes;
mod cached_shapes;
mod compare;
mod conditions;
mod corruption;
mod deviations;
mod facts;
mod field;
mod flags;
mod forbidden;
mod framing;
mod fuzzed;
mod generated;
#[path = "../others/go_pfcp.rs"]
mod go_pfcp;
#[allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "the command line uses the rest; programs of others run by the real clock"
)]
#[path = "../others/guarded.rs"]
mod guarded;
mod index;
mod json;
mod mutated;
mod owned_values;
#[path = "../others/pcap.rs"]
mod pcap;
#[path = "../others/pdml.rs"]
mod pdml;
mod proof;
mod rejections;
mod release;
mod roundtrip;
mod rows;
mod signed;
mod stored_rules;
mod text;
#[path = "../others/tools.rs"]
mod tools;
#[path = "../others/tshark.rs"]
mod tshark;
mod validation;
mod values;
mod vectors;
mod vendor;
mod waivers;
