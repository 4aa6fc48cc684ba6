//! The codec through its public interface: by itself, and compared with other programs and their
//! messages.

#[path = "codec/alike.rs"]
mod alike;
#[path = "codec/always.rs"]
mod always;
#[path = "codec/building.rs"]
mod building;
#[path = "codec/compare.rs"]
mod compare;
#[path = "codec/conditions.rs"]
mod conditions;
#[path = "codec/damage.rs"]
mod damage;
#[path = "codec/deviations.rs"]
mod deviations;
#[path = "codec/facts.rs"]
mod facts;
#[path = "codec/field.rs"]
mod field;
#[path = "codec/forbidden.rs"]
mod forbidden;
#[path = "codec/framing.rs"]
mod framing;
#[path = "codec/generated.rs"]
mod generated;
#[path = "others/go_pfcp.rs"]
mod go_pfcp;
#[allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "the command line uses the rest; programs of others run by the real clock"
)]
#[path = "others/guarded.rs"]
mod guarded;
#[path = "codec/index.rs"]
mod index;
#[path = "codec/json.rs"]
mod json;
#[path = "codec/judging.rs"]
mod judging;
#[path = "codec/kept.rs"]
mod kept;
#[path = "codec/mutated.rs"]
mod mutated;
#[path = "codec/octets.rs"]
mod octets;
#[path = "others/pcap.rs"]
mod pcap;
#[path = "others/pdml.rs"]
mod pdml;
#[path = "codec/proof.rs"]
mod proof;
#[path = "codec/release.rs"]
mod release;
#[path = "codec/roundtrip.rs"]
mod roundtrip;
#[path = "codec/rows.rs"]
mod rows;
#[path = "codec/signed.rs"]
mod signed;
#[path = "codec/text.rs"]
mod text;
#[path = "others/tools.rs"]
mod tools;
#[path = "others/tshark.rs"]
mod tshark;
#[path = "codec/validation.rs"]
mod validation;
#[path = "codec/values.rs"]
mod values;
#[path = "codec/vectors.rs"]
mod vectors;
#[path = "codec/vendor.rs"]
mod vendor;
#[path = "codec/waivers.rs"]
mod waivers;
